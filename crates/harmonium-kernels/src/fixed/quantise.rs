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
const LIMIT_32: f32 = (1 << 27) as f32;
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
    total: Wide64,
    /// Largest sum over a block, in units of the weights: decides the step.
    largest: f32,
    /// Bound on the error of a field, in units of the step.
    error: f32,
    /// Runs of blocks.
    runs: u32,
    /// A block or the whole overflows.
    overflow: bool,
}

type Wide64 = [i32; 32];

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

/// Rows fetched at a time, so that a transposed matrix is read in whole cache lines.
const TILE: usize = 32;

impl From<'_> {
    /// Rows `first..` of the columns, padded with zeros.
    #[inline(always)]
    fn tile(&self, first: usize, tile: &mut [[f32; 32]; TILE]) {
        let here = TILE.min(self.rows - first);
        if self.transposed {
            for c in 0..self.width {
                let w = &self.w[(self.j + c) * self.rows + first..][..here];
                for (tile, &w) in tile.iter_mut().zip(w) {
                    tile[c] = w;
                }
            }
        } else {
            for (r, tile) in tile[..here].iter_mut().enumerate() {
                let w = &self.w[(first + r) * self.n + self.j..][..self.width];
                tile[..self.width].copy_from_slice(w);
            }
        }
    }
}

multiversion! {
    fn quantise_columns(from: &From<'_>, source: Side, scale: f32, weights: &mut [Row], plan: &mut [u8]) -> Column {
        let (q, bits) = match source {
            Side::Binary(_) | Side::Spin(_) => (1, true),
            Side::Potts { q, .. } => (q, false),
        };
        let spin = matches!(source, Side::Spin(_));
        let per_block = Half::rows_per_block(source);
        let mut tile = [[0.0; 32]; TILE];
        let mut walk = Walk::new(bits);
        for (i, out) in weights.iter_mut().enumerate() {
            if i % TILE == 0 {
                from.tile(i, &mut tile);
            }
            walk.row(&tile[i % TILE], scale, out);
            if (i + 1) % q == 0 {
                walk.end_site();
            }
            if (i + 1) % per_block == 0 || i + 1 == from.rows {
                walk.end_block(i / per_block, plan);
            }
        }
        walk.finish(spin, scale, plan)
    }
}

/// Extremes of sums over sites, blocks and runs of 32 columns, in steps.
struct Walk {
    bits: bool,
    site: Extremes,
    block: Extremes,
    run: Extremes,
    all: Extremes,
    site_error: Extremes,
    error: Extremes,
    /// Sites in the block and in the run.
    sites: f32,
    run_sites: f32,
    total: [i32; 32],
    used: [i16; 32],
    largest: f32,
    runs: u32,
    overflow: bool,
    /// The last block that was not empty, if any.
    last: Option<usize>,
}

#[derive(Clone, Copy)]
struct Extremes {
    high: [f32; 32],
    low: [f32; 32],
}

impl Extremes {
    const ZERO: Self = Self { high: [0.0; 32], low: [0.0; 32] };
    const NONE: Self = Self { high: [f32::NEG_INFINITY; 32], low: [f32::INFINITY; 32] };

    #[inline(always)]
    fn see(&mut self, x: &[f32; 32]) {
        for ((high, low), &x) in self.high.iter_mut().zip(&mut self.low).zip(x) {
            *high = if x > *high { x } else { *high };
            *low = if x < *low { x } else { *low };
        }
    }
    #[inline(always)]
    fn add(&mut self, other: &Self) {
        for c in 0..32 {
            self.high[c] += other.high[c];
            self.low[c] += other.low[c];
        }
    }
    #[inline(always)]
    fn widest(&self) -> f32 {
        let high = self.high.iter().fold(0f32, |m, &x| if x > m { x } else { m });
        self.low.iter().fold(high, |m, &x| if -x > m { -x } else { m })
    }
}

impl Walk {
    fn new(bits: bool) -> Self {
        let start = if bits { Extremes::ZERO } else { Extremes::NONE };
        Self {
            bits,
            site: start,
            block: Extremes::ZERO,
            run: Extremes::ZERO,
            all: Extremes::ZERO,
            site_error: start,
            error: Extremes::ZERO,
            sites: 0.0,
            run_sites: 0.0,
            total: [0; 32],
            used: [0; 32],
            largest: 0.0,
            runs: 0,
            overflow: false,
            last: None,
        }
    }

    #[inline(always)]
    fn row(&mut self, w: &[f32; 32], scale: f32, out: &mut Row) {
        // 1.5·2^23: the sum has its integer part in the low bits, rounded to nearest.
        const MAGIC: f32 = 12_582_912.0;
        let (mut scaled, mut error) = ([0.0; 32], [0.0; 32]);
        for c in 0..32 {
            let x = w[c] * scale;
            let y = if x > 32767.0 { 32767.0 } else { x };
            let y = if y < -32767.0 { -32767.0 } else { y };
            out.0[c] = (y + MAGIC).to_bits() as i16;
            scaled[c] = x;
            error[c] = x - ((y + MAGIC) - MAGIC);
            self.total[c] = self.total[c].wrapping_add(i32::from(out.0[c]));
            self.used[c] |= out.0[c];
        }
        self.site.see(&scaled);
        self.site_error.see(&error);
        // A NaN would pass unseen through the comparisons.
        for (high, error) in self.error.high.iter_mut().zip(&error) {
            *high += 0.0 * error;
        }
    }

    #[inline(always)]
    fn end_site(&mut self) {
        let start = if self.bits { Extremes::ZERO } else { Extremes::NONE };
        self.block.add(&self.site);
        self.sites += 1.0;
        self.error.add(&self.site_error);
        (self.site, self.site_error) = (start, start);
    }

    fn end_block(&mut self, block: usize, plan: &mut [u8]) {
        plan[block] = 0;
        if self.used.iter().all(|&u| u == 0) {
            plan[block] = EMPTY;
            (self.block, self.sites) = (Extremes::ZERO, 0.0);
            return;
        }
        let widest = self.block.widest();
        self.largest = self.largest.max(widest);
        self.overflow |= widest + self.sites * ROUNDING > LIMIT;
        let mut joined = self.run;
        joined.add(&self.block);
        self.run_sites += self.sites;
        if self.last.is_some() && joined.widest() + self.run_sites * ROUNDING <= LIMIT {
            self.run = joined;
        } else {
            if let Some(last) = self.last {
                plan[last] |= FLUSH;
            }
            self.run = self.block;
            self.run_sites = self.sites;
            self.runs += 1;
        }
        self.sites = 0.0;
        self.all.add(&self.block);
        self.last = Some(block);
        self.block = Extremes::ZERO;
        self.used = [0; 32];
    }

    fn finish(self, spin: bool, scale: f32, plan: &mut [u8]) -> Column {
        if let Some(last) = self.last {
            plan[last] |= LAST;
        }
        let errors = self.error.high.iter().zip(&self.error.low);
        let error = errors
            .fold(0.0, |m, (&high, &low)| worse(m, if spin { high - low } else { worse(high, -low) }));
        Column {
            total: self.total,
            largest: self.largest / scale,
            // The sums of the errors are themselves rounded: far less than this part of them.
            error: error * (1.0 + 1.0 / 1024.0),
            runs: self.runs,
            overflow: self.overflow || self.all.widest() > LIMIT_32,
        }
    }
}
