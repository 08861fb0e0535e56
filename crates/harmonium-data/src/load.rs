//! From a data name to a typed data set.

use std::io::Read;
use std::sync::Arc;

use crate::cells::{Cell, Cells};
use crate::infer::infer;
use crate::read::blocks::{BlockSource, NpySource};
use crate::read::columns::{ColumnCells, Given};
use crate::read::{self, Grid, Subset};
use crate::table::build::{build, check_known};
use crate::{
    Column, DataName, Dataset, Error, Finding, Format, Kind, Overrides, Place, ReadOptions, Reason,
    Result, RowBlocks, Schema, Source, Table,
};

/// Reads the data of this name (see [`DataName`]), in parts when it has some.
pub fn load(name: &str, options: &ReadOptions) -> Result<Dataset> {
    Ok(describe(name, options)?.0)
}

/// As [`load`], with the reason for the kind of each column.
pub fn describe(name: &str, options: &ReadOptions) -> Result<(Dataset, Vec<Finding>)> {
    let name = DataName::parse(name)?;
    if let Some(rows) = block_rows(&name)? {
        let mut blocks = RowBlocks::open(&name.text, rows, options)?;
        let table = blocks.read_all()?;
        return Ok((Dataset::whole(table), blocks.findings));
    }
    match built_in(&name, options.seed)? {
        Some(set) => retype(set, &options.overrides, options.seed, &name.text),
        None => typed(grids(&name, options)?, options),
    }
}

/// Rows of a Parquet file that are read at a time when all of them are wanted: its entries take more room
/// than the table that is made of them.
const PARQUET_ROWS: usize = 4096;
/// The same for npy, in bytes.
const NPY_BYTES: usize = 16 << 20;

/// How many rows at a time to read the file in; `None` if it has to be read whole.
fn block_rows(name: &DataName) -> Result<Option<usize>> {
    let Source::File { path, format } = &name.source else { return Ok(None) };
    match format {
        Format::Parquet => {
            read::no_part(name.part.as_deref(), Format::Parquet, &Place::file(path))?;
            Ok(Some(PARQUET_ROWS))
        }
        // Packed files and arrays in Fortran order cannot be read in blocks; a damaged file is reported when it is read whole.
        Format::Npy if name.part.is_none() && path.is_file() => {
            let source = NpySource::open(path, &Place::file(path)).ok().filter(|s| s.rows() > 0);
            Ok(source.map(|s| (NPY_BYTES / s.row_bytes().max(1)).max(1)))
        }
        _ => Ok(None),
    }
}

/// Reads the data of this name as one table: all parts, or the part after the colon.
pub fn load_all(name: &str, options: &ReadOptions) -> Result<Table> {
    load(name, options)?.into_all()
}

/// Reads the data of this name as one table with the columns of `schema`, matched by name.
///
/// This is how a second file is read: kinds, categories and binarisation are those of the first. Labels
/// and ignored columns may be absent; a column that `schema` does not have is an error unless
/// `options.overrides` says to ignore it.
pub fn load_like(name: &str, schema: &Arc<Schema>, options: &ReadOptions) -> Result<Table> {
    let name = DataName::parse(name)?;
    if let Some(rows) = block_rows(&name)? {
        return RowBlocks::open_like(&name.text, rows, schema, options)?.read_all();
    }
    let grids = match built_in(&name, options.seed)? {
        Some(set) => vec![Grid::new(Subset::Train, TableCells::new(set.into_all()?, &name.text))],
        None => grids(&name, options)?,
    };
    let mut all: Option<Table> = None;
    for grid in grids {
        check_known(&*grid.cells, schema, &options.overrides)?;
        let table = finish(&grid, schema, options)?;
        match &mut all {
            None => all = Some(table),
            Some(all) => all.append(&table)?,
        }
    }
    all.ok_or_else(|| Error::empty(&Place::new(&name.text), "there is nothing in it"))
}

/// Reads a csv table from any reader; `place` names it in messages.
pub fn read_csv(input: impl Read, place: &str, options: &ReadOptions) -> Result<Dataset> {
    let grids = read::text_table(input, Format::Csv, options, &Place::new(place))?;
    Ok(typed(grids, options)?.0)
}

/// A table of columns that are in memory; `place` names it in messages.
///
/// ```
/// use harmonium_data::{Given, Kind, ReadOptions, read_columns};
///
/// let levels = ["no", "NA", "yes"].map(String::from).into();
/// let sure = Given { name: "sure".into(), kind: Some(Kind::Categorical), levels: Some(levels), values: vec![0.0, 1.0] };
/// let size = Given { name: "size".into(), kind: None, levels: None, values: vec![1.5, f64::NAN] };
/// let table = read_columns(vec![sure, size], "frame", &ReadOptions::default())?.train;
/// assert_eq!(table.schema().columns[0].categories.len(), 3);
/// assert_eq!(table.schema().columns[1].kind, Kind::Real);
/// # Ok::<(), harmonium_data::Error>(())
/// ```
pub fn read_columns(columns: Vec<Given>, place: &str, options: &ReadOptions) -> Result<Dataset> {
    let grid = Grid::new(Subset::Train, ColumnCells::new(columns, Place::new(place))?);
    Ok(typed(vec![grid], options)?.0)
}

