//! ReLU units [0,∞): a normal density cut at zero; its integrals are in `half_line.rs`.

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
