//! Bernoulli draws from logits: packed bits out, exact with respect to the logits.
//!
//! Columns are cut into blocks of 32 and rows into blocks of [`STREAM_ROWS`], whatever the number of threads;
//! each pair of blocks draws from the stream of its own key, so samples do not depend on the threads.
//! A draw is a comparison of a uniform number u with σ of the logit: its leading 16 bits are compared for
//! 32 units at once ([`decide`]), and where they do not decide, u gets 52 more bits and the
//! comparison is made in f64. The result is that of the comparison in f64 in every case.

mod decide;
mod sources;

pub(crate) use sources::{Sums16, Sums32, sample_reals};

use crate::bits;
use crate::isa::{Isa, multiversion};
use crate::lanes::Lanes;
use crate::math;
use crate::scratch::{self, Kept, Taken};
use crate::stream::{Key, Stream};
use crate::x32::{Levels, WIDTH};
use decide::{Decide, Logits, Random};
pub(crate) use decide::{LEVELS, is_decided, level};
use rand::rand_core::Rng;

/// Rows that share a stream.
pub(crate) const STREAM_ROWS: usize = 1024;
/// Logits are rounded to steps of 2^-11 for the first comparison.
pub(crate) const STEPS_PER_NAT: f64 = 2048.0;

/// The random numbers of one block of columns and rows.
pub(crate) struct Noise {
    lanes: Lanes,
    /// For the units that 16 bits leave undecided.
    rest: Stream,
}

impl Noise {
    /// The numbers of `key` for a block of columns and a block of rows.
    ///
    /// # Panics
    /// If a block number does not fit 16 bits (2 million columns, 67 million rows).
    pub(crate) fn new(key: Key, columns: usize, rows: usize) -> Self {
        assert!(columns < 1 << 16 && rows < 1 << 16, "batch too large for its streams");
        let key = Key { block: (rows as u32) << 16 | columns as u32, ..key };
        let hash = key.hash();
        Self { lanes: Lanes::new(hash), rest: Stream::of_hash(hash) }
    }

    /// The leading 16 bits of the next row.
    pub(crate) fn leading(&mut self) -> Random {
        let mut row = [[0; WIDTH]];
        self.lanes.fill(&mut row);
        row[0]
    }

    /// 52 further bits, as a fraction.
    pub(crate) fn more(&mut self) -> f64 {
        more(&mut self.rest)
    }
}

/// Rows of 32 logits.
pub(crate) trait Source {
    /// The logits of a row, rounded to 2^-11 and saturated.
    ///
    /// # Safety
    /// The instruction set of `D` must be present.
    unsafe fn rounded<D: Decide>(&self, row: usize) -> D::Logits;
    /// The exact logit of one unit.
    fn exact(&self, row: usize, column: usize) -> f64;
}

multiversion! {
    /// Draws `out.len()` rows of 32 units.
    pub(crate) fn sample<S: Source>(isa: Isa, source: &S, noise: &mut Noise, out: &mut [u32]) => sample_rows with decide
}

/// # Safety
/// The instruction set of `D` must be present.
#[inline(always)]
unsafe fn sample_rows<D: Decide, S: Source>(source: &S, noise: &mut Noise, out: &mut [u32]) {
    // Random numbers are made for 16 rows at a time: their states and the constants of the decision do not
    // fit the registers together.
    const AHEAD: usize = 16;
    #[repr(align(64))]
    struct Lines([Random; AHEAD]);
    let mut random = Lines([[0; WIDTH]; AHEAD]);
    for (block, out) in out.chunks_mut(AHEAD).enumerate() {
        noise.lanes.fill(&mut random.0[..out.len()]);
        for (i, (out, random)) in out.iter_mut().zip(&random.0).enumerate() {
            let row = AHEAD * block + i;
            // SAFETY: the caller's promise.
            let x = unsafe { source.rounded::<D>(row) };
            // SAFETY: as above.
            let (values, undecided) = unsafe { D::decide(x, random) };
            *out = if undecided == 0 {
                values
            } else {
                // SAFETY: as above.
                let x = unsafe { D::store(x) };
                decide_with_more_bits(&x, random, values, undecided, &mut noise.rest, |c| {
                    source.exact(row, c)
                })
            };
        }
    }
}

#[inline(always)]
fn more(rest: &mut Stream) -> f64 {
    (rest.next_u64() >> 12) as f64 * 2f64.powi(-52)
}

