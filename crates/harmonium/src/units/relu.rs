//! ReLU units [0,∞): a normal density cut at zero; its integrals are in `half_line.rs`.

use super::family::{Family, Marginal, Square, THETA_GAMMA, Values};
use super::{Unit, half_line};
use rand::Rng;

#[derive(Clone, Copy)]
pub(super) struct Relu;

impl Unit<2> for Relu {
    fn stats(self, x: f64) -> [f64; 2] {
        [x, -0.5 * x * x]
    }
    fn cgf(self, [theta, gamma]: [f64; 2], input: f64) -> f64 {
        half_line::log_integral(gamma, theta + input)
    }
    fn mean(self, [theta, gamma]: [f64; 2], input: f64) -> f64 {
        half_line::moments(gamma, theta + input).mean
    }
    fn variance(self, [theta, gamma]: [f64; 2], input: f64) -> f64 {
        half_line::moments(gamma, theta + input).variance
    }
    fn mode(self, [theta, gamma]: [f64; 2], input: f64) -> f64 {
        ((theta + input) / gamma).max(0.0)
    }
    fn mean_stats(self, [theta, gamma]: [f64; 2], input: f64) -> [f64; 2] {
        let m = half_line::moments(gamma, theta + input);
        [m.mean, -0.5 * m.second]
    }
    fn sample<R: Rng>(self, [theta, gamma]: [f64; 2], input: f64, rng: &mut R) -> f64 {
        half_line::sample(gamma, theta + input, rng)
    }
}

impl Family for Relu {
    fn name(&self) -> String {
        "ReLU".into()
    }
    fn word(&self) -> String {
        "relu".into()
    }
    fn params(&self) -> &'static [&'static str] {
        THETA_GAMMA
    }
    fn values(&self) -> Values {
        Values::Reals { lowest: 0.0 }
    }
    fn square(&self) -> Square {
        Square::Gamma
    }
    /// Half a normal density with the second moment of the data.
    fn start(&self, m: &Marginal<'_>) -> Vec<f64> {
        vec![0.0, 1.0 / (m.variance + m.mean * m.mean)]
    }
    /// The mean of the data with the unit's own γ.
    fn base(&self, m: &Marginal<'_>, own: &[f64]) -> Vec<f64> {
        let gamma = own[1];
        let mean = (m.sums[0] + 0.1 / gamma.sqrt()) / (m.total + 0.1);
        vec![theta_of_mean(gamma, mean), gamma]
    }
    fn variance(&self, mean: f64, stats: &dyn Fn(usize) -> f64) -> f64 {
        -2.0 * stats(1) - mean * mean
    }
    fn cgf_cost(&self) -> f64 {
        40.0
    }
}

/// θ of a unit with the given mean, by bisection: the mean rises with θ.
fn theta_of_mean(gamma: f64, mean: f64) -> f64 {
    // The mean is at least θ/γ, and about 1/|θ| far on the negative side.
    let (mut lo, mut hi) = (-2.0 / mean - gamma.sqrt(), gamma * mean + gamma.sqrt());
    for _ in 0..80 {
        let mid = 0.5 * (lo + hi);
        if Relu.mean([mid, gamma], 0.0) < mean { lo = mid } else { hi = mid }
    }
    0.5 * (lo + hi)
}
