//! The 16-bit decision of a Bernoulli draw: 32 units at a time, with a mark on the few it leaves open.
//!
//! A unit with logit x ∈ 2^-11·ℤ (16 bits) takes its less likely value when u < σ(−|x|), which is
//! u < e^{−|x|}(1−u). Both sides are computed in units of 2^-15 from the first 16 bits r of u:
//! e^{−|x|} = 2^{−n}·2^{−f} with a cubic for 2^{−f}. Their difference d is at most [`OPEN`] away from zero
//! on every unit whose decision could depend on the rounding of x to 2^-11, on the approximation or on the
//! bits of u beyond r; those units are decided in f64 with 52 more bits. A test walks through all 2^16
//! logits and shows that no decided unit is decided wrongly.

/// Logits of 32 units in steps of 2^-11.
pub(crate) type Logits = [i16; 32];
/// The leading 16 random bits of 32 units.
pub(crate) type Random = [u16; 32];

/// Sums of 2^16·σ over some rows.
pub(crate) type Totals = [u32; 32];

/// Units with |d| ≤ `OPEN` are left open: about 4 in 10 000.
pub(crate) const OPEN: i16 = 8;

// 2^-f = 1 − f(C1 − f(C2 − f·C3)) in 16-bit fractions; the coefficients and the offset that centres the
// rounding of the chain of multiplications were fitted so that the exhaustive test passes.
const LOG2_E: u16 = 29013; // log2(e) − 1 in 2^-16
const C1: u16 = 45330;
const C2: u16 = 15200;
const C3: u16 = 2632;
const ONE: u16 = 65524;

/// High half of a product.
#[inline(always)]
fn high(a: u16, b: u16) -> u16 {
    ((u32::from(a) * u32::from(b)) >> 16) as u16
}

/// 2^15·e^{−|x|}.
#[inline(always)]
fn exponential(x: i16) -> u16 {
    let a = x.unsigned_abs();
    let y = a.wrapping_add(high(a, LOG2_E));
    let (n, f) = (y >> 11, y << 5);
    let cubic = high(f, C1.wrapping_sub(high(f, C2.wrapping_sub(high(f, C3)))));
    // n ≤ 23: the shift of a 32-bit word never overflows and gives 0 beyond 15.
    high(ONE.wrapping_sub(cubic), (0x8000_u32 >> n) as u16)
}

/// d of one unit: positive for the less likely value.
#[inline(always)]
pub(crate) fn margin(x: i16, r: u16) -> i16 {
    (high(exponential(x), !r) as i16).wrapping_sub((r >> 1) as i16)
}

// 1/(1+e) = G0 − e(G1 − e(G2 − e(G3 − e·G4))) in 16-bit fractions, fitted so that σ is within 10⁻⁴ everywhere.
const G: [u16; 5] = [65388, 63176, 52392, 29543, 7711];

/// 2^16·σ(x), to 10⁻⁴ of 2^16.
#[inline(always)]
fn probability(x: i16) -> u16 {
    let e = exponential(x) << 1;
    let g = G[..4].iter().rfold(G[4], |g, &c| c.wrapping_sub(high(e, g)));
    // σ(−|x|), and all its bits turned over is 1 − it.
    let less_likely = high(e, g);
    less_likely ^ !(x >> 15) as u16
}

/// The level 0…63 of a probability: level + 1 instead of level as often as a uniform `dither` says, without bias.
#[inline(always)]
pub(crate) fn level(p: u16, dither: u16) -> u8 {
    let carry = p.wrapping_mul(LEVELS).overflowing_add(dither).1;
    high(p, LEVELS) as u8 + u8::from(carry)
}

/// Levels between the two values of a unit.
pub(crate) const LEVELS: u16 = 63;

/// The least and the largest 2^16·σ(−|x|) over the true logits that round to `x` (with 0.01 for the rounding of
/// f32): below the first r is certain to mean the less likely value, above the second the other one.
pub(crate) fn thresholds(x: i16) -> (f64, f64) {
    let a = f64::from(x).abs();
    let at = |a: f64| 65536.0 / (1.0 + libm::exp(a / 2048.0));
    let saturated = x == i16::MIN || x.abs() == 32767;
    (if saturated { 0.0 } else { at(a + 0.51) }, at(a - 0.51))
}

/// How 32 units are decided on some instruction set.
///
/// # Safety
/// Every method needs the instruction set to be present.
pub(crate) trait Decide {
    /// The logits of 32 units in registers.
    type Logits: Copy;

