//! Rounding of weights, tile by tile, and the overflow plan: where the 16-bit sums of a strip are added to 32-bit ones.

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86;

use super::transpose::transpose_4x4;
use crate::isa::{Isa, multiversion};
use crate::strip::Singles;
use crate::x32::{F32x32, I16x32, WIDTH};

/// The sums of a block end a run here: add them to the 32-bit sums.
pub(super) const FLUSH: u8 = 1;
/// All weights of the block are zero.
pub(super) const EMPTY: u8 = 2;
/// The last block that is not empty.
pub(super) const LAST: u8 = 4;

/// 16-bit sums stay within this, so that a saturated weight (32767) always breaks it.
const LIMIT: f32 = 32766.0;
/// A rounded weight differs from the weight by half a step, and the sum of the weights in f32 from their sum by
/// less than a hundredth of a step per term.
const ROUNDING: f32 = 0.51;
/// 32-bit sums of one coupling stay within this.
const LIMIT_32: f32 = (1 << 24) as f32;
/// Rows fetched at a time, so that a transposed matrix is read in whole cache lines. Divides a word.
pub(super) const TILE: usize = 32;

pub(super) const ZERO: F32x32 = F32x32([0.0; 32]);

/// A tile of weights and its transpose.
pub(super) struct TilePair {
    pub(super) tile: [F32x32; TILE],
    pub(super) transposed: [F32x32; TILE],
}

impl Default for TilePair {
    fn default() -> Self {
        Self { tile: [ZERO; TILE], transposed: [ZERO; TILE] }
    }
}

/// What the 32 columns of a strip need to know about their rounded weights.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct StripStats {
    /// Σ_i ŵ_i, which the sum over spins needs.
    pub(super) total: [i32; 32],
    /// Largest sum over a block, in units of the weights: decides the step.
    pub(super) largest: f32,
    /// Bound on the error of a field, in units of the step.
    pub(super) error: f32,
    /// Runs of blocks.
    pub(super) runs: u32,
    /// A block or the whole overflows.
    pub(super) overflow: bool,
}

/// Rounded weights, and what each of their rows adds to the columns.
pub(super) type Rounded<'a> = (&'a mut [I16x32], &'a mut TileSums);

multiversion! {
    /// Rounds up to `TILE` rows of up to 32 weights to steps of 1/scale, scale being a power of two, as they are and transposed;
    /// `pair` is memory for it.
    #[inline(always)]
    pub(super) fn round_both_ways(isa: Isa, rows: Singles<'_>, scale: f32, forward: Rounded<'_>, backward: Rounded<'_>, pair: &mut TilePair) {
        let TilePair { tile, transposed } = pair;
        load_tile(rows, tile);
        forward.1.round(isa, tile, scale, forward.0);
        transpose_tile(tile, transposed);
        backward.1.round(isa, transposed, scale, backward.0);
    } avx512 => x86::round_both_ways
}

/// The rows of a tile, padded with zeros.
#[inline(always)]
fn load_tile(rows: Singles<'_>, tile: &mut [F32x32; TILE]) {
    for (i, to) in tile.iter_mut().enumerate() {
        let row = rows.row(i);
        if let Ok(row) = <&[f32; WIDTH]>::try_from(row) {
            to.0.iter_mut().zip(row).for_each(|(to, w)| *to = *w);
        } else {
            *to = ZERO;
            to.0.iter_mut().zip(row).for_each(|(to, w)| *to = *w);
        }
    }
}

/// The transpose of a tile.
#[inline(always)]
fn transpose_tile(from: &[F32x32; TILE], to: &mut [F32x32; TILE]) {
    for i in (0..TILE).step_by(4) {
        for j in (0..TILE).step_by(4) {
            let four = |r: usize| -> &[f32; 4] { from[i + r].0[j..j + 4].try_into().expect("four") };
            let square = transpose_4x4(four(0), four(1), four(2), four(3));
            for (to, row) in to[j..j + 4].iter_mut().zip(square) {
                to.0[i..i + 4].copy_from_slice(&row);
            }
        }
    }
}

/// The larger of two bounds; NaN if one is.
#[inline(always)]
pub(super) fn max_or_nan(a: f32, b: f32) -> f32 {
    if a.is_nan() || a >= b { a } else { b }
}

/// Extremes of sums over sites, blocks and runs of 32 columns, in steps.
#[derive(Clone, Debug)]
pub(super) struct Planner {
    site: Extremes,
    site_error: Extremes,
    block: Extremes,
    run: Extremes,
    all: Extremes,
    error: Extremes,
    /// Σ ŵ, exact up to 2^24, and NaN once a weight is.
    total: F32x32,
    /// Sites in the block and in the run.
    sites: f32,
    run_sites: f32,
    largest: f32,
    runs: u32,
    overflow: bool,
    /// The last block that was not empty, if any.
    last: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Extremes {
    high: F32x32,
    low: F32x32,
}

/// What some units, each adding 0 or its weight, contribute to 32 columns, in steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct TileSums {
    /// Σ x and Σ |x|: the sum over the positive weights is half of their sum, over the negative ones half of their difference.
    sum: F32x32,
    size: F32x32,
    /// Σ y of the rounded weights, exact up to 2^24, and Σ |x − y|.
    total: F32x32,
    error: F32x32,
    sites: f32,
}

