//! The file of a run that remembers the likelihoods of the models kept along it.

use super::Evaluation;
use crate::error::Result;
use crate::run::{self, RunDirectory};
use serde_json::{Value, json};

/// The evaluations of models along a run: one object per line, one for each update and data, as `evaluate --json`
/// prints them, with `update` and the `training_seconds` it took to get there.
pub(crate) struct Records(Vec<Value>);

impl Records {
    /// What has been found so far.
    pub(crate) fn read(run: &RunDirectory) -> Self {
        let text = std::fs::read_to_string(run.evaluations()).unwrap_or_default();
        Self(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    /// What was found for this data at this update.
    pub(crate) fn get(&self, data: &str, update: u64) -> Option<&Value> {
        self.0.iter().find(|r| r["data"] == data && r["update"] == update)
    }

    /// Adds an evaluation, in place of an older one of the same, and writes the file anew.
    pub(crate) fn add(
        &mut self,
        run: &RunDirectory,
        update: u64,
        evaluation: &Evaluation,
    ) -> Result<Value> {
        let mut object = evaluation.json();
        object["update"] = json!(update);
        object["training_seconds"] = json!(seconds(run, update));
        let data = object["data"].clone();
        self.0.retain(|r| r["data"] != data || r["update"] != update);
        self.0.push(object.clone());
        self.0.sort_by_key(|r| (r["data"].as_str().map(String::from), r["update"].as_u64()));
        let text: String = self.0.iter().map(|r| format!("{r}\n")).collect();
        run::write(&run.evaluations(), true, text.as_bytes())?;
        Ok(object)
    }
}

/// Seconds of training up to an update, from the metrics, which hold some of the updates.
fn seconds(run: &RunDirectory, update: u64) -> Option<f64> {
    let events = run.events().ok()?;
    let point = |e: &Value| Some((e["update"].as_u64()?, e["seconds"].as_f64()?));
    let points: Vec<(u64, f64)> = events.iter().filter_map(point).collect();
    let after = points.partition_point(|p| p.0 < update);
    let (u1, t1) = *points.get(after)?;
    match points[..after].last() {
        Some(&(u0, t0)) => Some(t0 + (t1 - t0) * (update - u0) as f64 / (u1 - u0) as f64),
        None => Some(t1),
    }
}
