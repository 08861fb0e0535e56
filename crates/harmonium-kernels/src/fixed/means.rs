//! Conditional means as small integers: the form in which moments take them.
//!
//! Means in \[0,1\] are shifted to \[−½,½\] and rounded to 1/254, means in \[−1,1\] to 1/127, so that 256 rows add
//! up within 16 bits. Rounding is dithered with a different threshold for every row and column, evenly spread over
//! the rows, so that it has no bias: a mean of 1/5000 counts once in some rows rather than never. What it adds to
//! the variance of a mean is 5·10⁻⁶ of what sampling the unit would add.

use super::vector::{Row, Wide};
use crate::bernoulli::COLUMNS;
use crate::isa::{Isa, multiversion};
use crate::math;
use crate::strip::Strips;

/// Where conditional means lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// \[0,1\]: of Binary units.
    Binary,
    /// \[−1,1\]: of Spin units.
    Spin,
}

/// 1.5·2^23: a sum with it has its integer part in the low bits, rounded to nearest.
const MAGIC: f32 = 12_582_912.0;
/// Largest rounded mean.
const TOP: f32 = 127.0;
/// Words of 64 rows whose sums stay within 16 bits.
pub(super) const WORDS_PER_FLUSH: usize = 4;
/// Rows whose means are summed in f32 before they go to f64.
const PART: usize = 64;

impl Range {
    /// (shift, steps per unit): a mean m is stored as steps·(m − shift).
    pub(super) fn line(self) -> (f32, f32) {
        match self {
            Self::Binary => (0.5, 2.0 * TOP),
            Self::Spin => (0.0, TOP),
        }
    }

    /// σ or tanh.
    #[inline(always)]
    fn mean(self, field: f32) -> f32 {
        match self {
            Self::Binary => math::f32::sigmoid(field),
            Self::Spin => math::f32::tanh(field),
        }
    }
}

/// Conditional means of a batch, rounded without bias, and their sums over the rows, unrounded.
#[derive(Clone, Debug, PartialEq)]
pub struct Means {
    pub(super) range: Range,
    pub(super) rows: usize,
    pub(super) n: usize,
    /// Blocks of 32 columns, each with all rows.
    pub(super) rounded: Vec<Row>,
    sums: Vec<f64>,
}

impl Means {
    /// Rounds row-major means (rows × n).
    ///
    /// # Panics
    /// If `means` is not rows × n long.
    pub fn new(means: &[f32], rows: usize, n: usize, range: Range) -> Self {
        assert_eq!(means.len(), rows * n, "means: they do not fit rows × n");
        let isa = Isa::detect();
        let mut out = Self::zeros(range, rows, n);
        out.fill(1, |writer| {
            for column in 0..n.div_ceil(COLUMNS) {
                // SAFETY: nobody else writes.
                let (rounded, sums) = unsafe { writer.block(column, 0, 0, rows) };
                round_given(isa, means, n, column, range, rounded, sums);
            }
        });
        out
    }

    /// Sums over the rows, one per column.
    pub fn sums(&self) -> &[f64] {
        &self.sums
    }

    pub(super) fn zeros(range: Range, rows: usize, n: usize) -> Self {
        let rounded = vec![Row::default(); n.div_ceil(COLUMNS) * rows];
        Self { range, rows, n, rounded, sums: Vec::new() }
    }

    /// Lets `write` fill the blocks of columns and chunks of rows, then adds the sums of the chunks.
    pub(super) fn fill(&mut self, chunks: usize, write: impl FnOnce(&Writer<'_>)) {
        let columns = self.n.div_ceil(COLUMNS);
        let mut sums = vec![[0.0; COLUMNS]; columns * chunks];
        write(&Writer {
            rounded: Strips::new(&mut self.rounded, self.rows),
            sums: Strips::new(&mut sums, columns),
        });
        let total =
            |j: usize| sums.iter().skip(j / COLUMNS).step_by(columns).map(|s| s[j % COLUMNS]).sum();
        self.sums = (0..self.n).map(total).collect();
    }
}

/// Where tasks put the blocks of [`Means`].
pub(super) struct Writer<'a> {
    rounded: Strips<'a, Row>,
    sums: Strips<'a, [f64; COLUMNS]>,
}

