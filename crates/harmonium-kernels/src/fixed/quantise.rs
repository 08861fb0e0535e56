//! One direction of a coupling in 16 bits: the rounded weights, the plan that keeps 16-bit sums from
//! overflowing, and the bound on what rounding does to the fields. The loop that rounds is here for couplings with a Potts
//! layer, and in `rewrite.rs` for all others.
//!
//! Weights are stored as `round(w·2^s)` in blocks of 32 columns, all rows of a block of columns together.
//! Rows are summed in blocks (a 64-bit word, or some Potts sites). For every column the largest and the
//! smallest value that the sum over a block can take is known from the weights alone: each unit adds 0 or
//! w, each site adds one of its q weights. Blocks are joined into runs whose extremes stay within 16 bits;
//! at the end of a run the sums are added to 32-bit ones.

use super::Side;
use super::plan::{Planner, StripStats, TILE, TileSums, ZERO, max_or_nan};
use super::transpose::transpose_4x4;
use crate::isa::{Isa, multiversion};
use crate::prefetch::prefetch;
use crate::strip::{Strips, for_each_task};
use crate::x32::{F32x32, I16x32};

/// Rows of weights per block of Potts sites: 24 KB.
const SITE_ROWS: usize = 384;

/// Weights from `source` to `n` columns.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DirectedWeights {
    pub(super) source: Side,
    pub(super) n: usize,
    /// `weights[block of columns · rows + row]`.
    pub(super) weights: Vec<I16x32>,
    /// Flags per block of columns and block of rows.
    pub(super) plan: Vec<u8>,
    /// Per block of columns: sums, and whether a single run suffices.
    pub(super) columns: Vec<StripStats>,
}

impl DirectedWeights {
    pub(super) fn new(source: Side, n: usize) -> Self {
        let columns = n.div_ceil(32);
        let blocks = source.units().div_ceil(Self::rows_per_block(source)).max(1);
        Self {
            source,
            n,
            weights: vec![I16x32::default(); columns * source.units()],
            plan: vec![0; columns * blocks],
            columns: vec![StripStats::default(); columns],
        }
    }

    pub(super) fn rows_per_block(source: Side) -> usize {
        match source {
            Side::Binary(_) | Side::Spin(_) => 64,
            Side::Potts { q, .. } => q * (SITE_ROWS / q.max(1)).max(1),
        }
        .max(1)
    }

    /// Blocks of rows: flags and weights, for one block of columns.
    #[inline]
    pub(super) fn blocks(&self, column: usize) -> impl Iterator<Item = (u8, &[I16x32])> {
        let rows = self.source.units();
        let plan = &self.plan[column * self.blocks_per_column()..][..self.blocks_per_column()];
        let weights = &self.weights[column * rows..(column + 1) * rows];
        plan.iter().copied().zip(weights.chunks(Self::rows_per_block(self.source)))
    }

    pub(super) fn blocks_per_column(&self) -> usize {
        self.plan.len() / self.columns.len().max(1)
    }

    /// Whether the sums of a block of columns never leave 16 bits.
    pub(super) fn is_narrow(&self, column: usize) -> bool {
        self.columns[column].runs <= 1
    }

    /// Σ_i ŵ_i for 32 columns.
    pub(super) fn totals(&self, column: usize) -> &[i32; 32] {
        &self.columns[column].total
    }

    /// Largest sum over a block, in nats.
    pub(super) fn largest(&self) -> f32 {
        self.columns.iter().fold(0.0, |m, c| m.max(c.largest))
    }

    /// Bound on the error of a field in units of the step; infinite if sums overflow, NaN for NaN weights.
    pub(super) fn error(&self) -> f32 {
        self.columns
            .iter()
            .fold(0.0, |m, c| max_or_nan(m, if c.overflow { f32::INFINITY } else { c.error }))
    }

