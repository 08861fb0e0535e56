//! Students: blank machines trained as the command line would with default settings.

use crate::measure::{Clock, on_threads};
use harmonium::train::{
    Control, Data, Event, Hooks, StopReason, TrainParams, Trainer, settings, trainer,
};
use harmonium::{Machine, Result, Role, States};

/// A trained machine and a record of its run.
#[derive(Clone, Debug)]
pub struct Trained {
    /// The machine at the end of the run.
    pub machine: Machine,
    /// Estimator of the negative phase.
    pub estimator: &'static str,
    /// Updates made.
    pub updates: u64,
    /// Updates undone, and why the last of them was.
    pub undone: (u64, String),
    /// Why it stopped.
    pub reason: StopReason,
    /// Seconds on one thread.
    pub seconds: f64,
}

/// The machine that a run with default settings starts from: independent columns and almost no weights.
///
/// # Errors
/// Errors of planning the run.
pub fn start(blank: &Machine, rows: &States<f32>) -> Result<Machine> {
    let data = Data::new(rows.clone());
    // The start does not depend on how long a run is, which would be found by cross-validation.
    let params = TrainParams { updates: Some(1), ..TrainParams::default() };
    let (plan, _) = settings(params, blank, &data, None, &|| false)?;
    let run = Trainer::new(blank.clone(), plan, &data)?;
    Ok(run.machine().clone())
}

/// Trains a blank machine on rows, on one thread, with the settings given and the default ones for the rest. A limit of
/// seconds stops the run.
///
/// # Errors
/// Errors of planning the run or of an update.
pub fn train(
    blank: &Machine,
    rows: &States<f32>,
    params: TrainParams,
    limit: Option<f64>,
) -> Result<Trained> {
    on_threads(1, || {
        let clock = Clock::start();
        let data = Data::new(rows.clone());
        let (plan, _) = settings(params, blank, &data, None, &|| false)?;
        let deep = blank.with_role(Role::Hidden).count() > 1;
        let late = || limit.is_some_and(|limit| clock.seconds() > limit);
        let on_time = |_: &Event, _: &Trainer<'_, f32>| {
            Ok(if late() {
                Control::Stop(StopReason::TimeBudget { seconds: limit })
            } else {
                Control::Continue
            })
        };
        let mut levels = on_time;
        let run = trainer(blank.clone(), plan, &data, deep, Hooks::default(), &mut levels, &|| None)?;
        let mut run = run.expect("nobody stops it");
        let mut undone = (0, String::new());
        let mut watch = |event: &Event, run: &Trainer<'_, f32>| {
            if let Event::Undone { why, .. } = event {
                undone = (undone.0 + 1, why.clone());
            }
            on_time(event, run)
        };
        let outcome = run.run(&mut [&mut watch])?;
        Ok(Trained {
            machine: run.result(),
            estimator: outcome.plan.estimator().name(),
            updates: outcome.updates,
            undone,
            reason: outcome.reason,
            seconds: clock.seconds(),
        })
    })
}
