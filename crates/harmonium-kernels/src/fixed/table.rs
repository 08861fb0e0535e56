//! Adding rows of 16-bit weights for a batch of words or codes: the innermost loops of the engine.
//!
//! One call handles one block of inputs (a 64-bit word, or some Potts sites) and 32 columns, for all rows of
//! the batch. For bits, every K rows of weights become a table of their 2^K sums, and each row of the batch
//! adds one entry per K bits; all tables of a block stay in the first-level cache. Sums are 16-bit integers
//! that the plan of the coupling proves free of overflow, so they are exact and every way of taking them
//! gives the same result.

use super::vector::{Row, Vector, Wide, vectorised};
use crate::prefetch::prefetch;

/// Entries of the largest set of tables: thirteen of five bits.
pub(crate) const ENTRIES: usize = 13 << 5;

/// Where a block starts from and where it puts its sums.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mode {
    /// Start from zero (otherwise from the 16-bit sums so far).
    pub(crate) fresh: bool,
    /// Add the 16-bit sums, times 2^this, to the 32-bit ones (otherwise store them).
    pub(crate) flush: Option<u32>,
}

/// What the rows of a batch add.
trait Inputs {
    /// `sum` plus the contribution of row `row` of the batch.
    unsafe fn add<V: Vector>(&self, row: usize, sum: V) -> V;
}

/// Runs over the rows of a batch, from and to the accumulators that `mode` names.
#[inline(always)]
unsafe fn accumulate<V: Vector>(
    inputs: &impl Inputs,
    rows: usize,
    mode: Mode,
    narrow: &mut [Row],
    wide: &mut [Wide],
) {
    // SAFETY: the caller promises the instruction set of `V`.
    unsafe {
        match mode {
            Mode { fresh: true, flush: None } => {
                for (row, narrow) in narrow[..rows].iter_mut().enumerate() {
                    inputs.add(row, V::zero()).store(narrow);
                }
            }
            Mode { fresh: false, flush: None } => {
                for (row, narrow) in narrow[..rows].iter_mut().enumerate() {
                    inputs.add(row, V::load(narrow)).store(narrow);
                }
            }
            Mode { fresh: true, flush: Some(shift) } => {
                for (row, wide) in wide[..rows].iter_mut().enumerate() {
                    inputs.add(row, V::zero()).add_to(wide, shift);
                }
            }
            Mode { fresh: false, flush: Some(shift) } => {
                for (row, (narrow, wide)) in narrow[..rows].iter().zip(&mut wide[..rows]).enumerate() {
                    inputs.add(row, V::load(narrow)).add_to(wide, shift);
                }
            }
        }
    }
}

vectorised! {
    /// Adds Σ_i bit_i·w_i for every word, through tables of `K` bits (4, 5 or 6); `w` has at most 64 rows.
    pub(crate) fn add_words[const K](w: &[Row], words: &[u64], mode: Mode, table: &mut [Row], narrow: &mut [Row], wide: &mut [Wide]) => words_by_table
}

#[inline(always)]
unsafe fn words_by_table<V: Vector, const K: usize>(
    w: &[Row],
    words: &[u64],
    mode: Mode,
    table: &mut [Row],
    narrow: &mut [Row],
    wide: &mut [Wide],
) {
    debug_assert!(w.len() <= 64);
    // SAFETY: the caller promises the instruction set of `V`.
    unsafe {
        if K < 6 {
            part::<V, K>(w, 0, words, mode, table, narrow, wide);
        } else {
            // Ten tables of 64 entries would leave the first-level cache: take the word in two halves.
            let (low, high) = w.split_at(w.len().min(30));
            let first = Mode { flush: if high.is_empty() { mode.flush } else { None }, ..mode };
            part::<V, K>(low, 0, words, first, table, narrow, wide);
            if !high.is_empty() {
                part::<V, K>(high, 30, words, Mode { fresh: false, ..mode }, table, narrow, wide);
            }
        }
    }
}

