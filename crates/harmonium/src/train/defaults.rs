//! Defaults of unset settings: estimator, rate and length, by the machine and its data.

use super::init::has_only_bits;
use super::length::{LeftOut, choose};
use super::{Coordinates, Data, Init, Optimiser, TrainParams, TrainPlan, Trainer};
use crate::estimate::{Estimator, LabelsParams};
use crate::sample::Stop;
use crate::{Error, Machine, Real, Result, Role};
use std::time::Instant;

/// Weights up to which an update costs next to nothing, and the number of updates of such a machine.
const SMALL: usize = 20_000;
const PATIENT: u64 = 20_000;

/// Default standard deviation of the initial weights.
const STD: f64 = 0.01;

/// Rows up to which the length of a run is chosen by cross-validation, for bits and for other columns, and the fewest
/// rows for it. Fewer rows of states are learnt by heart, as one would learn a list of patterns; a density that has learnt rows by heart
/// has no limit, so that real columns are cross-validated as soon as that is possible, and not learnt before.
const FEW_BITS: usize = 1000;
pub(super) const FEW_ROWS: usize = 5000;
const FEWEST: usize = 20;
const FEWEST_REALS: usize = 5;

/// Strength of the penalty on squared weights of such runs, for all rows together: that of a normal prior of variance 1/0.3 for every
/// weight per standard deviation of its column (docs/design/0006-learning.md).
const PENALTY: f64 = 0.3;

/// The plan of a run: `params` with defaults for all unset fields, and what rows said that were left out to find the length. With
/// a time budget in seconds and neither updates nor epochs set, as many updates as fit into it, by a measurement that `stopped` can end.
///
/// # Errors
/// Settings that do not fit the machine or the data.
pub fn settings<T: Real>(
    params: TrainParams,
    machine: &Machine<T>,
    data: &Data<T>,
    time_budget: Option<f64>,
    stopped: &dyn Fn() -> bool,
) -> Result<(TrainPlan, Option<LeftOut>)> {
    Draft::new(params, machine, data)?.finish(machine, data, time_budget, stopped)
}

/// A plan whose length and rate, where unset, are still to be determined, which may take longer than the run itself.
#[derive(Clone, Debug)]
pub struct Draft {
    plan: TrainPlan,
    /// Whether the length is unset.
    free: bool,
    /// Whether the rate is unset.
    any_rate: bool,
    /// Whether no penalty is set.
    any_penalty: bool,
    /// Whether training is discriminative by default.
    hybrid: bool,
}

impl Draft {
    /// Checks settings and gives unset ones their defaults.
    ///
    /// # Errors
    /// Settings that do not fit the machine or the data.
    pub fn new<T: Real>(mut params: TrainParams, machine: &Machine<T>, data: &Data<T>) -> Result<Self> {
        let free = params.updates.is_none() && params.epochs.is_none();
        let any_rate = params.rate.is_none();
        let hybrid = machine.class_layer().is_some() && params.estimator.is_none();
        if hybrid {
            tell_classes_apart(&mut params);
        }
        let any_penalty = params.regulariser.is_none();
        Ok(Self { plan: params.plan(machine, data)?, free, any_rate, any_penalty, hybrid })
    }

