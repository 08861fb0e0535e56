//! Adding rows of 16-bit weights for a batch of words or codes: the innermost loops of the engine.
//!
//! One call handles one block of inputs (a 64-bit word, or some Potts sites) and 32 columns, for all rows of
//! the batch. For bits, every K rows of weights become a table of their 2^K sums, and each row of the batch
//! adds one entry per K bits; all tables of a block stay in the first-level cache. Sums are 16-bit integers
//! that the plan of the coupling proves free of overflow, so they are exact and every order of summation
//! gives the same result.

use super::vector::{self, Vector};
use super::words::{BitLists, PADDING, table_size};
use crate::isa::{Isa, multiversion};
use crate::prefetch::prefetch;
use crate::x32::{I16x32, I32x32};

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
    /// `sum` plus the contribution of row `row` of the batch. Rows are asked for in the order in which they are given.
    unsafe fn add<V: Vector>(&mut self, row: usize, sum: V) -> V;
}

/// Runs over rows of a batch, from and to the accumulators that `mode` names.
#[inline(always)]
unsafe fn accumulate<V: Vector>(
    inputs: &mut impl Inputs,
    rows: impl Iterator<Item = usize>,
    mode: Mode,
    narrow: &mut [I16x32],
    wide: &mut [I32x32],
) {
    // SAFETY: the caller promises the instruction set of `V`.
    unsafe {
        match mode {
            Mode { fresh: true, flush: None } => {
                for row in rows {
                    inputs.add(row, V::zero()).store(&mut narrow[row]);
                }
            }
            Mode { fresh: false, flush: None } => {
                for row in rows {
                    let narrow = &mut narrow[row];
                    inputs.add(row, V::load(narrow)).store(narrow);
                }
            }
            Mode { fresh: true, flush: Some(shift) } => {
                for row in rows {
                    inputs.add(row, V::zero()).add_to(&mut wide[row], shift);
                }
            }
            Mode { fresh: false, flush: Some(shift) } => {
                for row in rows {
                    inputs.add(row, V::load(&narrow[row])).add_to(&mut wide[row], shift);
                }
            }
        }
    }
}

multiversion! {
    /// Adds Σ_i bit_i·w_i for every word, through tables of `K` bits (4 or 5); `w` has at most 64 rows.
    pub(crate) fn add_words[const K: usize](isa: Isa, w: &[I16x32], words: &[u64], mode: Mode, table: &mut [I16x32], narrow: &mut [I16x32], wide: &mut [I32x32]) => words_by_table with vector
}

#[inline(always)]
unsafe fn words_by_table<V: Vector, const K: usize>(
    w: &[I16x32],
    words: &[u64],
    mode: Mode,
    table: &mut [I16x32],
    narrow: &mut [I16x32],
    wide: &mut [I32x32],
) {
    debug_assert!(w.len() <= 64);
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
            ($groups:literal) => {{
                let mut inputs = Tables::<K, $groups>::new(groups, words, table);
                accumulate::<V>(&mut inputs, 0..words.len(), mode, narrow, wide)
            }};
        }
        match (K, groups) {
            (4, 16) => look_up!(16),
            (5, 13) => look_up!(13),
            _ => look_up!(0),
        }
    }
}

/// The 2^K sums of up to K rows; absent rows count as zero.
#[inline(always)]
unsafe fn build<V: Vector, const K: usize>(w: &[I16x32], table: &mut [I16x32]) {
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

/// Tables of K bits each, `GROUPS` of them (0: as many as `groups` says).
struct Tables<'a, const K: usize, const GROUPS: usize> {
    groups: usize,
    words: &'a [u64],
    table: &'a [I16x32],
}

impl<'a, const K: usize, const GROUPS: usize> Tables<'a, K, GROUPS> {
    fn new(groups: usize, words: &'a [u64], table: &'a [I16x32]) -> Self {
        let groups = if GROUPS == 0 { groups } else { GROUPS };
        assert!(groups << K <= table.len());
        Self { groups, words, table }
    }
}

impl<const K: usize, const GROUPS: usize> Inputs for Tables<'_, K, GROUPS> {
    #[inline(always)]
    unsafe fn add<V: Vector>(&mut self, row: usize, mut sum: V) -> V {
        let word = self.words[row];
        for g in 0..if GROUPS == 0 { self.groups } else { GROUPS } {
            let entry = crate::bits::field_times_64::<K>(word, g);
            // SAFETY: g·2^K + entry/64 < (g+1)·2^K ≤ groups·2^K ≤ table.len(), asserted in `new`, and a row has 64
            // bytes; the caller promises the instruction set.
            sum = unsafe { sum.plus(&*self.table.as_ptr().add(g << K).byte_add(entry)) };
        }
        sum
    }
}

/// Adds a word of inputs by tables of a size that suits the batch.
pub(super) fn add_by_tables(
    isa: Isa,
    w: &[I16x32],
    words: &[u64],
    mode: Mode,
    table: &mut [I16x32],
    narrow: &mut [I16x32],
    wide: &mut [I32x32],
) {
    match table_size(words.len()) {
        (5, _) => add_words::<5>(isa, w, words, mode, table, narrow, wide),
        _ => add_words::<4>(isa, w, words, mode, table, narrow, wide),
    }
}

