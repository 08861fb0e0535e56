//! Lost modes: where the score is a pseudo-likelihood, which does not see the weights of modes, some models are annealed, and a run
//! whose chains have lost modes returns to the best of these.

use super::evaluate::{FEW_WEIGHTS, annealed_likelihood, sample_rows};
use super::watch::Slack;
use super::{Evaluated, Event, Floor, StopReason, Trainer};
use crate::{Real, Result};

/// A model this many nats below independent columns must have lost modes: runs start at independent columns, and an
/// annealing of few chains is accurate to some tenths.
const LOST: f64 = 1.0;

/// Fraction of the planned rate at which a run whose chains lose modes ends.
const SLOWEST: f64 = 0.02;

impl<T: Real> Trainer<'_, T> {
    /// Whether the last annealed model lies below independent columns: its chains have lost modes of the data, which a
    /// pseudo-likelihood does not detect.
    pub(super) fn has_lost_modes(&self) -> bool {
        self.safe.is_below_start(LOST)
    }

    /// Anneals the model at the first, second, fourth … evaluation, at the last one and after modes were lost, where that
    /// costs little and the score is a pseudo-likelihood. Returns the likelihood of a model below independent columns.
    pub(super) fn lost_modes(&mut self, e: &Evaluated) -> Result<Option<f64>> {
        let number = self.update / self.plan.evaluate_every.max(1);
        let due = number.is_power_of_two() || self.is_last() || self.has_lost_modes();
        let weights: usize = self.machine.couplings().iter().map(|c| c.w().len()).sum();
        let has = |name: &str| e.metrics.iter().any(|(n, _)| n.starts_with(name));
        let blind = has("train_pseudo") && !has("train_log_likelihood");
        if !due || !blind || weights > FEW_WEIGHTS {
            return Ok(None);
        }
        let rows = self.valid.as_deref().unwrap_or(&self.data).without_gaps();
        let Some(rows) = rows else { return Ok(None) };
        let rows = sample_rows(&rows, self.plan.evaluate_rows);
        if self.safe.update().is_none() {
            // Soft bits have no likelihood.
            let Ok(floor) = Floor::new(&self.machine, &self.data)?.log_likelihood(&rows) else {
                return Ok(None);
            };
            let mut independent = self.machine.clone();
            super::init::from_data(&mut independent, &self.data, 0.0, self.plan.seed)?;
            self.safe.see(floor, 0, Slack::Wide, || independent.parameters());
        }
        let machine = self.averaged_inside();
        let Ok(f) = machine.free_energy(rows.states()) else { return Ok(None) };
        let found = annealed_likelihood(&machine, &rows, &f, self.plan.seed);
        let Some(found) = found else { return Ok(None) };
        self.safe.see(found, self.update, Slack::Wide, || machine.parameters());
        Ok(self.has_lost_modes().then_some(found))
    }

    /// Goes back to the best annealed model and to shorter steps, which the chains may be able to follow; `None` when the
    /// run is over or steps have become too short to learn.
    pub(super) fn back_to_safe(&mut self, found: f64) -> Result<Option<Event>> {
        let Some(safe) = self.safe.parameters().filter(|_| !self.is_last()).cloned() else {
            return Ok(None);
        };
        if self.rate_factor <= SLOWEST {
            return Ok(None);
        }
        self.restore(&safe)?;
        self.best.restart(&self.safe);
        self.rate_factor *= 0.5;
        let why = format!(
            "the chains did not mix: the likelihood fell to about {found:.2}, below independent columns: back to the best model"
        );
        Ok(Some(self.lower(self.update, why)))
    }

    pub(super) fn gives_up_modes(&self, found: f64) -> StopReason {
        StopReason::LostModes { log_likelihood: found, kept: self.safe.update().unwrap_or(0) }
    }
}
