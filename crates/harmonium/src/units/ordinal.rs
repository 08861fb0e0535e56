//! Ordinal units, whole numbers 0…n with arbitrary frequencies: Γ(I) = ln Σ_x e^{ν_x+(θ+I)x}.
//!
//! The first parameter is θ, the others are the ν_x; like the fields of a Potts unit they are not unique: a constant, or a
//! multiple of x, may be moved between them. Inputs act on the number x as they do on any count.

use super::family::{Family, Marginal, Square, Values};
use super::{Unit, binomial, negative_binomial::NegativeBinomial, poisson, uniform};
use crate::Real;
use rand::Rng;
use std::sync::LazyLock;

/// The largest n: a unit keeps a parameter for each state.
pub(super) const LARGEST: u32 = 1023;

/// Names of the parameters of the largest unit.
static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let nu = |x: u32| -> &'static str { Box::leak(format!("nu_{x}").into_boxed_str()) };
    std::iter::once("theta").chain((0..=LARGEST).map(nu)).collect()
});

/// Names of the parameters of a unit with states up to `n`.
pub(super) fn names(n: u32) -> &'static [&'static str] {
    &NAMES[..n.min(LARGEST) as usize + 2]
}

/// The fields ν_x+(θ+I)x of unit `j` of `units`, for x = 0…n.
fn fields<T: Real>(params: &[T], units: usize, j: usize, input: T, out: &mut [T]) {
    let y = params[j] + input;
    for (x, out) in out.iter_mut().enumerate() {
        *out = params[(x + 1) * units + j] + y * T::of(x as f64);
    }
}

/// Calls `f(unit, its fields)` for every unit of a row.
fn each<T: Real>(n: u32, params: &[T], inputs: &[T], mut f: impl FnMut(usize, &mut [T])) {
    let mut y = vec![T::zero(); n as usize + 1];
    for (j, &input) in inputs.iter().enumerate() {
        fields(params, inputs.len(), j, input, &mut y);
        f(j, &mut y);
    }
}

/// The same with the probabilities of the states.
fn each_softmax<T: Real>(n: u32, params: &[T], inputs: &[T], mut f: impl FnMut(usize, &[T])) {
    each(n, params, inputs, |j, y| {
        let states = y.len();
        T::softmax_groups(y, states);
        f(j, y);
    });
}

fn numbered<T: Real>(p: &[T]) -> impl Iterator<Item = (f64, f64)> + '_ {
    p.iter().enumerate().map(|(x, p)| (x as f64, p.f64()))
}

pub(super) fn cgf<T: Real>(n: u32, params: &[T], inputs: &[T]) -> f64 {
    let mut sum = 0.0;
    each(n, params, inputs, |_, y| {
        let states = y.len();
        sum += T::logsumexp_sum(y, states);
    });
    sum
}

pub(super) fn mean<T: Real>(n: u32, params: &[T], inputs: &[T], out: &mut [T]) {
    each_softmax(n, params, inputs, |j, p| out[j] = T::of(numbered(p).map(|(x, p)| x * p).sum()));
}

pub(super) fn variance<T: Real>(n: u32, params: &[T], inputs: &[T], out: &mut [T]) {
    each_softmax(n, params, inputs, |j, p| {
        let mean: f64 = numbered(p).map(|(x, p)| x * p).sum();
        out[j] = T::of(numbered(p).map(|(x, p)| (x - mean).powi(2) * p).sum());
    });
}

pub(super) fn mode<T: Real>(n: u32, params: &[T], inputs: &[T], out: &mut [f64]) {
    each(n, params, inputs, |j, y| {
        let best = numbered(y).max_by(|a, b| a.1.total_cmp(&b.1));
        out[j] = best.map_or(0.0, |(x, _)| x);
    });
}

pub(super) fn sample<T: Real, R: Rng>(n: u32, params: &[T], inputs: &[T], rng: &mut R, out: &mut [f64]) {
    each_softmax(n, params, inputs, |j, p| out[j] = draw(p, rng));
}

/// A state with these probabilities.
fn draw<T: Real, R: Rng>(p: &[T], rng: &mut R) -> f64 {
    let mut left = uniform(rng) * p.iter().map(|p| p.f64()).sum::<f64>();
    let mut last = 0.0;
    for (x, p) in numbered(p).filter(|(_, p)| *p > 0.0) {
        // Rounding may leave a remainder after the last state: return the last one with positive probability.
        last = x;
        left -= p;
        if left < 0.0 {
            break;
        }
    }
    last
}

