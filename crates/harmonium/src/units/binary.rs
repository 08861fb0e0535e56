//! Binary units {0,1}: Γ(I) = softplus(θ+I), mean σ(θ+I).

use super::family::{Family, Marginal, Square, Values, field_of_probability};
use super::{Unit, sigmoid, softplus, uniform};
use rand::Rng;

#[derive(Clone, Copy)]
pub(super) struct Binary;

impl Unit<1> for Binary {
    fn stats(self, x: f64) -> [f64; 1] {
        [x]
    }
    fn cgf(self, [theta]: [f64; 1], input: f64) -> f64 {
        softplus(theta + input)
    }
    fn mean(self, [theta]: [f64; 1], input: f64) -> f64 {
        sigmoid(theta + input)
    }
    fn variance(self, [theta]: [f64; 1], input: f64) -> f64 {
        sigmoid(theta + input) * sigmoid(-theta - input)
    }
    fn mode(self, [theta]: [f64; 1], input: f64) -> f64 {
        f64::from(theta + input > 0.0)
    }
    fn mean_stats(self, p: [f64; 1], input: f64) -> [f64; 1] {
        [self.mean(p, input)]
    }
    fn sample<R: Rng>(self, p: [f64; 1], input: f64, rng: &mut R) -> f64 {
        f64::from(uniform(rng) < self.mean(p, input))
    }
}

impl Family for Binary {
    fn name(&self) -> String {
        "Binary".into()
    }
    fn word(&self) -> String {
        "binary".into()
    }
    fn values(&self) -> Values {
        Values::Pair { lowest: 0.0 }
    }
    fn square(&self) -> Square {
        Square::Value
    }
    fn start(&self, m: &Marginal<'_>) -> Vec<f64> {
        vec![Marginal::logit(m.sums[0], m.total)]
    }
    fn variance(&self, mean: f64, _stats: &dyn Fn(usize) -> f64) -> f64 {
        mean * (1.0 - mean)
    }
    fn cgf_cost(&self) -> f64 {
        1.0
    }
    fn variance_polynomial(&self, _own: &[f64]) -> Option<[f64; 3]> {
        Some([0.0, 1.0, -1.0])
    }
    fn field_of_mean(&self, _own: &[f64], m: f64) -> Option<f64> {
        Some(field_of_probability(m))
    }
    fn takes_soft_data(&self) -> bool {
        true
    }
    fn two_valued_parts(&self) -> Option<u32> {
        Some(1)
    }
}
