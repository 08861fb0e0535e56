//! Training: one call, which reports events to Python and can be stopped from there.

use crate::checkpoint::Checkpoint;
use crate::custom_components::CustomComponents;
use crate::error::{raise, value};
use crate::machine::Machine;
use crate::objects::{from_python, to_python};
use crate::precision::{Precise, each};
use crate::rows::Rows;
use crate::watch::{Watch, WatchParams};
use crate::work::{Link, run};
use harmonium::train::{Control, Data, Event, Floor, LeftOut, StopReason, TrainParams, Trainer};
use harmonium::{Archive, Result};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Instant;

/// Seconds of a length of time as it is typed.
#[pyfunction]
pub(crate) fn seconds(text: &str) -> PyResult<f64> {
    harmonium_data::seconds(text).map_err(|why| value("time_budget", format!("{why}; got {text:?}")))
}

/// The settings (a dict of `TrainParams`) of a run with these custom components, checked and complete.
#[pyfunction]
pub(crate) fn plan<'py>(
    py: Python<'py>,
    machine: &Machine,
    data: &Rows,
    params: &Bound<'py, PyDict>,
    custom: CustomComponents,
    threads: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let params: TrainParams = from_python("settings", params)?;
    let (result, raised) = each!(&machine.inner, m => {
        let data = data.of(m)?;
        run(py, threads, |link| {
            custom.hooks(link).plan(params, m, data, None, &|| link.stopped())
        })?
    });
    raised.map_or(Ok(()), Err)?;
    to_python(py, &result.map_err(raise)?.0.params())
}

type Trained = (Machine, Checkpoint, Py<PyAny>, Option<Py<PyAny>>);

/// Trains: the machine, the checkpoint, a report as a dict, and the exception that stopped the run, if one did.
///
/// `notify(event, machine or None, regular, updates)` is called with events as dicts. Regular ones are every `every`-th update (by
/// default about a thousand in a run) and all events other than updates; between them the latest update is reported about ten
/// times a second. `updates` is the planned number. It stops the run by returning true, or by raising. The learning curve has
/// about `kept` of the updates; with 0 it is empty. `custom` has functions that replace parts of the run.
#[pyfunction]
pub(crate) fn train(
    py: Python<'_>,
    machine: &Machine,
    data: &Rows,
    valid: Option<&Rows>,
    params: &Bound<'_, PyDict>,
    custom: CustomComponents,
    resume: Option<&Checkpoint>,
    time_budget: Option<f64>,
    pretrain: Option<bool>,
    checkpoint: Option<PathBuf>,
    checkpoint_every: f64,
    notify: Option<Py<PyAny>>,
    every: Option<u64>,
    snapshot: bool,
    kept: u64,
    threads: usize,
) -> PyResult<Trained> {
    let params: TrainParams = from_python("settings", params)?;
    let watch = WatchParams { notify, every, snapshot, checkpoint, checkpoint_every, kept };
    each!(&machine.inner, m => {
        let job = Job {
            machine: m,
            data: data.of(m)?,
            valid: valid.map(|rows| rows.of(m)).transpose()?,
            params,
            custom,
            resume: resume.map(|checkpoint| checkpoint.archive_for(m)).transpose()?,
            time_budget,
            pretrain,
        };
        trained(py, job, watch, threads)
    })
}

fn trained<T: Precise>(
    py: Python<'_>,
    job: Job<'_, T>,
    watch: WatchParams,
    threads: usize,
) -> PyResult<Trained> {
    let (result, raised) = run(py, threads, |link| job.run(link, watch))?;
    match (result, raised) {
        (Ok((machine, archive, report)), raised) => {
            let raised = raised.map(|e| e.into_value(py).into_any());
            Ok((machine.into(), Checkpoint { archive }, to_python(py, &report)?.unbind(), raised))
        }
        (Err(_), Some(raised)) => Err(raised),
        (Err(e), None) => Err(raise(e)),
    }
}

struct Job<'a, T: Precise> {
    machine: &'a harmonium::Machine<T>,
    data: &'a Data<T>,
    valid: Option<&'a Data<T>>,
    params: TrainParams,
    custom: CustomComponents,
    resume: Option<&'a Archive>,
    time_budget: Option<f64>,
    pretrain: Option<bool>,
}

impl<T: Precise> Job<'_, T> {
    fn run(
        self,
        link: &Link<'_>,
        watch: WatchParams,
    ) -> Result<(harmonium::Machine<T>, Archive, Value)> {
        let (start, machine, data, valid) = (Instant::now(), self.machine, self.data, self.valid);
        let seconds = self.time_budget;
        let stop = || StopReason::due(link.stopped(), start, seconds);
        let (mut trainer, left_out) = self.trainer(link, &stop)?;
        if let Some(valid) = valid {
            trainer = trainer.with_valid(valid)?;
        }
        let mut watch = Watch::new(link, watch, trainer.plan().updates(), start);
        let reason = match trainer.run_until(&mut [&mut watch], &stop) {
            Ok(outcome) => outcome.reason,
            // A custom component that raised ends the run within an update, which is not made: what was learnt before stays.
            Err(_) if link.stopped() => {
                watch.save(&trainer)?;
                StopReason::Interrupted
            }
            Err(e) => return Err(e),
        };
        let floor = match trainer.plan().estimator().models_rows() {
            true => serde_json::to_string(&Floor::new(machine, data)?).ok(),
            false => None,
        };
        let report = json!({
            "updates": trainer.update_count(),
            "stop": reason.name(),
            "reason": reason.to_string(),
            "seconds": watch.seconds(),
            "settings": trainer.plan().params(),
            "left_out": left_out,
            "gave_up": trainer.gave_up(),
            "floor": floor,
            "history": watch.into_history(),
        });
        Ok((trainer.result(), trainer.checkpoint(), report))
    }
}

impl<'a, T: Precise> Job<'a, T> {
    /// A resumed run, or a new one with the same defaults as on the command line; and what rows said that were left out to find its
    /// length.
    fn trainer<'d>(
        self,
        link: &'d Link<'_>,
        stop: &dyn Fn() -> Option<StopReason>,
    ) -> Result<(Trainer<'d, T>, Option<LeftOut>)>
    where
        'a: 'd,
    {
        let (machine, hooks) = (self.machine, self.custom.hooks(link));
        if let Some(archive) = self.resume {
            return Ok((Trainer::resume_with(machine.clone(), self.data, archive, hooks)?, None));
        }
        let stopped = || link.stopped();
        let levels = harmonium::train::starts_from_levels(machine, &self.params);
        let pretrain = self.pretrain.unwrap_or(levels);
        let (plan, left_out) =
            hooks.plan(self.params, machine, self.data, self.time_budget, &stopped)?;
        let mut watch = |_: &Event, _: &Trainer<'_, T>| Ok(Control::Continue);
        let machine = machine.clone();
        let trainer =
            harmonium::train::trainer(machine, plan, self.data, pretrain, hooks, &mut watch, stop)?;
        let trainer = trainer.ok_or(harmonium::Error::Stopped { what: "training of the levels" })?;
        Ok((trainer, left_out))
    }
}
