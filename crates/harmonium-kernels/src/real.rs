//! The number type of parameters and real-valued states: `f32` or `f64`.

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
}

macro_rules! real {
    ($t:ty, $name:literal) => {
        impl Real for $t {
            const NAME: &'static str = $name;
            fn of(x: f64) -> Self {
                x as $t
            }
            fn f64(self) -> f64 {
                f64::from(self)
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
                    if r == 0 || q == 0 {
                        0
                    } else {
                        (r - 1) * rs + (q - 1) * cs + 1
                    }
                };
                assert!(a.len() >= last(m, a_rs, k, a_cs), "gemm: a is too short");
                assert!(b.len() >= last(k, b_rs, n, b_cs), "gemm: b is too short");
                assert!(c.len() >= last(m, c_rs, n, c_cs), "gemm: c is too short");
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
        }
    };
}
real!(f32, "F32");
real!(f64, "F64");
