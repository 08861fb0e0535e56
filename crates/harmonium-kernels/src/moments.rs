//! Second moments Σ_rows x·yᵀ with bits or codes on one side, by the kernels of the inputs with roles swapped.
//!
//! The rows of the batch become the inputs and the units of x the batch: Vᵀ·H adds, for every unit, the rows of
//! H in which it is set. Two sides of bits are counted: ⟨v h⟩ is a number of common ones.

use crate::bits::{self, Rows, Values};
use crate::codes::Codes;
use crate::isa::{Isa, multiversion};
use crate::strip::{Strips, for_each_task};
use crate::{Real, scratch};

/// out ← out + scale · XᵀH with X (rows × k) of bits, H row-major (rows × n), out row-major (k × n).
///
/// Weighted rows: scale the rows of H by their weights.
///
/// # Panics
/// If the shapes do not fit.
pub fn add_bits_outer<T: Real>(x: Rows<'_>, values: Values, h: &[T], n: usize, scale: T, out: &mut [T]) {
    assert_eq!(h.len(), x.rows() * n, "moments: H does not fit rows × n");
    assert_eq!(out.len(), x.bits() * n, "moments: output does not fit bits × n");
    let mut scratch = scratch::take();
    let columns = scratch.columns(bits::transpose_words(x));
    bits::transpose(x, columns);
    let columns = Rows::new(columns, x.bits(), x.rows());
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
    (x, x_values): (Rows<'_>, Values),
    (y, y_values): (Rows<'_>, Values),
    scale: T,
    out: &mut [T],
) {
    assert_eq!(x.rows(), y.rows(), "moments: numbers of rows differ");
    let (k, n) = (x.bits(), y.bits());
    assert_eq!(out.len(), k * n, "moments: output does not fit bits × bits");
    if k == 0 || n == 0 || x.rows() == 0 {
        return;
    }
    let isa = Isa::detect();
    let mut scratch = scratch::take();
    let (x_words, y_words) = (bits::transpose_words(x), bits::transpose_words(y));
    let (a, b) = scratch.columns(x_words + y_words).split_at_mut(x_words);
    bits::transpose(x, a);
    bits::transpose(y, b);
    let (a, b) = (Rows::new(a, k, x.rows()), Rows::new(b, n, x.rows()));
    let ones = |row: &[u64]| row.iter().map(|w| w.count_ones()).sum::<u32>();
    // Σ (αa + α₀)(βb + β₀) from the numbers of common ones, of ones on either side, and of rows.
    let line = |values| if values == Values::Spin { (2.0, -1.0) } else { (1.0, 0.0) };
    let ((alpha, alpha0), (beta, beta0)) = (line(x_values), line(y_values));
    let out = Strips::new(out, n);
    // Eight rows of the output share the loads of b.
    for_each_task(k.div_ceil(8), k * n * a.stride() / 8, |task| {
        let mut counts = [0u32; 64];
        for i in 8 * task..k.min(8 * task + 8) {
            let ones_i = f64::from(ones(a.row(i)));
            for j0 in (0..n).step_by(64) {
                let here = 64.min(n - j0);
                common(isa, a.row(i), b, j0, &mut counts[..here]);
                // SAFETY: this task alone has these rows.
                let out = unsafe { out.segment(i, j0, here) };
                for (j, (out, &count)) in out.iter_mut().zip(&counts).enumerate() {
                    let mut sum = alpha * beta * f64::from(count);
                    if beta0 != 0.0 || alpha0 != 0.0 {
                        let ones_j = f64::from(ones(b.row(j0 + j)));
                        sum += alpha * beta0 * ones_i
                            + alpha0 * beta * ones_j
                            + alpha0 * beta0 * x.rows() as f64;
                    }
                    *out += scale * T::of(sum);
                }
            }
        }
    });
}

multiversion! {
    /// counts_j = |a ∧ b_{j0+j}|.
    fn common(a: &[u64], b: Rows<'_>, j0: usize, counts: &mut [u32]) {
        let b = &b.data()[j0 * a.len()..];
        for (count, b) in counts.iter_mut().zip(b.chunks_exact(a.len())) {
            *count = a.iter().zip(b).map(|(a, b)| (a & b).count_ones()).sum();
        }
    }
}
