//! Tables larger than memory: the rows of an npy or Parquet file, a block at a time.

use std::ops::Range;
use std::sync::Arc;

use crate::infer::{Inferred, Profiler};
use crate::read::blocks::{BlockSource, NpySource};
use crate::table::build::{build, check_known};
use crate::{
    DataName, Error, Finding, Format, Overrides, Place, ReadOptions, Result, Schema, Source, Table,
};

/// The rows of a file in blocks, each a [`Table`] with the same schema.
///
/// Opening reads the file once, block by block, to infer the schema (not with [`RowBlocks::open_like`]).
/// One block is in memory at a time: for npy `block_rows` rows as the file stores them, for Parquet 8 bytes
/// per number, and the table that is made of them. Blocks can be read in any order and any number of times;
/// binarisation by sampling gives the bits that reading the whole file at once gives.
pub struct RowBlocks {
    source: Box<dyn BlockSource>,
    schema: Arc<Schema>,
    block_rows: usize,
    seed: u64,
    single: bool,
    unseen: bool,
    /// What was found out about the columns, unless they were known.
    pub(crate) findings: Vec<Finding>,
}

impl RowBlocks {
    /// Opens the npy or Parquet file of this name.
    pub fn open(name: &str, block_rows: usize, options: &ReadOptions) -> Result<Self> {
        let mut source = open_source(name)?;
        check(&*source, block_rows)?;
        let found = infer(&mut *source, block_rows, &options.overrides)?;
        Ok(Self {
            source,
            schema: Arc::new(found.schema),
            block_rows,
            seed: options.seed,
            single: options.single && !found.double,
            unseen: options.unseen,
            findings: found.findings,
        })
    }

    /// Opens a file whose columns are known.
    pub fn open_like(
        name: &str,
        block_rows: usize,
        schema: &Arc<Schema>,
        options: &ReadOptions,
    ) -> Result<Self> {
        let mut source = open_source(name)?;
        check(&*source, block_rows)?;
        let first = source.read(0..1)?;
        check_known(&*first, schema, &options.overrides)?;
        // Whether single precision would do is not known without reading everything once more.
        let (schema, seed, unseen) = (schema.clone(), options.seed, options.unseen);
        Ok(Self { source, schema, block_rows, seed, single: false, unseen, findings: Vec::new() })
    }

    /// What every column is.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Number of rows of the file.
    pub fn rows(&self) -> usize {
        self.source.rows()
    }

    /// Number of blocks; all have the same number of rows except perhaps the last.
    pub fn blocks(&self) -> usize {
        self.rows().div_ceil(self.block_rows)
    }

    /// Reads a block, counted from 0.
    pub fn block(&mut self, index: usize) -> Result<Table> {
        if index >= self.blocks() {
            let expected = format!("a block from 0 to {}", self.blocks().saturating_sub(1));
            return Err(Error::parameter("index", index, expected));
        }
        let range = range(index, self.block_rows, self.rows());
        let cells = self.source.read(range)?;
        let mut table = build(&*cells, &self.schema, self.seed, self.unseen)?;
        if self.single {
            table.blocks.iter_mut().for_each(crate::Block::narrow);
        }
        Ok(table)
    }

    /// The blocks in order.
    pub fn iter(&mut self) -> impl Iterator<Item = Result<Table>> {
        (0..self.blocks()).map(|index| self.block(index))
    }

    /// All blocks as one table.
    pub(crate) fn read_all(&mut self) -> Result<Table> {
        let mut all = self.block(0)?;
        for index in 1..self.blocks() {
            all.append(&self.block(index)?)?;
        }
        Ok(all)
    }
}

fn range(index: usize, block_rows: usize, rows: usize) -> Range<usize> {
    let start = index * block_rows;
    start..rows.min(start.saturating_add(block_rows))
}

fn check(source: &dyn BlockSource, block_rows: usize) -> Result<()> {
    if block_rows == 0 {
        return Err(Error::parameter("block_rows", 0, "at least 1"));
    }
    match source.rows() {
        0 => Err(Error::empty(&source.place().clone(), "at least one row is needed")),
        _ => Ok(()),
    }
}

/// Infers the schema in one pass over the file, more when words turn up after numbers or may be dates.
fn infer(source: &mut dyn BlockSource, block_rows: usize, overrides: &Overrides) -> Result<Inferred> {
    let rows = source.rows();
    let first = source.read(range(0, block_rows, rows))?;
    let mut profiler = Profiler::new(&*first, overrides)?;
    loop {
        for index in 0..rows.div_ceil(block_rows) {
            profiler.observe(&*source.read(range(index, block_rows, rows))?);
        }
        if !profiler.look_again() {
            return profiler.finish();
        }
    }
}

fn open_source(name: &str) -> Result<Box<dyn BlockSource>> {
    let name = DataName::parse(name)?;
    let Source::File { path, format } = &name.source else {
        return Err(not_in_blocks(&name.text));
    };
    let place = Place::file(path);
    match format {
        Format::Npy => Ok(Box::new(NpySource::open(path, &place)?)),
        Format::Parquet => crate::read::parquet_source(path, &place),
        _ => Err(not_in_blocks(&name.text)),
    }
}

fn not_in_blocks(name: &str) -> Error {
    Error::name(
        name,
        "only npy and Parquet files are read in blocks",
        "convert the data to npy, or read them into memory",
    )
}
