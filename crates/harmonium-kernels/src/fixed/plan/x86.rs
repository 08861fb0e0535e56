//! Rounding with the sums in registers: the compiler would keep them in memory.

use super::{LARGEST, MAGIC, Rounded, TILE, TilePair, TileSums};
use crate::fixed::transpose::transpose_16x16;
use crate::strip::Singles;
use crate::x32::{F32x32, I16x32, WIDTH};
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

    /// Rounds and adds sixteen weights, and stores them in a half of `out`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn round(&mut self, w: __m512, scale: __m512, half: usize, out: &mut I16x32) {
        let stored = self.add(w, scale);
        // SAFETY: sixteen of 32 columns, half < 2.
        unsafe {
            let to = out.0.as_mut_ptr().add(16 * half).cast();
            _mm256_storeu_si256(to, _mm512_cvtepi32_epi16(stored));
        }
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

/// As `super::round_both_ways`. Weights are read where they are, twice; no tile is made of them.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn round_both_ways(
    rows: Singles<'_>,
    scale: f32,
    (ahead, sums_ahead): Rounded<'_>,
    (back, sums_back): Rounded<'_>,
    _: &mut TilePair,
) {
    assert!(rows.len() <= TILE && rows.width() <= WIDTH);
    assert!(ahead.len() == rows.len() && back.len() == rows.width());
    let scale = _mm512_set1_ps(scale);
    // Of each half of the columns, the ones that the rows have.
    let mask = [0, 1].map(|half| ((1u32 << rows.width().saturating_sub(16 * half).min(16)) - 1) as u16);
    for (half, mask) in mask.into_iter().enumerate() {
        let mut sums = HalfTileSums::new();
        for (r, out) in ahead.iter_mut().enumerate() {
            // SAFETY: row r < `rows.len()`, of which only what there is is read.
            let w = unsafe { _mm512_maskz_loadu_ps(mask, rows.start_of(r, 16 * half)) };
            sums.round(w, scale, half, out);
        }
        sums.store(half, sums_ahead);
    }
    for half in 0..2 {
        let mut sums = HalfTileSums::new();
        for ((j, back), mask) in back.chunks_mut(16).enumerate().zip(mask) {
            let mut square = [_mm512_setzero_si512(); 16];
            for (r, x) in square.iter_mut().enumerate() {
                let r = 16 * half + r;
                let mask = if r < rows.len() { mask } else { 0 };
                // SAFETY: nothing is read of a row that is not there, and of the others only what there is.
                *x = unsafe { _mm512_maskz_loadu_epi32(mask, rows.start_of(r, 16 * j).cast()) };
            }
            let columns = transpose_16x16(square);
            for (out, &x) in back.iter_mut().zip(&columns) {
                sums.round(_mm512_castsi512_ps(x), scale, half, out);
            }
        }
        sums.store(half, sums_back);
    }
    (sums_ahead.sites, sums_back.sites) = (ahead.len() as f32, back.len() as f32);
}
