//! Settings of a run where nothing is said: estimator, rate and length by what the machine and its data are.

use super::length::best_length;
use super::{Data, Form as Coordinates, Init, Optimiser, TrainParams, Trainer};
use crate::estimate::{Estimator, LabelsParams};
use crate::units::Form;
use crate::{Machine, Real, Result, Role};
use std::time::Instant;

/// Weights up to which an update costs next to nothing, and how many updates such a machine gets.
const SMALL: usize = 20_000;
const PATIENT: u64 = 20_000;

/// Standard deviation of the weights that a run starts with where nothing is said.
const STD: f64 = 0.01;

/// Rows up to which the length of a run is chosen by cross-validation: of bits, of other columns; and fewest rows that can
/// be cut into parts.
const FEW_BITS: usize = 1000;
const FEW_ROWS: usize = 5000;
const FEWEST: usize = 20;

/// `params` with every unset field given its default. With a time budget in seconds and neither updates nor epochs set, as
/// many updates as fit into it, which is measured; `stopped` ends the measurement.
///
/// # Errors
/// Settings that do not fit the machine or the data.
pub fn settings<T: Real>(
    mut params: TrainParams,
    machine: &Machine<T>,
    data: &Data<T>,
    time_budget: Option<f64>,
    stopped: &dyn Fn() -> bool,
) -> Result<TrainParams> {
    let free = params.updates.is_none() && params.epochs.is_none();
    let hybrid = machine.class_layer().is_some() && params.estimator.is_none();
    if hybrid {
        tell_classes_apart(&mut params);
    }
    let plan = params.plan(machine, data)?;
    params = plan.params();
    let updates = match time_budget {
        Some(budget) if free => Some(updates_within(budget, &params, machine, data, stopped)?),
        None if free && !hybrid => {
            let weights: usize = machine.couplings().iter().map(|c| c.w().len()).sum();
            // A run whose length is looked for by cross-validation is made several times.
            let once = has_only_bits(machine) || !is_short_of_rows(machine, data);
            let small = weights <= SMALL && once && params.estimator != Some(Estimator::Exact);
            Some(plan.updates().max(if small { PATIENT } else { 0 }))
        }
        _ => None,
    };
    if updates.is_some() {
        params.updates = updates;
        // These follow from the number of updates.
        (params.average, params.evaluate_every) = (None, None);
        params = params.plan(machine, data)?.params();
    }
    if free && !hybrid && time_budget.is_none() && is_short_of_rows(machine, data) {
        let length = best_length(&params, machine, data, stopped)?;
        params.stop_after = length.filter(|&u| Some(u) < params.updates);
        if length == Some(0) && params.init == (Some(Init::Data { std: STD })) {
            // What is not trained needs no random weights, which only cost likelihood.
            params.init = Some(Init::Data { std: 0.0 });
        }
    }
    Ok(params)
}

/// Whether a run could overfit before it is over, and is short enough to be made several times: then its
/// length is chosen on rows held out. Large sets of bits take longer to learn than they have updates.
fn is_short_of_rows<T: Real>(machine: &Machine<T>, data: &Data<T>) -> bool {
    let most = if has_only_bits(machine) { FEW_BITS } else { FEW_ROWS };
    let weights: usize = machine.couplings().iter().map(|c| c.w().len()).sum();
    let conditional = machine.with_role(Role::Condition).next().is_some();
    (FEWEST..most).contains(&data.rows()) && weights <= SMALL && !conditional
}

fn has_only_bits<T: Real>(machine: &Machine<T>) -> bool {
    machine.with_role(Role::Visible).all(|l| machine.layer(l).kind().form() == Form::Bits)
}

/// How class machines are trained where nothing else is said: mostly to tell classes apart, partly to know the data.
fn tell_classes_apart(params: &mut TrainParams) {
    let generative = Some(Box::new(Estimator::Pcd { sweeps: None, chains: None }));
    // By name: another column may be a single Potts unit as well.
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

/// How many updates fit into a time: measured on updates that are thrown away.
fn updates_within<T: Real>(
    budget: f64,
    params: &TrainParams,
    machine: &Machine<T>,
    data: &Data<T>,
    stopped: &dyn Fn() -> bool,
) -> Result<u64> {
    let params = TrainParams { evaluate_every: Some(0), ..params.clone() };
    let mut trainer = Trainer::new(machine.clone(), params.plan(machine, data)?, data)?;
    let (start, probe) = (Instant::now(), (0.05 * budget).min(3.0));
    let mut n = 0;
    while n < 3 || start.elapsed().as_secs_f64() < probe && !stopped() {
        trainer.update()?;
        n += 1;
    }
    let each = start.elapsed().as_secs_f64() / n as f64;
    // A tenth is left for evaluations, checkpoints and updates that grow slower as weights grow.
    Ok(((0.9 * budget / each) as u64).max(10))
}