    /// From memory.
    unsafe fn load(x: &Logits) -> Self::Logits;
    /// To memory.
    unsafe fn store(x: Self::Logits) -> Logits;
    /// The nearest integers (ties to even), saturated at ±32767; NaN gives some value.
    unsafe fn round(y: &[f32; 32]) -> Self::Logits;
    /// (values, open units), bit c for unit c.
    unsafe fn decide(x: Self::Logits, r: &Random) -> (u32, u32);
    /// The levels of the probabilities; adds 2^16 times the probabilities to the totals.
    unsafe fn levels(x: Self::Logits, dither: &Random, totals: &mut Totals) -> [u8; 32];
}

/// Logits saturate here, at ±16 nats; beyond, the further bits of u decide.
const LIMIT: f32 = 32767.0;

/// Plain Rust.
pub(crate) struct Portable;

impl Decide for Portable {
    type Logits = Logits;

    #[inline(always)]
    unsafe fn load(x: &Logits) -> Logits {
        *x
    }
    #[inline(always)]
    unsafe fn store(x: Logits) -> Logits {
        x
    }
    #[inline(always)]
    unsafe fn decide(x: Logits, r: &Random) -> (u32, u32) {
        let (mut value, mut open) = ([0i16; 32], [0i16; 32]);
        for c in 0..32 {
            let d = margin(x[c], r[c]);
            value[c] = x[c] ^ d;
            open[c] = if d.wrapping_abs() <= OPEN { -1 } else { 0 };
        }
        let signs =
            |v: &[i16; 32]| v.iter().enumerate().fold(0, |bits, (c, &v)| bits | u32::from(v < 0) << c);
        (signs(&value), signs(&open))
    }

    #[inline(always)]
    unsafe fn levels(x: Logits, dither: &Random, totals: &mut Totals) -> [u8; 32] {
        let mut out = [0; 32];
        for c in 0..32 {
            let p = probability(x[c]);
            totals[c] += u32::from(p);
            out[c] = level(p, dither[c]);
        }
        out
    }

