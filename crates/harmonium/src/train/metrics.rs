//! Metrics as data: one JSON object per event and line.

use super::{Control, Event, Observer, Trainer};
use crate::partition::Progress;
use crate::{Error, Real, Result};
use serde_json::{Map, Value, json};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Updates that front ends record of a run, about: enough for a learning curve.
pub const RECORDED_UPDATES: u64 = 1000;

/// Appends every event to a file of JSON lines: `{"event":"updated","update":10,…}`.
///
/// `seconds` counts from the start of the observer (on top of what an earlier part of the run recorded);
/// it is the only number that is not a function of the settings and the data.
#[derive(Debug)]
pub struct Metrics {
    path: PathBuf,
    file: File,
    start: Instant,
    before: f64,
    every: u64,
}

impl Metrics {
    /// A new file, or the lines of an old one up to and including `update`: later ones will be written again by the
    /// resumed run. Updates are recorded every `every` times.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn new(path: impl AsRef<Path>, update: u64, every: u64) -> Result<Self> {
        let path = path.as_ref().to_path_buf();
        let io = |source| Error::Io { path: path.clone(), source };
        let options = || OpenOptions::new().create(true).append(true).read(true).open(&path);
        let mut file = options().map_err(io)?;
        let (mut kept, mut before) = (0, 0.0);
        if update > 0 {
            let mut reader = BufReader::new(&mut file);
            let mut line = String::new();
            while reader.read_line(&mut line).map_err(io)? > 0 {
                // A line truncated by a crash ends the file.
                let Ok(value) = serde_json::from_str::<Value>(&line) else { break };
                if !line.ends_with('\n') || value["update"].as_u64().is_none_or(|u| u > update) {
                    break;
                }
                before = value["seconds"].as_f64().unwrap_or(before);
                kept += line.len() as u64;
                line.clear();
            }
        }
        // Truncated, not rewritten: a crash at this moment loses nothing.
        file.set_len(kept).map_err(io)?;
        Ok(Self { path, file, start: Instant::now(), before, every: every.max(1) })
    }
}

impl<T: Real> Observer<T> for Metrics {
    fn on_event(&mut self, event: &Event, _run: &Trainer<'_, T>) -> Result<Control> {
        let skip = match event {
            Event::Updated(u) => !u.update.is_multiple_of(self.every),
            Event::Evaluating { progress, .. } => progress.done < progress.total,
            Event::UpdateFinished { .. } => true,
            _ => false,
        };
        if skip {
            return Ok(Control::Continue);
        }
        let mut line = object(event);
        let seconds = self.before + self.start.elapsed().as_secs_f64();
        line.insert("seconds".into(), json!(seconds));
        let io = |source| Error::Io { path: self.path.clone(), source };
        // One write for a line: a reader never sees half of one, short of a crash.
        self.file.write_all(format!("{}\n", Value::Object(line)).as_bytes()).map_err(io)?;
        Ok(Control::Continue)
    }
}

/// An event as a JSON object. Numbers that are not finite are written as `null`.
pub fn object(event: &Event) -> Map<String, Value> {
    let (value, metrics) = match event {
        Event::Started { update } => (json!({"event": "started", "update": update}), None),
        Event::Updated(u) => (
            json!({
                "event": "updated", "update": u.update, "epoch": u.epoch, "rate": u.rate,
                "gradient_norm": u.gradient_norm, "update_norm": u.update_norm,
            }),
            Some(&u.metrics),
        ),
        Event::Undone { update, why, rate_factor } => {
            (json!({"event": "undone", "update": update, "why": why, "rate_factor": rate_factor}), None)
        }
        Event::Evaluated(e) => (
            json!({
                "event": "evaluated", "update": e.update, "epoch": e.epoch, "score": e.score,
            }),
            Some(&e.metrics),
        ),
        Event::UpdateFinished { update } => {
            (json!({"event": "update_finished", "update": update}), None)
        }
        Event::Evaluating { update, progress: Progress { stage, done, total } } => (
            json!({"event": "evaluating", "update": update, "stage": stage, "done": done, "total": total}),
            None,
        ),
        Event::Stopped { update, reason } => (
            json!({"event": "stopped", "update": update, "stop": reason.name(), "reason": reason.to_string()}),
            None,
        ),
    };
    let Value::Object(mut object) = value else { unreachable!("all arms are objects") };
    for (name, x) in metrics.into_iter().flatten() {
        object.insert((*name).into(), json!(x));
    }
    object
}
