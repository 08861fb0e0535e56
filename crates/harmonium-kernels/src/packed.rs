//! Matrices of bits that own their words.

use crate::bits::{self, BitMatrix};
use crate::prefetch;

/// A matrix of bits, each row packed into words of 64, least significant bit first.
///
/// The unused high bits of a row's last word are always zero.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Bits {
    rows: usize,
    cols: usize,
    words: Vec<u64>,
}

/// Why words are not the rows of a matrix of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackingError {
    /// Another number of words than the rows have.
    Words {
        /// Number of rows.
        rows: usize,
        /// Words in a row.
        stride: usize,
        /// Number of words given.
        got: usize,
    },
    /// A bit beyond the last column is set.
    UnusedBit,
}

impl Clone for Bits {
    fn clone(&self) -> Self {
        Self { rows: self.rows, cols: self.cols, words: self.words.clone() }
    }
    /// Reuses the memory that `self` has.
    fn clone_from(&mut self, other: &Self) {
        (self.rows, self.cols) = (other.rows, other.cols);
        self.words.clone_from(&other.words);
    }
}

impl Bits {
    /// All bits zero.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self { rows, cols, words: vec![0; rows * bits::words(cols)] }
    }

    /// Bit (r, j) is `f(r, j)`.
    pub fn from_fn(rows: usize, cols: usize, f: impl Fn(usize, usize) -> bool) -> Self {
        let mut out = Self::zeros(rows, cols);
        for r in 0..rows {
            for j in 0..cols {
                out.set(r, j, f(r, j));
            }
        }
        out
    }

    /// Rows of packed words, as [`words`](Self::words) returns them.
    ///
    /// # Errors
    /// A wrong number of words, or an unused bit that is set.
    pub fn from_words(rows: usize, cols: usize, words: Vec<u64>) -> Result<Self, PackingError> {
        let stride = bits::words(cols);
        if Some(words.len()) != rows.checked_mul(stride) {
            return Err(PackingError::Words { rows, stride, got: words.len() });
        }
        if !cols.is_multiple_of(64)
            && words.chunks_exact(stride).any(|r| r[stride - 1] & !bits::last_mask(cols) != 0)
        {
            return Err(PackingError::UnusedBit);
        }
        Ok(Self { rows, cols, words })
    }

    /// Number of rows.
    #[inline]
    pub fn rows(&self) -> usize {
        self.rows
    }
    /// Number of bits in a row.
    #[inline]
    pub fn cols(&self) -> usize {
        self.cols
    }
    /// Words in a row.
    #[inline]
    pub fn stride(&self) -> usize {
        bits::words(self.cols)
    }
    /// All words, row after row.
    #[inline]
    pub fn words(&self) -> &[u64] {
        &self.words
    }
    /// All words, row after row. Unused high bits must stay zero.
    #[inline]
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }
    /// The words of row `r`.
    #[inline]
    pub fn row(&self, r: usize) -> &[u64] {
        &self.words[r * self.stride()..(r + 1) * self.stride()]
    }
    /// The words of row `r`. Unused high bits must stay zero.
    #[inline]
    pub fn row_mut(&mut self, r: usize) -> &mut [u64] {
        let s = self.stride();
        &mut self.words[r * s..(r + 1) * s]
    }
    /// The matrix as the kernels take it.
    #[inline]
    pub fn view(&self) -> BitMatrix<'_> {
        BitMatrix::new(&self.words, self.rows, self.cols)
    }
    /// Bit (r, j).
    #[inline]
    pub fn get(&self, r: usize, j: usize) -> bool {
        assert!(j < self.cols, "column {j} of {}", self.cols);
        bits::get(self.row(r), j)
    }
    /// Sets bit (r, j).
    #[inline]
    pub fn set(&mut self, r: usize, j: usize, value: bool) {
        assert!(j < self.cols, "column {j} of {}", self.cols);
        bits::set(self.row_mut(r), j, value);
    }
    /// The given rows, in the given order.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        let mut out = Self::default();
        self.select_into(rows, &mut out);
        out
    }
    /// [`select`](Self::select) that reuses the memory of `out`.
    pub fn select_into(&self, rows: &[usize], out: &mut Self) {
        // Rows in random order miss the cache unless they are prefetched.
        const AHEAD: usize = 8;
        let stride = self.stride();
        (out.rows, out.cols) = (rows.len(), self.cols);
        let words = &mut out.words;
        words.clear();
        words.reserve(rows.len() * stride);
        for (i, &r) in rows.iter().enumerate() {
            if let Some(&soon) = rows.get(i + AHEAD) {
                (0..stride + 7).step_by(8).for_each(|word| prefetch(&self.words, soon * stride + word));
            }
            words.extend_from_slice(self.row(r));
        }
    }
    /// Appends the rows of `other`.
    ///
    /// # Panics
    /// If it has another number of columns.
    pub fn append(&mut self, other: &Self) {
        assert_eq!(self.cols, other.cols, "equally many columns");
        self.rows += other.rows;
        self.words.extend_from_slice(&other.words);
    }
    /// Whether any bit is set.
    pub fn any(&self) -> bool {
        self.words.iter().any(|&w| w != 0)
    }
    /// Number of ones.
    pub fn count_ones(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
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
            prop_assert_eq!(&bits, &Bits::from_fn(4, cols, |r, j| plain[r][j]));
            for (row, expected) in plain.iter().enumerate() {
                for (col, bit) in expected.iter().enumerate() {
                    prop_assert_eq!(bits.get(row, col), *bit);
                }
            }
            let ones = plain.iter().flatten().filter(|bit| **bit).count();
            prop_assert_eq!((bits.count_ones(), bits.any()), (ones, ones > 0));
            let mut picked = bits.select(&[3, 1]);
            prop_assert_eq!((picked.rows(), picked.row(0), picked.row(1)), (2, bits.row(3), bits.row(1)));
            picked.append(&bits);
            prop_assert_eq!((picked.rows(), picked.row(2), picked.row(5)), (6, bits.row(0), bits.row(3)));
            prop_assert_eq!(Bits::from_words(4, cols, bits.words().to_vec()), Ok(bits));
        }
    }

    #[test]
    fn wrong_words_are_refused() {
        let words = |rows, cols, words| Bits::from_words(rows, cols, words).unwrap_err();
        assert_eq!(words(2, 65, vec![0; 3]), PackingError::Words { rows: 2, stride: 2, got: 3 });
        assert_eq!(
            words(usize::MAX, 65, vec![]),
            PackingError::Words { rows: usize::MAX, stride: 2, got: 0 }
        );
        assert_eq!(words(1, 3, vec![8]), PackingError::UnusedBit);
        assert!(Bits::from_words(1, 64, vec![u64::MAX]).is_ok());
    }
}
