//! Moments Σ_rows v·mᵀ of bits and rounded conditional means in 16-bit integers.
//!
//! The kernel of the fields with roles swapped: the rows of the batch are the inputs, the units of v the
//! batch. The shift of the means comes back as a multiple of the number of ones of a unit.

use super::means::{Means, WORDS_PER_FLUSH};
use super::table::{ENTRIES, Mode, add_words};
use super::vector::Wide;
use crate::bits::{self, Rows, Values};
use crate::isa::{Isa, multiversion};
use crate::prefetch::prefetch;
use crate::scratch;
use crate::strip::{Strips, for_each_task};

/// Rows between a hint and the use of the line.
const AHEAD: usize = 12;

/// Whether an output is overwritten or added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// out ← …
    Set,
    /// out ← out + …
    Add,
}

/// out ← \[out +\] scale · VᵀM with V (rows × k) of bits read as `values`, M (rows × n) of conditional means, out
/// row-major (k × n).
///
/// The means being rounded without bias, the error of a sum over B rows is below √(B/12) of their steps in root
/// mean square. For the exact sum use [`crate::moments::add_bits_outer`].
///
/// # Panics
/// If the shapes do not fit.
pub fn bits_means(
    v: Rows<'_>,
    values: Values,
    means: &Means,
    scale: f32,
    write: Write,
    out: &mut [f32],
) {
    let (rows, k, n) = (v.rows(), v.bits(), means.n);
    assert_eq!(means.rows, rows, "moments: other numbers of rows");
    assert_eq!(out.len(), k * n, "moments: output does not fit bits × n");
    if write == Write::Set && rows == 0 {
        out.fill(0.0);
    }
    if rows == 0 || k == 0 || n == 0 {
        return;
    }
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
    let ones: Vec<u32> =
        transposed.chunks_exact(words).map(|unit| unit.iter().map(|w| w.count_ones()).sum()).collect();
    let by_word = &*by_word;
    let (shift, steps) = means.range.line();
    // A spin is 2·bit − 1.
    let (factor, all) = if values == Values::Spin { (2.0, -scale) } else { (1.0, 0.0) };
    let line = (factor * scale / steps, factor * scale * shift);
    let out = Strips::new(out, n);
    for_each_task(n.div_ceil(32), rows * k * n / 160, |column| {
        let j = 32 * column;
        let mut scratch = scratch::take();
        let (table, narrow, wide) = scratch.sums(ENTRIES, k);
        wide.fill(Wide::default());
        let rounded = &means.rounded[column * rows..][..rows];
        for (q, (words, rounded)) in by_word.chunks_exact(k).zip(rounded.chunks(64)).enumerate() {
            let last = 64 * (q + 1) >= rows;
            let flush = last || q % WORDS_PER_FLUSH == WORDS_PER_FLUSH - 1;
            let mode = Mode { fresh: q % WORDS_PER_FLUSH == 0, flush: flush.then_some(0) };
            if k < 48 {
                add_words::<4>(isa, rounded, words, mode, table, narrow, wide);
            } else {
                add_words::<5>(isa, rounded, words, mode, table, narrow, wide);
            }
        }
        let mut offset = [0.0; 32];
        offset.iter_mut().zip(&means.sums()[j..]).for_each(|(o, &sum)| *o = all * sum as f32);
        finish(isa, wide, &ones, line, &offset, (j, 32.min(n - j)), n, write, &out);
    });
}

multiversion! {
    fn finish(sums: &[Wide], ones: &[u32], line: (f32, f32), offset: &[f32; 32], columns: (usize, usize), n: usize, write: Write, out: &Strips<'_, f32>) {
        let ((scale, shift), (j, width)) = (line, columns);
        for (i, (sums, &ones)) in sums.iter().zip(ones).enumerate() {
            let constant = shift * ones as f32;
            // SAFETY: this task alone writes the columns j..j+width.
            let out = unsafe { out.segment(i, j, width) };
            prefetch(out, AHEAD * n);
            prefetch(out, AHEAD * n + 16);
            let whole = <&mut [f32; 32]>::try_from(&mut *out);
            match (write, whole) {
                (Write::Set, Ok(out)) => set(&sums.0, scale, constant, offset, out),
                (Write::Set, Err(_)) => set(&sums.0, scale, constant, offset, out),
                (Write::Add, Ok(out)) => add(&sums.0, scale, constant, offset, out),
                (Write::Add, Err(_)) => add(&sums.0, scale, constant, offset, out),
            }
        }
    }
}

#[inline(always)]
fn set(sums: &[i32; 32], scale: f32, constant: f32, offset: &[f32; 32], out: &mut [f32]) {
    for ((out, &sum), offset) in out.iter_mut().zip(sums).zip(offset) {
        *out = scale * sum as f32 + (constant + offset);
    }
}

#[inline(always)]
fn add(sums: &[i32; 32], scale: f32, constant: f32, offset: &[f32; 32], out: &mut [f32]) {
    for ((out, &sum), offset) in out.iter_mut().zip(sums).zip(offset) {
        *out += scale * sum as f32 + (constant + offset);
    }
}