/// Decides the undecided units with 52 more random bits each.
#[cold]
#[inline(never)]
fn decide_with_more_bits(
    x: &Logits,
    r: &Random,
    mut values: u32,
    mut undecided: u32,
    rest: &mut Stream,
    exact: impl Fn(usize) -> f64,
) -> u32 {
    while undecided != 0 {
        let c = undecided.trailing_zeros() as usize;
        undecided &= undecided - 1;
        let u = (f64::from(r[c]) + more(rest)) * 2f64.powi(-16);
        // The value that the rounded logit makes less likely, as in the 16-bit decision.
        let sign = if x[c] < 0 { 1.0 } else { -1.0 };
        let less_likely = u < math::f64::sigmoid(sign * exact(c));
        let value = less_likely == (x[c] < 0);
        values = values & !(1 << c) | u32::from(value) << c;
    }
    values
}

thread_local! {
    static SAMPLED: Kept<Vec<u32>> = Kept::default();
}

/// The buffer of this thread for bits that [`pack`] will join.
pub(crate) fn sampled() -> Taken<Vec<u32>> {
    scratch::take(&SAMPLED)
}

/// Joins blocks of 32 sampled columns (`sampled[block · rows + row]`) into packed rows of `n` bits.
pub(crate) fn pack(sampled: &[u32], rows: usize, n: usize, out: &mut [u64]) {
    let stride = bits::words(n);
    if stride == 0 {
        return;
    }
    let last = bits::last_mask(n);
    for (r, out) in out.chunks_exact_mut(stride).enumerate() {
        for (q, out) in out.iter_mut().enumerate() {
            let low = u64::from(sampled[2 * q * rows + r]);
            let high = sampled.get((2 * q + 1) * rows + r).map_or(0, |&h| u64::from(h));
            *out = low | high << 32;
        }
        out[stride - 1] &= last;
    }
}

multiversion! {
    /// The conditional means of `out.len()` rows as levels, rounded up where `dither` says so; adds 2^16 times the means
    /// to the totals.
    pub(crate) fn levels<S: Source>(isa: Isa, source: &S, dither: &Dither, out: &mut [Levels], totals: &mut [u32; WIDTH]) => level_rows with decide
}

/// Thresholds that are evenly spread over the rows: multiples of the golden ratio along them, and of another irrational
/// number across columns, modulo 1.
pub(crate) struct Dither {
    across: Random,
    first: usize,
}

impl Dither {
    /// For a block of columns and the rows from `first` on.
    pub(crate) fn new(column: usize, first: usize) -> Self {
        let at = |c: usize| leading(((WIDTH * column + c) as u32).wrapping_mul(0x85eb_ca6b));
        Self { across: std::array::from_fn(at), first }
    }

    #[inline(always)]
    pub(crate) fn row(&self, row: usize) -> Random {
        let along = leading(((self.first + row) as u32).wrapping_mul(0x9e37_79b9));
        let mut out = self.across;
        out.iter_mut().for_each(|x| *x = x.wrapping_add(along));
        out
    }
}

/// The first 16 bits of a fraction.
#[inline(always)]
fn leading(x: u32) -> u16 {
    (x >> 16) as u16
}

/// # Safety
/// The instruction set of `D` must be present.
#[inline(always)]
unsafe fn level_rows<D: Decide, S: Source>(
    source: &S,
    dither: &Dither,
    out: &mut [Levels],
    totals: &mut [u32; WIDTH],
) {
    for (row, out) in out.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        out.0 = unsafe { D::levels(source.rounded::<D>(row), &dither.row(row), totals) };
    }
}

multiversion! {
    /// Goes through all logits and all random numbers: (wrong decisions, undecided ones).
    pub(crate) fn check_every_decision(isa: Isa) -> (u64, u64) => every_decision with decide
}

/// # Safety
/// The instruction set of `D` must be present.
#[inline(always)]
unsafe fn every_decision<D: Decide>() -> (u64, u64) {
    let (mut wrong, mut unsettled) = (0, 0);
    for x in i16::MIN..=i16::MAX {
        let (least, most) = decide::thresholds(x);
        // The less likely value is right for r + 1 ≤ least, the likely one for r ≥ most.
        let (last, first) = (least.floor() as i64 - 1, most.ceil() as i64);
        for block in 0..2048 {
            let r: Random = std::array::from_fn(|c| (32 * block + c) as u16);
            // Bits of this block with r ≤ `to`.
            let up_to = |to: i64| match to - 32 * block as i64 {
                d if d < 0 => 0,
                d if d >= 31 => u32::MAX,
                d => (2 << d) - 1,
            };
            // SAFETY: the caller's promise.
            let (values, undecided) = unsafe { D::decide(D::load(&[x; 32]), &r) };
            let less_likely = if x < 0 { values } else { !values };
            let bad = less_likely & !up_to(last) | !less_likely & up_to(first - 1);
            wrong += u64::from((bad & !undecided).count_ones());
            unsettled += u64::from(undecided.count_ones());
        }
    }
    (wrong, unsettled)
}
