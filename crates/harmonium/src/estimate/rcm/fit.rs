//! The density of m: hyperplanes with weights, fitted to data on the mesh.

use ndarray::{Array1, Array2, Axis};
use rayon::prelude::*;

/// $\ln p(m) = \ln\text{volume}(m) + \theta\cdot m + \sum_k g\big(q_k(n_k\cdot m + z_k)\big) - \ln Z$, $q_k \ge 0$, where g
/// is |x|, which makes the log-likelihood concave, or ln 2cosh x, which is what a hidden spin does.
#[derive(Clone, Debug)]
pub(super) struct Density {
    /// Unit normals, a row each.
    pub(super) normals: Array2<f64>,
    /// Offsets z.
    pub(super) offsets: Array1<f64>,
    /// θ.
    pub(super) theta: Array1<f64>,
    /// q.
    pub(super) q: Array1<f64>,
}

/// The function g of a hyperplane's distance.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Shape {
    Abs,
    Ln2Cosh,
}

/// The gradient by θ and by q.
type Slope = (Array1<f64>, Array1<f64>);

impl Density {
    /// The distances $n_k\cdot m + z_k$ of points, a row each.
    fn distances(&self, m: &Array2<f64>) -> Array2<f64> {
        m.dot(&self.normals.t()) + &self.offsets
    }

    /// $\theta\cdot m + \sum_k g(q_kx_k)$ for each row.
    fn potential(&self, m: &Array2<f64>, x: &Array2<f64>, shape: Shape) -> Vec<f64> {
        let linear = m.dot(&self.theta);
        let row = |r: usize| {
            let terms = x.row(r).into_iter().zip(&self.q).map(|(x, q)| {
                let y = (q * x).abs();
                if shape == Shape::Abs { y } else { y + (-2.0 * y).exp().ln_1p() }
            });
            linear[r] + terms.sum::<f64>()
        };
        (0..m.nrows()).into_par_iter().map(row).collect()
    }

    /// ⟨m⟩ and $\langle\partial g/\partial q_k\rangle$ under weights that sum to one.
    fn averages(&self, m: &Array2<f64>, x: &Array2<f64>, wts: &Array1<f64>, shape: Shape) -> Slope {
        let slope = match shape {
            Shape::Abs => x.mapv(f64::abs),
            Shape::Ln2Cosh => {
                let mut y = x * &self.q;
                y.mapv_inplace(f64::tanh);
                y * x
            }
        };
        (wts.dot(m), wts.dot(&slope))
    }

    /// Probabilities of the mesh points and the logarithm of their sum before normalisation.
    pub(super) fn probabilities(
        &self,
        mesh: &Array2<f64>,
        log_volume: &[f64],
        shape: Shape,
    ) -> (Array1<f64>, f64) {
        let mut p = self.potential(mesh, &self.distances(mesh), shape);
        p.iter_mut().zip(log_volume).for_each(|(p, v)| *p += v);
        let max = p.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = p.iter().map(|p| (p - max).exp()).sum();
        let log_z = max + sum.ln();
        (p.into_iter().map(|p| (p - log_z).exp()).collect(), log_z)
    }

    /// Climbs the mean log-likelihood of `data` (rows m with weights that sum to one): projected gradient steps, scaled
    /// by the spread of each feature, with momentum that is dropped when a step fails. Returns the likelihood,
    /// up to a constant.
    pub(super) fn fit(
        &mut self,
        (data, wts): (&Array2<f64>, &Array1<f64>),
        (mesh, log_volume): (&Array2<f64>, &[f64]),
        shape: Shape,
        rounds: usize,
    ) -> f64 {
        let (x, y) = (self.distances(data), self.distances(mesh));
        let scale = |a: &Array2<f64>| {
            let mean = wts.dot(a);
            (wts.dot(&a.mapv(|a| a * a)) - &mean * &mean).mapv(|v| 1.0 / v.max(1e-8))
        };
        let (scale_theta, scale_q) = (scale(data), scale(&x.mapv(f64::abs)));
        let likelihood = |s: &Self| {
            let positive: f64 = s.potential(data, &x, shape).iter().zip(wts).map(|(p, w)| p * w).sum();
            positive - s.probabilities(mesh, log_volume, shape).1
        };
        let (mut best, mut rate) = (likelihood(self), 0.5 / (1.0 + self.q.len() as f64).sqrt());
        let mut previous = self.clone();
        let mut momentum = 0.0_f64;
        for _ in 0..rounds {
            let mut next = self.clone();
            next.theta.scaled_add(momentum, &(&self.theta - &previous.theta));
            next.q.scaled_add(momentum, &(&self.q - &previous.q));
            next.q.mapv_inplace(|q| q.max(0.0));
            let p = next.probabilities(mesh, log_volume, shape).0;
            let positive = next.averages(data, &x, wts, shape);
            let negative = next.averages(mesh, &y, &p, shape);
            next.theta.scaled_add(rate, &((positive.0 - negative.0) * &scale_theta));
            next.q.scaled_add(rate, &((positive.1 - negative.1) * &scale_q));
            next.q.mapv_inplace(|q| q.max(0.0));
            let value = likelihood(&next);
            if value > best {
                previous = std::mem::replace(self, next);
                let gain = value - best;
                (best, rate, momentum) = (value, 1.1 * rate, (momentum + 0.1).min(0.95));
                if gain < 1e-9 {
                    break;
                }
            } else {
                // Drop the momentum first; shorten the step only if there was none.
                rate *= if momentum > 0.0 { 0.9 } else { 0.5 };
                momentum = 0.0;
                if rate < 1e-12 {
                    break;
                }
            }
        }
        best
    }

    /// Only the given hyperplanes.
    pub(super) fn select(&self, keep: &[usize]) -> Self {
        Self {
            normals: self.normals.select(Axis(0), keep),
            offsets: self.offsets.select(Axis(0), keep),
            theta: self.theta.clone(),
            q: self.q.select(Axis(0), keep),
        }
    }
}
