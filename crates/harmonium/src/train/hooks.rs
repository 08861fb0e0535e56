//! Custom components of a run: learning rate, step rule, estimator, and hooks on the gradient.

use super::{Data, Gradient, LeftOut, Reduce, TrainParams, TrainPlan};
use crate::estimate::{Estimator, NegativePhase};
use crate::machine::Parameters;
use crate::{Archive, Error, Machine, Real, Result};
use std::fmt;

/// How a gradient becomes a step, in place of the built-in [`Optimiser`](super::Optimiser)s. A closure is one:
/// `|gradient: &mut Parameters, rate: f64| gradient.scale(rate as f32)` is plain gradient ascent.
pub trait StepRule<T: Real>: Send {
    /// Replaces the gradient by the step. Both are by the parameters in the run's coordinates
    /// ([`Coordinates`](super::Coordinates)), penalties included; `rate` is the learning rate of this update.
    ///
    /// # Errors
    /// Ends the run with this error.
    fn step(&mut self, gradient: &mut Parameters<T>, rate: f64) -> Result<()>;

    /// Clears the memory of gradients, after an update was undone.
    fn clear(&mut self) {}

    /// Saves everything that the next step depends on; a rule without state saves nothing.
    fn save(&self, _archive: &mut Archive) {}

    /// Restores it.
    ///
    /// # Errors
    /// An archive that does not hold it.
    fn load(&mut self, _archive: &Archive) -> Result<()> {
        Ok(())
    }
}

impl<T: Real, F: FnMut(&mut Parameters<T>, f64) + Send> StepRule<T> for F {
    fn step(&mut self, gradient: &mut Parameters<T>, rate: f64) -> Result<()> {
        self(gradient, rate);
        Ok(())
    }
}

type RateOf<'d> = Box<dyn FnMut(u64) -> f64 + Send + 'd>;
type OnGradient<'d, T> = Box<dyn FnMut(&mut Gradient<T>, &Machine<T>) -> Result<()> + Send + 'd>;

/// Custom components of a run, replacing or complementing the built-in ones.
///
/// A checkpoint records which components were custom and what they save. A run resumes only with the same components,
/// which the caller passes again: [`Trainer::resume_with`](super::Trainer::resume_with).
pub struct Hooks<'d, T: Real = f32> {
    rate: Option<RateOf<'d>>,
    pub(super) step_rule: Option<Box<dyn StepRule<T> + 'd>>,
    estimator: Option<Box<dyn NegativePhase<T> + 'd>>,
    reduce: Option<Box<dyn Reduce<T> + 'd>>,
    on_gradient: Vec<OnGradient<'d, T>>,
    /// Which components are set, even after the estimator has been taken.
    parts: [u64; PARTS.len()],
}

/// Names of the components, in the order used by checkpoints.
const PARTS: [&str; 5] = ["learning rate", "step rule", "estimator", "reduction", "gradient"];

impl<T: Real> Default for Hooks<'_, T> {
    fn default() -> Self {
        Self {
            rate: None,
            step_rule: None,
            estimator: None,
            reduce: None,
            on_gradient: Vec::new(),
            parts: [0; PARTS.len()],
        }
    }
}

impl<T: Real> fmt::Debug for Hooks<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hooks({})", named(&self.parts))
    }
}

