//! A row of scalar units, from the formulas of one.

use super::Unit;
use crate::Real;
use rand::Rng;

/// The parameters of unit `j`: `params` holds `P` arrays of `n` numbers.
#[inline]
pub(super) fn of_unit<T: Real, const P: usize>(params: &[T], n: usize, j: usize) -> [f64; P] {
    std::array::from_fn(|k| params[k * n + j].f64())
}

pub(super) fn cgf<T: Real, U: Unit<P>, const P: usize>(u: U, params: &[T], inputs: &[T]) -> f64 {
    let n = inputs.len();
    (0..n).map(|j| u.cgf(of_unit(params, n, j), inputs[j].f64())).sum()
}

/// `f` of the parameters and the input of each unit.
fn each<T: Real, A, const P: usize>(
    params: &[T],
    inputs: &[T],
    out: &mut [A],
    f: impl Fn([f64; P], f64) -> A,
) {
    let n = inputs.len();
    for j in 0..n {
        out[j] = f(of_unit(params, n, j), inputs[j].f64());
    }
}

pub(super) fn mean<T: Real, U: Unit<P>, const P: usize>(
    u: U,
    params: &[T],
    inputs: &[T],
    out: &mut [T],
) {
    each(params, inputs, out, |unit, input| T::of(u.mean(unit, input)));
}

pub(super) fn variance<T: Real, U: Unit<P>, const P: usize>(
    u: U,
    params: &[T],
    inputs: &[T],
    out: &mut [T],
) {
    each(params, inputs, out, |unit, input| T::of(u.variance(unit, input)));
}

pub(super) fn mode<T: Real, U: Unit<P>, const P: usize>(
    u: U,
    params: &[T],
    inputs: &[T],
    out: &mut [f64],
) {
    each(params, inputs, out, |unit, input| u.mode(unit, input));
}

pub(super) fn sample<T: Real, U: Unit<P>, const P: usize, R: Rng>(
    u: U,
    params: &[T],
    inputs: &[T],
    rng: &mut R,
    out: &mut [f64],
) {
    let n = inputs.len();
    for j in 0..n {
        out[j] = u.sample(of_unit(params, n, j), inputs[j].f64(), rng);
    }
}

/// Adds `wt · t_k(x_j)` to `out[k·n + j]`.
pub(super) fn stats<U: Unit<P>, const P: usize>(u: U, x: &[f64], wt: f64, out: &mut [f64]) {
    let n = x.len();
    for (j, &x) in x.iter().enumerate() {
        for (k, t) in u.stats(x).into_iter().enumerate() {
            out[k * n + j] += wt * t;
        }
    }
}

/// Adds `wt · ⟨t_k⟩` given the inputs to `out[k·n + j]`.
pub(super) fn mean_stats<T: Real, U: Unit<P>, const P: usize>(
    u: U,
    params: &[T],
    inputs: &[T],
    wt: f64,
    out: &mut [f64],
) {
    let n = inputs.len();
    for j in 0..n {
        let t = u.mean_stats(of_unit(params, n, j), inputs[j].f64());
        for (k, t) in t.into_iter().enumerate() {
            out[k * n + j] += wt * t;
        }
    }
}

pub(super) fn log_measure<U: Unit<P>, const P: usize>(u: U, x: &[f64]) -> f64 {
    x.iter().map(|&x| u.log_measure(x)).sum()
}