    /// The plan with its length and rate, determined as in [`settings`], and what the rows said that were left out for it.
    ///
    /// # Errors
    /// Errors of an update.
    pub fn finish<T: Real>(
        self,
        machine: &Machine<T>,
        data: &Data<T>,
        time_budget: Option<f64>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(TrainPlan, Option<LeftOut>)> {
        let Self { mut plan, free, any_rate, any_penalty, hybrid } = self;
        if let (Some(budget), true) = (time_budget, free) {
            let updates = updates_within(budget, &plan, machine, data, stopped)?;
            plan = plan.with_updates(updates);
            if any_rate && !hybrid {
                plan.rate = plan.default_rate(machine);
            }
            return Ok((plan, None));
        }
        if !free || hybrid {
            return Ok((plan, None));
        }
        let weights: usize = machine.couplings().iter().map(|c| c.w().len()).sum();
        // A run whose length is chosen by cross-validation is repeated several times.
        let once = has_only_bits(machine) || !is_short_of_rows(machine, data);
        let small = weights <= SMALL && once && plan.estimator != Estimator::Exact;
        let updates = plan.updates.max(if small { PATIENT } else { 0 });
        plan = plan.with_updates(updates);
        if any_rate {
            plan.rate = plan.default_rate(machine);
        }
        let mut left_out = None;
        if is_short_of_rows(machine, data) {
            // All bits have the same scale.
            let any_rate = any_rate && !has_only_bits(machine);
            if any_penalty {
                plan.regulariser.l2 = PENALTY / data.rows() as f64;
            }
            if data.rows() < FEWEST_REALS {
                plan.stop_after = 0;
            } else if let Some(choice) = choose(&plan, machine, data, any_rate, stopped)? {
                plan.rate = choice.rate;
                plan.stop_after = choice.updates.min(updates);
                left_out = choice.left_out;
            } else {
                plan.stop_after = updates;
            }
            if plan.stop_after == 0 && plan.init == (Init::Data { std: STD }) {
                // Without training, random weights would only cost likelihood.
                plan.init = Init::Data { std: 0.0 };
            }
        }
        Ok((plan, left_out))
    }
}

/// Whether a run could overfit before it is over, and is short enough to be repeated: then its length is chosen on
/// held-out rows. Large sets of bits take longer to learn than they have updates.
fn is_short_of_rows<T: Real>(machine: &Machine<T>, data: &Data<T>) -> bool {
    let most = if has_only_bits(machine) { FEW_BITS } else { FEW_ROWS };
    let dense = machine.with_role(Role::Visible).any(|l| machine.layer(l).kind().states().is_none());
    let fewest = if dense { 0 } else { FEWEST };
    let weights: usize = machine.couplings().iter().map(|c| c.w().len()).sum();
    let conditional = machine.with_role(Role::Condition).next().is_some();
    (fewest..most).contains(&data.rows()) && weights <= SMALL && !conditional
}

/// Default training of class machines: mostly discriminative, partly generative.
fn tell_classes_apart(params: &mut TrainParams) {
    let generative = Some(Box::new(Estimator::Pcd { sweeps: None, chains: None }));
    // By name, because another column may be a single Potts unit as well.
    let labels = LabelsParams { layer: Some(Machine::<f32>::LABELS.into()), part: 0.95, generative };
    params.estimator = Some(Estimator::Labels(labels));
    if params.optimiser.is_none() && params.rate.is_none() {
        params.optimiser = Some(Optimiser::ADAM);
        params.rate = Some(0.01);
    }
    params.form.get_or_insert(Coordinates::Centred);
    params.batch.get_or_insert(100);
    if params.epochs.is_none() {
        params.updates.get_or_insert(3000);
    }
}

/// How many updates fit into a time: measured on updates that are discarded.
fn updates_within<T: Real>(
    budget: f64,
    plan: &TrainPlan,
    machine: &Machine<T>,
    data: &Data<T>,
    stopped: &dyn Fn() -> bool,
) -> Result<u64> {
    let mut trainer = Trainer::new(machine.clone(), plan.clone(), data)?;
    let (start, probe) = (Instant::now(), (0.05 * budget).min(3.0));
    let passed = || start.elapsed().as_secs_f64();
    // A single update of many sweeps may take longer than the whole budget.
    let over = || stopped() || passed() > 0.5 * budget;
    let mut n = 0;
    while !over() && (n < 3 || passed() < probe) {
        match trainer.update_until(Stop::when(&over)) {
            Err(Error::Stopped { .. }) if over() => break,
            made => made?,
        };
        n += 1;
    }
    let each = passed() / n.max(1) as f64;
    // A tenth is left for evaluations, checkpoints and updates that grow slower as weights grow.
    Ok(((0.9 * budget / each) as u64).max(10))
}

#[cfg(test)]
mod tests {
    use super::super::plan::PLANS;
    use super::*;
    use crate::{Batch, Bits, Kind, Layer};

    /// Also where the length is found by cross-validation, whose runs follow from the plan.
    #[test]
    fn a_run_is_planned_once() {
        let machine = Machine::<f32>::rbm(Layer::new(Kind::Binary, 4), Layer::new(Kind::Binary, 2));
        let bits = Bits::from_fn(40, 4, |r, j| (r >> (j % 2)) & 1 == 1);
        let data = Data::new(machine.data(vec![Batch::Bits(bits)]).unwrap());
        for budget in [None, Some(1e-3)] {
            PLANS.set(0);
            let (plan, _) =
                settings(TrainParams::default(), &machine, &data, budget, &|| false).unwrap();
            assert_eq!(PLANS.get(), 1);
            // A complete plan is unchanged by planning.
            assert_eq!(plan.params().plan(&machine, &data).unwrap(), plan);
        }
        assert!(is_short_of_rows(&machine, &data));
    }
}