impl<'d, T: Real> Hooks<'d, T> {
    /// The learning rate of each update, counted from 1, in place of rate and schedule; it is still lowered after updates that
    /// had to be undone.
    #[must_use]
    pub fn rate(mut self, rate: impl FnMut(u64) -> f64 + Send + 'd) -> Self {
        self.rate = Some(Box::new(rate));
        self.parts[0] = 1;
        self
    }
    /// The step rule, in place of the optimiser.
    #[must_use]
    pub fn step_rule(mut self, rule: impl StepRule<T> + 'd) -> Self {
        self.step_rule = Some(Box::new(rule));
        self.parts[1] = 1;
        self
    }
    /// The estimator of the negative phase, in place of the plan's.
    #[must_use]
    pub fn estimator(mut self, estimator: impl NegativePhase<T> + 'd) -> Self {
        self.estimator = Some(Box::new(estimator));
        self.parts[2] = 1;
        self
    }
    /// Adds the contributions of other processes to every gradient.
    #[must_use]
    pub fn reduce(mut self, reduce: impl Reduce<T> + 'd) -> Self {
        self.reduce = Some(Box::new(reduce));
        self.parts[3] = 1;
        self
    }
    /// Called with the gradient of every update and its machine; it may add to the gradient. Several are called in
    /// order, after the contributions of other processes have been added.
    #[must_use]
    pub fn gradient(
        mut self,
        f: impl FnMut(&mut Gradient<T>, &Machine<T>) -> Result<()> + Send + 'd,
    ) -> Self {
        self.on_gradient.push(Box::new(f));
        self.parts[4] += 1;
        self
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.parts == [0; PARTS.len()]
    }
    /// Whether the estimator is custom.
    pub fn has_estimator(&self) -> bool {
        self.parts[2] > 0
    }

    /// The plan of a run with these parts, as [`settings`](super::settings) makes it. Own parts cannot be run twice, as a search
    /// for the length or rate would: unset ones have fixed defaults. Where an own estimator stands in for one that is not named,
    /// the other settings are those of persistent chains.
    ///
    /// # Errors
    /// Settings that do not fit the machine or the data.
    pub fn plan(
        &self,
        mut params: TrainParams,
        machine: &Machine<T>,
        data: &Data<T>,
        time_budget: Option<f64>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(TrainPlan, Option<LeftOut>)> {
        if self.has_estimator() {
            params.estimator.get_or_insert(Estimator::Pcd { sweeps: None, chains: None });
        }
        match self.is_empty() {
            true => super::settings(params, machine, data, time_budget, stopped),
            false => Ok((params.plan(machine, data)?, None)),
        }
    }

    pub(super) fn take_estimator(&mut self) -> Option<Box<dyn NegativePhase<T> + 'd>> {
        self.estimator.take()
    }

    /// The learning rate of an update, if it is custom.
    pub(super) fn rate_of(&mut self, update: u64) -> Result<Option<f64>> {
        match self.rate.as_mut().map(|rate| rate(update)) {
            Some(rate) if !(rate.is_finite() && rate >= 0.0) => {
                Err(Error::value(format!("learning rate of update {update}"), "a number ≥ 0", rate))
            }
            rate => Ok(rate),
        }
    }

    /// Applies all hooks to the gradient of a minibatch of `rows` rows of total weight `wt`.
    pub(super) fn on_gradient(
        &mut self,
        gradient: &mut Gradient<T>,
        machine: &Machine<T>,
        rows: usize,
        wt: impl FnOnce() -> f64,
    ) -> Result<()> {
        if let Some(reduce) = &mut self.reduce {
            gradient.reduce(&mut **reduce, rows, wt())?;
        }
        self.on_gradient.iter_mut().try_for_each(|f| f(gradient, machine))
    }

    pub(super) fn save(&self, archive: &mut Archive) {
        if self.is_empty() {
            return;
        }
        archive.put_u64s("parts", &self.parts);
        if let Some(rule) = &self.step_rule {
            let mut part = Archive::default();
            rule.save(&mut part);
            archive.put_below("step_rule", part);
        }
    }

    pub(super) fn load(&mut self, archive: &Archive) -> Result<()> {
        let saved = archive.u64s("parts").unwrap_or_else(|_| vec![0; PARTS.len()]);
        if saved != self.parts {
            let what = "custom components of the resumed run";
            return Err(Error::value(what, named(&saved), named(&self.parts)));
        }
        self.step_rule.as_mut().map_or(Ok(()), |rule| rule.load(&archive.below("step_rule")))
    }
}

/// The names of the components that are set.
fn named(parts: &[u64]) -> String {
    let set: Vec<&str> = PARTS.iter().zip(parts).filter(|(_, n)| **n > 0).map(|(p, _)| *p).collect();
    if set.is_empty() { "none".into() } else { set.join(", ") }
}
