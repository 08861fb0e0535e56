//! Likelihoods of the models saved along a run.

use crate::args::Common;
use crate::error::Result;
use crate::evaluation::{Effort, Records, evaluate};
use crate::model::Model;
use crate::output::{grouped, put};
use harmonium_data::Table;
use serde_json::Value;

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
