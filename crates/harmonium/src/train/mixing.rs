//! Detects chains that do not mix by the likelihood of the training rows, and changes to a gradient that needs no such chains.

use super::cost::{Cost, replicas};
use super::defaults::FEW_ROWS;
use super::evaluate::Patience;
use super::init::has_only_bits;
use super::plan::{EXACT_UPDATES, default_batch};
use super::{Evaluated, Event, Trainer};
use crate::estimate::{Estimator, Setup};
use crate::{Archive, Real, Result};

/// A fall of the training likelihood by this many nats and this fraction of the gain so far is more than gradient
/// noise: all evaluations use the same rows and averaged parameters. Chains that have lost a mode cost whole nats. An
/// annealed likelihood has an error of its own.
const FALL: f64 = 0.3;
const ANNEALED_FALL: f64 = 1.0;
const PART: f64 = 0.1;

/// Limits in seconds on the estimated time of the other gradient: in runs on few rows, which cross-validation repeats,
/// and in others. Fewest remaining updates for which the change pays off.
const SECONDS_AGAIN: f64 = 8.0;
const SECONDS_ONCE: f64 = 40.0;
const FEWEST: u64 = 500;

/// The first and the highest likelihood of a run, and whether the last one lies below by more than noise explains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LikelihoodRange {
    ends: Option<(f64, f64)>,
    fallen: bool,
}

impl LikelihoodRange {
    pub(super) fn new() -> Self {
        Self { ends: None, fallen: false }
    }

    /// Records a likelihood; returns whether it has fallen by more than noise explains, which is `least` or a part of the
    /// gain.
    fn has_fallen(&mut self, to: f64, least: f64) -> bool {
        let (first, highest) = self.ends.unwrap_or((to, to));
        let highest = highest.max(to);
        self.ends = Some((first, highest));
        self.fallen = highest - to > least.max(PART * (highest - first));
        self.fallen
    }

    /// Records that a likelihood could be computed before and no longer can: the model has run away.
    fn is_lost(&mut self) {
        self.fallen = self.ends.is_some();
    }

    /// Whether the model is much worse than the best one of the run.
    pub(super) fn is_down(&self) -> bool {
        self.fallen
    }

    pub(super) fn save(&self, archive: &mut Archive) {
        if let Some((first, highest)) = self.ends {
            archive.put_f64s("ends", &[first, highest]);
            archive.put_u64s("fallen", &[u64::from(self.fallen)]);
        }
    }

    pub(super) fn load(archive: &Archive) -> Self {
        let ends = match archive.f64s("ends").as_deref() {
            Ok([first, highest]) => Some((*first, *highest)),
            _ => None,
        };
        let fallen = archive.u64s("fallen").is_ok_and(|f| f == [1]);
        Self { ends, fallen }
    }
}

impl<T: Real> Trainer<'_, T> {
    /// Goes back to the best model and changes to exact gradients, or to replica exchange, when the likelihood of the
    /// training rows shows that the chains do not mix. Only persistent chains whose sweeps are unset are replaced, and
    /// never those of bits.
    pub(super) fn check_mixing(&mut self, e: &Evaluated) -> Result<Option<Event>> {
        let open = matches!(self.plan.estimator, Estimator::Pcd { sweeps: None, .. });
        if !open || self.hooks.has_estimator() || has_only_bits(&self.machine) {
            return Ok(None);
        }
        let metric = |name: &str| e.metrics.iter().find(|(n, _)| *n == name).map(|m| m.1);
        let exact = metric("train_log_likelihood").map(|found| (found, FALL));
        let annealed = || metric("train_log_likelihood_estimate").map(|found| (found, ANNEALED_FALL));
        let Some((found, least)) = exact.or_else(annealed) else {
            if self.patience(e.update) == Patience::Last {
                self.climb.is_lost();
            }
            return Ok(None);
        };
        if !self.climb.has_fallen(found, least) {
            return Ok(None);
        }
        let Some((estimator, updates)) = self.mixing_estimator() else { return Ok(None) };
        self.back_to_best()?;
        self.climb.fallen = false;
        let with = match estimator {
            Estimator::Exact => "exact gradients",
            _ => "replica exchange",
        };
        self.change_to(estimator, updates)?;
        let why = format!(
            "the likelihood fell to {found:.3} because the chains do not mix: back to the best model, and on with {with}"
        );
        Ok(Some(Event::Undone { update: self.update, why, rate_factor: self.rate_factor }))
    }

    /// Exact gradients where enough of them are affordable, else replica exchange, and for how many updates.
    fn mixing_estimator(&self) -> Option<(Estimator, u64)> {
        let limit = if self.rows.len() < FEW_ROWS { SECONDS_AGAIN } else { SECONDS_ONCE };
        let cost = Cost::new(&self.machine, &self.plan, &self.data);
        let affordable = |estimator: &Estimator| (limit / cost.update(estimator)) as u64;
        let updates = EXACT_UPDATES.min(affordable(&Estimator::Exact));
        if updates >= FEWEST {
            return Some((Estimator::Exact, updates));
        }
        let tempered = Estimator::Pt(replicas(&self.plan));
        let left = self.plan.updates - self.update;
        let updates = left.min(affordable(&tempered));
        let pays = updates >= FEWEST.min(left) && tempered.obstacle(&self.machine).is_none();
        pays.then_some((tempered, updates))
    }

    /// Another estimator for the rest of the run, at most `updates` of them; exact gradients with their default minibatches.
    fn change_to(&mut self, estimator: Estimator, updates: u64) -> Result<()> {
        let plan = &mut self.plan;
        if estimator == Estimator::Exact {
            plan.batch = default_batch(&self.machine, true).min(self.rows.len());
        }
        plan.estimator = estimator;
        plan.updates = plan.updates.min(self.update + updates);
        plan.stop_after = plan.stop_after.min(plan.updates);
        let (batch, seed) = (plan.batch, plan.seed);
        let setup = Setup { machine: &self.machine, data: self.data.states(), batch, seed, draw: true };
        self.estimator = self.plan.estimator.build(&setup)?;
        self.stepper.clear(self.plan.rate * self.rate_factor);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fall_is_more_than_noise() {
        let mut climb = LikelihoodRange::new();
        // Up to 0.3 nats, or a tenth of the gain: 1 for a gain of 10 nats.
        let seen = [-20.0, -20.29, -20.31, -15.0, -15.4, -15.6, -10.0, -10.9, -11.1];
        let falls = [false, false, true, false, false, true, false, false, true];
        assert_eq!(seen.map(|x| climb.has_fallen(x, FALL)), falls);
        let mut archive = Archive::default();
        climb.save(&mut archive);
        assert_eq!(LikelihoodRange::load(&archive), climb);
        assert_eq!(LikelihoodRange::load(&Archive::default()), LikelihoodRange::new());
    }
}
