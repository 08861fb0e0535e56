//! Branch-free elementary functions, one element at a time, written so that loops over them vectorise.
//!
//! All are made of additions, multiplications, divisions and selections in a fixed order: the result of
//! an element is the same bits in a vector lane, in a loop tail and on every processor.
//!
//! * `exp`: x = n·ln 2 + r with |r| ≤ ½ ln 2, then the Taylor series of e^r − 1 and a scaling by 2^n in two
//!   factors (so that subnormal results round once).
//! * `log1p` on \[0,1\] (all that softplus needs): the reduction and the atanh series of fdlibm.

macro_rules! elementary {
    ($module:ident, $t:ty, $u:ty, mantissa $mant:literal, bias $bias:literal,
     exp from $lo:literal to $hi:literal, ln2 $ln2_hi:literal + $ln2_lo:literal,
     inverse factorials $fact:expr, atanh $atanh:expr) => {
        pub(crate) mod $module {
            /// 1.5·2^mantissa: adding it rounds to the nearest integer and leaves that integer in the low bits.
            const MAGIC: $t = 1.5 * (1u64 << $mant) as $t;
            const LN2_HI: $t = $ln2_hi;
            const LN2_LO: $t = $ln2_lo;
            /// 1/2!, 1/3!, … as far as |r| ≤ ½ ln 2 needs.
            const FACT: &[$t] = &$fact;
            /// Coefficients of (ln((1+s)/(1−s)) − 2s)/s in powers of s².
            const ATANH: &[$t] = &$atanh;

            /// 2^n for an integer-valued `n` in the normal range.
            #[inline(always)]
            fn exp2i(n: $t) -> $t {
                <$t>::from_bits((n + MAGIC).to_bits().wrapping_add($bias) << $mant)
            }

            #[inline(always)]
            fn horner(c: &[$t], x: $t) -> $t {
                let mut y = c[c.len() - 1];
                let mut i = c.len() - 1;
                while i > 0 {
                    i -= 1;
                    y = y * x + c[i];
                }
                y
            }

            /// (n, e^r − 1) with x = n·ln 2 + r.
            #[inline(always)]
            fn reduce(x: $t) -> ($t, $t) {
                let n = (x * std::$module::consts::LOG2_E + MAGIC) - MAGIC;
                let r = (x - n * LN2_HI) - n * LN2_LO;
                (n, r + r * r * horner(FACT, r))
            }

            /// e^x, correct over the whole range: 0 below, ∞ above, NaN for NaN.
            #[inline(always)]
            pub(crate) fn exp(x: $t) -> $t {
                // Written so that a NaN passes through both comparisons.
                let x = if x < $lo { $lo } else { x };
                let x = if x > $hi { $hi } else { x };
                let (n, p) = reduce(x);
                let half = (n * 0.5 + MAGIC) - MAGIC;
                (1.0 + p) * exp2i(half) * exp2i(n - half)
            }

            /// σ(x) = 1/(1+e^{−x}), relatively accurate in both tails.
            #[inline(always)]
            pub(crate) fn sigmoid(x: $t) -> $t {
                let e = exp(-x.abs());
                (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
            }

            /// tanh x = −m/(2+m) with m = e^{−2|x|} − 1, with the sign of x.
            #[inline(always)]
            pub(crate) fn tanh(x: $t) -> $t {
                let y = -2.0 * x.abs();
                let y = if y < -44.0 { -44.0 } else { y };
                let (n, p) = reduce(y);
                let scale = exp2i(n);
                let m = scale * p + (scale - 1.0);
                (m / (2.0 + m)).abs().copysign(x)
            }

            /// ln(1+e) for e in \[0,1\].
            #[inline(always)]
            fn log1p_unit(e: $t) -> $t {
                // 1+e = 2^k (1+f) with 1+f in [√½, √2].
                let big = e > std::$module::consts::SQRT_2 - 1.0;
                let f = if big { 0.5 * (e - 1.0) } else { e };
                let s = f / (2.0 + f);
                let half_square = 0.5 * f * f;
                let z = s * s;
                let tail = s * (half_square + z * horner(ATANH, z));
                let (hi, lo) = if big { (LN2_HI, LN2_LO) } else { (0.0, 0.0) };
                hi + (f - (half_square - (tail + lo)))
            }

            /// ln(1+e^x) = max(x,0) + ln(1+e^{−|x|}).
            #[inline(always)]
            pub(crate) fn softplus(x: $t) -> $t {
                (if x < 0.0 { 0.0 } else { x }) + log1p_unit(exp(-x.abs()))
            }

            /// ln 2cosh x = |x| + ln(1+e^{−2|x|}).
            #[inline(always)]
            pub(crate) fn ln2cosh(x: $t) -> $t {
                x.abs() + log1p_unit(exp(-2.0 * x.abs()))
            }
        }
    };
}

elementary!(
    f32, f32, u32, mantissa 23, bias 127,
    exp from -104.5 to 89.0, ln2 0.693_359_4 + -2.121_944_4e-4,
    inverse factorials [0.5, 1.0 / 6.0, 1.0 / 24.0, 1.0 / 120.0, 1.0 / 720.0, 1.0 / 5040.0],
    atanh [2.0 / 3.0, 2.0 / 5.0, 2.0 / 7.0, 2.0 / 9.0]
);
elementary!(
    f64, f64, u64, mantissa 52, bias 1023,
    exp from -746.0 to 710.0, ln2 6.931_471_803_691_238e-1 + 1.908_214_929_270_587_7e-10,
    inverse factorials [
        0.5,
        1.0 / 6.0,
        1.0 / 24.0,
        1.0 / 120.0,
        1.0 / 720.0,
        1.0 / 5_040.0,
        1.0 / 40_320.0,
        1.0 / 362_880.0,
        1.0 / 3_628_800.0,
        1.0 / 39_916_800.0,
        1.0 / 479_001_600.0,
        1.0 / 6_227_020_800.0
    ],
    atanh [
        2.0 / 3.0, 2.0 / 5.0, 2.0 / 7.0, 2.0 / 9.0, 2.0 / 11.0, 2.0 / 13.0, 2.0 / 15.0, 2.0 / 17.0,
        2.0 / 19.0
    ]
);

#[cfg(test)]
mod tests {
    /// Over the whole range, subnormal results included; at both ends, and for NaN.
    #[test]
    fn exponentials_are_those_of_libm() {
        for i in -40_000..=40_000 {
            let x = f64::from(i) / 40_000.0 * 709.0;
            let want = libm::exp(x);
            assert!(
                (super::f64::exp(x) - want).abs() <= 1e-15 * want + f64::MIN_POSITIVE * 1e-15,
                "{x}"
            );
            let x = (f64::from(i) / 40_000.0 * 88.0) as f32;
            let (got, want) = (f64::from(super::f32::exp(x)), libm::exp(f64::from(x)));
            assert!(
                (got - want).abs() <= 2.0 * f64::from(f32::EPSILON) * want + 1e-44,
                "{x}: {got}, {want}"
            );
        }
        assert_eq!((super::f64::exp(-1e4), super::f64::exp(1e4)), (0.0, f64::INFINITY));
        assert_eq!((super::f32::exp(-1e4), super::f32::exp(1e4)), (0.0, f32::INFINITY));
        assert!(super::f64::exp(f64::NAN).is_nan() && super::f32::exp(f32::NAN).is_nan());
    }
}
