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
use harmonium_data::{Table, Values};
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
known entries of its row: exactly where the machine or the gaps are small, else averaged over chains that keep the
known entries.")]
pub(crate) struct CompleteArgs {
    /// A run, or a model file
    #[arg(value_name = "RUN|MODEL")]
    model: PathBuf,
    /// The table with gaps
    data: String,
    /// What to fill in
    #[arg(long, value_enum, default_value = "best")]
    fill: How,
    /// Chains for each row
    #[arg(long, default_value_t = CHAINS, value_name = "N")]
    chains: usize,
    /// Sweeps of every chain before, and again while, it is averaged
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

/// A filled entry.
struct Filled {
    row: usize,
    place: usize,
    value: String,
    probability: Option<f64>,
}

impl CompleteArgs {
    pub(crate) fn run(self, common: &Common) -> Result {
        for path in [&self.output, &self.probabilities].into_iter().flatten() {
            crate::run::may_write(path, common.force)?;
        }
        if self.chains == 0 || self.sweeps == 0 {
            return Err(Failure::usage("--chains and --sweeps: expected at least 1"));
        }
        let model = Model::open(&self.model)?;
        let seed = common.seed.unwrap_or(0);
        let mut table = self.read.load_like(&self.data, &model.layout.schema, seed)?;
        let gaps: Vec<usize> = (0..table.rows())
            .filter(|&r| table.blocks().iter().any(|b| (0..b.cols()).any(|j| b.is_missing(r, j))))
            .collect();
        let filled = match gaps.is_empty() {
            true => Vec::new(),
            false => self.fill(&model, &mut table, &gaps, seed)?,
        };
        if !common.quiet {
            say!(
                "filled {} in {} of {}",
                counted(filled.len(), "entry", "entries"),
                grouped(gaps.len() as u64),
                counted(table.rows(), "row", "rows")
            );
        }
        write_table(&table, self.output.as_deref(), common.force)?;
        match &self.probabilities {
            Some(path) => write_probabilities(path, &table, &filled),
            None => Ok(()),
        }
    }

    fn fill(&self, model: &Model, table: &mut Table, gaps: &[usize], seed: u64) -> Result<Vec<Filled>> {
        let (machine, layout) = (&model.machine, &model.layout);
        let data = layout.data(machine, &table.select(gaps)?)?;
        let task = machine.complete(&data).chains(self.chains).sweeps(self.sweeps).seed(seed);
        let found = task.run()?;
        let fill = match self.fill {
            How::Best => Fill::Best,
            How::Sample => Fill::Sample,
        };
        let (schema, mut filled) = (table.schema().clone(), Vec::new());
        for (b, &l) in layout.layers.iter().enumerate() {
            let name = &machine.members()[l].name;
            let values = found.values(name, fill)?;
            let probabilities = found.probabilities(name, &values)?;
            let block = &mut table.blocks_mut()[b];
            let Some(missing) = block.missing.take() else { continue };
            for (i, &r) in gaps.iter().enumerate() {
                for j in (0..block.cols()).filter(|&j| missing.get(r, j)) {
                    let place = block.columns[j];
                    let x = values[[i, j]];
                    let number = schema.columns[place].format.nearest(layout.measured(place, x));
                    set(&mut block.values, r, j, number);
                    let p = Some(probabilities[[i, j]]).filter(|p| !p.is_nan());
                    filled.push(Filled { row: r, place, value: String::new(), probability: p });
                }
            }
        }
        // The words for values come from the finished table.
        for f in &mut filled {
            let word = table.blocks().iter().find_map(|b| {
                let j = b.columns.iter().position(|&c| c == f.place)?;
                Some(table.entry(b, f.row, j).into_owned())
            });
            f.value = word.unwrap_or_default();
        }
        filled.sort_by_key(|f| (f.row, f.place));
        Ok(filled)
    }
}

fn set(values: &mut Values, r: usize, j: usize, x: f64) {
    match values {
        Values::Bits(bits) => bits.set(r, j, x > 0.0),
        Values::Codes(codes) => codes.set(r, j, x as u32),
        // A filled number has no more digits than can be meant; whole ones, dates among them, keep theirs.
        Values::Reals(reals) if x.fract() == 0.0 => reals.set(r, j, x),
        Values::Reals(reals) => reals.set(r, j, format!("{x:.5e}").parse().unwrap_or(x)),
        Values::Singles(reals) => reals.set(r, j, x as f32),
    }
}

fn write_probabilities(path: &Path, table: &Table, filled: &[Filled]) -> Result {
    Ok(harmonium_data::replace_file(path, |out| {
        writeln!(out, "row,column,value,probability")?;
        for f in filled {
            let column = &table.schema().columns[f.place].name;
            let p = f.probability.map(|p| format!("{p:.6}")).unwrap_or_default();
            writeln!(out, "{},{},{},{p}", f.row + 1, quoted(column), quoted(&f.value))?;
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
