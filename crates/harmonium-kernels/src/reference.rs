//! The slow twins: what each kernel computes, as its formula reads, one element at a time.
//!
//! `tests/twins.rs` lists every public kernel with its twin and the test that compares them.

use crate::bernoulli::{Noise, STEPS_PER_NAT, STREAM_ROWS, is_decided};
use crate::bits::{self, BitMatrix};
use crate::fixed::{Side, States};
use crate::real::Real;
use crate::stream::Key;
use crate::x32::WIDTH;

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

/// Σ_l a_{il}·b_{lj} in f64, for matrices given as functions of row and column.
pub fn product(
    k: usize,
    a: impl Fn(usize, usize) -> f64,
    b: impl Fn(usize, usize) -> f64,
    (i, j): (usize, usize),
) -> f64 {
    (0..k).map(|l| a(i, l) * b(l, j)).sum()
}

/// Σ_r x_{ri}·y_{rj} in f64, for matrices of `rows` rows given as functions of row and column.
pub fn outer(
    rows: usize,
    x: impl Fn(usize, usize) -> f64,
    y: impl Fn(usize, usize) -> f64,
    (i, j): (usize, usize),
) -> f64 {
    (0..rows).map(|r| x(r, i) * y(r, j)).sum()
}

/// Number of rows whose bit `j` is set.
pub fn count(x: BitMatrix<'_>, j: usize) -> u32 {
    (0..x.rows()).filter(|&r| bits::get(x.row(r), j)).count() as u32
}

/// Σ_r wt_r·x_{rj} for row-major x with rows of `n`.
pub fn column_sum<T: Real>(x: &[T], n: usize, wts: &[f64], j: usize) -> f64 {
    wts.iter().enumerate().map(|(r, wt)| wt * x[r * n + j].f64()).sum()
}

/// The transpose of a row-major k × n matrix.
pub fn transpose<T: Copy>(w: &[T], k: usize, n: usize) -> Vec<T> {
    (0..k * n).map(|x| w[x % k * n + x / k]).collect()
}

/// σ(x) = 1/(1+e^{−x}).
pub fn sigmoid(x: f64) -> f64 {
    let e = libm::exp(-x.abs());
    if x < 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) }
}

/// tanh x.
pub fn tanh(x: f64) -> f64 {
    libm::tanh(x)
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

/// e^{x_a} / Σ_b e^{x_b}.
pub fn softmax(x: &[f64], a: usize) -> f64 {
    libm::exp(x[a] - logsumexp(x))
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

/// A weight as the nearest multiple of 2^-s (ties to even) that 16 bits hold, in steps.
pub fn rounded_weight(w: f32, s: i32) -> i16 {
    (f64::from(w) * f64::from(s).exp2()).round_ties_even().clamp(-32767.0, 32767.0) as i16
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
    let weight = |i: usize| match step {
        None => f64::from(w[i * n + j]),
        Some(s) => f64::from(rounded_weight(w[i * n + j], s)) * f64::from(-s).exp2(),
    };
    (0..side.units()).map(|i| value(side, states, r, i) * weight(i)).sum()
}

/// The least and the largest Σ_i x_i·w_i over all states of the units or sites `i` of a layer: each Binary unit adds 0 or
/// its weight, each Spin ± its weight, each Potts site one of its weights.
pub fn extreme_sums(side: Side, w: impl Fn(usize) -> f64) -> (f64, f64) {
    let choices = |i: usize| match side {
        Side::Binary(_) => vec![0.0, w(i)],
        Side::Spin(_) => vec![-w(i), w(i)],
        Side::Potts { q, .. } => (0..q).map(|a| w(i * q + a)).collect(),
    };
    let groups = if let Side::Potts { sites, .. } = side { sites } else { side.units() };
    (0..groups).map(choices).fold((0.0, 0.0), |(low, high), choices| {
        let least = choices.iter().copied().fold(f64::INFINITY, f64::min);
        (low + least, high + choices.iter().copied().fold(f64::NEG_INFINITY, f64::max))
    })
}

/// Bits from logits, row-major rows × n: 1 where u < σ(logit), u uniform from the random numbers of `key`.
///
/// All comparisons are made in f64. The first 16 bits of u come with those of 31 other columns; the others are drawn
/// only where the kernel asks for them, as otherwise the two would read different numbers from there on.
pub fn sample_bits(logits: &[f64], n: usize, key: Key, out: &mut [u64]) {
    out.fill(0);
    let rows = logits.len().checked_div(n).unwrap_or(0);
    let stride = bits::words(n);
    for (strip, chunk) in
        (0..n.div_ceil(WIDTH)).flat_map(|strip| (0..rows.div_ceil(STREAM_ROWS)).map(move |c| (strip, c)))
    {
        let mut noise = Noise::new(key, strip, chunk);
        for r in chunk * STREAM_ROWS..rows.min((chunk + 1) * STREAM_ROWS) {
            for (c, leading) in noise.leading().into_iter().enumerate() {
                let j = WIDTH * strip + c;
                // Columns beyond the last are drawn, too.
                let logit = if j < n { logits[r * n + j] } else { 0.0 };
                let steps = (logit * STEPS_PER_NAT) as f32;
                let steps = steps.round_ties_even().clamp(-32767.0, 32767.0) as i16;
                let more = if is_decided(steps, leading) { 0.5 } else { noise.more() };
                let u = (f64::from(leading) + more) * 2f64.powi(-16);
                // u decides about the less likely value.
                let bit = if steps < 0 { u < sigmoid(logit) } else { u >= sigmoid(-logit) };
                if j < n {
                    bits::set(&mut out[r * stride..(r + 1) * stride], j, bit);
                }
            }
        }
    }
}