/// Reads a file of a format that can be read from memory (all but Parquet, HDF5 and images).
pub fn read_bytes(
    bytes: Vec<u8>,
    format: Format,
    part: Option<&str>,
    options: &ReadOptions,
) -> Result<Dataset> {
    let grids = read::from_bytes(bytes, format, part, options, &Place::new(format.name()))?;
    Ok(typed(grids, options)?.0)
}

/// Embedded and generated data, which come with their schema.
fn built_in(name: &DataName, seed: u64) -> Result<Option<Dataset>> {
    let set = match &name.source {
        Source::Digits { grey } => crate::digits(*grey)?,
        Source::Mnist => crate::mnist()?,
        Source::Generated(generator) => Dataset::whole(generator.table(seed)?),
        Source::File { .. } | Source::Stdin => return Ok(None),
    };
    let Some(part) = &name.part else {
        return Ok(Some(set));
    };
    match set.part(part)? {
        Some(table) => Ok(Some(Dataset::whole(table))),
        None => Err(Error::name(&name.text, format!("no part {part:?}"), "write train, test or all")),
    }
}

fn grids(name: &DataName, options: &ReadOptions) -> Result<Vec<Grid>> {
    match &name.source {
        Source::File { path, format } => read::file(path, *format, name.part.as_deref(), options),
        _ => {
            let place = Place::new("-");
            read::text_table(std::io::stdin().lock(), Format::Csv, options, &place)
        }
    }
}

/// Infers one schema for all parts and builds their tables.
fn typed(grids: Vec<Grid>, options: &ReadOptions) -> Result<(Dataset, Vec<Finding>)> {
    let cells: Vec<&dyn Cells> = grids.iter().map(|grid| &*grid.cells).collect();
    let inferred = infer(&cells, &options.overrides)?;
    let schema = Arc::new(inferred.schema);
    let mut parts: [Option<Table>; 3] = [None, None, None];
    for grid in &grids {
        check_known(&*grid.cells, &schema, &options.overrides)?;
        parts[grid.subset as usize] = Some(finish(grid, &schema, options)?);
    }
    let [train, valid, test] = parts;
    match train {
        Some(train) => Ok((Dataset { train, valid, test }, inferred.findings)),
        None => unreachable!("every reader gives a training part"),
    }
}

fn finish(grid: &Grid, schema: &Arc<Schema>, options: &ReadOptions) -> Result<Table> {
    let mut table =
        build(&*grid.cells, schema, options.seed, options.unseen)?.not_empty(grid.cells.place())?;
    table.set_weights(grid.weights.clone())?;
    Ok(table)
}

/// Applies overrides to data that come with a schema.
fn retype(
    set: Dataset,
    overrides: &Overrides,
    seed: u64,
    name: &str,
) -> Result<(Dataset, Vec<Finding>)> {
    if overrides.is_empty() {
        let declared = Finding { reason: Reason::Declared, range: None, instead: None };
        let findings = vec![declared; set.train.schema.columns.len()];
        return Ok((set, findings));
    }
    let parts = [(Subset::Train, Some(set.train)), (Subset::Valid, set.valid), (Subset::Test, set.test)];
    let grids = parts
        .into_iter()
        .filter_map(|(part, table)| Some(Grid::new(part, TableCells::new(table?, name))))
        .collect();
    let options = ReadOptions { overrides: overrides.clone(), seed, ..ReadOptions::default() };
    typed(grids, &options)
}

/// A table as a grid, to be typed again.
struct TableCells {
    place: Place,
    table: Table,
    /// For each column of the schema, its block and column there; labels have none.
    slots: Vec<Option<(usize, usize)>>,
}

impl TableCells {
    fn new(table: Table, name: &str) -> Self {
        let mut slots = vec![None; table.schema.columns.len()];
        for (index, block) in table.blocks.iter().enumerate() {
            for (col, &place) in block.columns.iter().enumerate() {
                slots[place] = Some((index, col));
            }
        }
        Self { place: Place::new(name), table, slots }
    }
}

impl Cells for TableCells {
    fn place(&self) -> &Place {
        &self.place
    }

    fn rows(&self) -> usize {
        self.table.rows
    }

    fn names(&self) -> Vec<String> {
        let columns = self.table.schema.columns.iter();
        columns.map(|column| column.name.clone()).collect()
    }

    fn uniform(&self) -> usize {
        // Embedded and generated tables have one block, with the label behind it.
        self.table.blocks.first().map_or(0, |block| block.cols())
    }

    fn declared(&self, col: usize) -> Option<Column> {
        let column = &self.table.schema.columns[col];
        (column.kind == Kind::Label).then(|| column.clone())
    }

    fn shape(&self) -> Option<[usize; 2]> {
        self.table.shape()
    }

    fn cell(&self, row: usize, col: usize) -> Cell<'_> {
        match self.slots[col] {
            Some((block, at)) => match self.table.blocks[block].number(row, at) {
                Some(value) => Cell::Number(value),
                None => Cell::Missing,
            },
            None => match self.table.labels().and_then(|labels| labels.name(row)) {
                Some(name) => Cell::Text(name.into()),
                None => Cell::Missing,
            },
        }
    }
}
