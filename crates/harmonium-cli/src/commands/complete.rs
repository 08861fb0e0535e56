//! `complete`: fills the missing entries of a table.

use crate::args::Common;
use crate::commands::data::write_table;
use crate::data::DataArgs;
use crate::error::{Failure, Result};
use crate::model::Model;
use crate::output::{counted, grouped, say};
use clap::{Args, ValueEnum};
use harmonium::evaluate::{CHAINS, SWEEPS};
use harmonium::tasks::Fill;
use harmonium_data::Table;
use harmonium_table::Filled;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// How an entry is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum How {
    /// The most probable value given the known entries (for numbers, their mean)
    Best,
    /// One draw, jointly for all missing entries of a row
    Sample,
}

/// Flags of `complete`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  harmonium complete runs/table gaps.csv -o full.csv
  harmonium complete runs/table gaps.csv --fill sample --seed 3
  harmonium complete runs/table gaps.csv -o full.csv --probabilities p.csv

An entry is missing when it is empty, NA, NaN, null or ?. Probabilities are those of the filled value given all
known entries of its row: exact if the machine or the gaps are small, otherwise averaged over chains with the known
entries clamped.")]
pub(crate) struct CompleteArgs {
    /// A run, or a model file
    #[arg(value_name = "RUN|MODEL")]
    model: PathBuf,
    /// The table with gaps
    data: String,
    /// The value to fill in
    #[arg(long, value_enum, default_value = "best")]
    fill: How,
    /// Chains for each row
    #[arg(long, default_value_t = CHAINS, value_name = "N")]
    chains: usize,
    /// Burn-in sweeps of every chain, and as many again over which it is averaged
    #[arg(long, default_value_t = SWEEPS, value_name = "N")]
    sweeps: usize,
    /// A csv file for the probability of every filled entry
    #[arg(long, value_name = "FILE")]
    probabilities: Option<PathBuf>,
    /// The file to write: .csv, .npy, .npz, .fasta or .png [default: csv on standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    read: DataArgs,
}

impl CompleteArgs {
    pub(crate) fn run(self, common: &Common) -> Result {
        for path in [&self.output, &self.probabilities].into_iter().flatten() {
            let inputs = [self.model.as_os_str(), self.data.as_ref()];
            crate::run::may_write_beside(path, common.force, &inputs)?;
        }
        if self.chains == 0 || self.sweeps == 0 {
            return Err(Failure::usage("--chains and --sweeps: expected at least 1"));
        }
        let model = Model::open(&self.model)?;
        let seed = common.seed.unwrap_or(0);
        let mut table = self.read.load_like(&self.data, &model.layout.schema, seed)?;
        let fill = match self.fill {
            How::Best => Fill::Best,
            How::Sample => Fill::Sample,
        };
        let columns = harmonium_table::Model { machine: model.machine, layout: model.layout };
        let filled = columns.complete(&mut table, fill, |task| {
            task.chains(self.chains).sweeps(self.sweeps).seed(seed)
        })?;
        let rows: BTreeSet<usize> = filled.iter().map(|f| f.row).collect();
        if !common.quiet {
            say!(
                "filled {} in {} of {}",
                counted(filled.len(), "entry", "entries"),
                grouped(rows.len() as u64),
                counted(table.rows(), "row", "rows")
            );
        }
        write_table(&table, self.output.as_deref(), common.force)?;
        match &self.probabilities {
            Some(path) => write_probabilities(path, &table, &filled),
            None => Ok(()),
        }
    }
}

fn write_probabilities(path: &Path, table: &Table, filled: &[Filled]) -> Result {
    Ok(harmonium_data::replace_file(path, |out| {
        writeln!(out, "row,column,value,probability")?;
        for f in filled {
            let column = &table.schema().columns[f.column].name;
            let p = f.probability.map(|p| format!("{p:.6}")).unwrap_or_default();
            let value = table.blocks().iter().find_map(|b| {
                let j = b.columns.iter().position(|&c| c == f.column)?;
                Some(table.entry(b, f.row, j))
            });
            writeln!(
                out,
                "{},{},{},{p}",
                f.row + 1,
                quoted(column),
                quoted(&value.unwrap_or_default())
            )?;
        }
        Ok(())
    })?)
}

/// A csv entry.
pub(crate) fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
