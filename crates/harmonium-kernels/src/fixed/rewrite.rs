//! Rounding of new weights strip by strip, while an update has them in the cache.
//!
//! A strip of 32 columns of W is one strip of the forward direction, whose overflow plan is made as its rows arrive. For the
//! backward direction it holds 32 inputs of every strip: each tile of 32 × 32 weights is transposed and rounded as well, and
//! the sums of its columns are kept until all strips have been rounded; [`finish`] then makes the backward plan.

use super::Side;
use super::plan::{Planner, StripStats, TILE, TilePair, TileSums, round_both_ways};
use super::quantise::DirectedWeights;
use crate::isa::{Isa, multiversion};
use crate::prefetch::prefetch;
use crate::scratch::{self, Kept};
use crate::strip::{Columns, Singles, for_each_part, split_columns};
use crate::x32::{I16x32, WIDTH};

thread_local! {
    static PAIR: Kept<Box<TilePair>> = Kept::default();
}

/// What the rounding of the strips collects.
#[derive(Clone, Debug, Default)]
pub(super) struct BackwardTiles {
    /// The column sums of every transposed tile, from which the backward direction is planned; tiles of a strip are adjacent.
    sums: Vec<TileSums>,
    /// The planners of the forward direction, one per strip.
    planners: Vec<Planner>,
}

/// Rounds the new weights of one strip of 32 columns, for both directions.
#[derive(Debug)]
pub struct Rounder<'a> {
    scale: f32,
    forward: &'a mut [I16x32],
    plan: &'a mut [u8],
    column: &'a mut StripStats,
    spin: bool,
    /// The transposed strip: one row per tile.
    backward: Columns<'a, I16x32>,
    tiles: &'a mut [TileSums],
    planner: &'a mut Planner,
    /// Rows rounded so far.
    rows: usize,
}

pub(super) fn rounders<'a>(
    forward: &'a mut DirectedWeights,
    backward: &'a mut DirectedWeights,
    tiles: &'a mut BackwardTiles,
    s: i32,
) -> Option<impl ExactSizeIterator<Item = Rounder<'a>>> {
    let (a, b) = (forward.source, backward.source);
    if matches!(a, Side::Potts { .. }) || matches!(b, Side::Potts { .. }) {
        return None;
    }
    let (rows, n, blocks) = (a.units(), b.units(), forward.blocks_per_column());
    if rows == 0 || n == 0 {
        return None;
    }
    let across = rows.div_ceil(TILE);
    tiles.sums.resize(n.div_ceil(TILE) * across, TileSums::NONE);
    tiles.planners.resize(n.div_ceil(TILE), Planner::new());
    // Marked untrusted: a strip that is never rounded must not be sampled from.
    forward.columns.fill(StripStats { overflow: true, ..StripStats::default() });
    let strips = forward.weights.chunks_mut(rows).zip(forward.plan.chunks_mut(blocks));
    let strips = strips.zip(&mut forward.columns).zip(split_columns(&mut backward.weights, n, TILE));
    let strips = strips.zip(tiles.sums.chunks_mut(across)).zip(&mut tiles.planners);
    let rounder = move |(((((forward, plan), column), backward), tiles), planner)| Rounder {
        scale: (s as f32).exp2(),
        forward,
        plan,
        column,
        spin: matches!(a, Side::Spin(_)),
        backward,
        tiles,
        planner,
        rows: 0,
    };
    Some(strips.map(rounder))
}

impl Rounder<'_> {
    /// Prefetches the cache lines that row `i` will be written to.
    #[inline(always)]
    pub fn prefetch(&self, i: usize) {
        prefetch(self.forward, i);
        let tile = self.backward.get(i / TILE);
        prefetch(tile, i % TILE);
    }

    /// All rows of the strip that starts at column `j` of the row-major `w` with rows of `n` weights.
    pub(super) fn take_all(&mut self, w: &[f32], n: usize, j: usize) {
        let width = self.backward.width();
        const PIECE: usize = 8 * TILE;
        for first in (0..self.forward.len()).step_by(PIECE) {
            let here = PIECE.min(self.forward.len() - first);
            for i in first..first + here {
                prefetch(w, i * n + j);
                prefetch(w, i * n + j + WIDTH / 2);
            }
            self.take_rows(Singles::of(w, n, (first, here), (j, width)));
        }
    }

    /// The next `rows` rows of the strip with these weights: a multiple of 32 of them, unless they are the last.
    ///
    /// # Panics
    /// If there are not so many, the strip is of another width, or the weights are not in single precision.
    #[inline(always)]
    pub fn take<T: 'static>(&mut self, w: &Columns<'_, T>, rows: usize) {
        let rows = w.singles(self.rows..self.rows + rows);
        self.take_rows(rows.expect("tables are for single precision"));
    }

    fn take_rows(&mut self, rows: Singles<'_>) {
        let isa = Isa::detect();
        assert!(self.rows.is_multiple_of(TILE), "rewrite: rows in pieces of 32");
        assert_eq!(rows.width(), self.backward.width(), "rewrite: rows as long as the strip is wide");
        if self.rows == 0 {
            *self.planner = Planner::new();
        }
        take(isa, rows, self, &mut scratch::take(&PAIR));
    }
}

multiversion! {
    fn take(isa: Isa, all_rows: Singles<'_>, to: &mut Rounder<'_>, pair: &mut TilePair) {
        let mut units = TileSums::NONE;
        let (all, scale) = (to.forward.len(), to.scale);
        let out = &mut to.forward[to.rows..][..all_rows.len()];
        for (t, out) in out.chunks_mut(TILE).enumerate() {
            let (number, rows) = (to.rows / TILE + t, all_rows.part(t * TILE, TILE));
            let backward = (to.backward.row(number), &mut to.tiles[number]);
            round_both_ways(isa, rows, scale, (out, &mut units), backward, pair);
            to.planner.units(&units);
            let done = to.rows + t * TILE + rows.len();
            let block = DirectedWeights::rows_per_block(Side::Binary(0));
            if done.is_multiple_of(block) || done == all {
                to.planner.end_block((done - 1) / block, to.plan);
            }
        }
        to.rows += all_rows.len();
        if to.rows == all {
            *to.column = to.planner.finish(to.spin, to.scale, to.plan);
        }
    }
}

/// Makes the overflow plan of the backward direction from its tiles.
pub(super) fn finish(backward: &mut DirectedWeights, tiles: &BackwardTiles, s: i32) {
    let (blocks, spin) = (backward.blocks_per_column(), matches!(backward.source, Side::Spin(_)));
    let across = backward.columns.len();
    let per_block = DirectedWeights::rows_per_block(backward.source) / TILE;
    let isa = Isa::detect();
    let columns = backward.columns.iter_mut().zip(backward.plan.chunks_mut(blocks));
    for_each_part(columns, tiles.sums.len() * 16, |c, (column, plan)| {
        *column = plan_column(isa, &tiles.sums[c..], across, per_block, spin, (s as f32).exp2(), plan);
    });
}

multiversion! {
    /// The plan of one block of columns, whose tiles lie `across` apart.
    fn plan_column(isa: Isa, tiles: &[TileSums], across: usize, per_block: usize, spin: bool, scale: f32, plan: &mut [u8]) -> StripStats {
        let mut planner = Planner::new();
        for block in 0..plan.len() {
            let first = block * per_block * across;
            for units in tiles[first..].iter().step_by(across).take(per_block) {
                planner.units(units);
            }
            planner.end_block(block, plan);
        }
        planner.finish(spin, scale, plan)
    }
}