impl TileSums {
    pub(super) const NONE: Self = Self { sum: ZERO, size: ZERO, total: ZERO, error: ZERO, sites: 0.0 };

    /// Rounds the weights of as many units as `out` has rows to steps of 1/scale, scale being a power of two.
    #[inline(always)]
    pub(super) fn round(&mut self, isa: Isa, w: &[F32x32; TILE], scale: f32, out: &mut [I16x32]) {
        round_tile(isa, w, scale, out, self);
    }
}

multiversion! {
    /// Rounds the rows of a tile into `out` and sets the sums of its columns.
    #[inline(always)]
    fn round_tile(isa: Isa, w: &[F32x32; TILE], scale: f32, out: &mut [I16x32], sums: &mut TileSums) {
        let (mut sum, mut size, mut total, mut error) = (ZERO, ZERO, ZERO, ZERO);
        for (w, out) in w.iter().zip(out.iter_mut()) {
            for c in 0..WIDTH {
                let x = scale * w.0[c];
                let (y, stored) = rounded(x);
                out.0[c] = stored;
                sum.0[c] += x;
                size.0[c] += x.abs();
                total.0[c] += y;
                error.0[c] += (x - y).abs();
            }
        }
        *sums = TileSums { sum, size, total, error, sites: out.len() as f32 };
    } avx512 => x86::round_tile
}

impl Extremes {
    const ZERO: Self = Self { high: ZERO, low: ZERO };
    const NONE: Self = Self { high: F32x32([f32::NEG_INFINITY; 32]), low: F32x32([f32::INFINITY; 32]) };

    #[inline(always)]
    fn see(&mut self, x: &F32x32) {
        for ((high, low), &x) in self.high.0.iter_mut().zip(&mut self.low.0).zip(&x.0) {
            *high = if x > *high { x } else { *high };
            *low = if x < *low { x } else { *low };
        }
    }
    #[inline(always)]
    fn add(&mut self, other: &Self) {
        self.high.0.iter_mut().zip(&other.high.0).for_each(|(a, b)| *a += b);
        self.low.0.iter_mut().zip(&other.low.0).for_each(|(a, b)| *a += b);
    }
    /// The largest absolute value; a NaN counts for nothing.
    #[inline(always)]
    fn widest(&self) -> f32 {
        let larger = |a: f32, b: f32| if b > a { b } else { a };
        let mut lanes = ZERO;
        for ((m, &high), &low) in lanes.0.iter_mut().zip(&self.high.0).zip(&self.low.0) {
            *m = larger(larger(*m, high), -low);
        }
        widest_lane(&lanes, larger)
    }
}

/// Halves onto halves: 32 numbers one after the other would wait for each other. `larger` may be in any order.
#[inline(always)]
fn widest_lane(lanes: &F32x32, larger: impl Fn(f32, f32) -> f32) -> f32 {
    let (mut a, mut b, mut c) = ([0.0; 16], [0.0; 8], [0.0; 4]);
    (0..16).for_each(|k| a[k] = larger(lanes.0[k], lanes.0[k + 16]));
    (0..8).for_each(|k| b[k] = larger(a[k], a[k + 8]));
    (0..4).for_each(|k| c[k] = larger(b[k], b[k + 4]));
    larger(larger(c[0], c[2]), larger(c[1], c[3]))
}

/// 1.5·2^23: the sum with it has the integer part in the low bits, rounded to nearest.
const MAGIC: f32 = 12_582_912.0;
/// Largest weight in steps.
const LARGEST: f32 = 32767.0;

/// A weight in steps, rounded: as a number, and as stored.
#[inline(always)]
fn rounded(x: f32) -> (f32, i16) {
    let y = if x > LARGEST { LARGEST } else { x };
    let y = if y < -LARGEST { -LARGEST } else { y };
    ((y + MAGIC) - MAGIC, (y + MAGIC).to_bits() as i16)
}

impl Planner {
    pub(super) fn new() -> Self {
        Self {
            site: Extremes::NONE,
            site_error: Extremes::NONE,
            block: Extremes::ZERO,
            run: Extremes::ZERO,
            all: Extremes::ZERO,
            error: Extremes::ZERO,
            total: ZERO,
            sites: 0.0,
            run_sites: 0.0,
            largest: 0.0,
            runs: 0,
            overflow: false,
            last: None,
        }
    }

    /// Units with values 0 and 1: each is a site that adds 0 or its weight.
    #[inline(always)]
    pub(super) fn units(&mut self, units: &TileSums) {
        let TileSums { sum, size, total, error, .. } = units;
        for c in 0..32 {
            let (sum, size, total, error) = (sum.0[c], size.0[c], total.0[c], error.0[c]);
            self.block.high.0[c] += 0.5 * (size + sum);
            self.block.low.0[c] -= 0.5 * (size - sum);
            self.error.high.0[c] += 0.5 * (error + (sum - total));
            self.error.low.0[c] -= 0.5 * (error - (sum - total));
            self.total.0[c] += total;
        }
        self.sites += units.sites;
    }

