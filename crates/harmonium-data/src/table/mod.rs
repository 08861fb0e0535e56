//! The typed table: blocks of columns of one kind, with labels, weights and names kept beside them.

mod block;
pub(crate) mod build;
mod matrix;
mod rows;
mod text;

use std::borrow::Cow;
use std::sync::Arc;

pub use block::{Block, Values};
pub use harmonium_kernels::Bits;
pub use matrix::{Matrix, NumberArray};
pub use text::{Ignored, Labels, TextColumn};

use crate::schema::numbered;
use crate::{Error, Kind, Place, Result, Schema};

/// Rows of typed columns.
///
/// The data stand in [`Block`]s, one per kind of column: 70 000 binary images of 784 pixels are one block
/// of 13 words per row. Labels, ignored columns and row weights are kept apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub(crate) schema: Arc<Schema>,
    pub(crate) rows: usize,
    pub(crate) blocks: Vec<Block>,
    pub(crate) labels: Option<Labels>,
    pub(crate) ignored: Vec<Ignored>,
    pub(crate) weights: Option<Vec<f64>>,
    pub(crate) impossible: Vec<usize>,
}

/// Where the values of a column of the schema are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slot {
    Block { block: usize, col: usize },
    Label,
    Ignored(usize),
    Absent,
}

impl Table {
    /// A table of zeros with the blocks of `schema`, to be filled through [`Table::blocks_mut`].
    pub fn zeros(schema: Arc<Schema>, rows: usize) -> Self {
        let blocks = schema
            .groups()
            .into_iter()
            .map(|group| Block {
                kind: group.kind,
                states: group.states,
                values: Values::zeros(group.kind, rows, group.columns.len()),
                columns: group.columns,
                missing: None,
            })
            .collect();
        Self {
            schema,
            rows,
            blocks,
            labels: None,
            ignored: Vec::new(),
            weights: None,
            impossible: Vec::new(),
        }
    }

    /// A table of binary (or, as `kind`, spin) columns named `v0, v1, …`.
    pub fn from_bits(kind: Kind, bits: Bits, shape: Option<[usize; 2]>) -> Result<Self> {
        if !matches!(kind, Kind::Binary | Kind::Spin) {
            return Err(Error::parameter("kind", kind, "binary or spin"));
        }
        let schema = Schema { columns: numbered("v", bits.cols(), kind), shape };
        let mut table = Self::zeros(Arc::new(schema), bits.rows());
        if let [block] = &mut table.blocks[..] {
            block.values = Values::Bits(bits);
        }
        Ok(table)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// What every column is.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The data, one block per kind (and number of categories), in the order of [`Schema::groups`].
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The data, to be changed in place.
    pub fn blocks_mut(&mut self) -> &mut [Block] {
        &mut self.blocks
    }

    /// The class of every row, if there is a label column.
    pub fn labels(&self) -> Option<&Labels> {
        self.labels.as_ref()
    }

    /// Sets the class of every row.
    pub fn set_labels(&mut self, labels: Option<Labels>) -> Result<()> {
        if let Some(labels) = &labels {
            if labels.codes.len() != self.rows {
                let expected = format!("one label per row, {}", self.rows);
                return Err(Error::parameter("labels", labels.codes.len(), expected));
            }
            let classes = labels.categories.len() as u32;
            let wrong = |code: &&u32| **code >= classes && **code != Labels::MISSING;
            if let Some(code) = labels.codes.iter().find(wrong) {
                return Err(Error::parameter("labels", code, format!("codes below {classes}")));
            }
        }
        self.labels = labels;
        Ok(())
    }

    /// The text of the ignored columns, where the format makes it cheap to keep.
    pub fn ignored(&self) -> &[Ignored] {
        &self.ignored
    }

    /// How much every row counts; `None` means equally.
    pub fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    /// Sets how much every row counts.
    pub fn set_weights(&mut self, weights: Option<Vec<f64>>) -> Result<()> {
        if let Some(weights) = &weights {
            if weights.len() != self.rows {
                let expected = format!("one weight per row, {}", self.rows);
                return Err(Error::parameter("weights", weights.len(), expected));
            }
            if let Some(bad) = weights.iter().find(|w| !(w.is_finite() && **w >= 0.0)) {
                return Err(Error::parameter("weights", bad, "finite numbers, 0 or more"));
            }
        }
        self.weights = weights;
        Ok(())
    }

    /// Height and width, when every row is an image.
    pub fn shape(&self) -> Option<[usize; 2]> {
        self.schema.shape
    }

    /// The rows with a category that its column does not have, in order; see [`ReadOptions`](crate::ReadOptions).
    pub fn impossible(&self) -> &[usize] {
        &self.impossible
    }

    /// Number of data columns, over all blocks.
    pub fn cols(&self) -> usize {
        self.blocks.iter().map(Block::cols).sum()
    }

    /// Number of missing entries, over all blocks.
    pub fn missing(&self) -> usize {
        self.blocks.iter().filter_map(|block| block.missing.as_ref()).map(Bits::count_ones).sum()
    }

    /// Where each column of the schema is kept.
    pub(crate) fn slots(&self) -> Vec<Slot> {
        let mut slots = vec![Slot::Absent; self.schema.columns.len()];
        for (index, block) in self.blocks.iter().enumerate() {
            for (col, &place) in block.columns.iter().enumerate() {
                slots[place] = Slot::Block { block: index, col };
            }
        }
        if let Some(labels) = &self.labels {
            slots[labels.column] = Slot::Label;
        }
        for (index, ignored) in self.ignored.iter().enumerate() {
            slots[ignored.column] = Slot::Ignored(index);
        }
        slots
    }

    /// Calls `each` with the place and the text of every kept entry of a row, as a text file writes it: the
    /// category's name, or the number; empty when it is missing.
    pub(crate) fn for_each_entry(&self, slots: &[Slot], row: usize, mut each: impl FnMut(usize, &str)) {
        for (place, slot) in slots.iter().enumerate() {
            match *slot {
                Slot::Absent => {}
                Slot::Block { block, col } => each(place, &self.entry(&self.blocks[block], row, col)),
                Slot::Label => {
                    let labels = self.labels.as_ref();
                    each(place, labels.and_then(|labels| labels.name(row)).unwrap_or_default());
                }
                Slot::Ignored(index) => each(place, self.ignored[index].values.get(row)),
            }
        }
    }

    /// An entry of a block as text: the category's name, or the number in the column's form; empty when it is
    /// missing.
    pub fn entry(&self, block: &Block, row: usize, col: usize) -> Cow<'_, str> {
        let Some(number) = block.number(row, col) else {
            return Cow::Borrowed("");
        };
        let column = &self.schema.columns[block.columns[col]];
        let categories = &column.categories;
        let code = match block.kind {
            Kind::Spin => (number > 0.0) as usize,
            Kind::Binary | Kind::Categorical => number as usize,
            _ if !column.format.is_plain() => return Cow::Owned(column.format.write(number)),
            _ => {
                return Cow::Owned(match &block.values {
                    // No digits that single precision does not have.
                    Values::Singles(reals) => reals.get(row, col).to_string(),
                    _ => number.to_string(),
                });
            }
        };
        match categories.get(code) {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(number.to_string()),
        }
    }

    /// Fails when there is not a single row.
    pub(crate) fn not_empty(self, place: &Place) -> Result<Self> {
        if self.rows == 0 {
            return Err(Error::empty(place, "at least one row is needed"));
        }
        Ok(self)
    }
}
