//! The observer of a training run: it reports to Python, keeps the learning curve and saves checkpoints.

use crate::machine::Machine;
use crate::objects::to_python;
use crate::precision::Precise;
use crate::work::Link;
use harmonium::Result;
use harmonium::train::{Control, Event, Observer, RECORDED_UPDATES, StopReason, Trainer, event_object};
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time between two reports of the progress.
const TICK: Duration = Duration::from_millis(100);

/// What the observer reports, keeps and saves.
pub(crate) struct WatchParams {
    pub(crate) notify: Option<Py<PyAny>>,
    /// Updates between two that are regular events, none where 0.
    pub(crate) every: Option<u64>,
    /// Whether regular events come with the machine.
    pub(crate) snapshot: bool,
    pub(crate) checkpoint: Option<PathBuf>,
    pub(crate) checkpoint_every: f64,
    /// Updates that the learning curve has, about.
    pub(crate) kept: u64,
}

/// Reports to Python, keeps the learning curve and saves checkpoints.
pub(crate) struct Watch<'a> {
    link: &'a Link<'a>,
    notify: Option<Arc<Py<PyAny>>>,
    params: WatchParams,
    every: u64,
    start: Instant,
    last_report: Instant,
    last_save: Instant,
    /// Updates between two that are kept; nothing is kept where `None`.
    keep_every: Option<u64>,
    history: Vec<Value>,
}

impl<'a> Watch<'a> {
    /// The observer of a run of `updates` that began at `start`.
    pub(crate) fn new(
        link: &'a Link<'a>,
        mut params: WatchParams,
        updates: u64,
        start: Instant,
    ) -> Self {
        Self {
            link,
            notify: params.notify.take().map(Arc::new),
            every: params.every.unwrap_or((updates / RECORDED_UPDATES).max(1)),
            start,
            last_report: Instant::now(),
            last_save: Instant::now(),
            keep_every: updates.checked_div(params.kept).map(|every| every.max(1)),
            params,
            history: Vec::new(),
        }
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// The learning curve.
    pub(crate) fn into_history(self) -> Vec<Value> {
        self.history
    }

    /// Writes the checkpoint, if a path for it was given.
    pub(crate) fn save<T: Precise>(&mut self, trainer: &Trainer<'_, T>) -> Result<()> {
        if let Some(path) = &self.params.checkpoint {
            trainer.checkpoint().save(path)?;
            self.last_save = Instant::now();
        }
        Ok(())
    }

    /// Whether the run should stop.
    fn report<T: Precise>(&mut self, event: &Event, regular: bool, trainer: &Trainer<'_, T>) -> bool {
        let Some(notify) = self.notify.clone() else { return false };
        self.last_report = Instant::now();
        let (event, updates) = (event_object(event), trainer.plan().updates());
        let machine = (self.params.snapshot && regular).then(|| Machine::from(trainer.averaged()));
        let call = move |py: Python<'_>| {
            let machine = machine.map(|m| Py::new(py, m)).transpose()?;
            notify.call1(py, (to_python(py, &event)?, machine, regular, updates))?.is_truthy(py)
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
            object.insert("seconds".into(), json!(self.seconds()));
            self.history.push(Value::Object(object));
        }
    }
}

impl<T: Precise> Observer<T> for Watch<'_> {
    fn on_event(&mut self, event: &Event, trainer: &Trainer<'_, T>) -> Result<Control> {
        self.keep(event);
        let regular = match event {
            Event::Updated(u) => self.every > 0 && u.update.is_multiple_of(self.every),
            Event::UpdateFinished { .. } => false,
            _ => true,
        };
        // The clock is read only where it is needed: reading it twice in each of some thousand updates in a tenth of a second shows.
        let listens = self.notify.is_some() && matches!(event, Event::Updated(_));
        let tick = listens && self.last_report.elapsed() > TICK;
        let requested = (regular || tick) && self.report(event, regular, trainer);
        match event {
            Event::UpdateFinished { .. }
                if self.params.checkpoint.is_some()
                    && self.last_save.elapsed().as_secs_f64() > self.params.checkpoint_every =>
            {
                self.save(trainer)?;
            }
            Event::Stopped { .. } => self.save(trainer)?,
            _ if requested && !self.link.stopped() => {
                return Ok(Control::Stop(StopReason::Requested("stopped by the callback".into())));
            }
            _ => {}
        }
        Ok(Control::Continue)
    }
}
