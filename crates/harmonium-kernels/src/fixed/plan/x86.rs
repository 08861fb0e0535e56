//! Rounding with the sums in registers: the compiler would keep them in memory.

use super::{LARGEST, MAGIC, TILE, TileSums};
use crate::fixed::transpose::transpose_16x16;
use crate::x32::{F32x32, I16x32};
use std::arch::x86_64::*;

/// Sixteen weights, rounded, and what they add to the sums so far: the operations of `super::round_tile`.
///
/// The scale being a power of two, a multiplication with it is exact, so that x may be added by a fused multiplication: half of
/// the additions then go to the multipliers, which have nothing else to do.
struct HalfTileSums {
    sum: __m512,
    size: __m512,
    total: __m512,
    error: __m512,
}

impl HalfTileSums {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new() -> Self {
        let zero = _mm512_setzero_ps();
        Self { sum: zero, size: zero, total: zero, error: zero }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn add(&mut self, w: __m512, scale: __m512) -> __m512i {
        let x = _mm512_mul_ps(w, scale);
        let magic = _mm512_set1_ps(MAGIC);
        let (largest, least) = (_mm512_set1_ps(LARGEST), _mm512_set1_ps(-LARGEST));
        // Of these the second operand stays where a weight is NaN, as in `rounded`.
        let y = _mm512_add_ps(_mm512_max_ps(least, _mm512_min_ps(largest, x)), magic);
        let stored = _mm512_castps_si512(y);
        let y = _mm512_sub_ps(y, magic);
        self.sum = _mm512_fmadd_ps(w, scale, self.sum);
        self.size = _mm512_fmadd_ps(_mm512_abs_ps(w), scale, self.size);
        self.total = _mm512_add_ps(self.total, y);
        self.error = _mm512_add_ps(self.error, _mm512_abs_ps(_mm512_fmsub_ps(w, scale, y)));
        stored
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn store(&self, half: usize, to: &mut TileSums) {
        for (to, x) in [
            (&mut to.sum, self.sum),
            (&mut to.size, self.size),
            (&mut to.total, self.total),
            (&mut to.error, self.error),
        ] {
            // SAFETY: sixteen of 32 columns, half < 2.
            unsafe { _mm512_storeu_ps(to.0.as_mut_ptr().add(16 * half), x) };
        }
    }
}

#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn round_tile(w: &[F32x32; TILE], scale: f32, out: &mut [I16x32], units: &mut TileSums) {
    let scale = _mm512_set1_ps(scale);
    let (mut left, mut right) = (HalfTileSums::new(), HalfTileSums::new());
    // The low halves of 32 numbers, in order.
    let narrow: [i16; 32] = std::array::from_fn(|c| 2 * c as i16);
    // SAFETY: 64 bytes.
    let narrow = unsafe { _mm512_loadu_si512(narrow.as_ptr().cast()) };
    for (w, out) in w.iter().zip(out.iter_mut()) {
        // SAFETY: the two halves of 32 columns, and a row of 64 bytes.
        unsafe {
            let a = left.add(_mm512_loadu_ps(w.0.as_ptr()), scale);
            let b = right.add(_mm512_loadu_ps(w.0.as_ptr().add(16)), scale);
            let stored = _mm512_permutex2var_epi16(a, narrow, b);
            _mm512_storeu_si512(out.0.as_mut_ptr().cast(), stored);
        }
    }
    left.store(0, units);
    right.store(1, units);
    units.sites = out.len() as f32;
}

/// As `super::load_tile`.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn load_tile(rows: &[&[f32]], tile: &mut [F32x32; TILE]) {
    for (i, to) in tile.iter_mut().enumerate() {
        let row = rows.get(i).copied().unwrap_or_default();
        for half in 0..2 {
            let here = row.len().saturating_sub(16 * half).min(16);
            let mask = ((1u32 << here) - 1) as u16;
            // SAFETY: only the `here` weights that the row has are read, and sixteen of 32 columns written.
            unsafe {
                let x = _mm512_maskz_loadu_ps(mask, row.as_ptr().wrapping_add(16 * half));
                _mm512_storeu_ps(to.0.as_mut_ptr().add(16 * half), x);
            }
        }
    }
}

/// As `super::transpose_tile`.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn transpose_tile(from: &[F32x32; TILE], to: &mut [F32x32; TILE]) {
    for i in [0, 16] {
        for j in [0, 16] {
            // SAFETY: sixteen of 32 columns.
            let square = std::array::from_fn(|r| unsafe {
                _mm512_loadu_si512(from[i + r].0.as_ptr().add(j).cast())
            });
            for (to, x) in to[j..j + 16].iter_mut().zip(transpose_16x16(square)) {
                // SAFETY: as above.
                unsafe { _mm512_storeu_si512(to.0.as_mut_ptr().add(i).cast(), x) };
            }
        }
    }
}
