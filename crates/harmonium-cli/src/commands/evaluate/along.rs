//! Likelihoods of the models saved along a run, and the file in which they are recorded.

use super::{Effort, Evaluation, evaluate};
use crate::args::Common;
use crate::error::Result;
use crate::model::Model;
use crate::output::{grouped, put};
use crate::run::{self, Run};
use harmonium_data::Table;
use serde_json::{Value, json};

/// The evaluations of models along a run: one object per line, one for each update and data, as `evaluate --json`
/// prints them, with `update` and the `training_seconds` it took to get there.
pub(crate) struct Records(Vec<Value>);

impl Records {
    /// The evaluations recorded so far.
    pub(crate) fn read(run: &Run) -> Self {
        let text = std::fs::read_to_string(run.evaluations()).unwrap_or_default();
        Self(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    /// The evaluation of this data at this update.
    pub(crate) fn get(&self, data: &str, update: u64) -> Option<&Value> {
        self.0.iter().find(|r| r["data"] == data && r["update"] == update)
    }

    /// Adds an evaluation, replacing an older one of the same update and data, and rewrites the file.
    pub(crate) fn add(&mut self, run: &Run, update: u64, evaluation: &Evaluation) -> Result<Value> {
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
fn seconds(run: &Run, update: u64) -> Option<f64> {
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

/// Evaluates every model saved along the run and prints each result as soon as it is known.
pub(super) fn along(
    model: &Model,
    table: &Table,
    name: &str,
    effort: &Effort,
    common: &Common,
) -> Result {
    let run = model.run.as_ref().expect("the models of a run");
    let mut records = Records::read(run);
    let mut found = Vec::new();
    if !common.json {
        put!(
            "{:>10}  {:>9}  {:>14}  {:>10}  {:>10}  verdict",
            "update",
            "seconds",
            "log-likelihood",
            "lower",
            "upper"
        )?;
    }
    for (_, file) in run.kept() {
        let (update, machine) = model.checkpoint(&file)?;
        let e = evaluate(&machine, model, table, name, effort, common)?;
        let object = records.add(run, update, &e)?;
        if !common.json {
            let (lower, upper) = e.ends();
            let seconds = object["training_seconds"].as_f64().map_or("?".into(), |s| format!("{s:.2}"));
            put!(
                "{:>10}  {seconds:>9}  {:>14.3}  {lower:>10.3}  {upper:>10.3}  {}",
                grouped(update),
                e.mean(),
                e.verdict()
            )?;
        }
        found.push(object);
    }
    match common.json {
        true => put!("{}", Value::Array(found)),
        false => Ok(()),
    }
}
