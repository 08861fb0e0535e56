//! The flags that are common to all commands.

use clap::Args;

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
