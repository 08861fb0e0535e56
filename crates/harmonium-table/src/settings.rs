//! Settings of a run that front ends choose over the library's own: class machines, measured columns, patience, time.

use crate::{LABELS, Result, is_class};
use harmonium::estimate::{Estimator, LabelsParams};
use harmonium::train::{Data, Form, Optimiser, TrainParams, Trainer};
use harmonium::{Kind, Machine, Role};
use std::time::Instant;

/// Weights up to which an update costs next to nothing, and how many updates such a machine gets.
const SMALL: usize = 20_000;
const PATIENT: u64 = 20_000;

/// The settings of a run with everything chosen that `params` leaves open. With a time budget in seconds and neither updates
/// nor epochs wished for, as many updates as fit into it, which is measured; `stopped` ends the measurement.
///
/// # Errors
/// Settings that do not fit the machine or the data.
pub fn settings(
    mut params: TrainParams,
    machine: &Machine,
    data: &Data,
    time_budget: Option<f64>,
    stopped: &dyn Fn() -> bool,
) -> Result<TrainParams> {
    let free = params.updates.is_none() && params.epochs.is_none();
    let hybrid = is_class(machine) && params.estimator.is_none();
    if hybrid {
        tell_classes_apart(&mut params);
    }
    // Measured columns come in any unit; weights to them learn at the pace of the others when each is scaled.
    if machine.with_role(Role::Visible).any(|l| machine.layer(l).kind() == Kind::Gaussian) {
        params.form.get_or_insert(Form::Standardised);
    }
    let plan = params.plan(machine, data)?;
    params = plan.params();
    let updates = match time_budget {
        Some(budget) if free => Some(updates_within(budget, &params, machine, data, stopped)?),
        None if free && !hybrid => {
            let weights: usize = machine.couplings().iter().map(|c| c.w().len()).sum();
            let small = weights <= SMALL && params.estimator != Some(Estimator::Exact);
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
    Ok(params)
}

/// How class machines are trained where nothing else is said: mostly to tell classes apart, partly to know the data.
fn tell_classes_apart(params: &mut TrainParams) {
    let generative = Some(Box::new(Estimator::Pcd { sweeps: None, chains: None }));
    // By name: another column may be a single Potts unit as well.
    let labels = LabelsParams { layer: Some(LABELS.into()), part: 0.95, generative };
    params.estimator = Some(Estimator::Labels(labels));
    if params.optimiser.is_none() && params.rate.is_none() {
        params.optimiser = Some(Optimiser::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 });
        params.rate = Some(0.01);
    }
    params.batch.get_or_insert(100);
    if params.epochs.is_none() {
        params.updates.get_or_insert(3000);
    }
}

/// How many updates fit into a time: measured on updates that are thrown away.
fn updates_within(
    budget: f64,
    params: &TrainParams,
    machine: &Machine,
    data: &Data,
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
