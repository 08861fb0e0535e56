//! Rows of bits packed into `u64` words, least significant bit first; unused high bits are zero.

mod transpose;

pub(crate) use transpose::{transpose, transpose_by_word, transpose_words};

use crate::isa::{Isa, multiversion};

/// Words needed for `n` bits.
pub const fn words(n: usize) -> usize {
    n.div_ceil(64)
}

/// Bit `j` of a packed row.
#[inline]
pub fn get(row: &[u64], j: usize) -> bool {
    row[j / 64] >> (j % 64) & 1 == 1
}

/// Sets bit `j` of a packed row to `value`.
#[inline]
pub fn set(row: &mut [u64], j: usize, value: bool) {
    let (word, mask) = (&mut row[j / 64], 1 << (j % 64));
    if value { *word |= mask } else { *word &= !mask }
}

/// Mask of the bits of the last word that a row of `n` bits uses.
pub const fn last_mask(n: usize) -> u64 {
    if n.is_multiple_of(64) { u64::MAX } else { (1 << (n % 64)) - 1 }
}

/// Positions of the set bits of a packed row, in increasing order.
pub fn ones(row: &[u64]) -> impl Iterator<Item = usize> + '_ {
    row.iter().enumerate().flat_map(|(k, &word)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            (rest != 0).then(|| {
                let j = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                64 * k + j
            })
        })
    })
}

/// The positions of the set bits of a word as bytes, in increasing order; zeros follow.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi2")]
pub(crate) fn compressed_ones(word: u64) -> std::arch::x86_64::__m512i {
    use std::arch::x86_64::*;
    const EVERY: [u8; 64] = {
        let mut every = [0; 64];
        let mut i = 0;
        while i < 64 {
            every[i] = i as u8;
            i += 1;
        }
        every
    };
    // SAFETY: 64 bytes.
    let every = unsafe { _mm512_loadu_si512(EVERY.as_ptr().cast()) };
    _mm512_maskz_compress_epi8(word, every)
}

/// out_j ← out_j + number of rows whose bit `j` is set.
///
/// # Panics
/// If `out` is not one number per bit.
pub fn add_counts(x: BitMatrix<'_>, out: &mut [u32]) {
    assert_eq!(out.len(), x.bits(), "bit counts: wrong length");
    add_counts_on(Isa::detect(), x, out);
}

multiversion! {
    fn add_counts_on(isa: Isa, x: BitMatrix<'_>, out: &mut [u32]) {
        transpose::for_each_tile(isa, x, |_, q, columns| {
            for (out, column) in out[64 * q..].iter_mut().zip(columns) {
                *out += column.count_ones();
            }
        });
    } avx512 => add_counts_by_masks
}

/// As [`add_counts`]: a word is the mask under which 64 counters go up by one.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx512f,avx512bw")]
fn add_counts_by_masks(x: BitMatrix<'_>, out: &mut [u32]) {
    use std::arch::x86_64::*;
    let one = _mm512_set1_epi8(1);
    // As many rows as a byte can count.
    for rows in x.data().chunks(255 * x.stride().max(1)) {
        for (q, out) in out.chunks_mut(64).enumerate() {
            let mut counts = _mm512_setzero_si512();
            for &word in rows[q..].iter().step_by(x.stride()) {
                counts = _mm512_mask_add_epi8(counts, word, counts, one);
            }
            let mut bytes = [0u8; 64];
            // SAFETY: 64 bytes.
            unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), counts) };
            out.iter_mut().zip(bytes).for_each(|(out, n)| *out += u32::from(n));
        }
    }
}

/// What the two values of a bit stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// 0 and 1.
    Binary,
    /// −1 and +1.
    Spin,
}

/// A batch of packed rows: `rows` rows of `bits` bits, each row `words(bits)` words, one after another.
#[derive(Clone, Copy, Debug)]
pub struct BitMatrix<'a> {
    data: &'a [u64],
    rows: usize,
    bits: usize,
}

impl<'a> BitMatrix<'a> {
    /// A view of `rows` packed rows of `bits` bits.
    ///
    /// # Panics
    /// If `data` is not `rows · words(bits)` words long.
    pub fn new(data: &'a [u64], rows: usize, bits: usize) -> Self {
        assert_eq!(data.len(), rows * words(bits), "packed rows: wrong number of words");
        Self { data, rows, bits }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bits per row.
    pub fn bits(&self) -> usize {
        self.bits
    }

    /// Words per row.
    pub fn stride(&self) -> usize {
        words(self.bits)
    }

    /// All words, row after row.
    pub fn data(&self) -> &'a [u64] {
        self.data
    }

    /// Row `r`.
    #[inline]
    pub fn row(&self, r: usize) -> &'a [u64] {
        &self.data[r * self.stride()..(r + 1) * self.stride()]
    }

    /// Set bits of word `q`, over all rows.
    pub(crate) fn count_in_word(&self, q: usize) -> usize {
        let column = self.data.get(q..).unwrap_or(&[]);
        column.iter().step_by(self.stride().max(1)).map(|w| w.count_ones() as usize).sum()
    }
}

/// 64 times the number in bits K·g…K·g+K−1 of a word: how far entry lies from the start of a table of cache lines.
///
/// One shift and one mask; written as an index, the multiplication by 64 would be a third operation, which a
/// look-up from the first-level cache has no time for.
#[inline(always)]
pub(crate) fn field_times_64<const K: usize>(word: u64, g: usize) -> usize {
    let at = K * g;
    let shifted = if at >= 6 { word >> (at - 6) } else { word << (6 - at) };
    shifted as usize & (((1 << K) - 1) << 6)
}
