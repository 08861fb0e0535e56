//! Training: one call, with Python told of what happens and able to stop it.

use crate::error::{raise, value};
use crate::machine::Machine;
use crate::objects::{from_python, to_python};
use crate::rows::Rows;
use crate::work::{Link, run};
use harmonium::estimate::Estimator;
use harmonium::train::{
    Control, Data, Event, Floor, Hooks, Observer, Outcome, StopReason, TrainParams, Trainer,
    event_object,
};
use harmonium::{Archive, Result};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time between two looks at the progress.
const TICK: Duration = Duration::from_millis(100);

/// Everything the rest of a run depends on.
#[pyclass(frozen, module = "harmonium._core")]
pub(crate) struct Checkpoint {
    archive: Archive,
}

#[pymethods]
impl Checkpoint {
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Ok(Self { archive: py.detach(|| Archive::load(&path)).map_err(raise)? })
    }
    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        Ok(Self { archive: Archive::from_bytes(bytes).map_err(raise)? })
    }
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.archive.save(&path)).map_err(raise)
    }
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.archive.to_bytes().map_err(raise)?))
    }
    /// The run's settings, as a dict.
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &harmonium::train::checkpoint_params(&self.archive).map_err(raise)?)
    }
    /// The chains of the estimator, where it has persistent ones and they are in the machine's own coordinates.
    fn chains(&self, machine: &Machine) -> Option<Rows> {
        if self.archive.tensors().keys().any(|name| name.starts_with("inside")) {
            return None;
        }
        let states = self.archive.below("estimator").states("chains").ok()?;
        Some(Rows::new(&machine.inner, Data::new(states)))
    }
    /// Updates done.
    #[getter]
    fn updates(&self) -> PyResult<u64> {
        let counters = self.archive.u64s("counters").map_err(raise)?;
        counters.first().copied().ok_or_else(|| value("checkpoint", "it has no counters"))
    }
}

/// The settings (a dict of `TrainParams`) checked and complete.
#[pyfunction]
pub(crate) fn plan<'py>(
    py: Python<'py>,
    machine: &Machine,
    data: &Rows,
    params: &Bound<'py, PyDict>,
    threads: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let params: TrainParams = from_python("settings", params)?;
    let (result, raised) = run(py, threads, |link| {
        harmonium::train::settings(params, &machine.inner, &data.data, None, &|| link.stopped())
    })?;
    raised.map_or(Ok(()), Err)?;
    to_python(py, &result.map_err(raise)?.params())
}

type Trained = (Machine, Checkpoint, Py<PyAny>, Option<Py<PyAny>>);

/// Trains: the machine, the checkpoint, a report as a dict, and the exception that stopped the run, if one did.
///
/// `notify(event, machine or None, regular)` hears events as dicts: updates every `every` of them and all other events
/// (regular), and from time to time what the progress is. It stops the run by returning true, or by raising. The learning
/// curve has about `kept` of the updates, and is empty where that is 0.
#[pyfunction]
pub(crate) fn train(
    py: Python<'_>,
    machine: &Machine,
    data: &Rows,
    valid: Option<&Rows>,
    params: &Bound<'_, PyDict>,
    resume: Option<&Checkpoint>,
    time_budget: Option<f64>,
    pretrain: Option<bool>,
    checkpoint: Option<PathBuf>,
    checkpoint_every: f64,
    notify: Option<Py<PyAny>>,
    every: u64,
    snapshot: bool,
    kept: u64,
    threads: usize,
) -> PyResult<Trained> {
    let params: TrainParams = from_python("settings", params)?;
    let job = Job {
        machine: &machine.inner,
        data: &data.data,
        valid: valid.map(|v| &v.data),
        params,
        resume: resume.map(|c| &c.archive),
        time_budget,
        pretrain,
    };
    let (result, raised) = run(py, threads, |link| {
        let (mut trainer, start) = job.trainer(link)?;
        let mut watch = Watch {
            link,
            notify: notify.map(Arc::new),
            every,
            snapshot,
            start,
            budget: time_budget,
            told: Instant::now(),
            checkpoint: checkpoint.as_deref(),
            checkpoint_every,
            saved: Instant::now(),
            keep_every: trainer.plan().updates().checked_div(kept).map(|every| every.max(1)),
            history: Vec::new(),
        };
        let outcome = trainer.run(&mut [&mut watch])?;
        let mut report = report(&outcome, watch);
        report["gave_up"] = json!(trainer.gave_up());
        // A machine that learns to tell classes apart is no model of the rows.
        report["floor"] = match trainer.plan().estimator() {
            Estimator::Labels(_) => Value::Null,
            _ => json!(serde_json::to_string(&Floor::new(&machine.inner, &data.data)?).ok()),
        };
        Ok((trainer.result(), trainer.checkpoint(), report))
    })?;
    let result: Result<_> = result;
    match (result, raised) {
        (Ok((machine, archive, report)), raised) => {
            let raised = raised.map(|e| e.into_value(py).into_any());
            Ok((machine.into(), Checkpoint { archive }, to_python(py, &report)?.unbind(), raised))
        }
        (Err(_), Some(raised)) => Err(raised),
        (Err(e), None) => Err(raise(e)),
    }
}

fn report(outcome: &Outcome, watch: Watch<'_>) -> Value {
    json!({
        "updates": outcome.updates,
        "stop": outcome.reason.name(),
        "reason": outcome.reason.to_string(),
        "seconds": watch.start.elapsed().as_secs_f64(),
        "settings": outcome.plan.params(),
        "history": watch.history,
    })
}