    /// Rounds all weights to steps of 2^-s. `w` is row-major with rows of this half's `n` columns, or of its
    /// rows when `transposed`.
    pub(super) fn quantise(&mut self, isa: Isa, w: &[f32], transposed: bool, s: i32) {
        let (source, n, rows) = (self.source, self.n, self.source.units());
        let blocks = self.blocks_per_column();
        let columns = self.columns.len();
        let weights = Strips::new(&mut self.weights, rows);
        let plan = Strips::new(&mut self.plan, blocks);
        let facts = Strips::new(&mut self.columns, 1);
        for_each_task(columns, rows * columns * 16, |c| {
            let from = WeightStrip { w, j: 32 * c, width: 32.min(n - 32 * c), rows, n, transposed };
            // SAFETY: this task alone has block of columns c.
            let (weights, plan, facts) = unsafe {
                (weights.segment(c, 0, rows), plan.segment(c, 0, blocks), facts.segment(c, 0, 1))
            };
            facts[0] = quantise_columns(isa, &from, source, (s as f32).exp2(), weights, plan);
        });
    }
}

/// 32 columns of a matrix of weights.
struct WeightStrip<'a> {
    w: &'a [f32],
    j: usize,
    width: usize,
    rows: usize,
    n: usize,
    transposed: bool,
}

impl WeightStrip<'_> {
    /// Rows `first..` of the columns, padded with zeros.
    #[inline(always)]
    fn tile(&self, first: usize, tile: &mut [F32x32; TILE]) {
        let here = TILE.min(self.rows - first);
        if self.transposed {
            // Squares of 4 × 4 become shuffles; the rest is copied element by element.
            let whole = |n: usize| n - n % 4;
            for c in (0..whole(self.width)).step_by(4) {
                let row = |i: usize| &self.w[(self.j + c + i) * self.rows + first..][..here];
                let rows = [row(0), row(1), row(2), row(3)];
                for row in rows {
                    prefetch(row, TILE);
                    prefetch(row, TILE + 16);
                }
                for r in (0..whole(here)).step_by(4) {
                    let four = |i: usize| -> &[f32; 4] { rows[i][r..r + 4].try_into().expect("four") };
                    let square = transpose_4x4(four(0), four(1), four(2), four(3));
                    for (tile, row) in tile[r..r + 4].iter_mut().zip(&square) {
                        tile.0[c..c + 4].copy_from_slice(row);
                    }
                }
                for r in whole(here)..here {
                    for (i, row) in rows.iter().enumerate() {
                        tile[r].0[c + i] = row[r];
                    }
                }
            }
            for c in whole(self.width)..self.width {
                let w = &self.w[(self.j + c) * self.rows + first..][..here];
                for (tile, &w) in tile.iter_mut().zip(w) {
                    tile.0[c] = w;
                }
            }
        } else {
            for (r, tile) in tile[..here].iter_mut().enumerate() {
                let at = (first + r) * self.n + self.j;
                let w = &self.w[at..][..self.width];
                // The same row of the next tile.
                prefetch(self.w, at + TILE * self.n);
                prefetch(self.w, at + TILE * self.n + 16);
                tile.0.iter_mut().zip(w).for_each(|(to, w)| *to = *w);
            }
        }
    }
}

multiversion! {
    fn quantise_columns(isa: Isa, from: &WeightStrip<'_>, source: Side, scale: f32, weights: &mut [I16x32], plan: &mut [u8]) -> StripStats {
        let per_block = DirectedWeights::rows_per_block(source);
        let mut tile = [ZERO; TILE];
        let (mut planner, mut units) = (Planner::new(), TileSums::NONE);
        for (block, weights) in weights.chunks_mut(per_block).enumerate() {
            let first = block * per_block;
            match source {
                Side::Binary(_) | Side::Spin(_) => {
                    for (t, weights) in weights.chunks_mut(TILE).enumerate() {
                        from.tile(first + t * TILE, &mut tile);
                        units.round(isa, &tile, scale, weights);
                        planner.units(&units);
                    }
                }
                Side::Potts { q, .. } => {
                    for (i, weight) in weights.iter_mut().enumerate() {
                        if i % TILE == 0 {
                            from.tile(first + i, &mut tile);
                        }
                        planner.value(&tile[i % TILE], scale, weight);
                        if (i + 1) % q == 0 {
                            planner.end_site();
                        }
                    }
                }
            }
            planner.end_block(block, plan);
        }
        planner.finish(matches!(source, Side::Spin(_)), scale, plan)
    }
}
