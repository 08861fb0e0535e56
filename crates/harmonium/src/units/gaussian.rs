//! Gaussian units: Γ(I) = (θ+I)²/2γ + ½ ln(2π/γ), mean (θ+I)/γ, variance 1/γ.

use super::Unit;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use std::f64::consts::TAU;

#[derive(Clone, Copy)]
pub(super) struct Gaussian;

impl Unit<2> for Gaussian {
    fn stats(self, x: f64) -> [f64; 2] {
        [x, -0.5 * x * x]
    }
    fn cgf(self, [theta, gamma]: [f64; 2], input: f64) -> f64 {
        let y = theta + input;
        0.5 * (y * y / gamma + (TAU / gamma).ln())
    }
    fn mean(self, [theta, gamma]: [f64; 2], input: f64) -> f64 {
        (theta + input) / gamma
    }
    fn variance(self, [_, gamma]: [f64; 2], _input: f64) -> f64 {
        1.0 / gamma
    }
    fn mode(self, p: [f64; 2], input: f64) -> f64 {
        self.mean(p, input)
    }
    fn mean_stats(self, p: [f64; 2], input: f64) -> [f64; 2] {
        let m = self.mean(p, input);
        [m, -0.5 * (m * m + 1.0 / p[1])]
    }
    fn sample<R: Rng>(self, p: [f64; 2], input: f64, rng: &mut R) -> f64 {
        let z: f64 = StandardNormal.sample(rng);
        self.mean(p, input) + z / p[1].sqrt()
    }
}
