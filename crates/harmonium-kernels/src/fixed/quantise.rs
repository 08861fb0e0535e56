//! One direction of a coupling in 16 bits: rounding of the weights, the plan that keeps 16-bit sums from
//! overflowing, and the bound on what rounding does to the fields.
//!
//! Weights are stored as `round(w·2^s)` in blocks of 32 columns, all rows of a block of columns together.
//! Rows are summed in blocks (a 64-bit word, or some Potts sites). For every column the largest and the
//! smallest value that the sum over a block can take is known from the weights alone: each unit adds 0 or
//! w, each site adds one of its q weights. Blocks are joined into runs whose extremes stay within 16 bits;
//! at the end of a run the sums are added to 32-bit ones.

use super::Side;
use super::vector::Row;
use crate::isa::{Isa, multiversion};
use crate::strip::{Strips, for_each_task};

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
/// Rows of weights per block of Potts sites: 24 KB.
const SITE_ROWS: usize = 384;

/// Weights from `source` to `n` columns.
#[derive(Clone, Debug)]
pub(super) struct Half {
    pub(super) source: Side,
    pub(super) n: usize,
    /// `weights[block of columns · rows + row]`.
    weights: Vec<Row>,
    /// Flags per block of columns and block of rows.
    plan: Vec<u8>,
    /// Per block of columns: sums, and whether a single run suffices.
    columns: Vec<Column>,
}

/// What rounding found out about 32 columns.
#[derive(Clone, Copy, Debug, Default)]
struct Column {
    /// Σ_i ŵ_i, which the sum over spins needs.
    total: [i32; 32],
    /// Largest sum over a block, in units of the weights: decides the step.
    largest: f32,
    /// Bound on the error of a field, in units of the step.
    error: f32,
    /// Runs of blocks.
    runs: u32,
    /// A block or the whole overflows.
    overflow: bool,
}

impl Half {
    pub(super) fn new(source: Side, n: usize) -> Self {
        let columns = n.div_ceil(32);
        let blocks = source.units().div_ceil(Self::rows_per_block(source)).max(1);
        Self {
            source,
            n,
            weights: vec![Row::default(); columns * source.units()],
            plan: vec![0; columns * blocks],
            columns: vec![Column::default(); columns],
        }
    }

    fn rows_per_block(source: Side) -> usize {
        match source {
            Side::Binary(_) | Side::Spin(_) => 64,
            Side::Potts { q, .. } => q * (SITE_ROWS / q.max(1)).max(1),
        }
        .max(1)
    }

    /// Blocks of rows: flags and weights, for one block of columns.
    #[inline]
    pub(super) fn blocks(&self, column: usize) -> impl Iterator<Item = (u8, &[Row])> {
        let rows = self.source.units();
        let plan = &self.plan[column * self.blocks_per_column()..][..self.blocks_per_column()];
        let weights = &self.weights[column * rows..(column + 1) * rows];
        plan.iter().copied().zip(weights.chunks(Self::rows_per_block(self.source)))
    }

    fn blocks_per_column(&self) -> usize {
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
        self.columns.iter().fold(0.0, |m, c| worse(m, if c.overflow { f32::INFINITY } else { c.error }))
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
            let from = From { w, j: 32 * c, width: 32.min(n - 32 * c), rows, n, transposed };
            // SAFETY: this task alone has block of columns c.
            let (weights, plan, facts) = unsafe {
                (weights.segment(c, 0, rows), plan.segment(c, 0, blocks), facts.segment(c, 0, 1))
            };
            facts[0] = quantise_columns(isa, &from, source, (s as f32).exp2(), weights, plan);
        });
    }
}

/// The larger of two bounds; NaN if one is.
pub(super) fn worse(a: f32, b: f32) -> f32 {
    if a.is_nan() || a >= b { a } else { b }
}

/// 32 columns of a matrix of weights.
struct From<'a> {
    w: &'a [f32],
    j: usize,
    width: usize,
    rows: usize,
    n: usize,
    transposed: bool,
}

/// Rows fetched at a time, so that a transposed matrix is read in whole cache lines. Divides a word.
const TILE: usize = 32;

/// One number per column.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Columns([f32; 32]);

const ZERO: Columns = Columns([0.0; 32]);

