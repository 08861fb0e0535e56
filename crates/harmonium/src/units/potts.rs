//! Potts units, one of q states: Γ(I) = ln Σ_a e^{θ_a+I_a}, mean softmax; column i·q+a holds state a of unit i.

use super::family::{Family, Marginal, Square, Values};
use super::uniform;
use crate::Real;
use rand::Rng;

/// The fields θ_a+I_a of one unit, in `f64`.
fn fields<'a, T: Real>(theta: &'a [T], inputs: &'a [T]) -> impl Iterator<Item = f64> + Clone + 'a {
    theta.iter().zip(inputs).map(|(t, i)| t.f64() + i.f64())
}

fn log_sum_exp(y: impl Iterator<Item = f64> + Clone) -> f64 {
    let max = y.clone().fold(f64::NEG_INFINITY, f64::max);
    max + y.map(|y| (y - max).exp()).sum::<f64>().ln()
}

/// Calls `f(unit, θ of the unit, inputs of the unit)`.
fn units<T>(q: usize, theta: &[T], inputs: &[T], mut f: impl FnMut(usize, &[T], &[T])) {
    for (i, (t, x)) in theta.chunks_exact(q).zip(inputs.chunks_exact(q)).enumerate() {
        f(i, t, x);
    }
}

pub(super) fn variance<T: Real>(q: usize, theta: &[T], inputs: &[T], out: &mut [T]) {
    units(q, theta, inputs, |i, t, x| {
        let log_z = log_sum_exp(fields(t, x));
        for (p, y) in out[i * q..].iter_mut().zip(fields(t, x)) {
            *p = T::of((y - log_z).exp());
        }
    });
    for p in out {
        *p = *p * (T::one() - *p).max(T::zero());
    }
}

pub(super) fn mode<T: Real>(q: usize, theta: &[T], inputs: &[T], out: &mut [f64]) {
    units(q, theta, inputs, |i, t, x| {
        let best = fields(t, x).enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
        out[i] = best.map_or(0.0, |(a, _)| a as f64);
    });
}

/// A draw for one unit.
pub(super) fn sample_unit<T: Real, R: Rng>(theta: &[T], inputs: &[T], rng: &mut R) -> f64 {
    let y = fields(theta, inputs);
    let max = y.clone().fold(f64::NEG_INFINITY, f64::max);
    let mut left = uniform(rng) * y.clone().map(|y| (y - max).exp()).sum::<f64>();
    let mut last = 0;
    for (a, y) in y.enumerate() {
        let p = (y - max).exp();
        if p > 0.0 {
            // Rounding may leave a remainder after the last state: return the last one with positive probability.
            last = a;
            left -= p;
            if left < 0.0 {
                break;
            }
        }
    }
    last as f64
}

pub(super) fn sample<T: Real, R: Rng>(
    q: usize,
    theta: &[T],
    inputs: &[T],
    rng: &mut R,
    out: &mut [f64],
) {
    units(q, theta, inputs, |i, t, x| out[i] = sample_unit(t, x, rng));
}

/// Adds `wt` to the column of each unit's state.
pub(super) fn stats(q: usize, x: &[f64], wt: f64, out: &mut [f64]) {
    for (i, &a) in x.iter().enumerate() {
        out[i * q + a as usize] += wt;
    }
}

pub(super) fn mean_stats<T: Real>(q: usize, theta: &[T], inputs: &[T], wt: f64, out: &mut [f64]) {
    units(q, theta, inputs, |i, t, x| {
        let log_z = log_sum_exp(fields(t, x));
        for (o, y) in out[i * q..].iter_mut().zip(fields(t, x)) {
            *o += wt * (y - log_z).exp();
        }
    });
}

#[derive(Clone, Copy)]
pub(super) struct Potts {
    pub(super) q: u32,
}

impl Family for Potts {
    fn name(&self) -> String {
        format!("Potts({})", self.q)
    }
    fn word(&self) -> String {
        format!("potts:{}", self.q)
    }
    fn values(&self) -> Values {
        Values::Codes { states: self.q }
    }
    fn square(&self) -> Square {
        Square::Value
    }
    /// In the zero-sum gauge.
    fn start(&self, m: &Marginal<'_>) -> Vec<f64> {
        let log = m.sums.iter().map(|sum| (sum + 1.0).ln());
        let gauge = log.clone().sum::<f64>() / f64::from(self.q);
        log.map(|log| log - gauge).collect()
    }
    /// The logarithms of probabilities.
    fn base(&self, m: &Marginal<'_>, _own: &[f64]) -> Vec<f64> {
        m.sums.iter().map(|sum| ((sum + 1.0) / (m.total + f64::from(self.q))).ln()).collect()
    }
    fn variance(&self, mean: f64, _stats: &dyn Fn(usize) -> f64) -> f64 {
        mean * (1.0 - mean)
    }
    fn cgf_cost(&self) -> f64 {
        10.0
    }
    fn variance_polynomial(&self, _own: &[f64]) -> Option<[f64; 3]> {
        Some([0.0, 1.0, -1.0])
    }
    fn field_of_mean(&self, _own: &[f64], m: f64) -> Option<f64> {
        Some(m.max(f64::MIN_POSITIVE).ln())
    }
    fn has_states(&self) -> bool {
        self.q > 0
    }
    fn one_hot(&self) -> Option<u32> {
        Some(self.q)
    }
}