/// A draw for unit `j` of `units`.
pub(super) fn sample_unit<T: Real, R: Rng>(
    n: u32,
    params: &[T],
    (units, j): (usize, usize),
    input: T,
    rng: &mut R,
) -> f64 {
    let mut y = vec![T::zero(); n as usize + 1];
    fields(params, units, j, input, &mut y);
    let states = y.len();
    T::softmax_groups(&mut y, states);
    draw(&y, rng)
}

/// Adds `wt · x` for θ, and `wt` for the ν of the state.
pub(super) fn stats(x: &[f64], wt: f64, out: &mut [f64]) {
    let units = x.len();
    for (j, &x) in x.iter().enumerate() {
        out[j] += wt * x;
        out[(x as usize + 1) * units + j] += wt;
    }
}

pub(super) fn mean_stats<T: Real>(n: u32, params: &[T], inputs: &[T], wt: f64, out: &mut [f64]) {
    let units = inputs.len();
    each_softmax(n, params, inputs, |j, p| {
        for (x, p) in numbered(p) {
            out[j] += wt * x * p;
            out[(x as usize + 1) * units + j] += wt * p;
        }
    });
}

/// Candidate weights α of the smooth distribution in [`smoothed`], from negligible to dominant.
const STRENGTHS: [f64; 12] = [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 1e4, 1e5, 1e6];
/// Uniform part of the smooth distribution, so that no state has probability 0.
const UNIFORM: f64 = 1e-3;

/// Smoothed frequencies $(c_x + \alpha g_x)/(N + \alpha)$ of a histogram, with $g$ a Poisson, binomial or negative binomial
/// distribution of the same mean, and their leave-one-out log-likelihood. $g$ and α are chosen to maximise it: few rows, or
/// rows that follow $g$, give $g$; many rows with other frequencies keep their own.
pub fn smoothed(counts: &[f64]) -> (Vec<f64>, f64) {
    let total: f64 = counts.iter().sum();
    let states = counts.len();
    let mean = numbered(counts).map(|(x, c)| x * c).sum::<f64>() / total.max(1.0);
    let shapes = smooth_shapes(states, mean);
    let mut best: Option<(f64, &[f64], f64)> = None;
    for g in &shapes {
        for alpha in STRENGTHS {
            let left_out = |(c, g): (&f64, &f64)| match *c > 0.0 {
                true => c * (((c - 1.0).max(0.0) + alpha * g) / (total - 1.0 + alpha).max(1e-9)).ln(),
                false => 0.0,
            };
            let score: f64 = counts.iter().zip(g).map(left_out).sum();
            if best.is_none_or(|b| score > b.0) {
                best = Some((score, g, alpha));
            }
        }
    }
    let (score, g, alpha) = best.expect("there is a shape");
    (counts.iter().zip(g).map(|(c, g)| (c + alpha * g) / (total + alpha)).collect(), score)
}

/// Distributions of counts up to `states` − 1 with this mean.
fn smooth_shapes(states: usize, mean: f64) -> Vec<Vec<f64>> {
    let n = (states - 1) as f64;
    let mean = mean.clamp(0.01, n.max(0.02) - 0.01);
    let shape = |log_nu: &dyn Fn(f64) -> f64, theta: f64| {
        let y: Vec<f64> = (0..states).map(|x| log_nu(x as f64) + theta * x as f64).collect();
        let top = y.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = y.iter().map(|y| (y - top).exp()).sum();
        let even = UNIFORM / states as f64;
        y.iter().map(|y| (1.0 - UNIFORM) * (y - top).exp() / sum + even).collect::<Vec<f64>>()
    };
    let trials = binomial::Binomial { n: n as u32 };
    let mut out = vec![
        shape(&|x| poisson::Poisson.log_measure(x), mean.ln()),
        shape(&|x| trials.log_measure(x), (mean / (n - mean).max(1e-3)).ln()),
    ];
    // r = 1/16, 1/8 … 64
    out.extend((0..=10).map(|k| {
        let r = 1u32 << k;
        let unit = NegativeBinomial::new(r, n.max(1.0) as u32);
        shape(&|x| unit.log_measure(x), -(f64::from(r) / 16.0 / mean).ln_1p())
    }));
    out
}

/// The parameters of an uncoupled unit with the smoothed frequencies of a histogram: θ = 0 and ν of mean zero.
fn fitted(counts: &[f64]) -> Vec<f64> {
    let (p, _) = smoothed(counts);
    let log: Vec<f64> = p.iter().map(|p| p.max(f64::MIN_POSITIVE).ln()).collect();
    let gauge = log.iter().sum::<f64>() / log.len() as f64;
    std::iter::once(0.0).chain(log.into_iter().map(|l| l - gauge)).collect()
}

