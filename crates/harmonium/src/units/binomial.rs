//! Binomial units {0…n}: n binary units that share θ and input; Γ(I) = n·softplus(θ+I).

use super::family::{Family, Marginal, Square, Values, field_of_probability};
use super::{Unit, sigmoid, softplus};
use rand::Rng;
use rand_distr::Distribution;

#[derive(Clone, Copy)]
pub(super) struct Binomial {
    pub(super) n: u32,
}

impl Unit<1> for Binomial {
    fn stats(self, x: f64) -> [f64; 1] {
        [x]
    }
    fn log_measure(self, x: f64) -> f64 {
        let n = f64::from(self.n);
        libm::lgamma(n + 1.0) - libm::lgamma(x + 1.0) - libm::lgamma(n - x + 1.0)
    }
    fn cgf(self, [theta]: [f64; 1], input: f64) -> f64 {
        f64::from(self.n) * softplus(theta + input)
    }
    fn mean(self, [theta]: [f64; 1], input: f64) -> f64 {
        f64::from(self.n) * sigmoid(theta + input)
    }
    fn variance(self, [theta]: [f64; 1], input: f64) -> f64 {
        f64::from(self.n) * sigmoid(theta + input) * sigmoid(-theta - input)
    }
    fn mode(self, [theta]: [f64; 1], input: f64) -> f64 {
        ((f64::from(self.n) + 1.0) * sigmoid(theta + input)).floor().min(f64::from(self.n))
    }
    fn mean_stats(self, p: [f64; 1], input: f64) -> [f64; 1] {
        [self.mean(p, input)]
    }
    fn sample<R: Rng>(self, [theta]: [f64; 1], input: f64, rng: &mut R) -> f64 {
        let binomial = rand_distr::Binomial::new(u64::from(self.n), sigmoid(theta + input));
        binomial.expect("a sigmoid lies in [0, 1]").sample(rng) as f64
    }
}

impl Family for Binomial {
    fn name(&self) -> String {
        format!("Binomial({})", self.n)
    }
    fn word(&self) -> String {
        format!("binomial:{}", self.n)
    }
    fn values(&self) -> Values {
        Values::Codes { states: self.n.saturating_add(1) }
    }
    fn square(&self) -> Square {
        Square::Absent
    }
    fn start(&self, m: &Marginal<'_>) -> Vec<f64> {
        vec![Marginal::logit(m.sums[0], f64::from(self.n) * m.total)]
    }
    fn variance(&self, mean: f64, _stats: &dyn Fn(usize) -> f64) -> f64 {
        mean * (1.0 - mean / f64::from(self.n))
    }
    fn cgf_cost(&self) -> f64 {
        1.0
    }
    fn variance_polynomial(&self, _own: &[f64]) -> Option<[f64; 3]> {
        Some([0.0, 1.0, -1.0 / f64::from(self.n)])
    }
    fn field_of_mean(&self, _own: &[f64], m: f64) -> Option<f64> {
        Some(field_of_probability(m / f64::from(self.n)))
    }
    fn has_states(&self) -> bool {
        self.n > 0
    }
    fn has_measure(&self) -> bool {
        true
    }
    fn two_valued_parts(&self) -> Option<u32> {
        Some(self.n)
    }
}