#[inline(always)]
unsafe fn part<V: Vector, const K: usize>(
    w: &[Row],
    offset: u32,
    words: &[u64],
    mode: Mode,
    table: &mut [Row],
    narrow: &mut [Row],
    wide: &mut [Wide],
) {
    let groups = w.len().div_ceil(K);
    // SAFETY: the caller promises the instruction set of `V`.
    unsafe {
        for (w, table) in w.chunks(K).zip(table.chunks_exact_mut(1 << K)) {
            build::<V, K>(w, table);
        }
        // The weights of the next block, while this one is looked up.
        for i in 0..w.len() {
            prefetch(w, w.len() + i);
        }
        // A constant number of tables unrolls the look-ups; all blocks but the last of a layer have it.
        macro_rules! look_up {
            ($($groups:literal)*) => {
                match (K, groups) {
                    $((_, $groups) => {
                        let inputs = Tables::<K, $groups>::new(groups, offset, words, table);
                        accumulate::<V>(&inputs, words.len(), mode, narrow, wide)
                    })*
                    _ => {
                        let inputs = Tables::<K, 0>::new(groups, offset, words, table);
                        accumulate::<V>(&inputs, words.len(), mode, narrow, wide)
                    }
                }
            };
        }
        match K {
            4 => look_up!(16),
            5 => look_up!(13),
            _ => look_up!(5 6),
        }
    }
}

/// The 2^K sums of up to K rows; absent rows count as zero.
#[inline(always)]
unsafe fn build<V: Vector, const K: usize>(w: &[Row], table: &mut [Row]) {
    // SAFETY: the caller promises the instruction set of `V`.
    unsafe {
        V::zero().store(&mut table[0]);
        for m in 0..K {
            let (old, new) = table[..2 << m].split_at_mut(1 << m);
            let row = w.get(m).map_or(V::zero(), |w| V::load(w));
            for (old, new) in old.iter().zip(new) {
                row.plus(old).store(new);
            }
        }
    }
}

/// Tables of K bits each, `GROUPS` of them (0: as many as `groups` says), for the bits from `offset` on.
struct Tables<'a, const K: usize, const GROUPS: usize> {
    groups: usize,
    offset: u32,
    words: &'a [u64],
    table: &'a [Row],
}

impl<'a, const K: usize, const GROUPS: usize> Tables<'a, K, GROUPS> {
    fn new(groups: usize, offset: u32, words: &'a [u64], table: &'a [Row]) -> Self {
        let groups = if GROUPS == 0 { groups } else { GROUPS };
        assert!(groups << K <= table.len());
        Self { groups, offset, words, table }
    }
}

impl<const K: usize, const GROUPS: usize> Inputs for Tables<'_, K, GROUPS> {
    #[inline(always)]
    unsafe fn add<V: Vector>(&self, row: usize, mut sum: V) -> V {
        let word = self.words[row] >> self.offset;
        for g in 0..if GROUPS == 0 { self.groups } else { GROUPS } {
            let entry = crate::bits::field_times_64::<K>(word, g);
            // SAFETY: g·2^K + entry/64 < (g+1)·2^K ≤ groups·2^K ≤ table.len(), asserted in `new`, and a row has 64
            // bytes; the caller promises the instruction set.
            sum = unsafe { sum.plus(&*self.table.as_ptr().add(g << K).byte_add(entry)) };
        }
        sum
    }
}

vectorised! {
    /// As `add_words`, adding the rows of the set bits one by one: for blocks with few set bits.
    pub(crate) fn add_set_bits(w: &[Row], words: &[u64], mode: Mode, narrow: &mut [Row], wide: &mut [Wide]) => words_by_set_bits
}

#[inline(always)]
unsafe fn words_by_set_bits<V: Vector>(
    w: &[Row],
    words: &[u64],
    mode: Mode,
    narrow: &mut [Row],
    wide: &mut [Wide],
) {
    let inputs =
        SetBits { w, words, used: if w.is_empty() { 0 } else { crate::bits::last_mask(w.len()) } };
    // SAFETY: the caller promises the instruction set of `V`.
    unsafe { accumulate::<V>(&inputs, words.len(), mode, narrow, wide) }
}

struct SetBits<'a> {
    w: &'a [Row],
    words: &'a [u64],
    used: u64,
}