#[derive(Clone, Copy)]
pub(super) struct Ordinal {
    pub(super) n: u32,
}

impl Family for Ordinal {
    fn name(&self) -> String {
        format!("Ordinal({})", self.n)
    }
    fn word(&self) -> String {
        format!("ordinal:{}", self.n)
    }
    fn params(&self) -> &'static [&'static str] {
        names(self.n)
    }
    fn values(&self) -> Values {
        Values::Codes { states: self.n.saturating_add(1) }
    }
    fn square(&self) -> Square {
        Square::Absent
    }
    fn start(&self, m: &Marginal<'_>) -> Vec<f64> {
        fitted(m.counts)
    }
    fn variance(&self, mean: f64, stats: &dyn Fn(usize) -> f64) -> f64 {
        let square = |x: usize| (x * x) as f64 * stats(1 + x);
        (0..=self.n as usize).map(square).sum::<f64>() - mean * mean
    }
    fn cgf_cost(&self) -> f64 {
        2.0 * f64::from(self.n + 1)
    }
    fn has_states(&self) -> bool {
        (1..=LARGEST).contains(&self.n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::uniform;
    use crate::{Key, Kind, Layer};
    use harmonium_kernels::Stream;

    /// A histogram of `rows` draws from these probabilities.
    fn histogram(p: &[f64], rows: usize, seed: u64) -> Vec<f64> {
        let mut rng = Stream::new(Key { seed, purpose: 9, block: 0, sweep: 0 });
        let mut counts = vec![0.0; p.len()];
        for _ in 0..rows {
            let mut u = uniform(&mut rng);
            let x = p.iter().position(|p| {
                u -= p;
                u < 0.0
            });
            counts[x.unwrap_or(p.len() - 1)] += 1.0;
        }
        counts
    }

    fn cross_entropy(p: &[f64], q: &[f64]) -> f64 {
        p.iter().zip(q).filter(|(p, _)| **p > 0.0).map(|(p, q)| -p * q.ln()).sum()
    }

    /// Of 2000 rows the spikes are learnt, of 30 rows a smooth distribution is better than the raw frequencies could be.
    #[test]
    fn frequencies_are_smoothed_as_far_as_rows_are_few() {
        let smooth: Vec<f64> = smooth_shapes(41, 9.0).swap_remove(0);
        let spiked: Vec<f64> = (0..41).map(|x| if x % 8 == 0 { 1.0 / 6.0 } else { 1e-9 }).collect();
        let excess = |p: &[f64], rows: usize| {
            let (q, _) = smoothed(&histogram(p, rows, 3));
            assert!((q.iter().sum::<f64>() - 1.0).abs() < 1e-9 && q.iter().all(|q| *q > 0.0));
            cross_entropy(p, &q) - cross_entropy(p, p)
        };
        // One parameter from 30 rows costs 1/60 on average; raw frequencies of some twenty states would cost ten times that.
        assert!(excess(&smooth, 30) < 0.05, "{}", excess(&smooth, 30));
        // Five parameters from 2000 rows cost 0.00125; the best smooth distribution has more than one nat too much.
        assert!(excess(&spiked, 2000) < 0.02, "{}", excess(&spiked, 2000));
    }

    #[test]
    fn a_unit_on_its_own_has_the_frequencies() {
        let p = [0.5, 0.0, 0.2, 0.3];
        let counts = p.map(|p| 1e4 * p);
        let ((q, _), params) = (smoothed(&counts), fitted(&counts));
        let params = ndarray::Array2::from_shape_vec((5, 1), params).unwrap();
        let layer = Layer::<f64>::with_params(Kind::Ordinal { n: 3 }, params).unwrap();
        let stats = layer.mean_stats(&ndarray::array![[0.0]], None);
        for (x, q) in q.iter().enumerate() {
            assert!((stats[[x + 1, 0]] - q).abs() < 1e-12 && (q - p[x]).abs() < 1e-3, "{x}: {q}");
        }
    }

    #[test]
    fn histograms_without_rows_or_spread_have_frequencies() {
        for counts in [vec![0.0, 0.0], vec![7.0, 0.0, 0.0], vec![0.0, 0.0, 3.0]] {
            let (p, _) = smoothed(&counts);
            assert!(p.iter().all(|p| *p > 0.0 && p.is_finite()), "{counts:?}: {p:?}");
        }
    }
}
