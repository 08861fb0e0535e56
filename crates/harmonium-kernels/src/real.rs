//! The number type of parameters and real-valued states: `f32` or `f64`.

use crate::codes::Codes;
use crate::isa::Isa;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::small;
use crate::stream::Key;
use crate::{bernoulli, bits, elementwise, inputs};
use num_traits::{Float, NumAssign};
use std::fmt::{Debug, Display};
use std::iter::Sum;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// `f32` (the default: half the memory, twice the lanes) or `f64` (for work to twelve digits).
///
/// Energies, log-partitions and log-weights are summed in `f64` whatever the type is, which is why the
/// reductions here return `f64`.
pub trait Real:
    Float + NumAssign + Sum + Default + Debug + Display + Send + Sync + sealed::Sealed + 'static
{
    /// Name in files: `F32` or `F64`.
    const NAME: &'static str;

    /// The nearest value to `x`.
    fn of(x: f64) -> Self;
    /// The value as `f64`, exactly.
    fn f64(self) -> f64;
    /// The slice itself when the type is `f32`: the fixed-point engine has no other.
    fn as_f32(x: &[Self]) -> Option<&[f32]>;
    /// The inverse of [`Real::as_f32`].
    fn from_f32(x: &[f32]) -> Option<&[Self]>;
    /// As [`Real::as_f32`], to be written.
    fn as_f32_mut(x: &mut [Self]) -> Option<&mut [f32]>;

    /// `c ← alpha·a·b + beta·c` for row- or column-strided matrices: `a` is m×k, `b` is k×n, `c` is m×n,
    /// each given with its row and column stride.
    ///
    /// # Panics
    /// If a slice is too short for its strides.
    #[allow(clippy::too_many_arguments)]
    fn gemm(
        mnk: (usize, usize, usize),
        alpha: Self,
        a: (&[Self], usize, usize),
        b: (&[Self], usize, usize),
        beta: Self,
        c: (&mut [Self], usize, usize),
    );

    /// x ← σ(x) = 1/(1+e^{−x}), relatively accurate in both tails.
    ///
    /// Accuracy of this and the functions below (tested against `libm` in f64): relative error within
    /// 4 ulp of f32, and 1e-15 in f64; right at ±∞ and ±1e4, NaN for NaN. Equal bits on every processor.
    fn sigmoid_slice(x: &mut [Self]);
    /// x ← tanh x.
    fn tanh_slice(x: &mut [Self]);
    /// Σ ln(1+e^x), each term in `Self`, the sum in `f64`.
    fn softplus_sum(x: &[Self]) -> f64;
    /// Σ ln(2 cosh x), each term in `Self`, the sum in `f64`.
    fn ln2cosh_sum(x: &[Self]) -> f64;
    /// Softmax of each group of `q` consecutive elements, in place.
    ///
    /// # Panics
    /// If `q` is 0 or does not divide the length.
    fn softmax_groups(x: &mut [Self], q: usize);
    /// Σ_g ln Σ_a e^{x_{ga}} over groups of `q`, each term in `Self`, the sum in `f64`.
    ///
    /// # Panics
    /// If `q` is 0 or does not divide the length.
    fn logsumexp_sum(x: &[Self], q: usize) -> f64;

    /// out ← out + scale · X·W with X (rows × k) of bits 0/1, W row-major (k × n), out row-major (rows × n).
    ///
    /// For the other direction, hand in the transposed weights ([`crate::transpose`]).
    ///
    /// # Panics
    /// If the shapes do not fit.
    fn add_bits(x: bits::BitMatrix<'_>, w: &[Self], n: usize, scale: Self, out: &mut [Self]);
    /// As [`Real::add_bits`] with every bit read as a spin: 0 is −1, 1 is +1.
    ///
    /// # Panics
    /// If the shapes do not fit.
    fn add_spins(x: bits::BitMatrix<'_>, w: &[Self], n: usize, scale: Self, out: &mut [Self]);
    /// out ← out + scale · X·W with X one-hot: row `i·q + a` of W ((sites·q) × n) belongs to code `a` of
    /// site `i`.
    ///
    /// # Panics
    /// If the shapes do not fit.
    fn add_codes(codes: Codes<'_>, w: &[Self], n: usize, scale: Self, out: &mut [Self]);

    /// Draws packed rows of `n` bits from row-major logits (rows × n): bit 1 with probability σ(logit).
    ///
    /// Exact with respect to the logits up to the resolution of f64; ±∞ and ±1e4 are fine. The block number
    /// of `key` is set for every block of 32 columns and 1024 rows, so the bits do not depend on the number
    /// of threads.
    ///
    /// # Panics
    /// If the shapes do not fit.
    fn sample_bits(logits: &[Self], n: usize, key: Key, out: &mut [u64]);

    /// out ← `on` where a bit is set and `off` where it is not, row-major (rows × bits).
    ///
    /// # Panics
    /// If `out` does not fit.
    fn read_bits(x: bits::BitMatrix<'_>, off: Self, on: Self, out: &mut [Self]);
    /// out_j ← out_j + Σ_r wt_r·x_{rj} for row-major x with rows of `out.len()`; all weights 1 if absent.
    ///
    /// # Panics
    /// If the shapes do not fit.
    fn add_column_sums(x: &[Self], wts: Option<&[f64]>, out: &mut [f64]);

    /// out_j ← out_j + scale·(factor·count_j + column_j + row), without the second term if
    /// `column` is empty: how counts of common ones become moments.
    #[doc(hidden)]
    fn add_counts(
        counts: &[u32],
        column: &[Self],
        factor: Self,
        row: Self,
        scale: Self,
        out: &mut [Self],
    );
}

mod f32_slice {
    pub(super) fn f32(x: &[f32]) -> Option<&[f32]> {
        Some(x)
    }
    pub(super) fn f64(_: &[f64]) -> Option<&[f32]> {
        None
    }
}

mod from_f32_slice {
    pub(super) fn f32(x: &[f32]) -> Option<&[f32]> {
        Some(x)
    }
    pub(super) fn f64(_: &[f32]) -> Option<&[f64]> {
        None
    }
}

mod f32_slice_mut {
    pub(super) fn f32(x: &mut [f32]) -> Option<&mut [f32]> {
        Some(x)
    }
    pub(super) fn f64(_: &mut [f64]) -> Option<&mut [f32]> {
        None
    }
}

macro_rules! real {
    ($t:ident, $name:literal) => {
        impl Real for $t {
            const NAME: &'static str = $name;
            #[inline]
            fn of(x: f64) -> Self {
                x as $t
            }
            #[inline]
            fn f64(self) -> f64 {
                f64::from(self)
            }
            #[inline]
            fn as_f32(x: &[Self]) -> Option<&[f32]> {
                f32_slice::$t(x)
            }
            #[inline]
            fn from_f32(x: &[f32]) -> Option<&[Self]> {
                from_f32_slice::$t(x)
            }
            #[inline]
            fn as_f32_mut(x: &mut [Self]) -> Option<&mut [f32]> {
                f32_slice_mut::$t(x)
            }
            fn gemm(
                (m, n, k): (usize, usize, usize),
                alpha: Self,
                (a, a_rs, a_cs): (&[Self], usize, usize),
                (b, b_rs, b_cs): (&[Self], usize, usize),
                beta: Self,
                (c, c_rs, c_cs): (&mut [Self], usize, usize),
            ) {
                let last = |r: usize, rs: usize, q: usize, cs: usize| {
                    if r == 0 || q == 0 { 0 } else { (r - 1) * rs + (q - 1) * cs + 1 }
                };
                assert!(a.len() >= last(m, a_rs, k, a_cs), "gemm: a is too short");
                assert!(b.len() >= last(k, b_rs, n, b_cs), "gemm: b is too short");
                assert!(c.len() >= last(m, c_rs, n, c_cs), "gemm: c is too short");
                #[cfg(all(target_arch = "x86_64", not(miri)))]
                if let (Some(a), Some(b)) = (Self::as_f32(a), Self::as_f32(b)) {
                    let (a, b) = ((a, a_rs, a_cs), (b, b_rs, b_cs));
                    let c = (Self::as_f32_mut(c).expect("one type"), c_rs, c_cs);
                    if small::product(Isa::detect(), (m, n, k), alpha as f32, a, b, beta as f32, c) {
                        return;
                    }
                }
                // gemm computes alpha·dst + beta·lhs·rhs, reading dst only on request.
                let read = beta != 0.0;
                // SAFETY: the asserts above bound every element the strides can reach.
                unsafe {
                    gemm::gemm(
                        m,
                        n,
                        k,
                        c.as_mut_ptr(),
                        c_cs as isize,
                        c_rs as isize,
                        read,
                        a.as_ptr(),
                        a_cs as isize,
                        a_rs as isize,
                        b.as_ptr(),
                        b_cs as isize,
                        b_rs as isize,
                        beta,
                        alpha,
                        false,
                        false,
                        false,
                        gemm::Parallelism::Rayon(0),
                    );
                }
            }
            fn sigmoid_slice(x: &mut [Self]) {
                elementwise::$t::sigmoid(Isa::detect(), x);
            }
            fn tanh_slice(x: &mut [Self]) {
                elementwise::$t::tanh(Isa::detect(), x);
            }
            fn softplus_sum(x: &[Self]) -> f64 {
                elementwise::$t::softplus_sum(Isa::detect(), x)
            }
            fn ln2cosh_sum(x: &[Self]) -> f64 {
                elementwise::$t::ln2cosh_sum(Isa::detect(), x)
            }
            fn softmax_groups(x: &mut [Self], q: usize) {
                assert!(q > 0 && x.len() % q == 0, "softmax: length is no multiple of q");
                elementwise::$t::softmax(Isa::detect(), x, q);
            }
            fn logsumexp_sum(x: &[Self], q: usize) -> f64 {
                assert!(q > 0 && x.len() % q == 0, "logsumexp: length is no multiple of q");
                elementwise::$t::logsumexp_sum(Isa::detect(), x, q)
            }
            fn add_bits(x: bits::BitMatrix<'_>, w: &[Self], n: usize, scale: Self, out: &mut [Self]) {
                inputs::$t::add_bits::<false>(Isa::detect(), x, w, n, scale, out);
            }
            fn add_spins(x: bits::BitMatrix<'_>, w: &[Self], n: usize, scale: Self, out: &mut [Self]) {
                inputs::$t::add_bits::<true>(Isa::detect(), x, w, n, scale, out);
            }
            fn add_codes(codes: Codes<'_>, w: &[Self], n: usize, scale: Self, out: &mut [Self]) {
                inputs::$t::add_codes(Isa::detect(), codes, w, n, scale, out);
            }
            fn sample_bits(logits: &[Self], n: usize, key: Key, out: &mut [u64]) {
                bernoulli::sample_reals(Isa::detect(), logits, n, key, out);
            }
            fn read_bits(x: bits::BitMatrix<'_>, off: Self, on: Self, out: &mut [Self]) {
                assert_eq!(out.len(), x.rows() * x.bits(), "read: output does not fit rows × bits");
                for (r, out) in out.chunks_exact_mut(x.bits().max(1)).enumerate() {
                    elementwise::$t::select(Isa::detect(), x.row(r), off, on, out);
                }
            }
            fn add_column_sums(x: &[Self], wts: Option<&[f64]>, out: &mut [f64]) {
                if out.is_empty() {
                    return;
                }
                let rows = x.len() / out.len();
                assert!(x.len() == rows * out.len(), "column sums: x does not fit rows × n");
                assert!(wts.is_none_or(|wts| wts.len() == rows), "column sums: one weight per row");
                elementwise::$t::column_sums(Isa::detect(), x, out.len(), wts, out);
            }
            fn add_counts(
                counts: &[u32],
                column: &[$t],
                factor: $t,
                row: $t,
                scale: $t,
                out: &mut [$t],
            ) {
                elementwise::$t::add_counts(Isa::detect(), counts, column, factor, row, scale, out);
            }
        }
    };
}
real!(f32, "F32");
real!(f64, "F64");