impl Inputs for SetBits<'_> {
    #[inline(always)]
    unsafe fn add<V: Vector>(&self, row: usize, mut sum: V) -> V {
        let mut rest = self.words[row] & self.used;
        while rest != 0 {
            // SAFETY: the caller promises the instruction set.
            sum = unsafe { sum.plus(&self.w[rest.trailing_zeros() as usize]) };
            rest &= rest - 1;
        }
        sum
    }
}

vectorised! {
    /// Adds the rows of `w` that the codes of some sites name: sites `first..first+w.len()/q` of every row of
    /// `codes` (rows of `sites` codes below `q`).
    pub(crate) fn add_codes(w: &[Row], q: usize, codes: &[u32], sites: usize, first: usize, mode: Mode, narrow: &mut [Row], wide: &mut [Wide]) => codes_by_row
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn codes_by_row<V: Vector>(
    w: &[Row],
    q: usize,
    codes: &[u32],
    sites: usize,
    first: usize,
    mode: Mode,
    narrow: &mut [Row],
    wide: &mut [Wide],
) {
    let inputs = Sites { w, q, codes, sites, first };
    // SAFETY: the caller promises the instruction set of `V`.
    unsafe { accumulate::<V>(&inputs, codes.len() / sites, mode, narrow, wide) }
}

struct Sites<'a> {
    w: &'a [Row],
    q: usize,
    codes: &'a [u32],
    sites: usize,
    first: usize,
}

impl Inputs for Sites<'_> {
    #[inline(always)]
    unsafe fn add<V: Vector>(&self, row: usize, mut sum: V) -> V {
        let codes = &self.codes[row * self.sites + self.first..][..self.w.len() / self.q];
        for (w, &code) in self.w.chunks_exact(self.q).zip(codes) {
            // SAFETY: the caller promises the instruction set.
            sum = unsafe { sum.plus(&w[code as usize]) };
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Isa;
    use crate::stream::mix;
    use proptest::prelude::*;

    fn rows(n: usize, seed: u64) -> Vec<Row> {
        let at = |i: usize| mix(mix(seed) ^ i as u64);
        (0..n).map(|i| Row(std::array::from_fn(|c| (at(32 * i + c) % 801) as i16 - 400))).collect()
    }

    proptest! {
        #[test]
        fn every_way_gives_the_same_sums(seed: u64, k in 1usize..=64, batch in 0usize..67, fresh: bool, shift in prop::option::of(0u32..3)) {
            let w = rows(k, seed);
            let words: Vec<u64> = (0..batch).map(|b| mix(seed ^ b as u64) & crate::bits::last_mask(k)).collect();
            let mode = Mode { fresh, flush: shift };
            let start = rows(batch, seed ^ 1);
            let (mut narrow, mut wide) = (start.clone(), vec![Wide([7; 32]); batch]);
            for (b, &word) in words.iter().enumerate() {
                let mut sum = if fresh { Row::default() } else { start[b] };
                for i in crate::bits::ones(&[word]) {
                    for (a, b) in sum.0.iter_mut().zip(w[i].0) {
                        *a += b;
                    }
                }
                match shift {
                    None => narrow[b] = sum,
                    Some(s) => {
                        for (a, b) in wide[b].0.iter_mut().zip(sum.0) {
                            *a += i32::from(b) << s;
                        }
                    }
                }
            }
            for isa in Isa::all() {
                for way in 0..4 {
                    let (mut a, mut b) = (start.clone(), vec![Wide([7; 32]); batch]);
                    let mut table = vec![Row::default(); ENTRIES];
                    match way {
                        0 => add_words::<4>(isa, &w, &words, mode, &mut table, &mut a, &mut b),
                        1 => add_words::<5>(isa, &w, &words, mode, &mut table, &mut a, &mut b),
                        2 => add_words::<6>(isa, &w, &words, mode, &mut table, &mut a, &mut b),
                        _ => add_set_bits(isa, &w, &words, mode, &mut a, &mut b),
                    }
                    prop_assert_eq!(&b, &wide);
                    if shift.is_none() {
                        prop_assert_eq!(&a, &narrow);
                    }
                }
            }
        }
    }
}
