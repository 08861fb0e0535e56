//! Sums of levels over few rows by dot products (AVX-512 with VBMI and VNNI).
//!
//! Four rows of a column are the four bytes of a number; one instruction multiplies them with four bits of a unit of v and adds
//! the products to a 32-bit sum, for sixteen columns. Nothing is made beforehand but the order of the bytes, so that a batch of ten
//! rows costs little more than its products; tables pay with more rows.

#![cfg(all(target_arch = "x86_64", not(miri)))]

use crate::x32::{I32x32, Levels, WIDTH};
use std::arch::x86_64::*;

/// Rows up to which dot products are faster than tables.
pub(super) const MOST_ROWS: usize = 32;
/// Rows of a dot product.
const FOUR: usize = 4;
/// Units whose sums stay in registers.
const UNITS: usize = 8;

/// Four rows of levels, those of each column side by side, in two registers.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub(super) struct Four([u8; FOUR * WIDTH]);

impl Default for Four {
    fn default() -> Self {
        Self([0; FOUR * WIDTH])
    }
}

/// The bits of k units over `rows` rows from their words (`words[r·k + i]`): for each unit, a number for every four rows whose bytes
/// are 0 or 1.
pub(super) fn spread(words: &[u64], rows: usize, k: usize, out: &mut Vec<u32>) {
    let fours = rows.div_ceil(FOUR);
    out.clear();
    out.resize(k * fours, 0);
    for four in 0..fours {
        let (word, from) = (FOUR * four / 64, FOUR * four % 64);
        for (out, word) in out.chunks_exact_mut(fours).zip(&words[word * k..]) {
            let bits = (word >> from) as u32 & 0xf;
            // Multiplied with 1 + 2⁷ + 2¹⁴ + 2²¹, bit b comes to the start of byte b.
            out[four] = (bits * 0x0020_4081) & 0x0101_0101;
        }
    }
}

/// Every four rows of levels side by side, absent ones counting as zero.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn interleave(levels: &[Levels], out: &mut Vec<Four>) {
    out.clear();
    for rows in levels.chunks(FOUR) {
        let mut padded = [Levels::default(); FOUR];
        padded[..rows.len()].copy_from_slice(rows);
        // SAFETY: two rows of 32 bytes each.
        let pair = |r: usize| unsafe { _mm512_loadu_si512(padded.as_ptr().add(r).cast()) };
        let (low, high) = (pair(0), pair(2));
        let mut four = Four::default();
        for half in 0..2 {
            // Row r of column c is byte 32r + c of the two pairs.
            let mut order = [0u8; 64];
            for (i, place) in order.iter_mut().enumerate() {
                *place = (32 * (i % FOUR) + 16 * half + i / FOUR) as u8;
            }
            // SAFETY: 64 bytes each.
            unsafe {
                let order = _mm512_loadu_si512(order.as_ptr().cast());
                let mixed = _mm512_permutex2var_epi8(low, order, high);
                _mm512_store_si512(four.0.as_mut_ptr().add(64 * half).cast(), mixed);
            }
        }
        out.push(four);
    }
}

/// wide\[i\] ← \[wide\[i\]\] ± Σ_r v_ri·level_r: the levels as [`interleave`] gives them, with whether to subtract and whether to start
/// from zero, and the bits of as many units, as [`spread`] gives them.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")]
pub(super) fn add((levels, negative, fresh): (&[Four], bool, bool), bits: &[u32], wide: &mut [I32x32]) {
    assert_eq!(bits.len(), wide.len() * levels.len(), "dot products: other numbers of units or rows");
    let signs = (negative, fresh);
    let (mut chunks, stride) = (wide.chunks_exact_mut(UNITS), levels.len());
    let mut rest = bits;
    for wide in &mut chunks {
        let here;
        (here, rest) = rest.split_at(UNITS * stride);
        units::<UNITS>(levels, here, signs, wide);
    }
    for wide in chunks.into_remainder().chunks_exact_mut(1) {
        let here;
        (here, rest) = rest.split_at(stride);
        units::<1>(levels, here, signs, wide);
    }
}

/// N units.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")]
fn units<const N: usize>(
    levels: &[Four],
    bits: &[u32],
    (negative, fresh): (bool, bool),
    wide: &mut [I32x32],
) {
    let stride = levels.len();
    assert!(bits.len() == N * stride && wide.len() == N);
    let mut sums = [[_mm512_setzero_si512(); 2]; N];
    for (g, four) in levels.iter().enumerate() {
        // SAFETY: the two halves of 128 bytes, aligned to 64.
        let half = |h: usize| unsafe { _mm512_load_si512(four.0.as_ptr().add(64 * h).cast()) };
        let (left, right) = (half(0), half(1));
        for (u, [a, b]) in sums.iter_mut().enumerate() {
            // SAFETY: u·stride + g < N·stride, the length of the bits by the assertion above.
            let bits = _mm512_set1_epi32(unsafe { *bits.get_unchecked(u * stride + g) } as i32);
            *a = _mm512_dpbusd_epi32(*a, left, bits);
            *b = _mm512_dpbusd_epi32(*b, right, bits);
        }
    }
    for (sums, wide) in sums.iter().zip(wide) {
        for (h, &sum) in sums.iter().enumerate() {
            // SAFETY: sixteen of 32 sums.
            unsafe {
                let to = wide.0.as_mut_ptr().add(16 * h);
                let old = if fresh { _mm512_setzero_si512() } else { _mm512_loadu_si512(to.cast()) };
                let new = if negative { _mm512_sub_epi32(old, sum) } else { _mm512_add_epi32(old, sum) };
                _mm512_storeu_si512(to.cast(), new);
            }
        }
    }
}
