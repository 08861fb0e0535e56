//! The estimated time of the parts of a search, in seconds on one thread: what a search does must not depend on the clock.

use crate::estimate::Estimator;
use crate::train::{Data, TrainParams, TrainPlan, Trainer, has_only_bits};
use crate::{Machine, Real, Result};
use std::time::Instant;

/// Seconds for each weight of a row that goes through a machine once: bits go through look-ups of many weights at once.
const BIT_WEIGHT: f64 = 1.6e-11;
const WEIGHT: f64 = 3e-10;
/// Seconds for each unit of such a row, times the cost of its Γ.
const UNIT: f64 = 1e-9;
/// Seconds of an update beside its rows, and for each weight.
const UPDATE: f64 = 5e-5;
const STEP: f64 = 1e-9;
/// The gradient of an exact update costs about this many enumerations of ln Z.
const MOMENTS: f64 = 20.0;

/// Seconds for a row that goes through the machine once.
pub(super) fn row<T: Real>(machine: &Machine<T>) -> f64 {
    let each = if has_only_bits(machine) { BIT_WEIGHT } else { WEIGHT };
    let units = |l: usize| machine.layer(l).kind().cgf_cost() * machine.layer(l).width() as f64;
    each * weights(machine) + UNIT * (0..machine.len()).map(units).sum::<f64>()
}

fn weights<T: Real>(machine: &Machine<T>) -> f64 {
    machine.couplings().iter().map(|c| c.w().len() as f64).sum()
}

/// Seconds of an update whose chains make so many sweeps.
pub(super) fn update<T: Real>(
    machine: &Machine<T>,
    plan: &TrainPlan,
    data: &Data<T>,
    sweeps: f64,
) -> f64 {
    let of_data = plan.batch() as f64 * if data.is_missing() { 2.0 } else { 1.0 };
    let fixed = UPDATE + STEP * weights(machine);
    match plan.estimator() {
        Estimator::Exact => {
            let log_z = machine.exact().cost().map_or(0.0, |(_, seconds)| seconds);
            fixed + of_data * row(machine) + MOMENTS * log_z
        }
        // As many chains as rows.
        _ => fixed + (of_data + sweeps * plan.batch() as f64) * row(machine),
    }
}

/// Part of a time that the search is planned to take, and part after which it has to end: what its estimates do not see takes
/// some as well, and so do the likelihoods of the finalists.
const SEARCH: f64 = 0.72;
const DEADLINE: f64 = 0.82;
/// Part of a time, and most seconds, for the evaluation of the result.
const EVALUATION: (f64, f64) = (0.1, 30.0);
/// Part of a time, and most seconds, in which the speed is measured.
const PROBE: (f64, f64) = (0.02, 3.0);

/// How the wall time of a search, in seconds, is divided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Division {
    time: f64,
}

impl Division {
    /// Of a time in seconds.
    pub fn of(time: f64) -> Self {
        Self { time }
    }
    /// Seconds after which the trials have to end.
    pub fn deadline(self) -> f64 {
        DEADLINE * self.time
    }
    /// Seconds for the evaluation of the result.
    pub fn evaluation(self) -> f64 {
        (EVALUATION.0 * self.time).min(EVALUATION.1)
    }

    /// The work of a search that this computer does in the time. It is measured once, on updates that are discarded: what a search
    /// tries follows from the work, not from the clock.
    ///
    /// # Errors
    /// Settings that do not fit the machine or the data.
    pub fn work<T: Real>(
        self,
        machine: &Machine<T>,
        data: &Data<T>,
        params: &TrainParams,
    ) -> Result<f64> {
        let probe = (PROBE.0 * self.time).min(PROBE.1);
        Ok(SEARCH * self.time * speed(machine, data, params, probe)?)
    }
}

/// Work in a second, measured for about so many seconds.
fn speed<T: Real>(
    machine: &Machine<T>,
    data: &Data<T>,
    params: &TrainParams,
    seconds: f64,
) -> Result<f64> {
    let plan = params.plan(machine, data)?;
    let each = update(machine, &plan, data, 1.0);
    let mut trainer = Trainer::new(machine.clone(), plan, data)?;
    // The first update has caches to fill.
    trainer.update()?;
    let start = Instant::now();
    let mut n = 0.0;
    while n < 3.0 || start.elapsed().as_secs_f64() < seconds {
        trainer.update()?;
        n += 1.0;
    }
    Ok(n * each / start.elapsed().as_secs_f64())
}
