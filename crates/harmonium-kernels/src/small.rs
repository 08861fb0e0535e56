//! Products of small matrices in single precision by AVX-512: nothing is packed, nothing is allocated.
//!
//! Each element is one chain of fused multiply-adds in the order of the inner index, as in the crate `gemm`, which takes
//! large products: both give the same bits.

#![cfg(all(target_arch = "x86_64", not(miri)))]

use crate::isa::{Isa, multiversion};
use std::arch::x86_64::*;

/// Multiplications up to which packing costs more than it saves.
const MOST_WORK: usize = 1 << 18;
/// Longest sum: `gemm` cuts those of several hundreds.
const MOST_INNER: usize = 256;
/// Rows of a tile, and registers of columns of each: its sums stay in registers.
const ROWS: usize = 6;
const ACROSS: usize = 4;
/// Numbers in a register.
const LANES: usize = 16;

/// A matrix: elements, row stride, column stride.
type Strided<'a> = (&'a [f32], usize, usize);
/// The same, to be written.
type StridedMut<'a> = (&'a mut [f32], usize, usize);

/// `c ← alpha·a·b + beta·c` as in [`Real::gemm`](crate::Real::gemm), whose assertions have been made, if the product is small,
/// the columns of `b` and `c` are neighbours and `beta` is 0 or 1; says whether it was made.
pub(crate) fn product(
    isa: Isa,
    (m, n, k): (usize, usize, usize),
    alpha: f32,
    a: Strided<'_>,
    b: Strided<'_>,
    beta: f32,
    c: StridedMut<'_>,
) -> bool {
    // With fewer rows, columns or terms it is another kernel of `gemm`, with another order, that makes the product.
    let few = m > 1 && n > 1 && (3..=MOST_INNER).contains(&k) && m * n * k <= MOST_WORK;
    let fits = few && b.2 == 1 && c.2 == 1 && (beta == 0.0 || beta == 1.0);
    fits && by_tiles(isa, (m, n, k), alpha, a, b, beta, c)
}

multiversion! {
    /// The product, where there is AVX-512; whether there is.
    fn by_tiles(isa: Isa, shape: (usize, usize, usize), alpha: f32, a: Strided<'_>, b: Strided<'_>, beta: f32, c: StridedMut<'_>) -> bool {
        false
    } avx512 => tiles
}

#[target_feature(enable = "avx512f")]
fn tiles(
    (m, n, k): (usize, usize, usize),
    alpha: f32,
    a: Strided<'_>,
    (b, b_rs, _): Strided<'_>,
    beta: f32,
    (c, c_rs, _): StridedMut<'_>,
) -> bool {
    for j in (0..n).step_by(ACROSS * LANES) {
        let width = (n - j).min(ACROSS * LANES);
        for i in (0..m).step_by(ROWS) {
            let a = (&a.0[i * a.1..], a.1, a.2);
            let (b, c) = ((&b[j..], b_rs), (&mut c[i * c_rs + j..], c_rs));
            macro_rules! tile_of {
                ($($rows:literal)*) => {
                    match ((m - i).min(ROWS), width.div_ceil(LANES)) {
                        // SAFETY: the rows and columns of the tile are within the matrices, by the assertions of `Real::gemm`.
                        $(($rows, 1) => unsafe { tile::<$rows, 1>(width, k, alpha, a, b, beta, c) },
                        // SAFETY: as above.
                        ($rows, 2) => unsafe { tile::<$rows, 2>(width, k, alpha, a, b, beta, c) },
                        // SAFETY: as above.
                        ($rows, 3) => unsafe { tile::<$rows, 3>(width, k, alpha, a, b, beta, c) },
                        // SAFETY: as above.
                        ($rows, ACROSS) => unsafe { tile::<$rows, 4>(width, k, alpha, a, b, beta, c) },)*
                        _ => unreachable!("at most {ROWS} rows and {ACROSS} registers"),
                    }
                };
            }
            tile_of!(1 2 3 4 5 6);
        }
    }
    true
}

