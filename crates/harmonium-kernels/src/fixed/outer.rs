//! Moments Σ_rows v·mᵀ of bits and conditional means in 16-bit integers.
//!
//! The kernel of the fields with roles swapped: the rows of the batch are the inputs, the units of v the
//! batch. Means in \[0,1\] are shifted to \[−½,½\] and rounded to 1/1022, means in \[−1,1\] to 1/511, so that
//! 64 rows add up within 16 bits; the shift comes back as half the number of ones of a unit. Rounding is
//! dithered with a different threshold for every row and column, evenly spread over the rows, so that it has
//! no bias: a mean of 1/5000 counts once in some rows rather than never.

use super::table::{ENTRIES, Mode, add_words};
use super::vector::{Row, Wide};
use crate::bits::{self, Rows};
use crate::isa::{Isa, multiversion};
use crate::prefetch::prefetch;
use crate::scratch;
use crate::strip::{Strips, for_each_task};

/// Where conditional means lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// \[0,1\]: of Binary units.
    Binary,
    /// \[−1,1\]: of Spin units.
    Spin,
}

/// Rows between a hint and the use of the line.
const AHEAD: usize = 12;
/// 1.5·2^23: a sum with it has its integer part in the low bits, rounded to nearest.
const MAGIC: f32 = 12_582_912.0;
/// Largest rounded mean: 64 of them stay within 16 bits.
const TOP: f32 = 511.0;

impl Means {
    /// (shift, steps per unit): a mean m is stored as steps·(m − shift).
    fn line(self) -> (f32, f32) {
        match self {
            Self::Binary => (0.5, 2.0 * TOP),
            Self::Spin => (0.0, TOP),
        }
    }
}

/// out ← out + scale · VᵀM with V (rows × k) of bits 0/1, M row-major (rows × n) of conditional means, out
/// row-major (k × n).
///
/// Each mean is rounded to 1/1022 (of Spin units: 1/511) without bias; the error of a sum over B rows is
/// below √(B/12) steps in root mean square. For the exact sum use [`crate::moments::add_bits_outer`].
///
/// # Panics
/// If the shapes do not fit.
pub fn add_bits_means(v: Rows<'_>, means: &[f32], range: Means, n: usize, scale: f32, out: &mut [f32]) {
    assert_eq!(means.len(), v.rows() * n, "moments: means do not fit rows × n");
    assert_eq!(out.len(), v.bits() * n, "moments: output does not fit bits × n");
    if v.rows() == 0 || v.bits() == 0 || n == 0 {
        return;
    }
    let (rows, k) = (v.rows(), v.bits());
    let isa = Isa::detect();
    let mut shared = scratch::take();
    let words = bits::words(rows);
    let (transposed, by_word) = shared.columns(2 * k * words).split_at_mut(k * words);
    bits::transpose(v, transposed);
    for (q, column) in by_word.chunks_exact_mut(k).enumerate() {
        for (out, &word) in column.iter_mut().zip(transposed[q..].iter().step_by(words)) {
            *out = word;
        }
    }
    let transposed = &*transposed;
    let by_word = &*by_word;
    let (shift, steps) = range.line();
    let out = Strips::new(out, n);
    for_each_task(n.div_ceil(32), rows * k * n / 160, |column| {
        let j = 32 * column;
        let width = 32.min(n - j);
        let mut scratch = scratch::take();
        let (table, narrow, wide) = scratch.sums(ENTRIES + 64, k);
        let (table, rounded) = table.split_at_mut(ENTRIES);
        wide.fill(Wide::default());
        for (q, (words, first)) in by_word.chunks_exact(k).zip((0..rows).step_by(64)).enumerate() {
            debug_assert_eq!(64 * q, first);
            let here = 64.min(rows - first);
            round(isa, &means[first * n..], n, j, width, first, (shift, steps), &mut rounded[..here]);
            let mode = Mode { fresh: true, flush: Some(0) };
            if k < 48 {
                add_words::<4>(isa, &rounded[..here], words, mode, table, narrow, wide);
            } else {
                add_words::<5>(isa, &rounded[..here], words, mode, table, narrow, wide);
            }
        }
        finish(isa, wide, transposed, words, (shift, steps, scale), (j, width), n, &out);
    });
}

multiversion! {
    fn round(means: &[f32], n: usize, j: usize, width: usize, first: usize, line: (f32, f32), out: &mut [Row]) {
        let (shift, steps) = line;
        for (r, (out, means)) in out.iter_mut().zip(means.chunks(n)).enumerate() {
            let mut m = [shift; 32];
            prefetch(means, AHEAD * n + j);
            prefetch(means, AHEAD * n + j + 16);
            match <&[f32; 32]>::try_from(&means[j..j + width]) {
                Ok(means) => m = *means,
                Err(_) => m[..width].copy_from_slice(&means[j..j + width]),
            }
            // Multiples of the golden ratio, and of another irrational number across columns, modulo 1.
            let start = ((first + r) as u32).wrapping_mul(0x9e37_79b9).wrapping_add((j as u32).wrapping_mul(0x85eb_ca6b));
            for (c, (out, &m)) in out.0.iter_mut().zip(&m).enumerate() {
                let weyl = start.wrapping_add((c as u32).wrapping_mul(0x85eb_ca6b));
                // In [−½, ½): rounding to nearest after adding it rounds up as often as the fraction says.
                let dither = (weyl >> 8) as f32 * (1.0 / 16_777_216.0) - 0.5;
                let x = (m - shift) * steps + dither;
                let x = if x > TOP { TOP } else { x };
                let x = if x < -TOP { -TOP } else { x };
                *out = (x + MAGIC).to_bits() as i16;
            }
        }
    }
}

multiversion! {
    fn finish(sums: &[Wide], transposed: &[u64], words: usize, line: (f32, f32, f32), columns: (usize, usize), n: usize, out: &Strips<'_, f32>) {
        let ((shift, steps, scale), (j, width)) = (line, columns);
        for (i, (sums, units)) in sums.iter().zip(transposed.chunks_exact(words)).enumerate() {
            let ones: u32 = units.iter().map(|w| w.count_ones()).sum();
            let constant = scale * shift * ones as f32;
            // SAFETY: this task alone writes the columns j..j+width.
            let out = unsafe { out.segment(i, j, width) };
            prefetch(out, AHEAD * n);
            prefetch(out, AHEAD * n + 16);
            if let Ok(out) = <&mut [f32; 32]>::try_from(&mut *out) {
                for (out, &sum) in out.iter_mut().zip(&sums.0) {
                    *out += scale / steps * sum as f32 + constant;
                }
            } else {
                for (out, &sum) in out.iter_mut().zip(&sums.0) {
                    *out += scale / steps * sum as f32 + constant;
                }
            }
        }
    }
}