    #[inline(always)]
    unsafe fn round(y: &[f32; 32]) -> Logits {
        // 1.5·2^23: the sum has its integer part in the low bits, rounded to nearest.
        const MAGIC: f32 = 12_582_912.0;
        let mut out = [0; 32];
        for (out, &y) in out.iter_mut().zip(y) {
            let y = if y > LIMIT { LIMIT } else { y };
            let y = if y < -LIMIT { -LIMIT } else { y };
            *out = (y + MAGIC).to_bits() as i16;
        }
        out
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) mod x86 {
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
        let limit = _mm256_set1_epi16(OPEN + 1);
        let (a0, a1) = (_mm256_abs_epi16(d0), _mm256_abs_epi16(d1));
        let nearest = _mm256_min_epi16(a0, a1);
        let open = if _mm256_movemask_epi8(_mm256_cmpgt_epi16(limit, nearest)) == 0 {
            0
        } else {
            signs(_mm256_cmpgt_epi16(limit, a0), _mm256_cmpgt_epi16(limit, a1))
        };
        (value, open)
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
        let powers = _mm256_broadcastsi128_si256(_mm_set_epi8(
            1, 2, 4, 8, 16, 32, 64, -128, 0, 0, 0, 0, 0, 0, 0, 0,
        ));
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
        let turned = _mm256_cmpgt_epi16(x, _mm256_set1_epi16(-1));
        _mm256_xor_si256(high_256(e, g), turned)
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
                for (i, p) in
                    [_mm256_castsi256_si128(p), _mm256_extracti128_si256(p, 1)].iter().enumerate()
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
            let whole = _mm256_cmpeq_epi16(
                _mm256_adds_epu16(fraction, dither),
                _mm256_add_epi16(fraction, dither),
            );
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
        let open = _mm512_cmple_epi16_mask(_mm512_abs_epi16(d), _mm512_set1_epi16(OPEN));
        (_mm512_movepi16_mask(_mm512_xor_si512(x, d)), open)
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
            for (i, p) in [_mm512_castsi512_si256(p), _mm512_extracti64x4_epi64(p, 1)].iter().enumerate()
            {
                let at = totals.add(16 * i).cast();
                _mm512_storeu_si512(
                    at,
                    _mm512_add_epi32(_mm512_loadu_si512(at), _mm512_cvtepu16_epi32(*p)),
                );
            }
            _mm512_loadu_si512(dither.as_ptr().cast())
        };
        let levels = _mm512_set1_epi16(LEVELS as i16);
        // A sum that wraps is below either of its terms.
        let wraps =
            _mm512_cmplt_epu16_mask(_mm512_add_epi16(_mm512_mullo_epi16(p, levels), dither), dither);
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
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest r in 0..=65535 with `holds(r)`, for a property that holds up to some r only; −1 if none.
    fn last(holds: impl Fn(u16) -> bool) -> i32 {
        let (mut low, mut high) = (-1, 65536);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if holds(middle as u16) { low = middle } else { high = middle }
        }
        low
    }

    /// d never rises with r (both its terms fall), so each logit has one last r that is decided for the less
    /// likely value and one first r that is decided against it; both must be right for every true logit
    /// that rounds to this one (with 0.01 for the rounding of f32), whatever the further bits of u are.
    #[test]
    fn no_decided_unit_is_wrong() {
        let mut open = 0.0;
        for x in i16::MIN..=i16::MAX {
            let (least, most) = thresholds(x);
            let less_likely = last(|r| margin(x, r) > OPEN);
            let likely = last(|r| margin(x, r) >= -OPEN) + 1;
            assert!(f64::from(less_likely + 1) <= least, "x = {x}: r = {less_likely}");
            assert!(f64::from(likely) >= most, "x = {x}: r = {likely}");
            open += f64::from(likely - less_likely - 1) / 65536.0;
        }
        assert!(open / 65536.0 < 3.9e-4, "too many open units: {}", open / 65536.0);
    }

    #[test]
    fn probabilities_are_close() {
        let (mut worst, mut sum) = (0f64, 0.0);
        for x in i16::MIN..=i16::MAX {
            let error =
                f64::from(probability(x)) / 65536.0 - 1.0 / (1.0 + (-f64::from(x) / 2048.0).exp());
            worst = worst.max(error.abs());
            sum += error;
        }
        assert!(worst < 1.1e-4 && (sum / 65536.0).abs() < 1e-5, "{worst}, mean {}", sum / 65536.0);
    }

    /// Over all dithers, a level is on average what it stands for.
    #[test]
    fn levels_have_no_bias() {
        for p in [0, 1, 700, 32768, 65535] {
            let sum: u64 = (0..=u16::MAX).map(|d| u64::from(level(p, d))).sum();
            assert_eq!(sum, u64::from(p) * u64::from(LEVELS));
        }
    }

    #[test]
    fn margins_fall_with_r() {
        for x in (i16::MIN..=i16::MAX).step_by(251) {
            assert!((1..=u16::MAX).all(|r| margin(x, r) <= margin(x, r - 1)));
        }
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[test]
    fn every_instruction_set_decides_alike() {
        let mut state = 1u64;
        let mut next = || {
            state = crate::stream::mix(state);
            state
        };
        let names: Vec<_> = crate::Isa::all().iter().map(|i| i.name()).collect();
        for t in 0..200_000 {
            let mut x: Logits = std::array::from_fn(|_| (next() >> 48) as i16 >> (t % 7));
            let mut r: Random = std::array::from_fn(|_| (next() >> 48) as u16);
            (x[3], x[9], r[9]) = (i16::MIN, i16::MAX, 0);
            // SAFETY: the portable version needs nothing; the others are tried where they were detected.
            unsafe {
                let y = x.map(|x| f32::from(x) * 1.25 + 0.5);
                let mut totals = [7; 32];
                let levels = Portable::levels(x, &r, &mut totals);
                let want = (Portable::decide(x, &r), Portable::round(&y), levels, totals);
                if names.contains(&"avx2") {
                    assert_eq!(avx2(&x, &r, &y), want);
                }
                if names.contains(&"avx512") {
                    assert_eq!(avx512(&x, &r, &y), want);
                }
            }
        }
        #[target_feature(enable = "avx2")]
        fn avx2(x: &Logits, r: &Random, y: &[f32; 32]) -> ((u32, u32), Logits, [u8; 32], Totals) {
            // SAFETY: this function has the feature.
            unsafe {
                let (x, y) = (x86::Avx2::load(x), x86::Avx2::round(y));
                let mut totals = [7; 32];
                let levels = x86::Avx2::levels(x, r, &mut totals);
                (x86::Avx2::decide(x, r), x86::Avx2::store(y), levels, totals)
            }
        }
        #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
        fn avx512(x: &Logits, r: &Random, y: &[f32; 32]) -> ((u32, u32), Logits, [u8; 32], Totals) {
            // SAFETY: this function has the features.
            unsafe {
                let (x, y) = (x86::Avx512::load(x), x86::Avx512::round(y));
                let mut totals = [7; 32];
                let levels = x86::Avx512::levels(x, r, &mut totals);
                (x86::Avx512::decide(x, r), x86::Avx512::store(y), levels, totals)
            }
        }
    }
}
