//! Conditional means as small integers, from which moments are computed.
//!
//! Means are rounded to one of 64 levels between the two values of a unit, so that four rows add up within a byte.
//! Rounding is dithered with a different threshold for every row and column, evenly spread over the rows, so that it
//! has no bias: a mean of 1/5000 counts as one level in some rows rather than never. What it adds to the variance of
//! a mean is at most 1/63 of what sampling the unit would add, and 1/4000 of it on average over \[0,1\].

use crate::bernoulli::{Dither, LEVELS, level};
use crate::scratch::{self, Kept, first};
use crate::strip::Strips;
use crate::x32::{Levels, WIDTH};

/// The range of conditional means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Range {
    /// \[0,1\]: of Binary units.
    #[default]
    Binary,
    /// \[−1,1\]: of Spin units.
    Spin,
}

/// Words of 64 rows whose sums stay within 16 bits.
pub(super) const WORDS_PER_FLUSH: usize = 8;

impl Range {
    /// (shift, size): a mean is shift + size·p, p the probability of the larger value.
    pub(super) fn affine(self) -> (f32, f32) {
        match self {
            Self::Binary => (0.0, 1.0),
            Self::Spin => (-1.0, 2.0),
        }
    }
}

thread_local! {
    /// 2^16 times the sums of probabilities in each block of columns, for each chunk of rows.
    static TOTALS: Kept<Vec<[u32; WIDTH]>> = Kept::default();
}

/// Conditional means of a batch, rounded without bias, and their sums over the rows, unrounded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Means {
    pub(super) range: Range,
    pub(super) rows: usize,
    pub(super) n: usize,
    /// Blocks of 32 columns, each with a row of zeros and all rows.
    pub(super) rounded: Vec<Levels>,
    sums: Vec<f64>,
}

impl Means {
    /// Rounds row-major means (rows × n).
    ///
    /// # Panics
    /// If `means` is not rows × n long.
    pub fn new(means: &[f32], rows: usize, n: usize, range: Range) -> Self {
        assert_eq!(means.len(), rows * n, "means: they do not fit rows × n");
        let rounded = vec![Levels::default(); n.div_ceil(WIDTH) * (1 + rows)];
        let mut out = Self { range, rows, n, rounded, sums: vec![0.0; n] };
        let (shift, size) = range.affine();
        for j in 0..n {
            let dither = Dither::new(j / WIDTH, 0);
            for r in 0..rows {
                let m = means[r * n + j];
                let p = ((m - shift) / size * 65536.0).round() as u16;
                out.rounded[j / WIDTH * (1 + rows) + 1 + r].0[j % WIDTH] =
                    level(p, dither.row(r)[j % WIDTH]);
                out.sums[j] += f64::from(m);
            }
        }
        out
    }

    /// The mean of unit `j` in row `r`, as rounded.
    ///
    /// # Panics
    /// If there is no such row or unit.
    pub fn rounded(&self, r: usize, j: usize) -> f32 {
        assert!(r < self.rows && j < self.n, "means: no such row or unit");
        let (shift, size) = self.range.affine();
        shift + size * f32::from(self.strip(j / WIDTH)[1 + r].0[j % WIDTH]) / f32::from(LEVELS)
    }

    /// Sums over the rows, one per column.
    pub fn sums(&self) -> &[f64] {
        &self.sums
    }

    /// A row of zeros and all rows of block of columns `column`.
    pub(super) fn strip(&self, column: usize) -> &[Levels] {
        &self.rounded[column * (1 + self.rows)..][..1 + self.rows]
    }

    /// Takes another shape, to be [filled](Self::fill). The memory is kept: clearing it would cost more than computing some
    /// of the means.
    pub(super) fn reshape(&mut self, range: Range, rows: usize, n: usize) {
        (self.range, self.rows, self.n) = (range, rows, n);
        self.rounded.resize(n.div_ceil(WIDTH) * (1 + rows), Levels::default());
        self.rounded.iter_mut().step_by(1 + rows).for_each(|zeros| *zeros = Levels::default());
    }

    /// Lets `write` fill the blocks of columns and chunks of rows, then adds the totals of the chunks.
    pub(super) fn fill(&mut self, chunks: usize, write: impl FnOnce(&Writer<'_>)) {
        let columns = self.n.div_ceil(WIDTH);
        let mut buffer = scratch::take(&TOTALS);
        let totals = first(&mut buffer, columns * chunks);
        totals.fill([0; WIDTH]);
        write(&Writer {
            rounded: Strips::new(&mut self.rounded, 1 + self.rows),
            totals: Strips::new(totals, columns),
        });
        let (shift, size) = self.range.affine();
        let start = f64::from(shift) * self.rows as f64;
        self.sums.clear();
        self.sums.resize(self.n, start);
        for (column, sums) in self.sums.chunks_mut(WIDTH).enumerate() {
            let mut total = [0; WIDTH];
            for chunk in totals.chunks_exact(columns) {
                total.iter_mut().zip(chunk[column]).for_each(|(t, x)| *t += u64::from(x));
            }
            sums.iter_mut().zip(total).for_each(|(s, t)| *s += f64::from(size) * t as f64 / 65536.0);
        }
    }
}

/// Where tasks put the blocks of [`Means`].
pub(super) struct Writer<'a> {
    rounded: Strips<'a, Levels>,
    /// 2^16 times the sums of probabilities, for each chunk of rows.
    totals: Strips<'a, [u32; WIDTH]>,
}

impl Writer<'_> {
    /// The output of `rows` rows of one strip, from row `first` on.
    ///
    /// # Safety
    /// No two tasks may ask for the same block and chunk.
    #[allow(clippy::mut_from_ref)]
    pub(super) unsafe fn block(
        &self,
        column: usize,
        chunk: usize,
        first: usize,
        rows: usize,
    ) -> (&mut [Levels], &mut [u32; WIDTH]) {
        // SAFETY: the caller promises that the block is its own.
        unsafe {
            (
                self.rounded.segment(column, 1 + first, rows),
                &mut self.totals.segment(chunk, column, 1)[0],
            )
        }
    }
}
