//! What a field is summed from, and the block of columns and rows that one task sums.

use super::coupling::Direction;
use crate::bits::BitMatrix;
use crate::codes::Codes;

/// A batch of states in the layer's natural form.
#[derive(Clone, Copy, Debug)]
pub enum States<'a> {
    /// Binary units or spins.
    Bits(BitMatrix<'a>),
    /// Potts sites.
    Codes(Codes<'a>),
}

impl States<'_> {
    pub(super) fn rows(&self) -> usize {
        match self {
            Self::Bits(x) => x.rows(),
            Self::Codes(x) => x.rows(),
        }
    }
}

/// One coupling into a layer, with the states at its other end.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The direction towards the layer.
    pub direction: Direction<'a>,
    /// The states of its source.
    pub states: States<'a>,
}

/// One block of columns and rows.
#[derive(Clone, Copy)]
pub(super) struct Block {
    pub(super) column: usize,
    pub(super) chunk: usize,
    /// First row and number of rows.
    pub(super) first: usize,
    pub(super) rows: usize,
}
