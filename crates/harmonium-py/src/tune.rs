//! The search for settings: one call, which Python can stop.

use crate::checkpoint::Checkpoint;
use crate::error::raise;
use crate::machine::Machine;
use crate::objects::{from_python, to_python};
use crate::precision::{Precise, each};
use crate::rows::Rows;
use crate::work::{Link, run};
use harmonium::train::{Data, Floor, StopReason, checkpoint_params};
use harmonium::tune::{Division, Record, Search, Trials, TuneParams, Watch, hold_out};
use harmonium::{Archive, Result};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Instant;

type Tuned = (Machine, Option<Checkpoint>, Py<PyAny>, Option<Py<PyAny>>);

/// Searches: the best machine, its checkpoint, a report as a dict, and the exception that stopped the search, if one did.
/// `params` is a dict of `TuneParams`, whose `work` follows from the time where there is one.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub(crate) fn tune(
    py: Python<'_>,
    machine: &Machine,
    data: &Rows,
    valid: Option<&Rows>,
    params: &Bound<'_, PyDict>,
    time_budget: Option<f64>,
    folder: Option<PathBuf>,
    notify: Option<Py<PyAny>>,
    threads: usize,
) -> PyResult<Tuned> {
    let params: TuneParams = from_python("settings", params)?;
    each!(&machine.inner, m => {
        let job = Job { machine: m, data: data.of(m)?, valid: valid.map(|v| v.of(m)).transpose()?, params, folder };
        let (result, raised) = run(py, threads, |link| job.run(link, time_budget, notify))?;
        match (result, raised) {
            (Ok((machine, archive, report)), raised) => {
                let raised = raised.map(|e| e.into_value(py).into_any());
                let checkpoint = archive.map(|archive| Checkpoint { archive });
                Ok((machine.into(), checkpoint, to_python(py, &report)?.unbind(), raised))
            }
            (Err(_), Some(raised)) => Err(raised),
            (Err(e), None) => Err(raise(e)),
        }
    })
}

struct Job<'a, T: Precise> {
    machine: &'a harmonium::Machine<T>,
    data: &'a Data<T>,
    valid: Option<&'a Data<T>>,
    params: TuneParams,
    folder: Option<PathBuf>,
}

impl<T: Precise> Job<'_, T> {
    fn run(
        self,
        link: &Link<'_>,
        time: Option<f64>,
        notify: Option<Py<PyAny>>,
    ) -> Result<(harmonium::Machine<T>, Option<Archive>, Value)> {
        let Self { machine, data, valid, mut params, folder } = self;
        let start = Instant::now();
        let held;
        let (train, valid) = match valid {
            Some(valid) => (data, valid),
            None => {
                held = hold_out(data, params.train.seed.unwrap_or(0));
                (&held.0, &held.1)
            }
        };
        let division = time.map(Division::of);
        if let Some(division) = division {
            params.work = division.work(machine, data, &params.train)?;
        }
        let mut trials = match folder {
            Some(folder) => Trials::open(folder)?,
            None => Trials::new(),
        };
        let mut listener = Listener { link, start, deadline: division.map(Division::deadline), notify };
        let tuned = Search::new(machine, train, valid, &params, &mut trials)?.run(&mut listener)?;
        let checkpoint = tuned.record.as_ref().map(|r| trials.checkpoint(r)).transpose()?;
        let settings = checkpoint.as_ref().map(checkpoint_params).transpose()?;
        let report = json!({
            "updates": tuned.record.as_ref().map_or(0, |r| r.updates),
            "stop": tuned.reason.name(),
            "reason": tuned.reason.to_string(),
            "seconds": start.elapsed().as_secs_f64(),
            "settings": settings.unwrap_or_default(),
            "floor": serde_json::to_string(&Floor::new(machine, data)?).ok(),
            "trials": trials.records().iter().map(object).collect::<Vec<_>>(),
            "winner": tuned.record.as_ref().map(object),
            "finalists": tuned.finalists,
            "work": params.work,
        });
        Ok((tuned.machine, checkpoint, report))
    }
}

/// A record with its stage as a word.
fn object(record: &Record) -> Value {
    let mut object = serde_json::to_value(record).unwrap_or_default();
    object["stage"] = record.stage.to_string().into();
    object["origin"] = record.origin.map(|o| o.trial).into();
    object
}

/// Tells Python of every stage, and asks whether to stop.
struct Listener<'a> {
    link: &'a Link<'a>,
    start: Instant,
    deadline: Option<f64>,
    notify: Option<Py<PyAny>>,
}

impl<T: Precise> Watch<T> for Listener<'_> {
    fn stopped(&mut self) -> Option<StopReason> {
        if self.link.stopped() {
            return Some(StopReason::Interrupted);
        }
        let over = self.deadline.filter(|&d| self.start.elapsed().as_secs_f64() > d);
        over.map(|seconds| StopReason::TimeBudget { seconds: Some(seconds) })
    }

    fn finished(&mut self, record: &Record) -> Result<()> {
        if let Some(notify) = &self.notify {
            let object = object(record);
            let notify = Python::attach(|py| notify.clone_ref(py));
            self.link.call(move |py| notify.call1(py, (to_python(py, &object)?,)).map(|_| ()));
        }
        Ok(())
    }

    fn best(&mut self, _: &Record, _: &harmonium::Machine<T>) -> Result<()> {
        Ok(())
    }
}
