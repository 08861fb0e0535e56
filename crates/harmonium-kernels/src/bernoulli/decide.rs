//! The 16-bit decision of a Bernoulli draw: 32 units at a time, with a mask of the few that it leaves undecided.
//!
//! A unit with logit x ∈ 2^-11·ℤ (16 bits) takes its less likely value when u < σ(−|x|), which is
//! u < e^{−|x|}(1−u). Both sides are computed in units of 2^-15 from the first 16 bits r of u:
//! e^{−|x|} = 2^{−n}·2^{−f} with a cubic for 2^{−f}. Their difference d is at most [`UNDECIDED`] away from zero
//! on every unit whose decision could depend on the rounding of x to 2^-11, on the approximation or on the
//! bits of u beyond r; those units are decided in f64 with 52 more bits. A test walks through all 2^16
//! logits and shows that no decided unit is decided wrongly.

/// Logits of 32 units in steps of 2^-11.
pub(crate) type Logits = [i16; 32];
/// The leading 16 random bits of 32 units.
pub(crate) type Random = [u16; 32];

/// Sums of 2^16·σ over some rows.
pub(crate) type Totals = [u32; 32];

/// Units with |d| ≤ `UNDECIDED` are left undecided: about 4 in 10 000.
pub(crate) const UNDECIDED: i16 = 8;

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

/// Whether 16 bits decide about a unit with this rounded logit.
pub(crate) fn is_decided(x: i16, r: u16) -> bool {
    margin(x, r).wrapping_abs() > UNDECIDED
}

// 1/(1+e) = G0 − e(G1 − e(G2 − e(G3 − e·G4))) in 16-bit fractions, fitted so that σ is within 10⁻⁴ everywhere.
const G: [u16; 5] = [65388, 63176, 52392, 29543, 7711];

/// 2^16·σ(x), to 10⁻⁴ of 2^16.
#[inline(always)]
fn probability(x: i16) -> u16 {
    let e = exponential(x) << 1;
    let g = G[..4].iter().rfold(G[4], |g, &c| c.wrapping_sub(high(e, g)));
    // σ(−|x|); its complement in all bits is 1 − σ(−|x|).
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
    /// (values, undecided units), bit c for unit c.
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
        let (mut value, mut undecided) = ([0i16; 32], [0i16; 32]);
        for c in 0..32 {
            let d = margin(x[c], r[c]);
            value[c] = x[c] ^ d;
            undecided[c] = if d.wrapping_abs() <= UNDECIDED { -1 } else { 0 };
        }
        let signs =
            |v: &[i16; 32]| v.iter().enumerate().fold(0, |bits, (c, &v)| bits | u32::from(v < 0) << c);
        (signs(&value), signs(&undecided))
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
mod x86;
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) use x86::{Avx2, Avx512};

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
        let mut undecided = 0.0;
        for x in i16::MIN..=i16::MAX {
            let (least, most) = thresholds(x);
            let less_likely = last(|r| margin(x, r) > UNDECIDED);
            let likely = last(|r| margin(x, r) >= -UNDECIDED) + 1;
            assert!(f64::from(less_likely + 1) <= least, "x = {x}: r = {less_likely}");
            assert!(f64::from(likely) >= most, "x = {x}: r = {likely}");
            undecided += f64::from(likely - less_likely - 1) / 65536.0;
        }
        assert!(undecided / 65536.0 < 3.9e-4, "too many undecided units: {}", undecided / 65536.0);
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
