//! The flags of `tune`.

use super::job;
use crate::args::Common;
use crate::config::{Config, TuneConfig};
use crate::data::{DataArgs, TestArgs};
use crate::error::{Failure, Result};
use crate::run::{self, RunDirectory};
use clap::Args;
use harmonium::train::Regulariser;
use harmonium_data::seconds;
use harmonium_table::MachineKind;
use std::path::{Path, PathBuf};

/// Wall time of a search, in seconds, where none is given.
const TIME: f64 = 600.0;

/// Flags of `tune`.
#[derive(Args, Debug, Default)]
#[command(after_help = "Examples:
  harmonium tune digits --time-budget 2m             nothing chosen by hand
  harmonium tune table.csv --time-budget 10m -o runs/best
  harmonium tune dna.npz:train --valid dna.npz:valid --test dna.npz:test
  harmonium tune table.csv --hidden 100              search everything but the number of hidden units
  harmonium tune table.csv --work 500 --seed 1       the same result on every computer
  harmonium tune runs/best                           resume a search that was stopped

Several machines are trained for the same time; the better ones go on for longer, joined by variants of the best one with more
hidden units or another penalty, which start from what it has learnt. Held-out rows decide; test rows are looked at once, at the
end. Settings that are given are not searched. The run directory is one of `train`, with tune.jsonl (what was tried),
trials/ and best.toml (the settings found). Ctrl-C writes and evaluates the best model so far and prints how to resume.")]
pub(crate) struct TuneArgs {
    /// The data, or the run directory of a search to continue
    #[arg(value_name = "DATA|RUN")]
    data: String,
    /// The run directory [default: runs/NAME]
    #[arg(long, short, value_name = "RUN")]
    output: Option<PathBuf>,
    /// Wall time of the whole command, as in 90s, 10m or 1h [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = seconds, conflicts_with = "work")]
    time_budget: Option<f64>,
    /// Size of the search in estimated seconds on one thread, in place of a time: then nothing depends on the clock
    #[arg(long, value_name = "SECONDS")]
    work: Option<f64>,
    /// Data that decide which settings are best [default: a tenth of the training rows]
    #[arg(long, value_name = "DATA", help_heading = "Data")]
    valid: Option<String>,
    #[command(flatten)]
    held_out: TestArgs,
    /// Which couplings there are [default: rbm, or coupled-reals where columns are real]
    #[arg(long, value_name = "KIND", value_enum, help_heading = "Settings that are not searched")]
    machine: Option<MachineKind>,
    /// Number of hidden units
    #[arg(long, value_name = "N", help_heading = "Settings that are not searched")]
    hidden: Option<usize>,
    /// Kind of the hidden units: binary, spin, gaussian, relu, drelu, potts:Q
    #[arg(long, value_name = "KIND", help_heading = "Settings that are not searched")]
    hidden_kind: Option<String>,
    /// Units of count columns: poisson, binomial:N, neg_binomial:R:N, or ordinal:N
    #[arg(long, value_name = "KIND", help_heading = "Settings that are not searched")]
    counts: Option<String>,
    /// Rows of a minibatch
    #[arg(long, value_name = "N", help_heading = "Settings that are not searched")]
    batch: Option<usize>,
    /// Learning rate at the start
    #[arg(long, value_name = "X", help_heading = "Settings that are not searched")]
    learning_rate: Option<f64>,
    /// Strength of the penalty on absolute weights
    #[arg(long, value_name = "X", help_heading = "Settings that are not searched")]
    l1: Option<f64>,
    /// Strength of the penalty on squared weights
    #[arg(long, value_name = "X", help_heading = "Settings that are not searched")]
    l2: Option<f64>,
    #[command(flatten)]
    read: DataArgs,
}

impl TuneArgs {
    pub(crate) fn run(self, common: &Common) -> Result {
        let run = RunDirectory::new(Path::new(&self.data));
        if run.exists() {
            self.nothing_changes(&run)?;
            return job::resume(run, common);
        }
        let dir = self.output.clone().unwrap_or_else(|| run::fresh(&self.data));
        job::start(self.config(common)?, RunDirectory::new(dir), common)
    }

    fn nothing_changes(&self, run: &RunDirectory) -> Result {
        let default = Self { data: self.data.clone(), ..Self::default() };
        if format!("{self:?}") == format!("{default:?}") {
            return Ok(());
        }
        Err(Failure::usage(format!(
            "{} is a run, which resumes with its own settings; for others start anew with another -o",
            run.dir.display()
        )))
    }

    fn config(self, common: &Common) -> Result<Config> {
        if matches!(self.machine, Some(MachineKind::Class | MachineKind::Deep)) {
            return Err(Failure::usage(
                "--machine: tune searches machines with one hidden layer that model all columns; for others use `harmonium train`",
            ));
        }
        if let Some(work) = self.work.filter(|w| !(w.is_finite() && *w > 0.0)) {
            return Err(Failure::usage(format!("--work {work}: expected a positive number")));
        }
        let time_budget = self.time_budget.or(self.work.is_none().then_some(TIME));
        let tune = TuneConfig {
            time_budget,
            work: self.work,
            keep_hidden: self.hidden.is_some(),
            keep_kind: self.hidden_kind.is_some(),
        };
        let mut config = Config { tune: Some(tune), ..Config::default() };
        let data = &mut config.data;
        (data.name, data.valid, data.test) = (Some(self.data), self.valid, self.held_out.test);
        (data.split, data.seed, data.read) = (self.held_out.split, common.seed, self.read);
        let machine = &mut config.machine;
        (machine.kind, machine.hidden) = (self.machine, self.hidden.map(|n| vec![n]));
        (machine.hidden_kind, machine.counts) = (self.hidden_kind, self.counts);
        let train = &mut config.train;
        (train.seed, train.batch, train.rate) = (common.seed, self.batch, self.learning_rate);
        if self.l1.is_some() || self.l2.is_some() {
            let (l1, l2) = (self.l1.unwrap_or(0.0), self.l2.unwrap_or(0.0));
            train.regulariser = Some(Regulariser { l1, l2, ..Regulariser::default() });
        }
        Ok(config)
    }
}
