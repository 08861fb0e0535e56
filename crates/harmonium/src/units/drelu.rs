//! Double ReLU units: two half lines with their own parameters, joined at zero.
//!
//! With $x_+ = \max(x,0)$ and $x_- = \min(x,0)$ the density is a mixture of a normal cut to $x>0$ and
//! one cut to $x<0$; $\Gamma(I) = \ln(e^{\Gamma^+} + e^{\Gamma^-})$ with
//! $\Gamma^\pm = \ln\int_0^\infty e^{-\gamma^\pm y^2/2 \pm (\theta^\pm + I)y} dy$.

use super::family::{Family, Marginal, Square, Values};
use super::{Unit, half_line, log_add_exp, sigmoid, uniform};
use rand::Rng;

#[derive(Clone, Copy)]
pub(super) struct Drelu;

/// γ and η of the two half lines, η being the exponent's linear coefficient in the distance from zero.
fn sides([tp, tm, gp, gm]: [f64; 4], input: f64) -> [(f64, f64); 2] {
    [(gp, tp + input), (gm, -(tm + input))]
}

/// One half line.
struct Half {
    log_integral: f64,
    gamma: f64,
    eta: f64,
}

fn halves(p: [f64; 4], input: f64) -> [Half; 2] {
    sides(p, input).map(|(gamma, eta)| Half {
        log_integral: half_line::log_integral(gamma, eta),
        gamma,
        eta,
    })
}

/// Weight of the positive half, and the moments of the distance from zero on both halves.
fn mixture(p: [f64; 4], input: f64) -> (f64, half_line::Moments, half_line::Moments) {
    let halves = sides(p, input).map(|(gamma, eta)| half_line::log_integral_and_moments(gamma, eta));
    let [(above, plus), (below, minus)] = halves;
    (sigmoid(above - below), plus, minus)
}

impl Unit<4> for Drelu {
    fn stats(self, x: f64) -> [f64; 4] {
        let (p, m) = (x.max(0.0), x.min(0.0));
        [p, m, -0.5 * p * p, -0.5 * m * m]
    }
    fn cgf(self, p: [f64; 4], input: f64) -> f64 {
        let [plus, minus] = halves(p, input);
        log_add_exp(plus.log_integral, minus.log_integral)
    }
    fn mean(self, p: [f64; 4], input: f64) -> f64 {
        let (a, plus, minus) = mixture(p, input);
        a * plus.mean - (1.0 - a) * minus.mean
    }
    fn variance(self, p: [f64; 4], input: f64) -> f64 {
        // Law of total variance: no difference of large numbers.
        let (a, plus, minus) = mixture(p, input);
        let gap = plus.mean + minus.mean;
        a * plus.variance + (1.0 - a) * minus.variance + a * (1.0 - a) * gap * gap
    }
    fn mode(self, p: [f64; 4], input: f64) -> f64 {
        // The density at its two half-line peaks y = η/γ is e^{η²/2γ}; a peak outside its half is at 0.
        let [plus, minus] = halves(p, input).map(|h| {
            let y = (h.eta / h.gamma).max(0.0);
            (y, 0.5 * h.gamma * y * y)
        });
        if plus.1 >= minus.1 { plus.0 } else { -minus.0 }
    }
    fn mean_stats(self, p: [f64; 4], input: f64) -> [f64; 4] {
        let (a, plus, minus) = mixture(p, input);
        let b = 1.0 - a;
        [a * plus.mean, -b * minus.mean, -0.5 * a * plus.second, -0.5 * b * minus.second]
    }
    fn sample<R: Rng>(self, p: [f64; 4], input: f64, rng: &mut R) -> f64 {
        let [plus, minus] = halves(p, input);
        if uniform(rng) < sigmoid(plus.log_integral - minus.log_integral) {
            half_line::sample(plus.gamma, plus.eta, rng)
        } else {
            -half_line::sample(minus.gamma, minus.eta, rng)
        }
    }
}

impl Family for Drelu {
    fn name(&self) -> String {
        "dReLU".into()
    }
    fn word(&self) -> String {
        "drelu".into()
    }
    fn params(&self) -> &'static [&'static str] {
        &["theta_plus", "theta_minus", "gamma_plus", "gamma_minus"]
    }
    fn values(&self) -> Values {
        Values::Reals { lowest: f64::NEG_INFINITY }
    }
    fn square(&self) -> Square {
        Square::Gamma
    }
    /// Two equal sides, which are a normal density.
    fn start(&self, m: &Marginal<'_>) -> Vec<f64> {
        let (theta, gamma) = (m.mean / m.variance, 1.0 / m.variance);
        vec![theta, theta, gamma, gamma]
    }
    fn base(&self, m: &Marginal<'_>, own: &[f64]) -> Vec<f64> {
        let precision = (m.total + 1.0) / (m.squares + 1.0 / own[2].min(own[3]));
        let theta = precision * m.mean;
        vec![theta, theta, precision, precision]
    }
    fn variance(&self, mean: f64, stats: &dyn Fn(usize) -> f64) -> f64 {
        -2.0 * (stats(2) + stats(3)) - mean * mean
    }
    fn cgf_cost(&self) -> f64 {
        80.0
    }
}
