//! The interface of all readers: a grid of cells whose columns have no kind yet.

use std::borrow::Cow;

use crate::{Column, Place};

/// One entry of a grid.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell<'a> {
    /// Empty, NaN or NA.
    Missing,
    /// A number.
    Number(f64),
    /// Anything else.
    Text(Cow<'a, str>),
}

impl Cell<'_> {
    /// A number, where NaN means missing.
    pub(crate) fn number(value: f64) -> Self {
        if value.is_nan() { Self::Missing } else { Self::Number(value) }
    }
}

/// A grid of cells with named columns.
pub(crate) trait Cells {
    /// Where the grid was read from.
    fn place(&self) -> &Place;

    /// Number of rows.
    fn rows(&self) -> usize;

    /// The columns' names.
    fn names(&self) -> Vec<String>;

    /// How many of the first columns come from one numeric array and therefore mean the same thing.
    fn uniform(&self) -> usize {
        0
    }

    /// What the file itself says about a column.
    fn declared(&self, _col: usize) -> Option<Column> {
        None
    }

    /// Height and width, when every row is an image.
    fn shape(&self) -> Option<[usize; 2]> {
        None
    }

    /// The entry at (`row`, `col`).
    fn cell(&self, row: usize, col: usize) -> Cell<'_>;

    /// Writes the [`Cells::uniform`] entries of a row to `out`, NaN for missing ones; false where the grid has
    /// no quicker way than entry by entry.
    fn numbers(&self, _row: usize, _out: &mut Vec<f64>) -> bool {
        false
    }

    /// The entry as it was written, which tells `01` from `1`; empty when it is missing.
    fn text(&self, row: usize, col: usize) -> Cow<'_, str> {
        match self.cell(row, col) {
            Cell::Missing => Cow::Borrowed(""),
            Cell::Number(value) => Cow::Owned(value.to_string()),
            Cell::Text(text) => text,
        }
    }

    /// The entry as it was written in a text file, missing or not.
    fn word(&self, _row: usize, _col: usize) -> Option<&str> {
        None
    }

    /// Whether semicolons separate the entries, as where commas are decimal points.
    fn semicolons(&self) -> bool {
        false
    }

    /// The number of rows before this grid, when it is one block of a stream.
    fn first_row(&self) -> usize {
        0
    }

    /// The place of a row, for messages.
    fn locate(&self, row: usize) -> Place {
        self.place().clone().row(self.first_row() + row)
    }
}
