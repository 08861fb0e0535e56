//! How to read data.

use crate::{Alphabet, Overrides};

/// How to read data; the default guesses everything.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// What is known about the columns.
    pub overrides: Overrides,
    /// Seed of generated data and of binarisation by sampling.
    pub seed: u64,
    /// Whether the first line of a text table holds names.
    pub header: Option<bool>,
    /// What separates the entries of a text table.
    pub delimiter: Option<u8>,
    /// The alphabet of sequences.
    pub alphabet: Option<Alphabet>,
    /// Identity threshold for re-weighting: a sequence counts 1/n where n sequences, itself included, agree with it in at least this fraction of positions; `None` for equal weights.
    pub reweight: Option<f64>,
    /// Threads for comparing sequences; the weights do not depend on it.
    pub threads: usize,
    /// Whether real numbers of files that are read in blocks are kept in single precision, in half the memory; not where
    /// it would lose digits: beyond a million, or where they differ by less than a thousandth of their mean.
    pub single: bool,
    /// Whether a category that its column does not have is read as missing, and its row noted in
    /// [`Table::impossible`](crate::Table::impossible), in place of an error.
    pub unseen: bool,
}

impl ReadOptions {
    /// The identity threshold where none is set.
    pub const REWEIGHT: f64 = 0.8;
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            overrides: Overrides::default(),
            seed: 0,
            header: None,
            delimiter: None,
            alphabet: None,
            reweight: Some(Self::REWEIGHT),
            threads: 1,
            single: false,
            unseen: false,
        }
    }
}
