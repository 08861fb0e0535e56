//! `transform`: the hidden features of rows.

use crate::args::Common;
use crate::commands::data::write_table;
use crate::data::DataArgs;
use crate::error::{Failure, Result};
use crate::model::Model;
use clap::Args;
use harmonium::train::Data;
use harmonium::{Machine, Role};
use harmonium_data::{Column, Kind, Matrix, Schema, Table, Values};
use ndarray::{Axis, concatenate};
use std::path::PathBuf;
use std::sync::Arc;

/// Flags of `transform`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  harmonium transform runs/digits digits:test                 mean of every hidden unit, as csv
  harmonium transform runs/digits digits -o features.npy      for another program
  harmonium transform runs/digits digits --inputs             inputs of the hidden units, before their nonlinearity

Features of a row with missing entries are the mean over all ways to complete it.")]
pub(crate) struct TransformArgs {
    /// A run, or a model file
    #[arg(value_name = "RUN|MODEL")]
    model: PathBuf,
    /// The rows
    data: String,
    /// Inputs of the hidden units in place of their means
    #[arg(long)]
    inputs: bool,
    /// The file to write: .csv, .npy or .npz [default: csv on standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    read: DataArgs,
}

impl TransformArgs {
    pub(crate) fn run(self, common: &Common) -> Result {
        if let Some(path) = &self.output {
            let inputs = [self.model.as_os_str(), self.data.as_ref()];
            crate::run::may_write_beside(path, common.force, &inputs)?;
        }
        let model = Model::open(&self.model)?;
        let table = self.read.load_like(&self.data, &model.layout.schema, common.seed.unwrap_or(0))?;
        let data = model.layout.data(&model.machine, &table)?;
        let features = features(&model.machine, &data, self.inputs, common.seed.unwrap_or(0))?;
        write_table(&features, self.output.as_deref(), common.force)
    }
}

fn features(machine: &Machine, data: &Data, inputs: bool, seed: u64) -> Result<Table> {
    let mut columns = Vec::new();
    let parts = machine.features(data).inputs(inputs).seed(seed).run()?;
    for l in machine.with_role(Role::Hidden) {
        let m = &machine.members()[l];
        let name = |i: usize| match m.layer.kind().columns() {
            1 => format!("{}{i}", m.name),
            q => format!("{}{}_{}", m.name, i / q, i % q),
        };
        columns.extend((0..m.layer.width()).map(|i| Column::new(name(i), Kind::Real)));
    }
    let views: Vec<_> = parts.iter().map(|p| p.view()).collect();
    let all = concatenate(Axis(1), &views).map_err(|e| Failure::new(e.to_string()))?;
    let schema = Arc::new(Schema { columns, shape: None });
    let mut table = Table::zeros(schema, all.nrows());
    let mut matrix = Matrix::zeros(all.nrows(), all.ncols());
    all.indexed_iter().for_each(|((r, j), &x)| matrix.set(r, j, x));
    table.blocks_mut()[0].values = Values::Singles(matrix);
    Ok(table)
}