multiversion! {
    /// As `add_words`, adding the rows of the set bits one by one: for words with few set bits.
    pub(crate) fn add_lists(isa: Isa, w: &[I16x32], lists: BitLists<'_>, mode: Mode, narrow: &mut [I16x32], wide: &mut [I32x32]) => words_by_lists with vector
}

#[inline(always)]
unsafe fn words_by_lists<V: Vector>(
    w: &[I16x32],
    lists: BitLists<'_>,
    mode: Mode,
    narrow: &mut [I16x32],
    wide: &mut [I32x32],
) {
    assert!(w.len() >= lists.inputs, "lists: positions beyond the weights");
    // The weights of the next block.
    for i in 0..w.len() {
        prefetch(w, w.len() + i);
    }
    let (mut order, mut positions) = (lists.order, lists.positions);
    for group in lists.groups {
        let rows;
        (rows, order) = order.split_at(usize::from(group.rows));
        let count = usize::from(group.bits);
        if count == 0 && mode.fresh == mode.flush.is_some() {
            // Rows without bits change neither the sums so far nor, if there are none, the 32-bit ones.
            continue;
        }
        let here;
        (here, positions) = positions.split_at(rows.len() * count.next_multiple_of(PADDING));
        // A constant number unrolls the end of each list.
        macro_rules! add {
            ($($rest:literal)*) => {
                match count % PADDING {
                    $($rest => {
                        let mut inputs = Positions::<$rest> { w, words: count / PADDING, positions: here };
                        // SAFETY: the caller promises the instruction set of `V`.
                        unsafe { accumulate::<V>(&mut inputs, rows.iter().map(|&r| usize::from(r)), mode, narrow, wide) }
                    })*
                    _ => unreachable!("a remainder"),
                }
            };
        }
        add!(0 1 2 3 4 5 6 7);
    }
}

/// Lists of PADDING·`words` + REST positions each.
struct Positions<'a, const REST: usize> {
    w: &'a [I16x32],
    words: usize,
    positions: &'a [u8],
}

impl<const REST: usize> Positions<'_, REST> {
    /// `sum` plus the rows that the first `N` of the next positions name.
    #[inline(always)]
    unsafe fn next<V: Vector, const N: usize>(&mut self, mut sum: V) -> V {
        let (word, rest) = self.positions.split_first_chunk::<PADDING>().expect("whole lists");
        self.positions = rest;
        let word = u64::from_le_bytes(*word);
        for i in 0..N {
            let entry = crate::bits::field_times_64::<8>(word, i);
            // SAFETY: a position below `inputs` ≤ `w.len()`, times the 64 bytes of a row; the caller promises the
            // instruction set.
            sum = unsafe { sum.plus(&*self.w.as_ptr().byte_add(entry)) };
        }
        sum
    }
}

impl<const REST: usize> Inputs for Positions<'_, REST> {
    #[inline(always)]
    unsafe fn add<V: Vector>(&mut self, _: usize, mut sum: V) -> V {
        // SAFETY: the caller promises the instruction set.
        unsafe {
            for _ in 0..self.words {
                sum = self.next::<V, PADDING>(sum);
            }
            if REST > 0 { self.next::<V, REST>(sum) } else { sum }
        }
    }
}

multiversion! {
    /// Adds the rows of `w` that the codes of some sites name: sites `first..first+w.len()/q` of every row of
    /// `codes` (rows of `sites` codes below `q`).
    pub(crate) fn add_codes(isa: Isa, w: &[I16x32], q: usize, codes: &[u32], sites: usize, first: usize, mode: Mode, narrow: &mut [I16x32], wide: &mut [I32x32]) => codes_by_row with vector
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn codes_by_row<V: Vector>(
    w: &[I16x32],
    q: usize,
    codes: &[u32],
    sites: usize,
    first: usize,
    mode: Mode,
    narrow: &mut [I16x32],
    wide: &mut [I32x32],
) {
    let mut inputs = Sites { w, q, codes, sites, first };
    // SAFETY: the caller promises the instruction set of `V`.
    unsafe { accumulate::<V>(&mut inputs, 0..codes.len() / sites, mode, narrow, wide) }
}

struct Sites<'a> {
    w: &'a [I16x32],
    q: usize,
    codes: &'a [u32],
    sites: usize,
    first: usize,
}

impl Inputs for Sites<'_> {
    #[inline(always)]
    unsafe fn add<V: Vector>(&mut self, row: usize, mut sum: V) -> V {
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
    use crate::fixed::words::with_lists;
    use crate::stream::mix;
    use proptest::prelude::*;

    fn rows(n: usize, seed: u64) -> Vec<I16x32> {
        let at = |i: usize| mix(mix(seed) ^ i as u64);
        (0..n).map(|i| I16x32(std::array::from_fn(|c| (at(32 * i + c) % 801) as i16 - 400))).collect()
    }

    proptest! {
        #[test]
        fn every_method_gives_the_same_sums(seed: u64, k in 1usize..=64, batch in 0usize..67, fresh: bool, shift in prop::option::of(0u32..3)) {
            let w = rows(k, seed);
            let words: Vec<u64> = (0..batch).map(|b| mix(seed ^ b as u64) & crate::bits::last_mask(k)).collect();
            let mode = Mode { fresh, flush: shift };
            let start = rows(batch, seed ^ 1);
            let (mut narrow, mut wide) = (start.clone(), vec![I32x32([7; 32]); batch]);
            for (b, &word) in words.iter().enumerate() {
                let mut sum = if fresh { I16x32::default() } else { start[b] };
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
                for way in 0..3 {
                    let (mut a, mut b) = (start.clone(), vec![I32x32([7; 32]); batch]);
                    let mut table = vec![I16x32::default(); ENTRIES];
                    match way {
                        0 => add_words::<4>(isa, &w, &words, mode, &mut table, &mut a, &mut b),
                        1 => add_words::<5>(isa, &w, &words, mode, &mut table, &mut a, &mut b),
                        _ => with_lists(isa, &words, k, |lists| add_lists(isa, &w, lists, mode, &mut a, &mut b)),
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
