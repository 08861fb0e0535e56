//! Sums of levels over the rows in which a unit is set, one row after another: for states with few set bits.
//!
//! Every unit has the list of its rows. Four rows of levels add up within a byte, so lists are read in fours, filled up with a
//! row of zeros. Units are taken in the order of the lengths of their lists, so that the branch at the end of each is predicted.

use super::means::WORDS_PER_FLUSH;
use super::vector::{self, Vector};
use crate::isa::{Isa, multiversion};
use crate::x32::{I32x32, Levels};
use std::ops::Range;

/// Rows whose levels are added up in 16 bits: 63 · 512 < 2¹⁵. Their places fit 16 bits, too.
const ROWS_PER_CHUNK: usize = 64 * WORDS_PER_FLUSH;
/// Rows that are added up in a byte.
const FOUR: usize = 4;
/// Units of a piece: their sums and what is made of them stay in the first two levels of cache.
pub(super) const UNITS: usize = 160;
/// Units whose lists are read side by side.
const GROUP: usize = 4;
/// Groups between two calls of `prefetch_hook`.
const STEP: usize = 4;

/// Four rows, as places of their 32 levels in bytes, two in a number; place 0 is that of the row of zeros.
type Four = [u32; FOUR / 2];

/// The lists of all units.
#[derive(Default)]
pub(super) struct RowLists {
    rows: usize,
    pieces: usize,
    /// For each [`ROWS_PER_CHUNK`] rows, for each piece; there may be more than are in use.
    lists: Vec<ListPiece>,
}

/// The lists of the units of a piece.
#[derive(Default)]
struct ListPiece {
    /// Of every unit, in fours.
    lengths: Vec<u16>,
    groups: Vec<Group>,
    /// One after another, the lists of each group side by side.
    fours: Vec<[Four; GROUP]>,
}

/// Units with lists of about the same length.
#[derive(Clone, Copy)]
struct Group {
    /// The last group may have fewer.
    units: [Option<u16>; GROUP],
    /// Fours in the longest list, and with what is filled up in all.
    length: u16,
}

impl RowLists {
    /// Makes the lists of `k` units over `rows` rows from their words (`words[r·k + i]`), reusing the memory.
    pub(super) fn set(&mut self, isa: Isa, words: &[u64], rows: usize, k: usize) {
        (self.rows, self.pieces) = (rows, k.div_ceil(UNITS));
        let mut used = 0;
        for words in words.chunks(k.max(1) * ROWS_PER_CHUNK / 64) {
            for first in (0..k).step_by(UNITS) {
                if used == self.lists.len() {
                    self.lists.push(ListPiece::default());
                }
                self.lists[used].set(isa, words, k, first..k.min(first + UNITS));
                used += 1;
            }
        }
    }

    /// Where there are more than [`ROWS_PER_CHUNK`] rows, the levels of a strip with a row of zeros before each so many.
    pub(super) fn prepare(levels: &[Levels], padded: &mut Vec<Levels>) {
        padded.clear();
        if levels.len() > 1 + ROWS_PER_CHUNK {
            for rows in levels[1..].chunks(ROWS_PER_CHUNK) {
                padded.push(Levels::default());
                padded.extend_from_slice(rows);
            }
        }
    }

    /// wide\[i\] ← \[wide\[i\]\] ± Σ_r v_ri·level_r for the units i of a piece, counted from the first of them; the levels after a row of
    /// zeros come as they are and as [prepared](Self::prepare), with whether to subtract and whether to start from zero.
    /// Calls `prefetch_hook(step, steps)` between steps.
    pub(super) fn add(
        &self,
        isa: Isa,
        (levels, padded, negative, fresh): (&[Levels], &[Levels], bool, bool),
        units: Range<usize>,
        wide: &mut [I32x32],
        mut prefetch_hook: impl FnMut(usize, usize),
    ) {
        assert!(units.start.is_multiple_of(UNITS) && wide.len() == units.len());
        if fresh && self.rows == 0 {
            wide.fill(I32x32::default());
        }
        let chunks = self.rows.div_ceil(ROWS_PER_CHUNK);
        let levels = if chunks > 1 { padded } else { levels };
        for (chunk, levels) in levels.chunks(1 + ROWS_PER_CHUNK).take(chunks).enumerate() {
            assert_eq!(
                levels.len(),
                1 + ROWS_PER_CHUNK.min(self.rows - chunk * ROWS_PER_CHUNK),
                "lists: other numbers of rows"
            );
            let piece = &self.lists[chunk * self.pieces + units.start / UNITS];
            let (mut rest, steps) = (&piece.fours[..], piece.groups.len().div_ceil(STEP));
            for (step, groups) in piece.groups.chunks(STEP).enumerate() {
                prefetch_hook(chunk * steps + step, chunks * steps);
                let fours;
                let used = groups.iter().map(|group| usize::from(group.length)).sum();
                (fours, rest) = rest.split_at(used);
                add_groups(isa, levels, groups, fours, negative, fresh && chunk == 0, wide);
            }
        }
    }
}