struct Job<'a> {
    machine: &'a harmonium::Machine,
    data: &'a Data,
    valid: Option<&'a Data>,
    params: TrainParams,
    resume: Option<&'a Archive>,
    time_budget: Option<f64>,
    pretrain: Option<bool>,
}

impl<'a> Job<'a> {
    fn trainer(self, link: &Link<'_>) -> Result<(Trainer<'a>, Instant)> {
        let start = Instant::now();
        let mut trainer = match self.resume {
            Some(archive) => Trainer::resume(self.machine.clone(), self.data, archive)?,
            None => self.start(link)?,
        };
        if let Some(valid) = self.valid {
            trainer = trainer.with_valid(valid)?;
        }
        Ok((trainer, start))
    }

    /// The first moment of a run, chosen as the command line chooses it.
    fn start(&self, link: &Link<'_>) -> Result<Trainer<'a>> {
        let (machine, params, stopped) = (self.machine, self.params.clone(), || link.stopped());
        let levels = harmonium::train::starts_from_levels(machine, &params);
        let pretrain = self.pretrain.unwrap_or(levels);
        let plan = harmonium::train::settings(params, machine, self.data, self.time_budget, &stopped)?;
        let mut watch = Listener { link };
        let machine = machine.clone();
        let trainer = harmonium::train::trainer(
            machine,
            plan,
            self.data,
            pretrain,
            Hooks::default(),
            &mut watch,
            &stopped,
        )?;
        trainer.ok_or(harmonium::Error::Stopped { what: "training of the levels" })
    }
}

/// Stops a run when it is asked to, and does nothing else.
struct Listener<'a> {
    link: &'a Link<'a>,
}

impl Observer<f32> for Listener<'_> {
    fn on_event(&mut self, _: &Event, _: &Trainer<'_>) -> Result<Control> {
        Ok(match self.link.stopped() {
            true => Control::Stop(StopReason::Interrupted),
            false => Control::Continue,
        })
    }
}

/// Tells Python, looks for the end, keeps the learning curve and saves checkpoints.
struct Watch<'a> {
    link: &'a Link<'a>,
    notify: Option<Arc<Py<PyAny>>>,
    every: u64,
    snapshot: bool,
    start: Instant,
    budget: Option<f64>,
    told: Instant,
    checkpoint: Option<&'a Path>,
    checkpoint_every: f64,
    saved: Instant,
    /// Updates between two that are kept; nothing is kept where `None`.
    keep_every: Option<u64>,
    history: Vec<Value>,
}

impl Watch<'_> {
    /// Whether the run should stop.
    fn tell(&mut self, event: &Event, regular: bool, trainer: &Trainer<'_>) -> bool {
        let Some(notify) = self.notify.clone() else { return false };
        self.told = Instant::now();
        let event = event_object(event);
        let machine = (self.snapshot && regular).then(|| Machine::from(trainer.averaged()));
        let call = move |py: Python<'_>| {
            let machine = machine.map(|m| Py::new(py, m)).transpose()?;
            notify.call1(py, (to_python(py, &event)?, machine, regular))?.is_truthy(py)
        };
        self.link.call(call).unwrap_or(true)
    }

    fn keep(&mut self, event: &Event) {
        let Some(every) = self.keep_every else { return };
        let due = match event {
            Event::Updated(u) => u.update.is_multiple_of(every),
            Event::UpdateFinished { .. } => false,
            _ => true,
        };
        if due {
            let mut object = event_object(event);
            object.insert("seconds".into(), json!(self.start.elapsed().as_secs_f64()));
            self.history.push(Value::Object(object));
        }
    }

    fn save(&mut self, trainer: &Trainer<'_>) -> Result<()> {
        if let Some(path) = self.checkpoint {
            trainer.checkpoint().save(path)?;
            self.saved = Instant::now();
        }
        Ok(())
    }
}

impl Observer<f32> for Watch<'_> {
    fn on_event(&mut self, event: &Event, trainer: &Trainer<'_>) -> Result<Control> {
        self.keep(event);
        let regular = match event {
            Event::Updated(u) => self.every > 0 && u.update.is_multiple_of(self.every),
            Event::UpdateFinished { .. } => false,
            _ => true,
        };
        // The clock is read only for somebody: twice for each of some thousand updates in a tenth of a second it would be seen.
        let listens = self.notify.is_some() && matches!(event, Event::Updated(_));
        let tick = listens && self.told.elapsed() > TICK;
        let enough = (regular || tick) && self.tell(event, regular, trainer);
        match event {
            Event::UpdateFinished { .. } => {
                if self.checkpoint.is_some()
                    && self.saved.elapsed().as_secs_f64() > self.checkpoint_every
                {
                    self.save(trainer)?;
                }
                if self.link.stopped() {
                    return Ok(Control::Stop(StopReason::Interrupted));
                }
                if self.budget.is_some_and(|b| self.start.elapsed().as_secs_f64() > b) {
                    return Ok(Control::Stop(StopReason::TimeBudget { seconds: self.budget }));
                }
            }
            Event::Stopped { .. } => self.save(trainer)?,
            _ if enough && !self.link.stopped() => {
                return Ok(Control::Stop(StopReason::Requested("stopped by the callback".into())));
            }
            _ => {}
        }
        Ok(Control::Continue)
    }
}
