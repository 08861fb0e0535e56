//! Rounding with the sums in registers: the compiler would keep them in memory.

use super::{Columns, Extremes, LARGEST, MAGIC, TILE, Units, ZERO};
use crate::fixed::vector::Row;
use std::arch::x86_64::*;

/// As `Units::round_plain`, with the same operations in the same order.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn round(steps: &[Columns; TILE], out: &mut [Row]) -> Units {
    let mut units = Units {
        sums: Extremes { high: ZERO, low: ZERO },
        error: Extremes { high: ZERO, low: ZERO },
        total: ZERO,
        sites: out.len() as f32,
    };
    let (zero, magic) = (_mm512_setzero_ps(), _mm512_set1_ps(MAGIC));
    let (largest, least) = (_mm512_set1_ps(LARGEST), _mm512_set1_ps(-LARGEST));
    for half in [0, 16] {
        let (mut high, mut low, mut above, mut below, mut total) = (zero, zero, zero, zero, zero);
        for (x, out) in steps.iter().zip(out.iter_mut()) {
            // SAFETY: sixteen of 32 columns.
            let x = unsafe { _mm512_loadu_ps(x.0.as_ptr().add(half)) };
            // Of these the second operand stays where a weight is NaN, as in `rounded`.
            let y = _mm512_max_ps(least, _mm512_min_ps(largest, x));
            let y = _mm512_add_ps(y, magic);
            let stored = _mm512_cvtepi32_epi16(_mm512_castps_si512(y));
            // SAFETY: sixteen of 32 columns.
            unsafe { _mm256_storeu_si256(out.0.as_mut_ptr().add(half).cast(), stored) };
            let y = _mm512_sub_ps(y, magic);
            let e = _mm512_sub_ps(x, y);
            high = _mm512_add_ps(high, _mm512_max_ps(x, zero));
            low = _mm512_add_ps(low, _mm512_min_ps(x, zero));
            above = _mm512_add_ps(above, _mm512_max_ps(e, zero));
            below = _mm512_add_ps(below, _mm512_min_ps(e, zero));
            total = _mm512_add_ps(total, y);
        }
        let Units { sums, error, total: totals, .. } = &mut units;
        for (to, x) in [
            (&mut sums.high, high),
            (&mut sums.low, low),
            (&mut error.high, above),
            (&mut error.low, below),
            (totals, total),
        ] {
            // SAFETY: sixteen of 32 columns.
            unsafe { _mm512_storeu_ps(to.0.as_mut_ptr().add(half), x) };
        }
    }
    units
}

/// A square on its side.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn turn(from: &[Columns; TILE], to: &mut [Columns; TILE]) {
    for i in [0, 16] {
        for j in [0, 16] {
            // SAFETY: sixteen of 32 columns.
            let square = std::array::from_fn(|r| unsafe {
                _mm512_loadu_si512(from[i + r].0.as_ptr().add(j).cast())
            });
            for (to, x) in to[j..j + 16].iter_mut().zip(crate::fixed::bytes::turned_32(square)) {
                // SAFETY: as above.
                unsafe { _mm512_storeu_si512(to.0.as_mut_ptr().add(i).cast(), x) };
            }
        }
    }
}
