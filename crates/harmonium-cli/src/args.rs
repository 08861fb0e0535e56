//! The command-line parser: commands, common flags, help with examples.

use crate::commands;
use clap::{Args, Parser, Subcommand};

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

/// Flags of every command.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Common")]
pub(crate) struct Common {
    /// Seed of all random numbers; equal seeds give equal results on any number of threads [default: 0]
    #[arg(long, global = true, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Number of threads [default: all]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Print results as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print results only
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Replace files and runs that exist
    #[arg(long, global = true)]
    pub(crate) force: bool,
}

impl Common {
    /// A copy with `quiet` set.
    pub(crate) fn silent(&self) -> Self {
        Self { quiet: true, ..self.clone() }
    }
}

/// The commands.
// Constructed once per process: boxing the large variants would gain nothing.
#[allow(clippy::large_enum_variant)]
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Train a machine on data, or continue a run
    Train(commands::train::TrainArgs),
    /// Draw samples from a model, unconditional or with some columns fixed
    Sample(commands::sample::SampleArgs),
    /// Fill the missing entries of a table
    Complete(commands::complete::CompleteArgs),
    /// Score rows: free energy, log-likelihood with interval, anomaly rank
    Score(commands::score::ScoreArgs),
    /// Predict the labels of rows with a class machine
    Classify(commands::classify::ClassifyArgs),
    /// Hidden features of rows
    Transform(commands::transform::TransformArgs),
    /// Likelihood with interval and verdict, diagnostics, quality of samples
    Evaluate(commands::evaluate::EvaluateArgs),
    /// Check the sampler on your own model against exact enumeration
    Verify(commands::verify::VerifyArgs),
    /// What is in a model file or a run
    Inspect(commands::inspect::InspectArgs),
    /// Write one HTML file with curves, weights, samples and the verdict
    Report(commands::report::ReportArgs),
    /// Convert models from and to the formats of other programs
    Convert(commands::convert::ConvertArgs),
    /// List, describe and export data
    Data(commands::data::DataCommand),
    /// Print a completion script for a shell
    Completions(commands::completions::CompletionsArgs),
}
