//! All columns of one kind as one matrix.

use super::{Bits, Matrix};
use crate::Kind;

/// The values of a [`Block`], one column per column of the table.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Binary (1 is set) and spin (+1 is set) columns.
    Bits(Bits),
    /// Codes of categories, or counts.
    Codes(Matrix<u32>),
    /// Real numbers.
    Reals(Matrix<f64>),
    /// Real numbers in single precision, where [`ReadOptions::single`](crate::ReadOptions) asked for it.
    Singles(Matrix<f32>),
}

impl Values {
    /// Zeros in the form that `kind` is kept in.
    pub(crate) fn zeros(kind: Kind, rows: usize, cols: usize) -> Self {
        match kind {
            Kind::Binary | Kind::Spin => Self::Bits(Bits::zeros(rows, cols)),
            Kind::Real => Self::Reals(Matrix::zeros(rows, cols)),
            _ => Self::Codes(Matrix::zeros(rows, cols)),
        }
    }

    pub(crate) fn select(&self, rows: &[usize]) -> Self {
        match self {
            Self::Bits(bits) => Self::Bits(bits.select(rows)),
            Self::Codes(codes) => Self::Codes(codes.select(rows)),
            Self::Reals(reals) => Self::Reals(reals.select(rows)),
            Self::Singles(reals) => Self::Singles(reals.select(rows)),
        }
    }

    /// Keeps these rows, which are in order, in the memory that is there.
    fn keep(&mut self, rows: &[usize]) {
        match self {
            Self::Bits(bits) => *bits = bits.select(rows),
            Self::Codes(codes) => codes.keep(rows),
            Self::Reals(reals) => reals.keep(rows),
            Self::Singles(reals) => reals.keep(rows),
        }
    }

    /// Appends the rows of `other`, which has the same form and as many columns.
    pub(crate) fn append(&mut self, other: &Self) {
        match (self, other) {
            (Self::Bits(a), Self::Bits(b)) => a.append(b),
            (Self::Codes(a), Self::Codes(b)) => a.append(b),
            (Self::Reals(a), Self::Reals(b)) => a.append(b),
            (Self::Singles(a), Self::Singles(b)) => a.append(b),
            _ => unreachable!("blocks of equal schemas have equal forms"),
        }
    }
}

/// All columns of one kind (for categorical columns: of one number of categories), as one matrix.
///
/// A block is what one layer of visible units is clamped to.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// The columns' kind: binary, spin, categorical, real or count.
    pub kind: Kind,
    /// Number of categories of every column of a categorical block; 0 for the other kinds.
    pub states: usize,
    /// For each column of the block, its place among the columns of the schema.
    pub columns: Vec<usize>,
    /// The entries; a missing one is 0 here.
    pub values: Values,
    /// Which entries are missing, when any is.
    pub missing: Option<Bits>,
}

impl Block {
    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.columns.len()
    }

    /// Whether the entry at (`row`, `col`) is missing.
    pub fn is_missing(&self, row: usize, col: usize) -> bool {
        self.missing.as_ref().is_some_and(|missing| missing.get(row, col))
    }

    /// The bits of a binary or spin block.
    pub fn bits(&self) -> Option<&Bits> {
        match &self.values {
            Values::Bits(bits) => Some(bits),
            _ => None,
        }
    }

    /// The codes of a categorical or count block.
    pub fn codes(&self) -> Option<&Matrix<u32>> {
        match &self.values {
            Values::Codes(codes) => Some(codes),
            _ => None,
        }
    }

    /// The numbers of a real block.
    pub fn reals(&self) -> Option<&Matrix<f64>> {
        match &self.values {
            Values::Reals(reals) => Some(reals),
            _ => None,
        }
    }

    /// The entry as a number (0/1, ±1, code, count, real), `None` when it is missing.
    pub fn number(&self, row: usize, col: usize) -> Option<f64> {
        if self.is_missing(row, col) {
            return None;
        }
        Some(match &self.values {
            Values::Bits(bits) => match (self.kind, bits.get(row, col)) {
                (_, true) => 1.0,
                (Kind::Spin, false) => -1.0,
                (_, false) => 0.0,
            },
            Values::Codes(codes) => f64::from(codes.get(row, col)),
            Values::Reals(reals) => reals.get(row, col),
            Values::Singles(reals) => f64::from(reals.get(row, col)),
        })
    }

    pub(crate) fn select(&self, rows: &[usize]) -> Self {
        Self {
            columns: self.columns.clone(),
            values: self.values.select(rows),
            missing: self
                .missing
                .as_ref()
                .map(|missing| missing.select(rows))
                .filter(|missing| missing.count_ones() > 0),
            ..*self
        }
    }

    /// Keeps these rows, which are in order.
    pub(crate) fn keep(&mut self, rows: &[usize]) {
        self.values.keep(rows);
        self.missing = self.missing.take().map(|m| m.select(rows)).filter(|m| m.count_ones() > 0);
    }

    /// Keeps real numbers in single precision.
    pub(crate) fn narrow(&mut self) {
        if let Values::Reals(reals) = &self.values {
            let mut narrow = Matrix::zeros(reals.rows(), reals.cols());
            for row in 0..reals.rows() {
                for (col, &x) in reals.row(row).iter().enumerate() {
                    narrow.set(row, col, x as f32);
                }
            }
            self.values = Values::Singles(narrow);
        }
    }

    pub(crate) fn append(&mut self, rows: usize, other: &Self, other_rows: usize) {
        self.values.append(&other.values);
        if self.missing.is_some() || other.missing.is_some() {
            let cols = self.cols();
            let missing = self.missing.get_or_insert_with(|| Bits::zeros(rows, cols));
            match &other.missing {
                Some(more) => missing.append(more),
                None => missing.append(&Bits::zeros(other_rows, cols)),
            }
        }
    }
}
