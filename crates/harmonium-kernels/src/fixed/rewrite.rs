//! New weights taken over strip by strip, while an update has them in the cache.
//!
//! A strip of 32 columns is a block of columns of the forward direction, and is planned as it comes. Of the backward direction
//! it holds 32 inputs of every block of columns: each square of 32 × 32 weights is rounded on its side too, and what it
//! contributes is kept until all strips are there.

use super::Side;
use super::plan::{self, Column, TILE, Units, Walk, load, turn};
use super::quantise::Half;
use super::vector::Row;
use crate::isa::{Isa, multiversion};
use crate::prefetch::prefetch;
use crate::scratch;
use crate::strip::{Columns, for_each_part, split_columns};

/// What is found out while strips are taken over.
#[derive(Clone, Debug, Default)]
pub(super) struct Squares {
    /// What every square of weights contributes to the backward direction: all squares of a strip side by side.
    units: Vec<Units>,
    /// For each strip.
    walks: Vec<Walk>,
}

/// Takes over the new weights of 32 columns.
#[derive(Debug)]
pub struct Rounder<'a> {
    scale: f32,
    forward: &'a mut [Row],
    plan: &'a mut [u8],
    column: &'a mut Column,
    spin: bool,
    /// The strip on its side: a row for each square.
    backward: Columns<'a, Row>,
    squares: &'a mut [Units],
    walk: &'a mut Walk,
    /// Rows so far.
    rows: usize,
}

pub(super) fn rounders<'a>(
    forward: &'a mut Half,
    backward: &'a mut Half,
    squares: &'a mut Squares,
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
    squares.units.resize(n.div_ceil(TILE) * across, Units::NONE);
    squares.walks.resize(n.div_ceil(TILE), Walk::new());
    // Strips that are never given leave a plan that nobody trusts.
    forward.columns.fill(Column { overflow: true, ..Column::default() });
    let strips = forward.weights.chunks_mut(rows).zip(forward.plan.chunks_mut(blocks));
    let strips = strips.zip(&mut forward.columns).zip(split_columns(&mut backward.weights, n, TILE));
    let strips = strips.zip(squares.units.chunks_mut(across)).zip(&mut squares.walks);
    let rounder = move |(((((forward, plan), column), backward), squares), walk)| Rounder {
        scale: (s as f32).exp2(),
        forward,
        plan,
        column,
        spin: matches!(a, Side::Spin(_)),
        backward,
        squares,
        walk,
        rows: 0,
    };
    Some(strips.map(rounder))
}

impl Rounder<'_> {
    /// Asks for the cache lines that row `i` will be written to soon.
    #[inline(always)]
    pub fn prefetch(&self, i: usize) {
        prefetch(self.forward, i);
        let square = self.backward.get(i / TILE);
        prefetch(square, i % TILE);
    }

    /// The next rows of the strip: a multiple of 32 of them, unless they are the last.
    ///
    /// # Panics
    /// If there are too many, or they are not as long as the strip is wide.
    pub fn take(&mut self, rows: &[&[f32]]) {
        let (isa, width) = (Isa::detect(), self.backward.width());
        assert!(self.rows.is_multiple_of(TILE), "rewrite: rows in pieces of 32");
        assert!(rows.iter().all(|row| row.len() == width), "rewrite: rows as long as the strip is wide");
        if self.rows == 0 {
            *self.walk = Walk::new();
        }
        take(isa, isa, rows, self, scratch::take().squares());
        self.rows += rows.len();
        if self.rows == self.forward.len() {
            *self.column = self.walk.finish(self.spin, self.scale, self.plan);
        }
    }
}

multiversion! {
    fn take(level: Isa, rows: &[&[f32]], to: &mut Rounder<'_>, squares: &mut plan::Squares) {
        let plan::Squares(tile, turned) = squares;
        let mut units = Units::NONE;
        let (all, scale) = (to.forward.len(), to.scale);
        let out = &mut to.forward[to.rows..][..rows.len()];
        for (t, (rows, out)) in rows.chunks(TILE).zip(out.chunks_mut(TILE)).enumerate() {
            load(level, rows, tile);
            units.round(level, tile, scale, out);
            to.walk.units(&units);
            let square = to.rows / TILE + t;
            turn(level, tile, turned);
            to.squares[square].round(level, turned, scale, to.backward.row(square));
            let done = to.rows + t * TILE + rows.len();
            let block = Half::rows_per_block(Side::Binary(0));
            if done.is_multiple_of(block) || done == all {
                to.walk.end_block((done - 1) / block, to.plan);
            }
        }
    }
}

/// Plans the backward direction from its squares.
pub(super) fn finish(backward: &mut Half, squares: &Squares, s: i32) {
    let (blocks, spin) = (backward.blocks_per_column(), matches!(backward.source, Side::Spin(_)));
    let across = backward.columns.len();
    let per_block = Half::rows_per_block(backward.source) / TILE;
    let isa = Isa::detect();
    let columns = backward.columns.iter_mut().zip(backward.plan.chunks_mut(blocks));
    for_each_part(columns, squares.units.len() * 16, |c, (column, plan)| {
        *column =
            plan_column(isa, &squares.units[c..], across, per_block, spin, (s as f32).exp2(), plan);
    });
}

multiversion! {
    /// The plan of one block of columns, whose squares lie `across` apart.
    fn plan_column(squares: &[Units], across: usize, per_block: usize, spin: bool, scale: f32, plan: &mut [u8]) -> Column {
        let mut walk = Walk::new();
        for block in 0..plan.len() {
            let first = block * per_block * across;
            for units in squares[first..].iter().step_by(across).take(per_block) {
                walk.units(units);
            }
            walk.end_block(block, plan);
        }
        walk.finish(spin, scale, plan)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Coupling;
    use super::*;
    use crate::stream::mix;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// Large weights change the step and break runs; half of the strips are zero.
        #[test]
        fn strips_give_what_a_refresh_gives(seed: u64, k in 1usize..200, n in 1usize..150, spins in 0u32..4, size in -6i32..6, piece in 1usize..4) {
            let side = |spin: bool, n| if spin { Side::Spin(n) } else { Side::Binary(n) };
            let (a, b) = (side(spins & 1 == 1, k), side(spins & 2 == 2, n));
            let at = |i: usize| mix(mix(seed) ^ i as u64) as f64 / 2f64.powi(64);
            let w: Vec<f32> = (0..k * n).map(|i| {
                let zero = mix(seed ^ (i % n / 32) as u64).is_multiple_of(2) && i.is_multiple_of(3);
                if zero { 0.0 } else { ((at(i) - 0.4) * 2f64.powi(size)) as f32 }
            }).collect();
            let (mut want, mut got) = (Coupling::new(a, b), Coupling::new(a, b));
            want.refresh(&w);
            got.refresh(&vec![0.01; k * n]);
            for (c, mut rounder) in got.rewrite().expect("no Potts layer").enumerate() {
                let (j, width) = (32 * c, 32.min(n - 32 * c));
                let rows: Vec<&[f32]> = (0..k).map(|i| &w[i * n + j..][..width]).collect();
                rows.chunks(32 * piece).for_each(|rows| rounder.take(rows));
            }
            got.rewritten(&w);
            prop_assert!(got == want);
            prop_assert!(got.error_bound() == want.error_bound());
        }
    }
}
