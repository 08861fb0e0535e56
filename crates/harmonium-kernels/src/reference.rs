//! The slow twins: each kernel as its formula reads, one element at a time.

use crate::fixed::{Side, States};
use crate::{Real, bits};

/// `out ← out + scale · x·W` for one packed row `x` of {0,1}: the sum of the rows of `w` (row length `n`)
/// whose bit is set.
pub fn add_rows_of_bits<T: Real>(x: &[u64], w: &[T], n: usize, scale: T, out: &mut [T]) {
    for i in bits::ones(x) {
        for (o, &w) in out.iter_mut().zip(&w[i * n..(i + 1) * n]) {
            *o += scale * w;
        }
    }
}

/// `out ← out + scale · x·W` for one packed row read as spins: row `i` of `w` with sign + or − by bit `i`.
pub fn add_rows_of_spins<T: Real>(x: &[u64], w: &[T], n: usize, scale: T, out: &mut [T]) {
    if n == 0 {
        return;
    }
    for (i, w) in w.chunks_exact(n).enumerate() {
        let sign = if bits::get(x, i) { scale } else { -scale };
        for (o, &w) in out.iter_mut().zip(w) {
            *o += sign * w;
        }
    }
}

/// `out ← out + scale · x·W` for one row of codes: row `i·q + code_i` of `w` for every site `i`.
pub fn add_rows_of_codes<T: Real>(codes: &[u32], q: usize, w: &[T], n: usize, scale: T, out: &mut [T]) {
    for (i, &code) in codes.iter().enumerate() {
        let row = i * q + code as usize;
        for (o, &w) in out.iter_mut().zip(&w[row * n..(row + 1) * n]) {
            *o += scale * w;
        }
    }
}

/// σ(x) = 1/(1+e^{−x}).
pub fn sigmoid(x: f64) -> f64 {
    let e = libm::exp(-x.abs());
    if x < 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) }
}

/// ln(1+e^x).
pub fn softplus(x: f64) -> f64 {
    x.max(0.0) + libm::log1p(libm::exp(-x.abs()))
}

/// ln(2 cosh x).
pub fn ln2cosh(x: f64) -> f64 {
    x.abs() + libm::log1p(libm::exp(-2.0 * x.abs()))
}

/// ln Σ_a e^{x_a}.
pub fn logsumexp(x: &[f64]) -> f64 {
    let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    max + libm::log(x.iter().map(|x| libm::exp(x - max)).sum())
}

/// The value of unit `i` of row `r` as the energy sees it: 0/1, −1/+1, or whether a site has a code.
///
/// # Panics
/// If the states are not those of such a layer.
pub fn value(side: Side, states: States<'_>, r: usize, i: usize) -> f64 {
    match (side, states) {
        (Side::Binary(_), States::Bits(x)) => f64::from(u8::from(bits::get(x.row(r), i))),
        (Side::Spin(_), States::Bits(x)) => 2.0 * f64::from(u8::from(bits::get(x.row(r), i))) - 1.0,
        (Side::Potts { sites, q }, States::Codes(x)) => {
            f64::from(u8::from(x.data()[r * sites + i / q] as usize == i % q))
        }
        _ => panic!("states of another layer"),
    }
}

/// Σ_i x_{ri}·w_{ij}, with the weights as they are, or rounded to multiples of 2^-s.
pub fn input(
    side: Side,
    states: States<'_>,
    w: &[f32],
    n: usize,
    step: Option<i32>,
    r: usize,
    j: usize,
) -> f64 {
    let round = |w: f64| match step {
        None => w,
        Some(s) => (w * f64::from(s).exp2()).round_ties_even() / f64::from(s).exp2(),
    };
    (0..side.units()).map(|i| value(side, states, r, i) * round(f64::from(w[i * n + j]))).sum()
}
