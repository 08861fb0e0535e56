//! A machine with the columns of the table it was made for: the library's tasks over tables.

use crate::{Layout, MachineConfig, Result, machine_for};
use harmonium::Machine;
use harmonium::tasks::{Complete, Fill, Sample, Train, Trained};
use harmonium_data::{Block, Table, Values};

/// A machine and the columns it stands for.
#[derive(Clone, Debug)]
pub struct Model {
    /// The machine.
    pub machine: Machine,
    /// Which layer holds which columns.
    pub layout: Layout,
}

/// An entry that was missing and has been filled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Filled {
    /// The row.
    pub row: usize,
    /// The place of the column in the schema.
    pub column: usize,
    /// The probability of the value given the known entries of its row; of bits, spins and categories.
    pub probability: Option<f64>,
}

impl Model {
    /// A blank machine for the columns of a table; `config` says which, and what it does not say is chosen.
    ///
    /// # Errors
    /// Settings that contradict each other or the table.
    pub fn new(mut config: MachineConfig, table: &Table) -> Result<Self> {
        let (machine, layout) = machine_for(&mut config, table)?;
        Ok(Self { machine, layout })
    }

    /// Trains the machine on a table with the same columns; `task` sets what is not to be the default.
    ///
    /// # Errors
    /// Another table, settings that do not fit.
    pub fn train(
        &mut self,
        table: &Table,
        task: impl FnOnce(Train<'_>) -> Train<'_>,
    ) -> Result<Trained> {
        let data = self.layout.data(&self.machine, table)?;
        Ok(task(self.machine.train(data)).run()?)
    }

    /// `n` samples as a table; [`Layout::clamp`] finds the unit of a column that is to keep an entry.
    ///
    /// # Errors
    /// Settings that do not fit.
    pub fn sample<'a>(&'a self, n: usize, task: impl FnOnce(Sample<'a>) -> Sample<'a>) -> Result<Table> {
        let samples = task(self.machine.sample(n)).run()?;
        self.layout.table(&self.machine, &samples.states)
    }

    /// Fills what is missing in a table, in place, and says what that was.
    ///
    /// # Errors
    /// Another table, settings that do not fit. The table is then as it was.
    pub fn complete<'a>(
        &'a self,
        table: &mut Table,
        fill: Fill,
        task: impl FnOnce(Complete<'a>) -> Complete<'a>,
    ) -> Result<Vec<Filled>> {
        let gaps: Vec<usize> = (0..table.rows()).filter(|&r| has_gap(table.blocks(), r)).collect();
        if gaps.is_empty() {
            return Ok(Vec::new());
        }
        let data = self.layout.data(&self.machine, &table.select(&gaps)?)?;
        let found = task(self.machine.complete(data)).run()?;
        let mut filled = Vec::new();
        let schema = table.schema().clone();
        for (b, &l) in self.layout.layers.iter().enumerate() {
            let name = &self.machine.members()[l].name;
            let values = found.values(name, fill)?;
            let probabilities = found.probabilities(name, &values)?;
            let block = &mut table.blocks_mut()[b];
            let Some(missing) = block.missing.take() else { continue };
            for (i, &r) in gaps.iter().enumerate() {
                for j in (0..block.cols()).filter(|&j| missing.get(r, j)) {
                    let column = block.columns[j];
                    let x = self.layout.measured(column, values[[i, j]]);
                    set(&mut block.values, r, j, schema.columns[column].format.nearest(x));
                    let probability = Some(probabilities[[i, j]]).filter(|p| !p.is_nan());
                    filled.push(Filled { row: r, column, probability });
                }
            }
        }
        filled.sort_by_key(|f| (f.row, f.column));
        Ok(filled)
    }
}

fn has_gap(blocks: &[Block], r: usize) -> bool {
    blocks.iter().any(|b| (0..b.cols()).any(|j| b.is_missing(r, j)))
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
