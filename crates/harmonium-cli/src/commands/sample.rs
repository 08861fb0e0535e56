//! `sample`: draws from a model, freely or with some columns given.

use crate::args::Common;
use crate::commands::data::write_table;
use crate::error::Result;
use crate::model::Model;
use clap::Args;
use harmonium::sample::purpose;
use harmonium::{Chains, Clamps, Machine};
use std::path::PathBuf;

/// Sweeps before samples are taken, where nothing else is said.
pub(crate) const SWEEPS: usize = 1000;

/// Flags of `sample`.
#[derive(Args, Debug)]
pub(crate) struct SampleArgs {
    /// A run, or a model file
    model: PathBuf,
    /// Number of samples
    #[arg(long, short, default_value_t = 10, value_name = "N")]
    n: usize,
    /// Sweeps of every chain before its first sample
    #[arg(long, default_value_t = SWEEPS, value_name = "N")]
    sweeps: usize,
    /// The file to write: .csv, .npy, .npz, .fasta, or .png for a grid of images [default: csv on standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl SampleArgs {
    pub(crate) fn run(self, common: &Common) -> Result {
        let model = Model::open(&self.model)?;
        let chains = chains(&model.machine, self.n, self.sweeps, common.seed.unwrap_or(0))?;
        let table = model.layout.table(&model.machine, chains.states())?;
        write_table(&table, self.output.as_deref(), common.force)
    }
}

/// Independent chains after some sweeps.
pub(crate) fn chains(machine: &Machine, n: usize, sweeps: usize, seed: u64) -> Result<Chains> {
    let mut chains = Chains::independent(machine, n, seed, purpose::USER)?;
    chains.sweep(&machine.at(1.0), &Clamps::none(machine), sweeps)?;
    Ok(chains)
}