    /// One value of a Potts site, rounded to steps of 1/scale.
    #[inline(always)]
    pub(super) fn value(&mut self, w: &F32x32, scale: f32, out: &mut I16x32) {
        let (mut steps, mut error) = (ZERO, ZERO);
        for c in 0..32 {
            let x = scale * w.0[c];
            let (y, stored) = rounded(x);
            out.0[c] = stored;
            steps.0[c] = x;
            error.0[c] = x - y;
            self.total.0[c] += y;
        }
        self.site.see(&steps);
        self.site_error.see(&error);
    }

    #[inline(always)]
    pub(super) fn end_site(&mut self) {
        self.block.add(&self.site);
        self.error.add(&self.site_error);
        (self.site, self.site_error) = (Extremes::NONE, Extremes::NONE);
        self.sites += 1.0;
    }

    #[inline(always)]
    pub(super) fn end_block(&mut self, block: usize, plan: &mut [u8]) {
        plan[block] = 0;
        let widest = self.block.widest();
        let (this, sites) =
            (std::mem::replace(&mut self.block, Extremes::ZERO), std::mem::take(&mut self.sites));
        if widest == 0.0 {
            // Not one weight is above or below zero: nothing to add.
            plan[block] = EMPTY;
            return;
        }
        self.largest = self.largest.max(widest);
        self.overflow |= widest + sites * ROUNDING > LIMIT;
        let mut joined = self.run;
        joined.add(&this);
        self.run_sites += sites;
        if self.last.is_some() && joined.widest() + self.run_sites * ROUNDING <= LIMIT {
            self.run = joined;
        } else {
            if let Some(last) = self.last {
                plan[last] |= FLUSH;
            }
            self.run = this;
            self.run_sites = sites;
            self.runs += 1;
        }
        self.all.add(&this);
        self.last = Some(block);
    }

    #[inline(always)]
    pub(super) fn finish(&self, spin: bool, scale: f32, plan: &mut [u8]) -> StripStats {
        if let Some(last) = self.last {
            plan[last] |= LAST;
        }
        let errors = self.error.high.0.iter().zip(&self.error.low.0);
        let (mut lanes, mut total) = (ZERO, [0; WIDTH]);
        for ((m, (&high, &low)), &total) in lanes.0.iter_mut().zip(errors).zip(&self.total.0) {
            let error = if spin { high - low } else { max_or_nan(high, -low) };
            *m = max_or_nan(*m, if total.is_nan() { f32::NAN } else { error });
        }
        let error = widest_lane(&lanes, max_or_nan);
        // A plain loop: `map` of arrays is not always inlined.
        total.iter_mut().zip(&self.total.0).for_each(|(to, &t)| *to = t as i32);
        let widest = self.all.widest();
        StripStats {
            total,
            largest: self.largest / scale,
            // The sums of the errors are themselves rounded: far less than this part of them. And that of the weights, at most
            // 32 at a time, by less than 2^-19 of their sizes, which enters when the rounded ones are subtracted.
            error: error * (1.0 + 1.0 / 1024.0) + 2.0 * widest * 2f32.powi(-19),
            runs: self.runs,
            overflow: self.overflow || widest > LIMIT_32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::mix;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_instruction_set_rounds_alike(seed: u64, rows in 0usize..=TILE, width in 0usize..=32, odd in 0usize..4) {
            let at = |i: usize| mix(mix(seed) ^ i as u64) as f64 / 2f64.powi(64);
            let scale = [1.0, 300.0, 1e6, f64::NAN][odd];
            let w: Vec<f32> = (0..rows * width).map(|i| (scale * (at(i) - 0.5)) as f32).collect();
            let singles = Singles::of(&w, width, (0, rows), (0, width));
            let run = |isa| {
                let mut out = [vec![I16x32::default(); rows], vec![I16x32::default(); width]];
                let mut sums = [TileSums::NONE; 2];
                let ([ahead, back], [first, second]) = (&mut out, &mut sums);
                round_both_ways(isa, singles, 2.0, (ahead, first), (back, second), &mut TilePair::default());
                let mut facts = Vec::new();
                for TileSums { sum, size, total, error, sites } in sums {
                    facts.extend([sum, size, total, error].map(|x| x.0.map(f32::to_bits)));
                    facts.push([sites.to_bits(); 32]);
                }
                (out, facts)
            };
            let portable = run(Isa::all()[0]);
            for isa in Isa::all() {
                let (out, facts) = run(isa);
                // NaNs may have different payloads.
                prop_assert!(odd == 3 || (out == portable.0 && facts == portable.1), "{}", isa.name());
                let nan = |facts: &[[u32; 32]]| facts.iter().flatten().filter(|x| f32::from_bits(**x).is_nan()).count();
                prop_assert_eq!(nan(&facts), nan(&portable.1));
            }
        }
    }
}
