//! The input bits of a field, word by word: unchanged, for table look-ups, or as lists of the set bits.
//!
//! Where few bits are set, it is faster to add the row of weights of each set bit. A loop over the bits of a word ends in
//! a branch that is mispredicted, which costs as much as ten additions. Rows are therefore sorted by the number of their set
//! bits, once for all columns; among rows with the same number the loop has a constant length.

use super::input::{Block, Input, States};
use crate::bernoulli::STREAM_ROWS;
use crate::bits::last_mask;
use crate::isa::{Isa, multiversion};
use crate::scratch::first;

/// Buffers for [`Words`].
#[derive(Default)]
pub(crate) struct WordBuffers {
    words: Vec<u64>,
    order: Vec<u16>,
    positions: Vec<u8>,
    groups: Vec<CountGroup>,
    entries: Vec<WordEntry>,
}

/// Rows with the same number of set bits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CountGroup {
    pub(super) bits: u16,
    pub(super) rows: u16,
}

/// How one word is stored, for a chunk of up to [`STREAM_ROWS`] rows is given.
#[derive(Clone, Copy, Default)]
struct WordEntry {
    /// Where its groups and its positions start, if it has lists.
    lists: Option<(usize, usize)>,
    /// Where its groups end.
    end: usize,
    /// Bits of the word.
    inputs: usize,
}

/// The words of all inputs that are bits.
pub(super) struct Words<'a> {
    rows: usize,
    chunks: usize,
    /// The number of words of the inputs before each input.
    starts: [usize; MAX_INPUTS + 1],
    words: &'a [u64],
    order: &'a [u16],
    positions: &'a [u8],
    groups: &'a [CountGroup],
    entries: &'a [WordEntry],
}

/// One word of the rows of a block.
#[derive(Clone, Copy)]
pub(super) enum Word<'a> {
    /// To be looked up in tables.
    Whole(&'a [u64]),
    /// To be added bit by bit.
    Lists(BitLists<'a>),
}

/// The set bits of a word in every row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BitLists<'a> {
    /// The rows, by number of set bits.
    pub(super) order: &'a [u16],
    pub(super) groups: &'a [CountGroup],
    /// The positions of the set bits, row after row in that order; each row takes a multiple of [`PADDING`] bytes.
    pub(super) positions: &'a [u8],
    /// All positions are below this.
    pub(super) inputs: usize,
}

/// Lists are read in units of so many bytes.
pub(super) const PADDING: usize = 8;

/// Most couplings into one layer.
const MAX_INPUTS: usize = 16;

impl<'a> Words<'a> {
    /// The words of `rows` rows of the inputs, for a field on `strips` strips of 32 columns.
    pub(super) fn prepare(
        isa: Isa,
        inputs: &[Input<'_>],
        rows: usize,
        strips: usize,
        buffers: &'a mut WordBuffers,
    ) -> Self {
        assert!(inputs.len() <= MAX_INPUTS, "field: more than {MAX_INPUTS} couplings into one layer");
        let mut starts = [0; MAX_INPUTS + 1];
        for (i, input) in inputs.iter().enumerate() {
            let stride = if let States::Bits(x) = input.states { x.stride() } else { 0 };
            starts[i + 1] = starts[i] + stride;
        }
        let (all, chunks) = (starts[inputs.len()], rows.div_ceil(STREAM_ROWS));
        let words = first(&mut buffers.words, all * rows);
        let order = first(&mut buffers.order, all * rows);
        let entries = first(&mut buffers.entries, all * chunks);
        let (mut used, groups) = (0, &mut buffers.groups);
        groups.clear();
        for (i, input) in inputs.iter().enumerate() {
            let States::Bits(x) = input.states else { continue };
            for q in 0..x.stride() {
                let inputs = 64.min(x.bits() - 64 * q);
                for chunk in 0..chunks {
                    let (at, from) = (starts[i] + q, chunk * STREAM_ROWS);
                    let here = STREAM_ROWS.min(rows - from);
                    let words = &mut words[at * rows + from..][..here];
                    let count = word_column(isa, &x.data()[from * x.stride()..], x.stride(), q, words);
                    let entry = &mut entries[at * chunks + chunk];
                    *entry = WordEntry { inputs, ..WordEntry::default() };
                    if are_lists_faster(count, here, inputs, strips) {
                        entry.lists = Some((groups.len(), used));
                        let order = &mut order[at * rows + from..][..here];
                        let mask = last_mask(inputs);
                        let bytes = sort(isa, words, mask, order, groups);
                        entry.end = groups.len();
                        // A list may be written a whole word at a time, beyond its end.
                        let positions = first(&mut buffers.positions, used + bytes + 64);
                        list(isa, words, mask, order, &mut positions[used..]);
                        used += bytes;
                    }
                }
            }
        }
        Self { rows, chunks, starts, words, order, positions: &buffers.positions, groups, entries }
    }

    /// Word `q` of input `i` for the rows of a block.
    pub(super) fn of(&self, i: usize, q: usize, block: Block) -> Word<'a> {
        let at = self.starts[i] + q;
        let rows = at * self.rows + block.first..at * self.rows + block.first + block.rows;
        let entry = &self.entries[at * self.chunks + block.chunk];
        match entry.lists {
            None => Word::Whole(&self.words[rows]),
            Some((group, position)) => Word::Lists(BitLists {
                order: &self.order[rows],
                groups: &self.groups[group..entry.end],
                positions: &self.positions[position..],
                inputs: entry.inputs,
            }),
        }
    }
}

