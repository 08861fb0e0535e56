//! Transposes of small squares of 32-bit numbers in registers.

#[cfg(all(target_arch = "x86_64", not(miri)))]
use std::arch::x86_64::__m512i;

/// The transpose of the 4 × 4 square with these rows.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub(super) fn transpose_4x4(a: &[f32; 4], b: &[f32; 4], c: &[f32; 4], d: &[f32; 4]) -> [[f32; 4]; 4] {
    use std::arch::x86_64::*;
    let mut out = [[0.0; 4]; 4];
    // SAFETY: SSE is part of x86-64; the unaligned loads and stores cover four elements each.
    unsafe {
        let (a, b) = (_mm_loadu_ps(a.as_ptr()), _mm_loadu_ps(b.as_ptr()));
        let (c, d) = (_mm_loadu_ps(c.as_ptr()), _mm_loadu_ps(d.as_ptr()));
        let (ab, cd) = (_mm_unpacklo_ps(a, b), _mm_unpacklo_ps(c, d));
        let (ef, gh) = (_mm_unpackhi_ps(a, b), _mm_unpackhi_ps(c, d));
        _mm_storeu_ps(out[0].as_mut_ptr(), _mm_movelh_ps(ab, cd));
        _mm_storeu_ps(out[1].as_mut_ptr(), _mm_movehl_ps(cd, ab));
        _mm_storeu_ps(out[2].as_mut_ptr(), _mm_movelh_ps(ef, gh));
        _mm_storeu_ps(out[3].as_mut_ptr(), _mm_movehl_ps(gh, ef));
    }
    out
}

/// The transpose of the 4 × 4 square with these rows.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline(always)]
pub(super) fn transpose_4x4(a: &[f32; 4], b: &[f32; 4], c: &[f32; 4], d: &[f32; 4]) -> [[f32; 4]; 4] {
    std::array::from_fn(|i| [a[i], b[i], c[i], d[i]])
}

/// The transpose of 16 × 16 numbers of 32 bits: pairs, fours, then the four quarters of a register.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn transpose_16x16(x: [__m512i; 16]) -> [__m512i; 16] {
    use std::arch::x86_64::*;
    let (mut t, mut u, mut out) = (x, x, x);
    for i in (0..16).step_by(2) {
        t[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
    }
    for i in (0..16).step_by(4) {
        u[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        u[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        u[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        u[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    // Quarter q of u[4p + c] holds column 4q + c of rows 4p…4p+3.
    const EVEN: i32 = 0b10_00_10_00;
    const ODD: i32 = 0b11_01_11_01;
    for c in 0..4 {
        let (a, b) = (
            _mm512_shuffle_i32x4(u[c], u[4 + c], EVEN),
            _mm512_shuffle_i32x4(u[8 + c], u[12 + c], EVEN),
        );
        out[c] = _mm512_shuffle_i32x4(a, b, EVEN);
        out[8 + c] = _mm512_shuffle_i32x4(a, b, ODD);
        let (a, b) =
            (_mm512_shuffle_i32x4(u[c], u[4 + c], ODD), _mm512_shuffle_i32x4(u[8 + c], u[12 + c], ODD));
        out[4 + c] = _mm512_shuffle_i32x4(a, b, EVEN);
        out[12 + c] = _mm512_shuffle_i32x4(a, b, ODD);
    }
    out
}
