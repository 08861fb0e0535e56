//! Binomial units {0…n}: n binary units that share θ and input; Γ(I) = n·softplus(θ+I).

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
