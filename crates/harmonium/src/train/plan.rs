//! Validates settings and fills in what depends on the machine and the data.

use super::init::{has_only_bits, is_blank};
use super::{Coordinates, Data, Init, Optimiser, Regulariser, Schedule, TrainParams};
use crate::estimate::{Averaging, Estimator, Steps};
use crate::{Error, Machine, Real, Result};

/// Rows of a minibatch, and chains, where the data have as many.
const BATCH: usize = 500;

/// Arrays of all parameters that every run keeps: the machine, the next one, and the average or the memory of the optimiser.
const COPIES: usize = 3;

/// Rows times weights that a minibatch of an exact run may have.
const WORK: usize = 1 << 20;

/// An enumeration this short (in seconds) is preferred to sampling.
const EXACT: f64 = 2e-4;

/// Updates of a run with exact gradients.
pub(super) const EXACT_UPDATES: u64 = 2_000;

/// Adam with squared gradients averaged over a hundred updates. With the usual thousand, the large gradients at the
/// start keep steps short for most of a run.
const ADAM: Optimiser = Optimiser::Adam { beta1: 0.9, beta2: 0.99, epsilon: 1e-8 };

/// Rate times updates of a run of Adam with sampled gradients, within limits.
const SAMPLED_ADAM_PATH: f64 = 100.0;

/// The settings of a run, checked and complete: made by [`TrainParams::plan`].
#[derive(Clone, Debug, PartialEq)]
pub struct TrainPlan {
    pub(super) seed: u64,
    pub(super) estimator: Estimator,
    pub(super) positive: Averaging,
    pub(super) batch: usize,
    pub(super) updates: u64,
    pub(super) stop_after: u64,
    pub(super) form: Coordinates,
    pub(super) optimiser: Optimiser,
    pub(super) rate: f64,
    pub(super) schedule: Schedule,
    pub(super) average: u64,
    pub(super) init: Init,
    pub(super) offset_rate: f64,
    pub(super) regulariser: Regulariser,
    pub(super) evaluate_every: u64,
    pub(super) evaluate_rows: usize,
    pub(super) patience: usize,
}

