//! The same arithmetic in AVX2 and AVX-512 intrinsics.

use super::*;
use std::arch::x86_64::*;

/// AVX2: two vectors of 16 units.
pub(crate) struct Avx2;

// SAFETY of all calls below: the features are present by the caller's promise.
impl Decide for Avx2 {
    type Logits = (__m256i, __m256i);

    #[inline(always)]
    unsafe fn load(x: &Logits) -> (__m256i, __m256i) {
        // SAFETY: see above.
        unsafe { load_256(x) }
    }
    #[inline(always)]
    unsafe fn store(x: (__m256i, __m256i)) -> Logits {
        // SAFETY: registers and array have the same 64 bytes.
        unsafe { std::mem::transmute(x) }
    }
    #[inline(always)]
    unsafe fn round(y: &[f32; 32]) -> (__m256i, __m256i) {
        // SAFETY: see above.
        unsafe { round_256(y) }
    }
    #[inline(always)]
    unsafe fn decide(x: (__m256i, __m256i), r: &Random) -> (u32, u32) {
        // SAFETY: see above.
        unsafe { decide_256(x, r) }
    }
    #[inline(always)]
    unsafe fn levels(x: (__m256i, __m256i), dither: &Random, totals: &mut Totals) -> [u8; 32] {
        // SAFETY: see above.
        unsafe { levels_256(x, dither, totals) }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_256(x: &Logits) -> (__m256i, __m256i) {
    let p = x.as_ptr().cast::<__m256i>();
    // SAFETY: two unaligned loads of 32 bytes each from an array of 64.
    unsafe { (_mm256_loadu_si256(p), _mm256_loadu_si256(p.add(1))) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn decide_256((x0, x1): (__m256i, __m256i), r: &Random) -> (u32, u32) {
    let p = r.as_ptr().cast::<__m256i>();
    // SAFETY: two unaligned loads of 32 bytes each from an array of 64.
    let (r0, r1) = unsafe { (_mm256_loadu_si256(p), _mm256_loadu_si256(p.add(1))) };
    let (d0, d1) = (margin_256(x0, r0), margin_256(x1, r1));
    let value = signs(_mm256_xor_si256(x0, d0), _mm256_xor_si256(x1, d1));
    let limit = _mm256_set1_epi16(UNDECIDED + 1);
    let (a0, a1) = (_mm256_abs_epi16(d0), _mm256_abs_epi16(d1));
    let nearest = _mm256_min_epi16(a0, a1);
    let undecided = if _mm256_movemask_epi8(_mm256_cmpgt_epi16(limit, nearest)) == 0 {
        0
    } else {
        signs(_mm256_cmpgt_epi16(limit, a0), _mm256_cmpgt_epi16(limit, a1))
    };
    (value, undecided)
}

/// The sign bits of 32 lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn signs(a: __m256i, b: __m256i) -> u32 {
    let packed = _mm256_permute4x64_epi64(_mm256_packs_epi16(a, b), 0b11_01_10_00);
    _mm256_movemask_epi8(packed) as u32
}

/// High half of the unsigned product. In assembly because the compiler otherwise takes the chain of
/// multiplications by constants apart into 32-bit ones, at twice the time.
#[inline]
#[target_feature(enable = "avx2")]
fn high_256(a: __m256i, b: __m256i) -> __m256i {
    let product: __m256i;
    // SAFETY: one register-to-register instruction of AVX2.
    unsafe {
        std::arch::asm!("vpmulhuw {0}, {1}, {2}", out(ymm_reg) product, in(ymm_reg) a, in(ymm_reg) b,
            options(pure, nomem, nostack, preserves_flags));
    }
    product
}

#[inline]
#[target_feature(enable = "avx2")]
fn margin_256(x: __m256i, r: __m256i) -> __m256i {
    let less_likely = high_256(exponential_256(x), _mm256_xor_si256(r, _mm256_set1_epi16(-1)));
    _mm256_sub_epi16(less_likely, _mm256_srli_epi16(r, 1))
}

#[inline]
#[target_feature(enable = "avx2")]
fn exponential_256(x: __m256i) -> __m256i {
    let all = |c: u16| _mm256_set1_epi16(c as i16);
    let a = _mm256_abs_epi16(x);
    let y = _mm256_add_epi16(a, high_256(a, all(LOG2_E)));
    let (n, f) = (_mm256_srli_epi16(y, 11), _mm256_slli_epi16(y, 5));
    // 2^(15−n) in both bytes of a lane by one byte shuffle: a table index of 0x80 or more gives 0.
    let powers =
        _mm256_broadcastsi128_si256(_mm_set_epi8(1, 2, 4, 8, 16, 32, 64, -128, 0, 0, 0, 0, 0, 0, 0, 0));
    let twice = _mm256_or_si256(n, _mm256_slli_epi16(n, 8));
    let power = _mm256_shuffle_epi8(powers, _mm256_add_epi8(twice, all(0x7870)));
    let cubic = high_256(f, all(C3));
    let cubic = high_256(f, _mm256_sub_epi16(all(C2), cubic));
    let cubic = high_256(f, _mm256_sub_epi16(all(C1), cubic));
    high_256(_mm256_sub_epi16(all(ONE), cubic), power)
}

#[inline]
#[target_feature(enable = "avx2")]
fn probability_256(x: __m256i) -> __m256i {
    let e = _mm256_slli_epi16(exponential_256(x), 1);
    let mut g = _mm256_set1_epi16(G[4] as i16);
    for c in [G[3], G[2], G[1], G[0]] {
        g = _mm256_sub_epi16(_mm256_set1_epi16(c as i16), high_256(e, g));
    }
    let likely = _mm256_cmpgt_epi16(x, _mm256_set1_epi16(-1));
    _mm256_xor_si256(high_256(e, g), likely)
}

#[inline]
#[target_feature(enable = "avx2")]
fn levels_256((x0, x1): (__m256i, __m256i), dither: &Random, totals: &mut Totals) -> [u8; 32] {
    let levels = _mm256_set1_epi16(LEVELS as i16);
    let half = |x: __m256i, h: usize, totals: &mut Totals| {
        let p = probability_256(x);
        let (total, dither) = (totals[16 * h..].as_mut_ptr(), dither[16 * h..].as_ptr());
        // SAFETY: sixteen of the 32 totals and of the 32 dithers, h < 2.
        let dither = unsafe {
            for (i, p) in [_mm256_castsi256_si128(p), _mm256_extracti128_si256(p, 1)].iter().enumerate()
            {
                let at = total.add(8 * i).cast::<__m256i>();
                _mm256_storeu_si256(
                    at,
                    _mm256_add_epi32(_mm256_loadu_si256(at), _mm256_cvtepu16_epi32(*p)),
                );
            }
            _mm256_loadu_si256(dither.cast())
        };
        // A sum that wraps differs from the saturated one.
        let fraction = _mm256_mullo_epi16(p, levels);
        let whole =
            _mm256_cmpeq_epi16(_mm256_adds_epu16(fraction, dither), _mm256_add_epi16(fraction, dither));
        let up = _mm256_andnot_si256(whole, _mm256_set1_epi16(1));
        _mm256_add_epi16(high_256(p, levels), up)
    };
    let packed = _mm256_packus_epi16(half(x0, 0, totals), half(x1, 1, totals));
    let mut out = [0; 32];
    // SAFETY: 32 bytes.
    unsafe {
        _mm256_storeu_si256(out.as_mut_ptr().cast(), _mm256_permute4x64_epi64(packed, 0b11_01_10_00))
    };
    out
}

#[inline]
#[target_feature(enable = "avx2")]
fn round_256(y: &[f32; 32]) -> (__m256i, __m256i) {
    let eight = |i: usize| {
        // SAFETY: an unaligned load of eight of the 32 elements, i < 4.
        let y = unsafe { _mm256_loadu_ps(y.as_ptr().add(8 * i)) };
        let y = _mm256_min_ps(y, _mm256_set1_ps(LIMIT));
        _mm256_cvtps_epi32(_mm256_max_ps(y, _mm256_set1_ps(-LIMIT)))
    };
    let pack = |a, b| _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0b11_01_10_00);
    (pack(eight(0), eight(1)), pack(eight(2), eight(3)))
}

/// AVX-512: one vector of 32 units.
pub(crate) struct Avx512;

// SAFETY of all calls below: the features are present by the caller's promise.
impl Decide for Avx512 {
    type Logits = __m512i;

    #[inline(always)]
    unsafe fn load(x: &Logits) -> __m512i {
        // SAFETY: see above.
        unsafe { load_512(x) }
    }
    #[inline(always)]
    unsafe fn store(x: __m512i) -> Logits {
        // SAFETY: registers and array have the same 64 bytes.
        unsafe { std::mem::transmute(x) }
    }
    #[inline(always)]
    unsafe fn round(y: &[f32; 32]) -> __m512i {
        // SAFETY: see above.
        unsafe { round_512(y) }
    }
    #[inline(always)]
    unsafe fn decide(x: __m512i, r: &Random) -> (u32, u32) {
        // SAFETY: see above.
        unsafe { decide_512(x, r) }
    }
    #[inline(always)]
    unsafe fn levels(x: __m512i, dither: &Random, totals: &mut Totals) -> [u8; 32] {
        // SAFETY: see above.
        unsafe { levels_512(x, dither, totals) }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load_512(x: &Logits) -> __m512i {
    // SAFETY: an unaligned load of the whole array.
    unsafe { _mm512_loadu_si512(x.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn decide_512(x: __m512i, r: &Random) -> (u32, u32) {
    // SAFETY: an unaligned load of the whole array.
    let r = unsafe { _mm512_loadu_si512(r.as_ptr().cast()) };
    let less_likely = high_512(exponential_512(x), _mm512_xor_si512(r, _mm512_set1_epi16(-1)));
    let d = _mm512_sub_epi16(less_likely, _mm512_srli_epi16(r, 1));
    let undecided = _mm512_cmple_epi16_mask(_mm512_abs_epi16(d), _mm512_set1_epi16(UNDECIDED));
    (_mm512_movepi16_mask(_mm512_xor_si512(x, d)), undecided)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn exponential_512(x: __m512i) -> __m512i {
    let all = |c: u16| _mm512_set1_epi16(c as i16);
    let a = _mm512_abs_epi16(x);
    let y = _mm512_add_epi16(a, high_512(a, all(LOG2_E)));
    let (n, f) = (_mm512_srli_epi16(y, 11), _mm512_slli_epi16(y, 5));
    let power = _mm512_srlv_epi16(all(0x8000), n);
    let cubic = high_512(f, all(C3));
    let cubic = high_512(f, _mm512_sub_epi16(all(C2), cubic));
    let cubic = high_512(f, _mm512_sub_epi16(all(C1), cubic));
    high_512(_mm512_sub_epi16(all(ONE), cubic), power)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn levels_512(x: __m512i, dither: &Random, totals: &mut Totals) -> [u8; 32] {
    let e = _mm512_slli_epi16(exponential_512(x), 1);
    let mut g = _mm512_set1_epi16(G[4] as i16);
    for c in [G[3], G[2], G[1], G[0]] {
        g = _mm512_sub_epi16(_mm512_set1_epi16(c as i16), high_512(e, g));
    }
    let less_likely = high_512(e, g);
    let likely = !_mm512_movepi16_mask(x);
    let p = _mm512_mask_sub_epi16(less_likely, likely, _mm512_set1_epi16(-1), less_likely);
    let totals = totals.as_mut_ptr();
    // SAFETY: the 32 totals in two halves, and the 32 dithers.
    let dither = unsafe {
        for (i, p) in [_mm512_castsi512_si256(p), _mm512_extracti64x4_epi64(p, 1)].iter().enumerate() {
            let at = totals.add(16 * i).cast();
            _mm512_storeu_si512(at, _mm512_add_epi32(_mm512_loadu_si512(at), _mm512_cvtepu16_epi32(*p)));
        }
        _mm512_loadu_si512(dither.as_ptr().cast())
    };
    let levels = _mm512_set1_epi16(LEVELS as i16);
    // A sum that wraps is below either of its terms.
    let wraps = _mm512_cmplt_epu16_mask(_mm512_add_epi16(_mm512_mullo_epi16(p, levels), dither), dither);
    let level = high_512(p, levels);
    let level = _mm512_mask_add_epi16(level, wraps, level, _mm512_set1_epi16(1));
    let mut out = [0; 32];
    // SAFETY: 32 bytes.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), _mm512_cvtepi16_epi8(level)) };
    out
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn round_512(y: &[f32; 32]) -> __m512i {
    let sixteen = |i: usize| {
        // SAFETY: an unaligned load of sixteen of the 32 elements, i < 2.
        let y = unsafe { _mm512_loadu_ps(y.as_ptr().add(16 * i)) };
        let y = _mm512_min_ps(y, _mm512_set1_ps(LIMIT));
        let y = _mm512_cvtps_epi32(_mm512_max_ps(y, _mm512_set1_ps(-LIMIT)));
        _mm512_cvtepi32_epi16(y)
    };
    _mm512_inserti64x4(_mm512_castsi256_si512(sixteen(0)), sixteen(1), 1)
}

/// As `high_256`, for 32 lanes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn high_512(a: __m512i, b: __m512i) -> __m512i {
    let product: __m512i;
    // SAFETY: one register-to-register instruction of AVX-512 BW.
    unsafe {
        std::arch::asm!("vpmulhuw {0}, {1}, {2}", out(zmm_reg) product, in(zmm_reg) a, in(zmm_reg) b,
            options(pure, nomem, nostack, preserves_flags));
    }
    product
}
