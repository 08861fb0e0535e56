//! Second moments Σ_rows x·yᵀ with bits or codes on one side, by the kernels of the inputs with roles swapped.
//!
//! The rows of the batch become the inputs and the units of x the batch: Vᵀ·H adds, for every unit, the rows of
//! H in which it is set. Where both sides are bits, ⟨v h⟩ is the number of rows in which both are set.

use crate::bits::{self, BitMatrix, Values};
use crate::codes::Codes;
use crate::isa::{Isa, multiversion};
use crate::real::Real;
use crate::scratch::{self, Kept, first};
use crate::strip::{Strips, for_each_task};

thread_local! {
    /// Transposed bits.
    static COLUMNS: Kept<Vec<u64>> = Kept::default();
}

/// out ← out + scale · XᵀH with X (rows × k) of bits, H row-major (rows × n), out row-major (k × n).
///
/// Weighted rows: scale the rows of H by their weights.
///
/// # Panics
/// If the shapes do not fit.
pub fn add_bits_outer<T: Real>(
    x: BitMatrix<'_>,
    values: Values,
    h: &[T],
    n: usize,
    scale: T,
    out: &mut [T],
) {
    assert_eq!(h.len(), x.rows() * n, "moments: H does not fit rows × n");
    assert_eq!(out.len(), x.bits() * n, "moments: output does not fit bits × n");
    let mut buffer = scratch::take(&COLUMNS);
    let columns = first(&mut buffer, bits::transpose_words(x));
    bits::transpose(x, columns);
    let columns = BitMatrix::new(columns, x.bits(), x.rows());
    match values {
        Values::Binary => T::add_bits(columns, h, n, scale, out),
        Values::Spin => T::add_spins(columns, h, n, scale, out),
    }
}

/// out ← out + scale · XᵀH with X one-hot by `codes`, H row-major (rows × n), out row-major ((sites·q) × n).
///
/// # Panics
/// If the shapes do not fit.
pub fn add_codes_outer<T: Real>(codes: Codes<'_>, h: &[T], n: usize, scale: T, out: &mut [T]) {
    let (sites, q) = (codes.sites(), codes.q());
    assert_eq!(out.len(), sites * q * n, "moments: output does not fit (sites·q) × n");
    if n == 0 || sites == 0 {
        return;
    }
    assert_eq!(h.len(), codes.rows() * n, "moments: H does not fit rows × n");
    // Sites do not share rows of the output, so each is a task of its own.
    let out = Strips::new(out, q * n);
    for_each_task(sites, codes.data().len() * n / 8, |site| {
        // SAFETY: this task alone has the rows of the site.
        let out = unsafe { out.segment(site, 0, q * n) };
        for (codes, h) in codes.data().chunks_exact(sites).zip(h.chunks_exact(n)) {
            let row = codes[site] as usize;
            for (out, &h) in out[row * n..(row + 1) * n].iter_mut().zip(h) {
                *out += scale * h;
            }
        }
    });
}

/// out ← out + scale · XᵀY with both sides of bits, out row-major (bits of x × bits of y).
///
/// # Panics
/// If the numbers of rows differ or the output does not fit.
pub fn add_bits_bits_outer<T: Real>(
    (x, x_values): (BitMatrix<'_>, Values),
    (y, y_values): (BitMatrix<'_>, Values),
    scale: T,
    out: &mut [T],
) {
    assert_eq!(x.rows(), y.rows(), "moments: numbers of rows differ");
    let (k, n) = (x.bits(), y.bits());
    assert_eq!(out.len(), k * n, "moments: output does not fit bits × bits");
    if k == 0 || n == 0 || x.rows() == 0 {
        return;
    }
    let mut buffer = scratch::take(&COLUMNS);
    let (x_words, y_words) = (bits::transpose_words(x), bits::transpose_words(y));
    let words = bits::words(x.rows());
    let buffer = first(&mut buffer, x_words + 2 * y_words + 7);
    // The words that are read most start with a cache line.
    let start = buffer.as_ptr().align_offset(64).min(7);
    let (by_word, rest) = buffer[start..][..x_words + 2 * y_words].split_at_mut(y_words);
    let (a, b) = rest.split_at_mut(x_words);
    bits::transpose(x, a);
    bits::transpose(y, b);
    for (q, column) in by_word.chunks_exact_mut(n).enumerate() {
        for (out, &word) in column.iter_mut().zip(b[q..].iter().step_by(words)) {
            *out = word;
        }
    }
    let (a, b, by_word) = (&*a, &*b, &*by_word);
    // Σ (αx + α₀)(βy + β₀) from the numbers of common ones, of ones on either side, and of rows.
    let line = |values| if values == Values::Spin { (2.0, -1.0) } else { (1.0, 0.0) };
    let ((alpha, alpha0), (beta, beta0)) = (line(x_values), line(y_values));
    let ones = |units: &[u64]| f64::from(units.iter().map(|w| w.count_ones()).sum::<u32>());
    let mut constants = vec![T::zero(); if alpha0 == 0.0 { 0 } else { n }];
    for (c, b) in constants.iter_mut().zip(b.chunks_exact(words)) {
        *c = T::of(alpha0 * beta * ones(b));
    }
    let isa = Isa::detect();
    let out = Strips::new(out, n);
    for_each_task(k.div_ceil(TASK_ROWS), k * n * words / 8, |task| {
        let mut counts = [0u32; STRIP];
        for i in task * TASK_ROWS..k.min((task + 1) * TASK_ROWS) {
            let a = &a[i * words..][..words];
            let constant = T::of(alpha * beta0 * ones(a) + alpha0 * beta0 * x.rows() as f64);
            for j in (0..n).step_by(STRIP) {
                let width = STRIP.min(n - j);
                common(isa, a, by_word, n, j, &mut counts[..width]);
                // SAFETY: this task alone has these rows.
                let out = unsafe { out.segment(i, j, width) };
                let columns = constants.get(j..j + width).unwrap_or(&[]);
                T::add_counts(&counts[..width], columns, T::of(alpha * beta), constant, scale, out);
            }
        }
    });
}

/// Rows of the output per task.
const TASK_ROWS: usize = 16;
/// Columns counted at a time: their counts stay in registers.
const STRIP: usize = 64;

multiversion! {
    /// counts_c = |a ∧ b_{j+c}|, with the words of all b's side by side (`n` of each).
    fn common(isa: Isa, a: &[u64], by_word: &[u64], n: usize, j: usize, counts: &mut [u32]) {
        if let Ok(counts) = <&mut [u32; STRIP]>::try_from(&mut *counts) {
            let mut sums = [0u64; STRIP];
            for (&a, b) in a.iter().zip(by_word.chunks_exact(n)) {
                let b: &[u64; STRIP] = b[j..j + STRIP].try_into().expect("a strip");
                for (sum, b) in sums.iter_mut().zip(b) {
                    *sum += u64::from((a & b).count_ones());
                }
            }
            for (count, sum) in counts.iter_mut().zip(sums) {
                *count = sum as u32;
            }
        } else {
            counts.fill(0);
            for (&a, b) in a.iter().zip(by_word.chunks_exact(n)) {
                for (count, b) in counts.iter_mut().zip(&b[j..]) {
                    *count += (a & b).count_ones();
                }
            }
        }
    }
}
