//! Poisson units {0,1,2…}: Γ(I) = e^{θ+I}, the rate, which is also mean and variance.
//!
//! States are stored as `u32`, so rates saturate at [`MAX_RATE`]: beyond it Γ is continued linearly, with a constant
//! slope (the mean), and nothing overflows. A fit that gets there has diverged.

use super::Unit;
use super::family::{Family, Marginal, Square, Tail, Values};
use rand::Rng;
use rand_distr::Distribution;

/// Largest rate: half of what a `u32` holds, more than 40 000 standard deviations below the end.
const MAX_RATE: f64 = (1u64 << 31) as f64;

#[derive(Clone, Copy)]
pub(super) struct Poisson;

fn rate([theta]: [f64; 1], input: f64) -> f64 {
    (theta + input).exp().min(MAX_RATE)
}

impl Unit<1> for Poisson {
    fn stats(self, x: f64) -> [f64; 1] {
        [x]
    }
    fn log_measure(self, x: f64) -> f64 {
        -libm::lgamma(x + 1.0)
    }
    fn cgf(self, p: [f64; 1], input: f64) -> f64 {
        let rate = rate(p, input);
        if rate < MAX_RATE { rate } else { rate * (1.0 + p[0] + input - MAX_RATE.ln()) }
    }
    fn mean(self, p: [f64; 1], input: f64) -> f64 {
        rate(p, input)
    }
    fn variance(self, p: [f64; 1], input: f64) -> f64 {
        rate(p, input)
    }
    fn mode(self, p: [f64; 1], input: f64) -> f64 {
        rate(p, input).floor()
    }
    fn mean_stats(self, p: [f64; 1], input: f64) -> [f64; 1] {
        [rate(p, input)]
    }
    fn sample<R: Rng>(self, p: [f64; 1], input: f64, rng: &mut R) -> f64 {
        // An underflowed rate gives zero; any other is a valid parameter.
        rand_distr::Poisson::new(rate(p, input)).map_or(0.0, |poisson| poisson.sample(rng))
    }
}

impl Family for Poisson {
    fn name(&self) -> String {
        "Poisson".into()
    }
    fn word(&self) -> String {
        "poisson".into()
    }
    fn values(&self) -> Values {
        Values::Counts { tail: Tail::Factorial }
    }
    fn square(&self) -> Square {
        Square::Absent
    }
    fn start(&self, m: &Marginal<'_>) -> Vec<f64> {
        vec![((m.sums[0] + 0.5) / (m.total + 0.5)).ln()]
    }
    fn base(&self, m: &Marginal<'_>, _own: &[f64]) -> Vec<f64> {
        vec![((m.sums[0] + 0.5) / (m.total + 1.0)).ln()]
    }
    fn variance(&self, mean: f64, _stats: &dyn Fn(usize) -> f64) -> f64 {
        mean
    }
    fn cgf_cost(&self) -> f64 {
        10.0
    }
    fn variance_polynomial(&self, _own: &[f64]) -> Option<[f64; 3]> {
        Some([0.0, 1.0, 0.0])
    }
    fn field_of_mean(&self, _own: &[f64], m: f64) -> Option<f64> {
        Some(m.max(f64::MIN_POSITIVE).ln())
    }
    fn has_measure(&self) -> bool {
        true
    }
}