impl ListPiece {
    fn set(&mut self, isa: Isa, words: &[u64], k: usize, units: Range<usize>) {
        let Self { lengths, groups, fours } = self;
        lengths.clear();
        lengths.resize(units.len(), 0);
        count(isa, words, k, units.start, lengths);
        // Places in the order by length, found by counting.
        let mut ends = [0u16; ROWS_PER_CHUNK / FOUR + 1];
        lengths.iter().for_each(|&n| ends[usize::from(n)] += 1);
        let mut end = 0;
        ends.iter_mut().for_each(|n| end += std::mem::replace(n, end));
        groups.clear();
        groups.resize(units.len().div_ceil(GROUP), Group { units: [None; GROUP], length: 0 });
        for (i, &n) in lengths.iter().enumerate() {
            let at = &mut ends[usize::from(n)];
            let group = &mut groups[usize::from(*at) / GROUP];
            group.units[usize::from(*at) % GROUP] = Some(i as u16);
            group.length = group.length.max(n);
            *at += 1;
        }
        let all: usize = groups.iter().map(|group| usize::from(group.length)).sum();
        fours.clear();
        fours.resize(all, [Four::default(); GROUP]);
        let mut rest = &mut fours[..];
        // A word of rows is written as a whole, beyond the end of the list.
        let mut list = [0; ROWS_PER_CHUNK + 64];
        for group in groups.iter() {
            let here;
            (here, rest) = rest.split_at_mut(usize::from(group.length));
            for (g, unit) in group.units.iter().enumerate() {
                let Some(unit) = unit else { continue };
                let count = list_rows(isa, &words[units.start + usize::from(*unit)..], k, &mut list);
                list[count..count.next_multiple_of(FOUR)].fill(0);
                for (here, [a, b, c, d]) in
                    here.iter_mut().zip(list[..count.next_multiple_of(FOUR)].as_chunks().0)
                {
                    let pair = |a, b| u32::from(a) | u32::from(b) << 16;
                    here[g] = [pair(*a, *b), pair(*c, *d)];
                }
            }
        }
    }
}

multiversion! {
    /// The fours in the lists of the units from `first` on.
    fn count(isa: Isa, words: &[u64], k: usize, first: usize, lengths: &mut [u16]) {
        for words in words.chunks_exact(k) {
            for (n, word) in lengths.iter_mut().zip(&words[first..]) {
                *n += word.count_ones() as u16;
            }
        }
        lengths.iter_mut().for_each(|n| *n = n.div_ceil(FOUR as u16));
    }
}

multiversion! {
    /// Writes the byte offsets of the rows in which a unit is set, given the words from its own on, every `k`-th of which
    /// is the unit's; the number of them.
    fn list_rows(isa: Isa, words: &[u64], k: usize, out: &mut [u16; ROWS_PER_CHUNK + 64]) -> usize {
        let mut at = 0;
        for (r, &word) in words.iter().step_by(k).enumerate() {
            for position in crate::bits::ones(&[word]) {
                out[at] = byte_offset(64 * r + position);
                at += 1;
            }
        }
        at
    } avx512 => list_by_compression
}

/// Where the levels of a row are, in bytes.
fn byte_offset(row: usize) -> u16 {
    (size_of::<Levels>() * (1 + row)) as u16
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,avx512f,avx512bw,avx512vbmi2")]
fn list_by_compression(words: &[u64], k: usize, out: &mut [u16; ROWS_PER_CHUNK + 64]) -> usize {
    use std::arch::x86_64::*;
    let mut at = 0;
    for (r, &word) in words.iter().step_by(k).enumerate() {
        let rows = crate::bits::compressed_ones(word);
        let base = _mm512_set1_epi16(byte_offset(64 * r) as i16);
        let places =
            |half: __m256i| _mm512_add_epi16(base, _mm512_slli_epi16::<5>(_mm512_cvtepu8_epi16(half)));
        let count = word.count_ones() as usize;
        let out = &mut out[at..at + 64];
        // SAFETY: the first and the last 32 of 64 numbers.
        unsafe {
            let to = out.as_mut_ptr();
            _mm512_storeu_si512(to.cast(), places(_mm512_castsi512_si256(rows)));
            if count > 32 {
                _mm512_storeu_si512(to.add(32).cast(), places(_mm512_extracti64x4_epi64::<1>(rows)));
            }
        }
        at += count;
    }
    at
}

multiversion! {
    /// Adds the levels of all rows in the lists of some groups.
    fn add_groups(isa: Isa, levels: &[Levels], groups: &[Group], fours: &[[Four; GROUP]], negative: bool, fresh: bool, wide: &mut [I32x32]) => groups_by_lists with vector
}

#[inline(always)]
unsafe fn groups_by_lists<V: Vector>(
    levels: &[Levels],
    groups: &[Group],
    mut rest: &[[Four; GROUP]],
    negative: bool,
    fresh: bool,
    wide: &mut [I32x32],
) {
    for group in groups {
        let fours;
        (fours, rest) = rest.split_at(usize::from(group.length));
        // SAFETY: the places in a list are those of the rows and of the zeros, which `RowLists::add` has made sure that
        // `levels` holds; the caller promises the instruction set.
        unsafe {
            let mut sums = [V::zero(); GROUP];
            for fours in fours {
                for (sum, four) in sums.iter_mut().zip(fours) {
                    let row = |place: u32| &*levels.as_ptr().byte_add(place as usize);
                    let [a, b] = four;
                    *sum =
                        sum.plus_levels([row(a & 0xffff), row(a >> 16), row(b & 0xffff), row(b >> 16)]);
                }
            }
            for (unit, sum) in group.units.into_iter().zip(sums) {
                let Some(unit) = unit else { continue };
                let wide = &mut wide[usize::from(unit)];
                if fresh {
                    *wide = I32x32::default();
                }
                if negative { sum.negated() } else { sum }.add_to(wide, 0);
            }
        }
    }
}
