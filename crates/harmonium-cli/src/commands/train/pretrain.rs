//! Deep machines start from a stack of RBMs, each trained on the hidden states of the one below.

use super::watch::INTERRUPTED;
use crate::error::{Failure, Result};
use crate::output::{grouped, say};
use crate::signals::Stop;
use harmonium::train::{Control, Data, Event, Observer, Stack, TrainParams, Trainer};
use harmonium::{Layer, Machine, Role};

/// Whether there is something to start from: one visible layer and more than one hidden layer.
pub(super) fn applies(machine: &Machine) -> bool {
    machine.with_role(Role::Visible).count() == 1 && machine.len() > 2
}

/// Puts the parameters of a trained stack into a deep machine; each level gets half as many updates as the whole.
pub(super) fn pretrain(
    machine: &mut Machine,
    params: &TrainParams,
    updates: u64,
    data: &Data,
    stop: &Stop,
    quiet: bool,
) -> Result {
    let visible = machine.layer(0).clone();
    let hidden: Vec<Layer> = (1..machine.len()).map(|l| machine.layer(l).clone()).collect();
    let level = TrainParams {
        seed: params.seed,
        batch: params.batch,
        updates: Some((updates / 2).max(1)),
        evaluate_every: Some(0),
        ..TrainParams::default()
    };
    // The lowest level sees the same rows, but is a machine of two layers.
    let lowest = Machine::rbm(visible.clone(), hidden[0].clone());
    let mut rows = Data::new(lowest.data(vec![data.states().layer(0)?.clone()])?);
    if let Some(wts) = data.wts() {
        rows = rows.with_weights(wts.to_vec())?;
    }
    let mut watch = Watch { stop, quiet, levels: hidden.len(), level: 0 };
    let stack = Stack::train(visible, &hidden, &level, &rows, &mut [&mut watch])?;
    if stop.asked() {
        if !quiet {
            say!(
                "interrupted while the levels were trained; the same command with `train RUN` starts again"
            );
        }
        return Err(Failure::Interrupted);
    }
    let deep = stack.to_deep(&rows, params.seed.unwrap_or(0))?;
    machine.set_parameters(&deep.parameters())?;
    Ok(())
}

struct Watch<'a> {
    stop: &'a Stop,
    quiet: bool,
    levels: usize,
    level: usize,
}

impl Observer<f32> for Watch<'_> {
    fn notice(&mut self, event: &Event, run: &Trainer<'_, f32>) -> harmonium::Result<Control> {
        if matches!(event, Event::Started { .. }) {
            self.level += 1;
            if !self.quiet && !self.stop.asked() {
                let updates = grouped(run.plan().updates());
                say!("level {} of {} on its own: {updates} updates", self.level, self.levels);
            }
        }
        Ok(match self.stop.asked() {
            true => Control::Stop(INTERRUPTED.into()),
            false => Control::Continue,
        })
    }
}
