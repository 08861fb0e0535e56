//! Spin units {−1,+1}: Γ(I) = ln 2cosh(θ+I), mean tanh(θ+I).

use super::family::{Family, Marginal, Square, Values};
use super::{Unit, sigmoid, softplus, uniform};
use rand::Rng;

#[derive(Clone, Copy)]
pub(super) struct Spin;

impl Unit<1> for Spin {
    fn stats(self, x: f64) -> [f64; 1] {
        [x]
    }
    fn cgf(self, [theta]: [f64; 1], input: f64) -> f64 {
        // ln(e^y + e^{-y}) = softplus(2y) − y
        let y = theta + input;
        softplus(-2.0 * y.abs()) + y.abs()
    }
    fn mean(self, [theta]: [f64; 1], input: f64) -> f64 {
        (theta + input).tanh()
    }
    fn variance(self, [theta]: [f64; 1], input: f64) -> f64 {
        // 1 − tanh² y = 4σ(2y)σ(−2y), without the cancellation
        let y = theta + input;
        4.0 * sigmoid(2.0 * y) * sigmoid(-2.0 * y)
    }
    fn mode(self, [theta]: [f64; 1], input: f64) -> f64 {
        if theta + input > 0.0 { 1.0 } else { -1.0 }
    }
    fn mean_stats(self, p: [f64; 1], input: f64) -> [f64; 1] {
        [self.mean(p, input)]
    }
    fn sample<R: Rng>(self, [theta]: [f64; 1], input: f64, rng: &mut R) -> f64 {
        // p(+1) = e^y/(e^y+e^{-y}) = σ(2y)
        if uniform(rng) < sigmoid(2.0 * (theta + input)) { 1.0 } else { -1.0 }
    }
}

impl Family for Spin {
    fn name(&self) -> String {
        "Spin".into()
    }
    fn word(&self) -> String {
        "spin".into()
    }
    fn values(&self) -> Values {
        Values::Pair { lowest: -1.0 }
    }
    fn square(&self) -> Square {
        Square::One
    }
    fn start(&self, m: &Marginal<'_>) -> Vec<f64> {
        vec![0.5 * Marginal::logit(0.5 * (m.sums[0] + m.total), m.total)]
    }
    fn variance(&self, mean: f64, _stats: &dyn Fn(usize) -> f64) -> f64 {
        1.0 - mean * mean
    }
    fn cgf_cost(&self) -> f64 {
        1.0
    }
    fn variance_polynomial(&self, _own: &[f64]) -> Option<[f64; 3]> {
        Some([1.0, 0.0, -1.0])
    }
    fn field_of_mean(&self, _own: &[f64], m: f64) -> Option<f64> {
        Some(m.clamp(-1.0 + 1e-15, 1.0 - 1e-15).atanh())
    }
    fn two_valued_parts(&self) -> Option<u32> {
        Some(1)
    }
}
