//! `evaluate`: the likelihood with its interval and verdict, diagnostics, quality of samples; also along a run.

mod along;
mod quality;

use crate::args::Common;
use crate::data::DataArgs;
use crate::error::{Failure, Result};
use crate::evaluation::{Effort, Records, evaluate};
use crate::model::Model;
use crate::output::{duration, grouped, put, say};
use clap::Args;
use harmonium::evaluate::LogZParams;
use harmonium_data::Table;
use quality::Quality;
use std::path::PathBuf;

/// Flags of `evaluate`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  harmonium evaluate runs/digits                     on the data the run held out
  harmonium evaluate runs/digits digits:test --json  one object: log_z, log_likelihood, verdict, reasons
  harmonium evaluate model.safetensors table.csv --time-budget 5m
  harmonium evaluate runs/digits --at 100            the model kept nearest to update 100
  harmonium evaluate runs/digits --along             all models kept along the run, as a table

The verdict first concerns the model: `diverged` (the likelihood is not finite) or `worse than independent columns`.
Otherwise it is `exact` (enumerated), `converged` (estimates from both sides agree and every check passed) or
`not converged` (the interval is not reliable; the reasons say why). Exit code 0 means that it was
computed, whatever the verdict.

Rows with missing entries count with ln p of their known entries; chains and samples are compared with complete rows.

For a conditional machine (made in Python) the likelihood is ln p(v | condition): the data have the columns of the condition and of the
visible units side by side, `past0`, `past1`, …, `v0`, …. ln Z is computed for every condition that occurs.

The results of --at and --along are kept in RUN/evaluations.jsonl, from which `harmonium report` draws its curve.")]
pub(crate) struct EvaluateArgs {
    /// A run, or a model file
    #[arg(value_name = "RUN|MODEL")]
    model: PathBuf,
    /// The data [default: the held-out rows of the run, or its training rows]
    data: Option<String>,
    /// Evaluate the model saved nearest to this update instead of the final one
    #[arg(long, value_name = "UPDATE", conflicts_with = "along")]
    at: Option<u64>,
    /// Evaluate all models saved along the run (`train --keep` sets how many): likelihood against update and seconds
    #[arg(long)]
    along: bool,
    /// Time limit for ln Z [default: none; 30s for each model of --along]
    #[arg(long, value_name = "TIME", value_parser = harmonium_data::seconds)]
    time_budget: Option<f64>,
    /// Standard error of ln Z to aim at, in nats
    #[arg(long, value_name = "X", default_value_t = LogZParams::default().std_err)]
    std_err: f64,
    /// Chains of each annealing run
    #[arg(long, value_name = "N")]
    chains: Option<usize>,
    /// Leave out the diagnostics of chains and the quality of samples
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    read: DataArgs,
}

impl EvaluateArgs {
    pub(crate) fn run(self, common: &Common) -> Result {
        let model = self.chosen(common)?;
        let (table, name) = match &self.data {
            Some(name) => (model.rows(&self.read, name, common.seed.unwrap_or(0))?, name.clone()),
            None => held_out(&model)?,
        };
        let effort = match self.time_budget {
            None if self.along => Effort::after_training(),
            seconds => Effort::new(seconds),
        };
        let effort = effort.with(self.std_err, self.chains);
        if self.along {
            return along::along(&model, &table, &name, &effort, common);
        }
        // The cost of a conditional machine depends on the number of its conditions.
        if !common.quiet && !model.is_conditional() {
            let (cost, seconds) = harmonium::evaluate::log_z_cost(&model.machine, &effort.params(0))?;
            match (cost.sweeps, self.time_budget) {
                (0.0, _) => say!("ln Z by enumeration: about {}", duration(seconds)),
                (sweeps, budget) => say!(
                    "ln Z by sampling: at most {sweeps:.1e} sweeps, {}; most machines take a fraction of it",
                    duration(budget.map_or(seconds, |b| b.min(seconds)))
                ),
            }
        }
        let evaluation = evaluate(&model.machine, &model, &table, &name, &effort, common)?;
        let mut object = evaluation.json();
        if let (Some(run), Some(update)) = (&model.run, model.update) {
            object = Records::read(run).add(run, update, &evaluation)?;
        }
        // Chains and samples of a conditional machine would need conditions to be drawn for.
        let quality = match self.quick || model.is_conditional() {
            true => None,
            false => Quality::new(&model, &table, common.seed.unwrap_or(0))?,
        };
        if common.json {
            quality.iter().for_each(|q| q.add_to(&mut object));
            return put!("{object}");
        }
        evaluation.words().iter().try_for_each(|line| put!("{line}"))?;
        quality.iter().flat_map(Quality::words).try_for_each(|line| put!("{line}"))
    }

    /// The model that the flags name.
    fn chosen(&self, common: &Common) -> Result<Model> {
        let model = Model::open(&self.model)?;
        if self.at.is_none() && !self.along {
            return Ok(model);
        }
        let flag = if self.along { "--along" } else { "--at" };
        let path = self.model.display();
        let Some(run) = model.run.clone().filter(|_| model.update.is_none()) else {
            return Err(Failure::usage(format!(
                "{flag} {path}: models are kept along runs, and this is a file; name the run directory"
            )));
        };
        let kept = run.kept();
        if kept.is_empty() {
            return Err(Failure::new(format!(
                "{flag} {path}: this run kept no models (`train --keep 0`)"
            )));
        }
        let Some(at) = self.at else { return Ok(model) };
        let nearest = kept.iter().min_by_key(|(update, _)| update.abs_diff(at));
        let (update, file) = nearest.expect("some are kept");
        if !common.quiet {
            say!("the model kept at update {}: {}", grouped(*update), file.display());
        }
        model.at(file)
    }
}

/// The data that a run has held out, else those that it has learned from.
pub(crate) fn held_out(model: &Model) -> Result<(Table, String)> {
    let Some(run) = &model.run else {
        return Err(Failure::usage(
            "no data to evaluate; name them after the model, as in `harmonium evaluate model.safetensors table.csv`",
        ));
    };
    let mut config = crate::config::Config::read(&run.config())?;
    let set = config.load()?;
    Ok(match set.test {
        Some(test) => (test, "test".into()),
        None => (set.train, "training".into()),
    })
}
