//! A matrix of bits, packed row by row into 64-bit words.

/// A matrix of bits: each row starts on a word, the first column is the least significant bit.
///
/// Bits beyond the last column are always 0. The packing is that of the library's type of this name, which takes the words over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    rows: usize,
    cols: usize,
    words: Vec<u64>,
}

impl Bits {
    /// All zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self { rows, cols, words: vec![0; rows * cols.div_ceil(64)] }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Words per row.
    pub fn stride(&self) -> usize {
        self.cols.div_ceil(64)
    }

    /// The bit at (`row`, `col`).
    pub fn get(&self, row: usize, col: usize) -> bool {
        assert!(col < self.cols, "column {col} of {}", self.cols);
        self.words[row * self.stride() + col / 64] >> (col % 64) & 1 == 1
    }

    /// Sets the bit at (`row`, `col`).
    pub fn set(&mut self, row: usize, col: usize, bit: bool) {
        assert!(col < self.cols, "column {col} of {}", self.cols);
        let stride = self.stride();
        let word = &mut self.words[row * stride + col / 64];
        let mask = 1 << (col % 64);
        if bit { *word |= mask } else { *word &= !mask }
    }

    /// One row's words.
    pub fn row(&self, row: usize) -> &[u64] {
        let stride = self.stride();
        &self.words[row * stride..(row + 1) * stride]
    }

    /// One row's words, to be written; the bits beyond the last column must stay 0.
    pub(crate) fn row_mut(&mut self, row: usize) -> &mut [u64] {
        let stride = self.stride();
        &mut self.words[row * stride..(row + 1) * stride]
    }

    /// All words, row after row.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// All words, row after row.
    pub fn into_words(self) -> Vec<u64> {
        self.words
    }

    /// Number of ones.
    pub fn count_ones(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The given rows, in the given order.
    pub(crate) fn select(&self, rows: &[usize]) -> Self {
        Self {
            rows: rows.len(),
            cols: self.cols,
            words: rows.iter().flat_map(|&row| self.row(row)).copied().collect(),
        }
    }

    /// Appends the rows of `other`, which has as many columns.
    pub(crate) fn append(&mut self, other: &Self) {
        debug_assert_eq!(self.cols, other.cols);
        self.rows += other.rows;
        self.words.extend_from_slice(&other.words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bits_are_kept_and_padding_stays_zero(cols in 1usize..150, ones in prop::collection::vec((0usize..4, 0usize..150), 0..40)) {
            let mut bits = Bits::zeros(4, cols);
            let mut plain = vec![vec![false; cols]; 4];
            for (row, col) in ones {
                let col = col % cols;
                plain[row][col] = !plain[row][col];
                bits.set(row, col, plain[row][col]);
            }
            for (row, expected) in plain.iter().enumerate() {
                for (col, bit) in expected.iter().enumerate() {
                    prop_assert_eq!(bits.get(row, col), *bit);
                }
            }
            prop_assert_eq!(bits.count_ones(), plain.iter().flatten().filter(|bit| **bit).count());
            let picked = bits.select(&[3, 1]);
            prop_assert_eq!(picked.row(0), bits.row(3));
            prop_assert_eq!(picked.row(1), bits.row(1));
        }
    }
}
