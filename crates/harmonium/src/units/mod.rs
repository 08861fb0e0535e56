//! Layers of units: each kind is defined by the log-partition function Γ of one unit given its input.
//!
//! Every kind is an exponential family. A unit with parameters $\eta_k$ has the base energy
//! $-\sum_k \eta_k t_k(x)$ over a reference measure $\nu(x)$, and its input $I$ adds $-Ix$. From
//!
//! $$\Gamma(I) = \ln \sum_x \nu(x) e^{\sum_k \eta_k t_k(x) + I x}$$
//!
//! follow the mean $\partial\Gamma/\partial I$, the variance $\partial^2\Gamma/\partial I^2$ and the gradient
//! $\partial\Gamma/\partial\eta_k = \langle t_k\rangle$. An inverse temperature scales the parameters and the
//! input alike (see [`Layer::tempered`]), so that no formula here needs to know it.

mod batch;
mod binary;
mod binomial;
mod convert;
mod drelu;
mod family;
mod filled;
mod gaussian;
mod given;
mod half_line;
mod kind;
mod layer;
mod named;
mod negative_binomial;
mod one;
mod ordinal;
mod poisson;
mod potts;
mod relu;
mod rows;
mod scalar;
mod spin;
mod stats;

pub(crate) use family::{AllowedWeights, Marginal, Square, Tail};
pub use kind::{Domain, Form, Kind};
pub use layer::Layer;
pub use named::{
    binary, binomial, drelu, gaussian, negative_binomial, ordinal, poisson, potts, relu, spin,
};
pub use ordinal::smoothed as smoothed_frequencies;

use ndarray::Array2;
use rand::Rng;

/// Rows that share one random stream. Fixed, so that results do not depend on the number of threads.
pub(crate) const BLOCK: usize = 64;

/// One unit with one number for a state: the formulas of its kind, in `f64`.
///
/// `P` is the number of parameters of a unit; `p` are their values and `input` is what arrives through
/// the couplings. Potts units, whose input is a vector, have their own functions in `potts.rs`.
pub(crate) trait Unit<const P: usize>: Copy + Sync {
    /// Sufficient statistics $t_k(x)$: the base energy is $-\sum_k p_k t_k(x)$.
    fn stats(self, x: f64) -> [f64; P];

    /// $\ln\nu(x)$ of the reference measure.
    fn log_measure(self, _x: f64) -> f64 {
        0.0
    }

    /// $\Gamma(I)$.
    fn cgf(self, p: [f64; P], input: f64) -> f64;

    /// $\langle x\rangle = \partial\Gamma/\partial I$.
    fn mean(self, p: [f64; P], input: f64) -> f64;

    /// $\langle x^2\rangle - \langle x\rangle^2 = \partial^2\Gamma/\partial I^2$.
    fn variance(self, p: [f64; P], input: f64) -> f64;

    /// A most probable value.
    fn mode(self, p: [f64; P], input: f64) -> f64;

    /// $\langle t_k\rangle = \partial\Gamma/\partial p_k$.
    fn mean_stats(self, p: [f64; P], input: f64) -> [f64; P];

    /// A draw from the conditional distribution.
    fn sample<R: Rng>(self, p: [f64; P], input: f64, rng: &mut R) -> f64;
}

/// $\sigma(x) = 1/(1+e^{-x})$, without overflow and with full relative precision in the lower tail.
pub(crate) fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + (-x).exp())
    } else {
        let e = x.exp();
        e / (1.0 + e)
    }
}

/// $\ln(1+e^x)$ without overflow.
pub(crate) fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// $\ln(e^a+e^b)$ without overflow.
pub(crate) fn log_add_exp(a: f64, b: f64) -> f64 {
    if a == f64::NEG_INFINITY && b == f64::NEG_INFINITY {
        return a;
    }
    a.max(b) + (-(a - b).abs()).exp().ln_1p()
}

/// A uniform number in (0, 1) with 53 random bits, never 0 or 1.
pub(crate) fn uniform<R: Rng>(rng: &mut R) -> f64 {
    ((rng.next_u64() >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64)
}

/// Calls a function of `scalar.rs` with the unit of this kind, or the given expressions for Potts and Ordinal units, which
/// have a parameter or an input per state.
macro_rules! per_kind {
    ($layer:expr, scalar::$f:ident($($arg:expr),*), |$q:ident| $potts:expr, |$n:ident| $ordinal:expr) => {
        match $layer.kind() {
            $crate::Kind::Binary => $crate::units::scalar::$f($crate::units::binary::Binary, $($arg),*),
            $crate::Kind::Spin => $crate::units::scalar::$f($crate::units::spin::Spin, $($arg),*),
            $crate::Kind::Gaussian => $crate::units::scalar::$f($crate::units::gaussian::Gaussian, $($arg),*),
            $crate::Kind::Relu => $crate::units::scalar::$f($crate::units::relu::Relu, $($arg),*),
            $crate::Kind::Drelu => $crate::units::scalar::$f($crate::units::drelu::Drelu, $($arg),*),
            $crate::Kind::Binomial { n } => $crate::units::scalar::$f($crate::units::binomial::Binomial { n }, $($arg),*),
            $crate::Kind::Poisson => $crate::units::scalar::$f($crate::units::poisson::Poisson, $($arg),*),
            $crate::Kind::NegativeBinomial { shape, n } => {
                $crate::units::scalar::$f($crate::units::negative_binomial::NegativeBinomial::new(shape, n), $($arg),*)
            }
            $crate::Kind::Potts { q } => { let $q = q as usize; $potts }
            $crate::Kind::Ordinal { n } => { let $n = n; $ordinal }
        }
    };
}
use per_kind;

/// Row `r` of a matrix in standard layout.
fn row<T>(x: &Array2<T>, r: usize) -> &[T] {
    let n = x.ncols();
    &x.as_slice().expect("inputs are in standard layout")[r * n..(r + 1) * n]
}

#[cfg(test)]
mod tests;
