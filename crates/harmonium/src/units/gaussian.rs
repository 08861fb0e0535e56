//! Gaussian units: Γ(I) = (θ+I)²/2γ + ½ ln(2π/γ), mean (θ+I)/γ, variance 1/γ.

use super::Unit;
use super::family::{Family, Marginal, Square, THETA_GAMMA, Values};
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

impl Family for Gaussian {
    fn name(&self) -> String {
        "Gaussian".into()
    }
    fn word(&self) -> String {
        "gaussian".into()
    }
    fn params(&self) -> &'static [&'static str] {
        THETA_GAMMA
    }
    fn values(&self) -> Values {
        Values::Reals { lowest: f64::NEG_INFINITY }
    }
    fn square(&self) -> Square {
        Square::Gamma
    }
    fn start(&self, m: &Marginal<'_>) -> Vec<f64> {
        vec![m.mean / m.variance, 1.0 / m.variance]
    }
    /// As if one more row had been seen, at the mean and with the unit's own variance.
    fn base(&self, m: &Marginal<'_>, own: &[f64]) -> Vec<f64> {
        let precision = (m.total + 1.0) / (m.squares + 1.0 / own[1]);
        vec![precision * m.mean, precision]
    }
    fn variance(&self, mean: f64, stats: &dyn Fn(usize) -> f64) -> f64 {
        -2.0 * stats(1) - mean * mean
    }
    fn cgf_cost(&self) -> f64 {
        5.0
    }
    fn variance_polynomial(&self, own: &[f64]) -> Option<[f64; 3]> {
        Some([1.0 / own[1], 0.0, 0.0])
    }
    fn field_of_mean(&self, own: &[f64], m: f64) -> Option<f64> {
        Some(own[1] * m)
    }
    fn is_normal(&self) -> bool {
        true
    }
}
