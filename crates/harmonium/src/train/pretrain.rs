//! A new run. Deep machines start from a stack of RBMs, each trained on the hidden states of the one below.

use super::plan::EXACT_UPDATES;
use super::{Data, Hooks, Init, Observer, Stack, StopReason, TrainParams, TrainPlan, Trainer};
use crate::estimate::Estimator;
use crate::units::Form;
use crate::{Layer, Machine, Real, Result, Role};

/// A new run. With `pretrain` the levels of a deep machine are trained first, observed by `watch`, until `stop` gives a reason; there
/// is no run after an interrupt.
///
/// # Errors
/// Settings or data that do not fit the machine.
pub fn trainer<'d, T: Real>(
    mut machine: Machine<T>,
    mut plan: TrainPlan,
    data: &'d Data<T>,
    pretrain: bool,
    hooks: Hooks<'d, T>,
    watch: &mut dyn Observer<T>,
    stop: &dyn Fn() -> Option<StopReason>,
) -> Result<Option<Trainer<'d, T>>> {
    let complete = data.known().iter().all(Option::is_none);
    if pretrain && complete && has_levels(&machine) {
        levels(&mut machine, &plan, data, watch, stop)?;
        if stop() == Some(StopReason::Interrupted) {
            return Ok(None);
        }
        machine.check_normalisable()?;
        plan.init = Init::Keep;
    }
    Ok(Some(Trainer::with_hooks(machine, plan, data, hooks)?))
}

/// Whether a machine is pretrained by default: if its weights are zero and it is a chain of hidden layers above one
/// visible layer.
pub fn starts_from_levels<T: Real>(machine: &Machine<T>, params: &TrainParams) -> bool {
    let chain = machine.couplings().iter().enumerate().all(|(c, k)| k.ends() == (c, c + 1));
    let whole = machine.couplings().len() + 1 == machine.len();
    let hidden = machine.with_role(Role::Hidden).count() + 1 == machine.len();
    let blank = || machine.couplings().iter().all(|c| c.w().iter().all(|&w| w == T::zero()));
    has_levels(machine) && chain && whole && hidden && params.init.is_none() && blank()
}

/// Whether it can be pretrained: one visible layer and more than one hidden layer.
fn has_levels<T: Real>(machine: &Machine<T>) -> bool {
    machine.with_role(Role::Visible).count() == 1 && machine.len() > 2
}

/// Whether every layer is one of bits: their levels, whose updates are quick, are trained for as long as ever.
fn all_bits<T: Real>(machine: &Machine<T>) -> bool {
    (0..machine.len()).all(|l| machine.layer(l).kind().form() == Form::Bits)
}

/// Puts the parameters of a trained stack into a deep machine; each level gets half as many updates as the whole, and where its
/// gradients are exact as many as half a run with these: their updates may take longer than those of the whole machine.
fn levels<T: Real>(
    machine: &mut Machine<T>,
    plan: &TrainPlan,
    data: &Data<T>,
    watch: &mut dyn Observer<T>,
    stop: &dyn Fn() -> Option<StopReason>,
) -> Result<()> {
    let visible = machine.layer(0).clone();
    let hidden: Vec<Layer<T>> = (1..machine.len()).map(|l| machine.layer(l).clone()).collect();
    let level = TrainParams {
        seed: Some(plan.seed),
        batch: Some(plan.batch),
        updates: Some((plan.updates / 2).max(1)),
        evaluate_every: Some(0),
        ..TrainParams::default()
    };
    // The lowest level has the same rows, but is a machine of two layers.
    let lowest = Machine::rbm(visible.clone(), hidden[0].clone());
    let mut rows = Data::new(lowest.data(vec![data.states().layer(0)?.clone()])?);
    if let Some(wts) = data.wts() {
        rows = rows.with_weights(wts.to_vec())?;
    }
    let plan_of = |machine: &Machine<T>, data: &Data<T>| {
        let plan = level.plan(machine, data)?;
        let exact = plan.estimator == Estimator::Exact && !all_bits(machine);
        let updates = plan.updates.min(EXACT_UPDATES / 2);
        Ok(if exact { TrainPlan { updates, stop_after: updates, ..plan } } else { plan })
    };
    let stack = Stack::train_by(visible, &hidden, &rows, plan.seed, &mut [watch], plan_of, stop)?;
    let deep = stack.to_deep(&rows, plan.seed)?;
    machine.set_parameters(&deep.parameters())?;
    Ok(())
}
