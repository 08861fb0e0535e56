//! Binary units {0,1}: Γ(I) = softplus(θ+I), mean σ(θ+I).

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