/// R rows and `width` columns of the product, in V registers.
///
/// # Safety
/// `a` has R rows and k columns, `b` k rows and `c` R rows of `width` columns.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn tile<const R: usize, const V: usize>(
    width: usize,
    k: usize,
    alpha: f32,
    (a, a_rs, a_cs): Strided<'_>,
    (b, b_rs): (&[f32], usize),
    beta: f32,
    (c, c_rs): (&mut [f32], usize),
) {
    let mask: [__mmask16; V] = std::array::from_fn(|v| {
        let here = width.saturating_sub(LANES * v).min(LANES);
        ((1u32 << here) - 1) as __mmask16
    });
    let mut sums = [[_mm512_setzero_ps(); V]; R];
    for p in 0..k {
        let row = b.as_ptr().wrapping_add(p * b_rs);
        // SAFETY: what is masked out is not read; the rest is within the row.
        let y: [__m512; V] = std::array::from_fn(|v| unsafe {
            _mm512_maskz_loadu_ps(mask[v], row.wrapping_add(LANES * v))
        });
        for (r, sums) in sums.iter_mut().enumerate() {
            // SAFETY: row r < R and column p < k of `a`.
            let x = _mm512_set1_ps(unsafe { *a.as_ptr().add(r * a_rs + p * a_cs) });
            for (sum, y) in sums.iter_mut().zip(y) {
                *sum = _mm512_fmadd_ps(x, y, *sum);
            }
        }
    }
    let alpha = _mm512_set1_ps(alpha);
    for (r, sums) in sums.into_iter().enumerate() {
        let row = c.as_mut_ptr().wrapping_add(r * c_rs);
        for (v, sum) in sums.into_iter().enumerate() {
            let to = row.wrapping_add(LANES * v);
            // SAFETY: what is masked out is neither read nor written; the rest is within row r < R of `c`.
            unsafe {
                let x = match beta == 0.0 {
                    true => _mm512_mul_ps(alpha, sum),
                    false => _mm512_fmadd_ps(sum, alpha, _mm512_maskz_loadu_ps(mask[v], to)),
                };
                _mm512_mask_storeu_ps(to, mask[v], x);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::mix;

    fn by_gemm(
        (m, n, k): (usize, usize, usize),
        alpha: f32,
        a: Strided<'_>,
        b: Strided<'_>,
        beta: f32,
        c: &mut [f32],
    ) {
        let ((a, a_rs, a_cs), (b, b_rs, b_cs)) = (a, b);
        let strides = [n, a_rs, a_cs, b_rs, b_cs].map(|s| s as isize);
        let [c_rs, a_rs, a_cs, b_rs, b_cs] = strides;
        assert!(a.len() == m * k && b.len() == k * n && c.len() == m * n);
        let (c, a, b) = (c.as_mut_ptr(), a.as_ptr(), b.as_ptr());
        // SAFETY: whole matrices, by the assertion.
        unsafe {
            let threads = gemm::Parallelism::None;
            gemm::gemm(
                m,
                n,
                k,
                c,
                1,
                c_rs,
                beta != 0.0,
                a,
                a_cs,
                a_rs,
                b,
                b_cs,
                b_rs,
                beta,
                alpha,
                false,
                false,
                false,
                threads,
            );
        }
    }

    #[test]
    fn the_same_bits_as_gemm() {
        for (m, n, k) in
            [(10, 100, 64), (64, 100, 10), (2, 2, 3), (7, 33, 5), (13, 16, 256), (31, 47, 100)]
        {
            let reals = |seed: usize, len: usize| -> Vec<f32> {
                (0..len).map(|i| mix((seed << 32 | i) as u64) as f32 / 2f32.powi(64) - 0.4).collect()
            };
            let (a, b, c) = (reals(1, m * k), reals(2, k * n), reals(3, m * n));
            for (a_rs, a_cs) in [(k, 1), (1, m)] {
                for beta in [0.0, 1.0] {
                    let mut want = c.clone();
                    by_gemm((m, n, k), 0.1, (&a, a_rs, a_cs), (&b, n, 1), beta, &mut want);
                    for isa in Isa::all() {
                        let (a, mut got) = ((&a[..], a_rs, a_cs), c.clone());
                        if product(isa, (m, n, k), 0.1, a, (&b, n, 1), beta, (&mut got, n, 1)) {
                            assert_eq!(got, want, "{m}×{k} by {k}×{n}, β = {beta}");
                        }
                    }
                }
            }
        }
    }
}
