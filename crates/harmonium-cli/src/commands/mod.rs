//! The command line as it is typed, with its help; one file per command: its flags, and what it does.

pub(crate) mod classify;
pub(crate) mod complete;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod data;
pub(crate) mod evaluate;
pub(crate) mod gradient;
pub(crate) mod inspect;
pub(crate) mod report;
pub(crate) mod sample;
pub(crate) mod score;
pub(crate) mod train;
pub(crate) mod transform;
pub(crate) mod tune;
pub(crate) mod verify;

use crate::args::Common;
use crate::error::{Failure, Result};
use clap::{Parser, Subcommand};

/// Train, sample and evaluate Boltzmann machines.
#[derive(Parser, Debug)]
#[command(
    name = "harmonium",
    version,
    propagate_version = true,
    max_term_width = 100,
    after_help = "Start here:
  harmonium train digits              train a machine on the built-in digits, a minute or less
  harmonium data                      list the built-in data
  harmonium train table.csv -o run    train on a table of your own
  harmonium tune table.csv            let ten minutes find the best settings
  harmonium report run                one HTML file with all figures of the run

Data are named `digits`, `mnist:test`, `file.npz`, `file.npz:train`, `table.csv`, or `-` for standard input.
Exit codes: 0 success, 1 failure, 2 invalid command line or configuration, 130 interrupted."
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Flags of every command.
    #[command(flatten)]
    pub(crate) common: Common,
}

/// The commands.
// Constructed once per process: boxing the large variants would gain nothing.
#[allow(clippy::large_enum_variant)]
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Train a machine on data, or continue a run
    Train(train::TrainArgs),
    /// Search for the best settings within a time, and train with them
    Tune(tune::TuneArgs),
    /// Draw samples from a model, unconditional or with some columns fixed
    Sample(sample::SampleArgs),
    /// Fill the missing entries of a table
    Complete(complete::CompleteArgs),
    /// Score rows: free energy, log-likelihood with interval, anomaly rank
    Score(score::ScoreArgs),
    /// Predict the labels of rows with a class machine
    Classify(classify::ClassifyArgs),
    /// Compute the hidden features of rows
    Transform(transform::TransformArgs),
    /// Estimate the likelihood with interval and verdict, diagnose chains and samples
    Evaluate(evaluate::EvaluateArgs),
    /// Compute the gradient of the mean log-likelihood of rows, by enumeration
    Gradient(gradient::GradientArgs),
    /// Check the sampler on your own model against exact enumeration
    Verify(verify::VerifyArgs),
    /// Show what is in a model file or a run
    Inspect(inspect::InspectArgs),
    /// Write one HTML file with curves, weights, samples and the verdict
    Report(report::ReportArgs),
    /// Convert models from and to the formats of other programs
    Convert(convert::ConvertArgs),
    /// List, describe and export data
    Data(data::DataCommand),
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
}

/// Runs the command.
pub(crate) fn run(cli: Cli) -> Result {
    let common = &cli.common;
    // This thread is one of the pool's: work that is handed to another one and waited for costs two wake-ups each time, a
    // quarter of the time of small updates.
    let n = common.threads.map_or(0, usize::from);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(n).use_current_thread().build_global();
    pool.map_err(|e| Failure::new(format!("--threads {n}: {e}")))?;
    match cli.command {
        Command::Train(args) => args.run(common),
        Command::Tune(args) => args.run(common),
        Command::Sample(args) => args.run(common),
        Command::Complete(args) => args.run(common),
        Command::Score(args) => args.run(common),
        Command::Classify(args) => args.run(common),
        Command::Transform(args) => args.run(common),
        Command::Evaluate(args) => args.run(common),
        Command::Gradient(args) => args.run(common),
        Command::Verify(args) => args.run(common),
        Command::Inspect(args) => args.run(common),
        Command::Report(args) => args.run(common),
        Command::Convert(args) => args.run(common),
        Command::Data(args) => args.run(common),
        Command::Completions(args) => args.run(common),
    }
}
