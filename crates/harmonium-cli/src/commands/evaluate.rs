//! `evaluate`: the likelihood with its interval and verdict, diagnostics, quality of samples.

use crate::args::Common;
use crate::data::DataArgs;
use crate::error::Result;
use crate::layout::Layout;
use crate::model::Model;
use crate::output::put;
use clap::Args;
use harmonium::Machine;
use harmonium_data::Table;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Flags of `evaluate`.
#[derive(Args, Debug)]
pub(crate) struct EvaluateArgs {
    /// A run, or a model file
    model: PathBuf,
    /// The data
    data: String,
    #[command(flatten)]
    read: DataArgs,
}

/// How much an evaluation may cost.
pub(crate) struct Effort {
    seconds: f64,
}

impl Effort {
    pub(crate) fn after_training() -> Self {
        Self { seconds: 15.0 }
    }
}

/// What was found.
pub(crate) struct Evaluation {
    mean: Option<f64>,
}

impl Evaluation {
    pub(crate) fn json(&self) -> Value {
        json!({"log_likelihood": {"mean": self.mean}})
    }
    pub(crate) fn words(&self) -> Vec<String> {
        vec![format!("ln p = {:?}", self.mean)]
    }
}

/// Judges a machine on a table.
pub(crate) fn judge(
    machine: &Machine,
    layout: &Layout,
    table: &Table,
    _: &str,
    effort: &Effort,
    _: &Common,
) -> Result<Evaluation> {
    let (states, _) = layout.states(machine, table)?;
    let mean = machine.exact().within(effort.seconds).log_likelihood(&states, None).ok();
    Ok(Evaluation { mean })
}

impl EvaluateArgs {
    pub(crate) fn run(self, common: &Common) -> Result {
        let model = Model::open(&self.model)?;
        let table = self.read.load_like(&self.data, &model.layout.schema, common.seed.unwrap_or(0))?;
        let evaluation =
            judge(&model.machine, &model.layout, &table, &self.data, &Effort::after_training(), common)?;
        put!("{}", evaluation.json())
    }
}
