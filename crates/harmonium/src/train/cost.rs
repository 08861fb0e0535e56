//! Rough times of the parts of a run, from sizes alone: results must not depend on the clock.

use super::evaluate::{CHAINS, CHEAP, STEPS};
use super::init::has_only_bits;
use super::{Data, TrainPlan};
use crate::estimate::{Estimator, PtParams};
use crate::{Machine, Real};

/// Chains at each temperature when a run changes to replica exchange. A hundred rows at ten temperatures cost about as
/// much as the minibatches and chains of most runs; on two clusters of answers fifty were as good as 450.
const REPLICAS: usize = 100;

/// The gradient of an update costs about this many enumerations of ln Z.
const MOMENTS: f64 = 20.0;

/// Seconds on one thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    sampled_update: f64,
    tempered_update: f64,
    exact_update: f64,
    pub(super) evaluation: f64,
}

impl Cost {
    pub(super) fn new<T: Real>(machine: &Machine<T>, plan: &TrainPlan, data: &Data<T>) -> Self {
        let weights: usize = machine.couplings().iter().map(|c| c.w().len()).sum();
        // Nanoseconds: bits go through look-ups of many weights at once.
        let each = if has_only_bits(machine) { 0.15 } else { 3.0 };
        let units = |l: usize| machine.layer(l).kind().cgf_cost() * machine.layer(l).width() as f64;
        let row = 2e-9 * (each * weights as f64 + (0..machine.len()).map(units).sum::<f64>());
        // Those of rows with gaps come on top.
        let of_data = plan.batch * if data.is_missing() { 2 } else { 1 };
        let PtParams { chains, rungs, .. } = replicas(plan);
        let log_z = machine.exact().cost().map_or(f64::INFINITY, |(_, seconds)| seconds);
        let annealing = (CHAINS * STEPS) as f64 * row;
        Self {
            // As many chains as rows.
            sampled_update: (of_data + plan.batch) as f64 * row,
            tempered_update: (of_data + rungs * chains.unwrap_or(plan.batch)) as f64 * row,
            exact_update: MOMENTS * log_z,
            evaluation: if log_z < CHEAP { log_z } else { annealing },
        }
    }

    /// Seconds of an update by this estimator.
    pub(super) fn update(&self, estimator: &Estimator) -> f64 {
        match estimator {
            Estimator::Exact => self.exact_update,
            Estimator::Pt(_) => self.tempered_update,
            _ => self.sampled_update,
        }
    }
}

/// Replica exchange for a run whose chains do not mix.
pub(super) fn replicas(plan: &TrainPlan) -> PtParams {
    PtParams { chains: Some(REPLICAS.min(plan.batch)), ..PtParams::DEFAULT }
}
