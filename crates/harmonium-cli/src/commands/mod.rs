//! One file per command: its flags, and what it does.

pub(crate) mod classify;
pub(crate) mod complete;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod data;
pub(crate) mod evaluate;
pub(crate) mod inspect;
pub(crate) mod report;
pub(crate) mod sample;
pub(crate) mod score;
pub(crate) mod train;
pub(crate) mod transform;
pub(crate) mod verify;

use crate::args::{Cli, Command};
use crate::error::{Failure, Result};

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
        Command::Sample(args) => args.run(common),
        Command::Complete(args) => args.run(common),
        Command::Score(args) => args.run(common),
        Command::Classify(args) => args.run(common),
        Command::Transform(args) => args.run(common),
        Command::Evaluate(args) => args.run(common),
        Command::Verify(args) => args.run(common),
        Command::Inspect(args) => args.run(common),
        Command::Report(args) => args.run(common),
        Command::Convert(args) => args.run(common),
        Command::Data(args) => args.run(common),
        Command::Completions(args) => args.run(common),
    }
}