/// The tables for so many rows: bits of each, cycles that making one costs (measured).
pub(super) fn table_size(rows: usize) -> (usize, f32) {
    // Up to about 100 rows small tables are as fast as large ones, and they spare the cache.
    if rows >= 128 { (5, 70.0) } else { (4, 35.0) }
}

/// Whether rows with `count` set bits in all are added faster bit by bit than by tables.
fn are_lists_faster(count: u32, rows: usize, inputs: usize, strips: usize) -> bool {
    // Cycles, measured: a look-up 1.3, a set bit 1.2, a row of lists 3 and 14 to make its list, a word 220 for the mispredicted branches at
    // the ends of its groups.
    let (bits, build) = table_size(rows);
    let by_table = inputs.div_ceil(bits) as f32 * (1.3 * rows as f32 + build);
    let by_lists = 1.2 * count as f32 + (3.0 + 14.0 / strips as f32) * rows as f32 + 220.0;
    by_lists < by_table
}

multiversion! {
    /// Word `q` of every row, side by side; the number of set bits.
    fn word_column(isa: Isa, words: &[u64], stride: usize, q: usize, column: &mut [u64]) -> u32 {
        let mut count = 0;
        for (out, &word) in column.iter_mut().zip(words[q..].iter().step_by(stride)) {
            *out = word;
            count += word.count_ones();
        }
        count
    }
}

multiversion! {
    /// Sorts the rows by their numbers of set bits and adds their groups; the bytes that all lists take.
    fn sort(isa: Isa, words: &[u64], mask: u64, order: &mut [u16], groups: &mut Vec<CountGroup>) -> usize {
        let mut next = [0; 65];
        for word in words {
            next[(word & mask).count_ones() as usize] += 1;
        }
        let (mut row, mut bytes) = (0, 0);
        for (bits, next) in next.iter_mut().enumerate() {
            let rows = std::mem::replace(next, row);
            if rows > 0 {
                groups.push(CountGroup { bits: bits as u16, rows });
            }
            row += rows;
            bytes += usize::from(rows) * bits.next_multiple_of(PADDING);
        }
        for (r, word) in words.iter().enumerate() {
            let next = &mut next[(word & mask).count_ones() as usize];
            order[usize::from(*next)] = r as u16;
            *next += 1;
        }
        bytes
    }
}

multiversion! {
    /// Writes the positions of the set bits of all words, in the order of the rows; up to 64 bytes beyond the end.
    fn list(isa: Isa, words: &[u64], mask: u64, order: &[u16], positions: &mut [u8]) {
        let mut at = 0;
        for &row in order {
            let (word, mut end) = (words[usize::from(row)] & mask, at);
            for position in crate::bits::ones(&[word]) {
                positions[end] = position as u8;
                end += 1;
            }
            at += (end - at).next_multiple_of(PADDING);
        }
    } avx512 => list_by_compression
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,avx512f,avx512bw,avx512vbmi2")]
fn list_by_compression(words: &[u64], mask: u64, order: &[u16], positions: &mut [u8]) {
    use std::arch::x86_64::*;
    let mut at = 0;
    for &row in order {
        let word = words[usize::from(row)] & mask;
        let out = &mut positions[at..at + 64];
        // SAFETY: `out` has 64 bytes.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), crate::bits::compressed_ones(word)) };
        at += (word.count_ones() as usize).next_multiple_of(PADDING);
    }
}

#[cfg(test)]
pub(super) fn with_lists(isa: Isa, words: &[u64], inputs: usize, f: impl FnOnce(BitLists<'_>)) {
    let (mut order, mut groups, mut positions) =
        (vec![0; words.len()], Vec::new(), vec![0; 64 * words.len() + 64]);
    sort(isa, words, last_mask(inputs), &mut order, &mut groups);
    list(isa, words, last_mask(inputs), &order, &mut positions);
    f(BitLists { order: &order, groups: &groups, positions: &positions, inputs });
}