impl Writer<'_> {
    /// The place of `rows` rows of one block of columns, the first of which is `first`.
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
    ) -> (&mut [Row], &mut [f64; COLUMNS]) {
        // SAFETY: the caller promises that the block is its own.
        unsafe {
            (self.rounded.segment(column, first, rows), &mut self.sums.segment(chunk, column, 1)[0])
        }
    }
}

/// Rounds the rows that `mean` gives; `first` is the number of the first, which the dither follows.
#[inline(always)]
fn round(
    range: Range,
    column: usize,
    first: usize,
    mean: impl Fn(usize) -> [f32; COLUMNS],
    out: &mut [Row],
    sums: &mut [f64; COLUMNS],
) {
    let (shift, steps) = range.line();
    // Multiples of the golden ratio along the rows, and of another irrational number across columns, modulo 1.
    let across: [u32; COLUMNS] =
        std::array::from_fn(|c| ((COLUMNS * column + c) as u32).wrapping_mul(0x85eb_ca6b));
    for (part, out) in out.chunks_mut(PART).enumerate() {
        let mut part_sums = [0f32; COLUMNS];
        for (r, out) in out.iter_mut().enumerate() {
            let row = PART * part + r;
            let m = mean(row);
            let along = ((first + row) as u32).wrapping_mul(0x9e37_79b9);
            for c in 0..COLUMNS {
                part_sums[c] += m[c];
                let weyl = along.wrapping_add(across[c]);
                // In [−½, ½): rounding to nearest after adding it rounds up as often as the fraction says.
                let dither = (weyl >> 8) as f32 * (1.0 / 16_777_216.0) - 0.5;
                let x = (m[c] - shift) * steps + dither;
                let x = if x > TOP { TOP } else { x };
                let x = if x < -TOP { -TOP } else { x };
                out.0[c] = (x + MAGIC).to_bits() as i16;
            }
        }
        sums.iter_mut().zip(part_sums).for_each(|(s, x)| *s += f64::from(x));
    }
}

multiversion! {
    fn round_given(means: &[f32], n: usize, column: usize, range: Range, out: &mut [Row], sums: &mut [f64; COLUMNS]) {
        let j = COLUMNS * column;
        let width = COLUMNS.min(n - j);
        let mean = |r: usize| {
            let mut m = [range.line().0; COLUMNS];
            m[..width].copy_from_slice(&means[r * n + j..][..width]);
            m
        };
        round(range, column, 0, mean, out, sums);
    }
}

multiversion! {
    /// The means of fields (sum + bias)·scale.
    pub(super) fn round_narrow(fields: &[Row], bias: &Row, scale: f32, column: usize, first: usize, range: Range, out: &mut [Row], sums: &mut [f64; COLUMNS]) {
        let mean = |r: usize| {
            let mut m = [0.0; COLUMNS];
            for ((m, &sum), &bias) in m.iter_mut().zip(&fields[r].0).zip(&bias.0) {
                *m = range.mean((i32::from(sum) + i32::from(bias)) as f32 * scale);
            }
            m
        };
        round(range, column, first, mean, out, sums);
    }
}

multiversion! {
    /// The means of fields sum·scale.
    pub(super) fn round_wide(fields: &[Wide], scale: f32, column: usize, first: usize, range: Range, out: &mut [Row], sums: &mut [f64; COLUMNS]) {
        let mean = |r: usize| {
            let mut m = [0.0; COLUMNS];
            for (m, &sum) in m.iter_mut().zip(&fields[r].0) {
                *m = range.mean(sum as f32 * scale);
            }
            m
        };
        round(range, column, first, mean, out, sums);
    }
}
