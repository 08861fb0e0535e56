//! `classify`: the labels of rows by a class machine, exactly p(y|v).

use crate::args::Common;
use crate::commands::complete::quoted;
use crate::data::DataArgs;
use crate::error::{Failure, Result};
use crate::model::Model;
use crate::output::{put, put_bytes, say};
use crate::run;
use clap::Args;
use harmonium::tasks::Classes;
use harmonium_data::Table;
use serde_json::json;
use std::path::PathBuf;

/// Flags of `classify`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  harmonium train digits --machine class -o runs/class
  harmonium classify runs/class digits:test              a csv of predictions; accuracy if labels are known
  harmonium classify runs/class new.csv -o labels.csv --probabilities

Missing entries of a row are summed over: p(y|v) is then the probability of the class given the known entries.")]
pub(crate) struct ClassifyArgs {
    /// A run, or a model file, of a class machine
    #[arg(value_name = "RUN|MODEL")]
    model: PathBuf,
    /// The rows
    data: String,
    /// A column for the probability of every class
    #[arg(long)]
    probabilities: bool,
    /// The csv file to write [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    read: DataArgs,
}

impl ClassifyArgs {
    pub(crate) fn run(self, common: &Common) -> Result {
        if let Some(path) = &self.output {
            let inputs = [self.model.as_os_str(), self.data.as_ref()];
            crate::run::may_write_beside(path, common.force, &inputs)?;
        }
        let model = Model::open(&self.model)?;
        let Some(column) = model.layout.labels.and(model.layout.label_column()) else {
            return Err(Failure::new(format!(
                "{}: this model has no class unit; train one with `harmonium train DATA --machine class`",
                self.model.display()
            )));
        };
        let table = self.read.load_like(&self.data, &model.layout.schema, common.seed.unwrap_or(0))?;
        let found = posterior(&model, &table, common.seed.unwrap_or(0))?;
        let p = &found.probabilities;
        let names = model.layout.schema.columns[column].categories.clone();
        let best = found.predicted();
        let accuracy = accuracy(&table, &best);
        let mut csv = String::from("row,label,predicted,probability");
        if self.probabilities {
            names.iter().for_each(|name| csv += &format!(",{}", quoted(&format!("p_{name}"))));
        }
        csv.push('\n');
        for (r, &k) in best.iter().enumerate() {
            let label = table.labels().and_then(|l| l.name(r)).unwrap_or_default();
            csv += &format!("{},{},{},{:.6}", r + 1, quoted(label), quoted(&names[k]), p[[r, k]]);
            if self.probabilities {
                p.row(r).iter().for_each(|x| csv += &format!(",{x:.6}"));
            }
            csv.push('\n');
        }
        if common.json {
            let predicted: Vec<&str> = best.iter().map(|&k| names[k].as_str()).collect();
            return put!("{}", json!({"accuracy": accuracy, "predicted": predicted}));
        }
        match &self.output {
            Some(path) => run::write(path, common.force, csv.as_bytes())?,
            None => put_bytes(csv.as_bytes())?,
        }
        if let Some(remark) = found.remark.as_ref().filter(|_| !common.quiet) {
            say!("{remark}");
        }
        if let Some(a) = accuracy.filter(|_| !common.quiet) {
            say!("accuracy {:.2} % on {} rows with known labels", 100.0 * a, table.rows());
        }
        Ok(())
    }
}

/// p(y|v) of every row of a table, missing entries summed over.
pub(crate) fn posterior(model: &Model, table: &Table, seed: u64) -> Result<Classes> {
    let data = model.layout.data(&model.machine, table)?;
    Ok(model.machine.classify(data).seed(seed).run()?)
}

fn accuracy(table: &Table, best: &[usize]) -> Option<f64> {
    let labels = table.labels()?;
    let known: Vec<bool> =
        (0..table.rows()).filter_map(|r| labels.get(r).map(|y| y as usize == best[r])).collect();
    let right = known.iter().filter(|&&x| x).count();
    (!known.is_empty()).then(|| right as f64 / known.len() as f64)
}