#[cfg(test)]
thread_local! {
    /// Plans made by this thread.
    pub(super) static PLANS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl TrainParams {
    /// Checks these settings for a machine and its data and gives unset fields their defaults.
    ///
    /// # Errors
    /// An invalid field, which the message names; data that do not fit the machine; an estimator that does not apply.
    pub fn plan<T: Real>(&self, machine: &Machine<T>, data: &Data<T>) -> Result<TrainPlan> {
        #[cfg(test)]
        PLANS.with(|n| n.set(n.get() + 1));
        data.check(machine)?;
        machine.check_normalisable()?;
        machine.check_copies("training", COPIES)?;
        self.check()?;
        let rows = data.positive_weight_rows().len();
        let estimator = self.estimator.clone().unwrap_or_else(|| default_estimator(machine));
        estimator.check(machine)?;
        let full = estimator == Estimator::Exact;
        let batch = self.batch.unwrap_or(default_batch(machine, full)).min(rows);
        let estimator = estimator.with_defaults(batch);
        let positive = self.positive.unwrap_or(Averaging::default_for(machine, data.is_missing()));
        positive.check(machine, data.is_missing())?;
        if machine.soft_layer(data.states()).is_some() {
            estimator.check_soft(machine)?;
            positive.check_soft(machine)?;
        }
        let updates = match (self.updates, self.epochs) {
            (Some(_), Some(_)) => {
                return Err(Error::value("epochs", "updates or epochs, not both", "both"));
            }
            (Some(u), None) => u,
            (None, Some(e)) => (e * rows as f64 / batch as f64).ceil() as u64,
            (None, None) => default_updates(rows, batch, full, has_only_bits(machine)),
        };
        let bits = has_only_bits(machine);
        let form =
            self.form.unwrap_or(if bits { Coordinates::Centred } else { Coordinates::Standardised });
        let optimiser = self.optimiser.unwrap_or_else(|| default_optimiser(&estimator, bits));
        let rate = self.rate.unwrap_or(default_rate(bits, form, optimiser, &estimator, updates));
        Ok(TrainPlan {
            seed: self.seed.unwrap_or(0),
            estimator,
            positive,
            batch,
            updates,
            stop_after: self.stop_after.unwrap_or(updates).min(updates),
            form,
            optimiser,
            rate,
            schedule: self.schedule.unwrap_or_default(),
            average: self.average.unwrap_or(default_average(updates, full)),
            init: self.init.unwrap_or(match is_blank(machine) {
                true => Init::Data { std: 0.01 },
                false => Init::Keep,
            }),
            offset_rate: self.offset_rate.unwrap_or(0.01),
            regulariser: self.regulariser.unwrap_or_default(),
            evaluate_every: self.evaluate_every.unwrap_or(default_evaluate_every(updates)),
            evaluate_rows: self.evaluate_rows.unwrap_or(500),
            patience: self.patience.unwrap_or(0),
        })
    }

    /// Checks the range of every number that is set.
    fn check(&self) -> Result<()> {
        let positive = |what: &str, x: Option<f64>| match x {
            Some(x) if !(x.is_finite() && x > 0.0) => Err(Error::value(what, "a positive number", x)),
            _ => Ok(()),
        };
        let part = |what: &str, x: f64| match x {
            x if (0.0..1.0).contains(&x) => Ok(()),
            _ => Err(Error::value(what, "a number in [0, 1)", x)),
        };
        let at_least_one = |what: &str, x: Option<u64>| match x {
            Some(0) => Err(Error::value(what, "at least 1", 0)),
            _ => Ok(()),
        };
        positive("rate", self.rate)?;
        positive("epochs", self.epochs)?;
        at_least_one("batch", self.batch.map(|x| x as u64))?;
        at_least_one("evaluate_rows", self.evaluate_rows.map(|x| x as u64))?;
        self.estimator.as_ref().map_or(Ok(()), Estimator::check_settings)?;
        match self.positive {
            Some(Averaging::Chain { sweeps: n }) => {
                at_least_one("positive.sweeps", Some(n as u64))?;
            }
            Some(Averaging::MeanField { rounds: n }) => {
                at_least_one("positive.rounds", Some(n as u64))?;
            }
            _ => {}
        }
        match self.optimiser {
            Some(Optimiser::Momentum { mu } | Optimiser::Nesterov { mu }) => {
                part("optimiser.mu", mu)?;
            }
            Some(Optimiser::Adam { beta1, beta2, epsilon }) => {
                part("optimiser.beta1", beta1)?;
                part("optimiser.beta2", beta2)?;
                positive("optimiser.epsilon", Some(epsilon))?;
            }
            Some(Optimiser::Cosine { delta, max }) => {
                part("optimiser.delta", delta)?;
                positive("optimiser.max", Some(max))?;
            }
            _ => {}
        }
        match self.schedule {
            Some(Schedule::Exponential { end }) => positive("schedule.end", Some(end))?,
            Some(Schedule::Inverse { half }) => positive("schedule.half", Some(half))?,
            Some(Schedule::Plateau { until }) => part("schedule.until", until)?,
            _ => {}
        }
        if let Some(Init::Data { std } | Init::LowRank { std, .. }) = self.init
            && !(std.is_finite() && std >= 0.0)
        {
            return Err(Error::value("init.std", "a number ≥ 0", std));
        }
        match self.offset_rate {
            Some(x) if !(x > 0.0 && x <= 1.0) => {
                return Err(Error::value("offset_rate", "a number in (0, 1]", x));
            }
            _ => {}
        }
        let r = self.regulariser.unwrap_or_default();
        let penalties = [
            ("l1", r.l1),
            ("l2", r.l2),
            ("l1b", r.l1b),
            ("max_norm", r.max_norm),
            ("target_strength", r.target_strength),
        ];
        for (name, x) in penalties {
            if !(x.is_finite() && x >= 0.0) {
                return Err(Error::value(format!("regulariser.{name}"), "a number ≥ 0", x));
            }
        }
        Ok(())
    }
}

impl TrainPlan {
    /// The same plan with another number of updates, and the defaults that depend on it.
    pub(super) fn with_updates(mut self, updates: u64) -> Self {
        let whole = self.stop_after == self.updates;
        self.stop_after = if whole { updates } else { self.stop_after.min(updates) };
        self.updates = updates;
        self.average = default_average(updates, self.estimator == Estimator::Exact);
        self.evaluate_every = default_evaluate_every(updates);
        self
    }

    /// The default rate of a run of this length.
    pub(super) fn default_rate<T: Real>(&self, machine: &Machine<T>) -> f64 {
        default_rate(has_only_bits(machine), self.form, self.optimiser, &self.estimator, self.updates)
    }

    /// The settings with all defaults written out.
    pub fn params(&self) -> TrainParams {
        TrainParams {
            seed: Some(self.seed),
            estimator: Some(self.estimator.clone()),
            positive: Some(self.positive),
            batch: Some(self.batch),
            updates: Some(self.updates),
            stop_after: (self.stop_after < self.updates).then_some(self.stop_after),
            epochs: None,
            form: Some(self.form),
            optimiser: Some(self.optimiser),
            rate: Some(self.rate),
            schedule: Some(self.schedule),
            average: Some(self.average),
            init: Some(self.init),
            offset_rate: Some(self.offset_rate),
            regulariser: Some(self.regulariser),
            evaluate_every: Some(self.evaluate_every),
            evaluate_rows: Some(self.evaluate_rows),
            patience: Some(self.patience),
        }
    }

    /// Number of updates.
    pub fn updates(&self) -> u64 {
        self.updates
    }
    /// Updates after which the run ends.
    pub fn stop_after(&self) -> u64 {
        self.stop_after
    }
    /// Rows of a minibatch.
    pub fn batch(&self) -> usize {
        self.batch
    }
    /// The estimator.
    pub fn estimator(&self) -> &Estimator {
        &self.estimator
    }
}

/// Enumeration where an update by it is no slower than by sampling, else persistent chains.
fn default_estimator<T: Real>(machine: &Machine<T>) -> Estimator {
    match machine.exact().cost() {
        Ok((_, seconds)) if seconds < EXACT => Estimator::Exact,
        _ => Estimator::Pcd { sweeps: None, chains: None },
    }
}

/// Four hundred passes over the data, but no fewer updates than the weights need to form (small sets were still rising
/// after 7000) and no more than 50 000. Adam, the default for other columns than bits, needs a fraction of them, and
/// enumeration has no noise to average out.
fn default_updates(rows: usize, batch: usize, exact: bool, bits: bool) -> u64 {
    let epochs = 400.0 * rows as f64 / batch as f64;
    if exact {
        EXACT_UPDATES
    } else if !bits {
        epochs.clamp(5_000.0, 20_000.0) as u64
    } else {
        epochs.clamp(20_000.0, 50_000.0) as u64
    }
}

/// A fiftieth of the run; exact gradients have no noise to average out.
fn default_average(updates: u64, exact: bool) -> u64 {
    if exact { 0 } else { (updates / 50).max(1) }
}

fn default_evaluate_every(updates: u64) -> u64 {
    (updates / 100).max(1)
}

/// With enumeration the gradient has no noise but that of the minibatch: all rows at once leave none, as long as that is
/// no more work than the enumeration allows.
pub(super) fn default_batch<T: Real>(machine: &Machine<T>, exact: bool) -> usize {
    let weights: usize = machine.couplings().iter().map(|c| c.w().len()).sum();
    if exact { (WORK / weights.max(1)).max(BATCH) } else { BATCH }
}

/// Plain gradient descent for bits, whose moments all have one scale. Elsewhere, and where the gradient is exact, Adam:
/// each parameter gets its own step size (docs/design/0006-learning.md has the measured regrets). With trajectory
/// tempering, whose chains can follow small steps only, the cosine rule, which adapts its rates.
fn default_optimiser(estimator: &Estimator, bits: bool) -> Optimiser {
    match estimator.steps() {
        Steps::Small => Optimiser::COSINE,
        Steps::Noiseless => ADAM,
        Steps::Any if bits => Optimiser::default(),
        Steps::Any => ADAM,
    }
}

/// A safe rate for the coordinates: scales below one magnify an update.
fn default_rate(
    bits: bool,
    form: Coordinates,
    optimiser: Optimiser,
    estimator: &Estimator,
    updates: u64,
) -> f64 {
    let rate = match optimiser {
        Optimiser::Sgd => 0.1,
        Optimiser::Momentum { mu } | Optimiser::Nesterov { mu } => 0.1 * (1.0 - mu),
        Optimiser::Adam { .. } if estimator.steps() == Steps::Noiseless => 0.05,
        // For bits it is not the default.
        Optimiser::Adam { .. } if bits => 0.005,
        // The noise of sampled gradients leaves an error that grows with the rate; a short run has to take longer steps all
        // the same.
        Optimiser::Adam { .. } => (SAMPLED_ADAM_PATH / updates.max(1) as f64).clamp(0.005, 0.02),
        Optimiser::Cosine { .. } => 1e-3,
    };
    match (form, optimiser) {
        (Coordinates::Standardised, Optimiser::Sgd) => rate / 10.0,
        (_, Optimiser::Adam { .. }) => rate,
        _ if !bits => rate / 10.0,
        _ => rate,
    }
}