impl From<'_> {
    /// Rows `first..` of the columns, padded with zeros.
    #[inline(always)]
    fn tile(&self, first: usize, tile: &mut [Columns; TILE]) {
        let here = TILE.min(self.rows - first);
        if self.transposed {
            // Squares of 4 × 4 become shuffles; the rest goes one by one.
            let whole = |n: usize| n - n % 4;
            for c in (0..whole(self.width)).step_by(4) {
                let rows: [&[f32]; 4] =
                    std::array::from_fn(|i| &self.w[(self.j + c + i) * self.rows + first..][..here]);
                for r in (0..whole(here)).step_by(4) {
                    let square: [[f32; 4]; 4] =
                        rows.map(|row| [row[r], row[r + 1], row[r + 2], row[r + 3]]);
                    for (i, tile) in tile[r..r + 4].iter_mut().enumerate() {
                        tile.0[c..c + 4].copy_from_slice(&square.map(|row| row[i]));
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
                let w = &self.w[(first + r) * self.n + self.j..][..self.width];
                // A copy of constant length needs no call.
                match <&[f32; 32]>::try_from(w) {
                    Ok(w) => tile.0 = *w,
                    Err(_) => tile.0[..self.width].copy_from_slice(w),
                }
            }
        }
    }
}

multiversion! {
    fn quantise_columns(from: &From<'_>, source: Side, scale: f32, weights: &mut [Row], plan: &mut [u8]) -> Column {
        let per_block = Half::rows_per_block(source);
        let mut tile = [ZERO; TILE];
        let mut walk = Walk::new();
        for (block, weights) in weights.chunks_mut(per_block).enumerate() {
            let first = block * per_block;
            match source {
                Side::Binary(_) | Side::Spin(_) => {
                    for (t, weights) in weights.chunks_mut(TILE).enumerate() {
                        from.tile(first + t * TILE, &mut tile);
                        walk.units(&tile, scale, weights);
                    }
                }
                Side::Potts { q, .. } => {
                    for (i, weight) in weights.iter_mut().enumerate() {
                        if i % TILE == 0 {
                            from.tile(first + i, &mut tile);
                        }
                        walk.value(&tile[i % TILE], scale, weight);
                        if (i + 1) % q == 0 {
                            walk.end_site();
                        }
                    }
                }
            }
            walk.end_block(block, plan);
        }
        walk.finish(matches!(source, Side::Spin(_)), scale, plan)
    }
}

/// Extremes of sums over sites, blocks and runs of 32 columns, in steps.
struct Walk {
    site: Extremes,
    site_error: Extremes,
    block: Extremes,
    run: Extremes,
    all: Extremes,
    error: Extremes,
    /// Σ ŵ, exact up to 2^24, and NaN once a weight is.
    total: Columns,
    /// Sites in the block and in the run.
    sites: f32,
    run_sites: f32,
    largest: f32,
    runs: u32,
    overflow: bool,
    /// The last block that was not empty, if any.
    last: Option<usize>,
}

#[derive(Clone, Copy)]
struct Extremes {
    high: Columns,
    low: Columns,
}

impl Extremes {
    const ZERO: Self = Self { high: ZERO, low: ZERO };
    const NONE: Self =
        Self { high: Columns([f32::NEG_INFINITY; 32]), low: Columns([f32::INFINITY; 32]) };

    #[inline(always)]
    fn see(&mut self, x: &Columns) {
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
    #[inline(always)]
    fn widest(&self) -> f32 {
        let high = self.high.0.iter().fold(0f32, |m, &x| if x > m { x } else { m });
        self.low.0.iter().fold(high, |m, &x| if -x > m { -x } else { m })
    }
}

/// A weight in steps: (unrounded, rounded, as stored).
#[inline(always)]
fn rounded(w: f32, scale: f32) -> (f32, f32, i16) {
    // 1.5·2^23: the sum has its integer part in the low bits, rounded to nearest.
    const MAGIC: f32 = 12_582_912.0;
    let x = w * scale;
    let y = if x > 32767.0 { 32767.0 } else { x };
    let y = if y < -32767.0 { -32767.0 } else { y };
    (x, (y + MAGIC) - MAGIC, (y + MAGIC).to_bits() as i16)
}

impl Walk {
    fn new() -> Self {
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

    /// Up to `TILE` units with values 0 and 1: each is a site that adds 0 or its weight.
    #[inline(always)]
    fn units(&mut self, w: &[Columns; TILE], scale: f32, out: &mut [Row]) {
        let (mut block, mut error, mut total) = (self.block, self.error, self.total);
        for (w, out) in w.iter().zip(out.iter_mut()) {
            for c in 0..32 {
                let (x, y, stored) = rounded(w.0[c], scale);
                out.0[c] = stored;
                block.high.0[c] += if x > 0.0 { x } else { 0.0 };
                block.low.0[c] += if x < 0.0 { x } else { 0.0 };
                let e = x - y;
                error.high.0[c] += if e > 0.0 { e } else { 0.0 };
                error.low.0[c] += if e < 0.0 { e } else { 0.0 };
                total.0[c] += y;
            }
        }
        (self.block, self.error, self.total) = (block, error, total);
        self.sites += out.len() as f32;
    }

    /// One value of a Potts site.
    #[inline(always)]
    fn value(&mut self, w: &Columns, scale: f32, out: &mut Row) {
        let (mut scaled, mut error) = (ZERO, ZERO);
        for c in 0..32 {
            let (x, y, stored) = rounded(w.0[c], scale);
            out.0[c] = stored;
            scaled.0[c] = x;
            error.0[c] = x - y;
            self.total.0[c] += y;
        }
        self.site.see(&scaled);
        self.site_error.see(&error);
    }

    #[inline(always)]
    fn end_site(&mut self) {
        self.block.add(&self.site);
        self.error.add(&self.site_error);
        (self.site, self.site_error) = (Extremes::NONE, Extremes::NONE);
        self.sites += 1.0;
    }

    fn end_block(&mut self, block: usize, plan: &mut [u8]) {
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

    fn finish(self, spin: bool, scale: f32, plan: &mut [u8]) -> Column {
        if let Some(last) = self.last {
            plan[last] |= LAST;
        }
        let errors = self.error.high.0.iter().zip(&self.error.low.0);
        let error = errors.zip(&self.total.0).fold(0.0, |m, ((&high, &low), &total)| {
            let error = if spin { high - low } else { worse(high, -low) };
            worse(m, if total.is_nan() { f32::NAN } else { error })
        });
        Column {
            total: self.total.0.map(|t| t as i32),
            largest: self.largest / scale,
            // The sums of the errors are themselves rounded: far less than this part of them.
            error: error * (1.0 + 1.0 / 1024.0),
            runs: self.runs,
            overflow: self.overflow || self.all.widest() > LIMIT_32,
        }
    }
}
