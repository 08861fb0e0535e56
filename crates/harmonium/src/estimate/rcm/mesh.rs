//! The density of configurations by their projection m on a few directions, on a mesh.

use ndarray::{Array1, Array2};

/// Spins with independent biases and the directions they are projected on, $m = U^\top s/\sqrt N$.
pub(super) struct Projection {
    /// Biases b of the reference distribution $\prod e^{b_is_i}/2\cosh b_i$.
    pub(super) bias: Array1<f64>,
    /// U, N × d.
    pub(super) u: Array2<f64>,
}

/// A point of the mesh.
#[derive(Clone, Debug)]
pub(super) struct Point {
    /// The projection.
    pub(super) m: Array1<f64>,
    /// The tilt μ that makes it the mean: spins of bias $b_i + \sqrt N (U\mu)_i$.
    pub(super) tilt: Array1<f64>,
    /// Logarithm of the reference probability of the point's cell.
    pub(super) log_volume: f64,
}

impl Projection {
    /// N.
    pub(super) fn spins(&self) -> f64 {
        self.bias.len() as f64
    }

    /// The biases under a tilt.
    pub(super) fn tilted(&self, tilt: &Array1<f64>) -> Array1<f64> {
        &self.bias + &(self.spins().sqrt() * self.u.dot(tilt))
    }

    /// $\sum_i \ln\cosh(b_i + \sqrt N(U\mu)_i) - \ln\cosh b_i$.
    fn cgf(&self, tilt: &Array1<f64>) -> f64 {
        let tilted = self.tilted(tilt);
        tilted.iter().zip(&self.bias).map(|(&a, &b)| ln_cosh(a) - ln_cosh(b)).sum()
    }

    /// The mean of m under a tilt and $\partial m/\partial\mu$, a d × d matrix.
    fn response(&self, tilt: &Array1<f64>) -> (Array1<f64>, Array2<f64>) {
        let t = self.tilted(tilt).mapv(f64::tanh);
        let mean = self.u.t().dot(&t) / self.spins().sqrt();
        let d = self.u.ncols();
        let slope = Array2::from_shape_fn((d, d), |(k, l)| {
            let (a, b) = (self.u.column(k), self.u.column(l));
            a.iter().zip(b).zip(&t).map(|((a, b), t)| a * b * (1.0 - t * t)).sum()
        });
        (mean, slope)
    }

    /// The tilt whose mean is m, by Newton's method from `start` with the steps halved until the convex
    /// function $\Lambda(\mu) - N\mu\cdot m$ falls; `None` when no tilt reaches m.
    fn solve(&self, m: &Array1<f64>, start: &Array1<f64>) -> Option<Array1<f64>> {
        let n = self.spins();
        let aim = |tilt: &Array1<f64>| self.cgf(tilt) - n * tilt.dot(m);
        let mut tilt = start.clone();
        for _ in 0..50 {
            let (mean, slope) = self.response(&tilt);
            let gap = m - &mean;
            if gap.dot(&gap).sqrt() < 1e-10 {
                return Some(tilt);
            }
            let step = solve_spd(slope, gap)?;
            let (now, mut scale) = (aim(&tilt), 1.0);
            while scale > 1e-6 && aim(&(&tilt + &(scale * &step))) > now {
                scale *= 0.5;
            }
            tilt.scaled_add(scale, &step);
            if tilt.iter().any(|t| !t.is_finite() || t.abs() > 50.0) {
                return None;
            }
        }
        None
    }

    /// The reachable points of an even mesh of `per_side`^d points over the box from `low` to `high`.
    ///
    /// The reference distribution of m is that of a saddle point,
    /// $(N/2\pi)^{d/2} |\partial m/\partial\mu|^{-1/2} e^{\Lambda(\mu)-N\mu\cdot m}$.
    pub(super) fn mesh(&self, low: &Array1<f64>, high: &Array1<f64>, per_side: usize) -> Vec<Point> {
        let d = low.len();
        let step = (high - low) / (per_side - 1).max(1) as f64;
        let cell: f64 = step.iter().map(|s| s.ln()).sum();
        let n = self.spins();
        let mut points: Vec<Point> = Vec::new();
        let mut start = Array1::zeros(d);
        for code in 0..per_side.pow(d as u32) {
            let m = Array1::from_shape_fn(d, |k| {
                low[k] + step[k] * (code / per_side.pow(k as u32) % per_side) as f64
            });
            let solved = self.solve(&m, &start).or_else(|| self.solve(&m, &Array1::zeros(d)));
            let Some(tilt) = solved else { continue };
            let log_det = log_det_spd(self.response(&tilt).1);
            let log_volume = cell + 0.5 * d as f64 * (n / std::f64::consts::TAU).ln() - 0.5 * log_det
                + self.cgf(&tilt)
                - n * tilt.dot(&m);
            if log_volume.is_finite() {
                start.assign(&tilt);
                points.push(Point { m, tilt, log_volume });
            }
        }
        points
    }
}

/// ln cosh x without overflow.
fn ln_cosh(x: f64) -> f64 {
    x.abs() + (-2.0 * x.abs()).exp().ln_1p() - std::f64::consts::LN_2
}

/// The Cholesky factor of a small positive definite matrix.
fn cholesky(mut a: Array2<f64>) -> Option<Array2<f64>> {
    for j in 0..a.nrows() {
        for k in 0..j {
            let f = a[[j, k]];
            for i in j..a.nrows() {
                let x = a[[i, k]];
                a[[i, j]] -= f * x;
            }
        }
        let pivot = a[[j, j]];
        if pivot.is_nan() || pivot <= 1e-14 {
            return None;
        }
        for i in j..a.nrows() {
            a[[i, j]] /= pivot.sqrt();
        }
    }
    Some(a)
}

fn solve_spd(a: Array2<f64>, mut b: Array1<f64>) -> Option<Array1<f64>> {
    let l = cholesky(a)?;
    for i in 0..b.len() {
        b[i] = (b[i] - (0..i).map(|k| l[[i, k]] * b[k]).sum::<f64>()) / l[[i, i]];
    }
    for i in (0..b.len()).rev() {
        b[i] = (b[i] - (i + 1..b.len()).map(|k| l[[k, i]] * b[k]).sum::<f64>()) / l[[i, i]];
    }
    Some(b)
}

fn log_det_spd(a: Array2<f64>) -> f64 {
    cholesky(a).map_or(f64::NAN, |l| 2.0 * (0..l.nrows()).map(|i| l[[i, i]].ln()).sum::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2^40 configurations of 40 spins along one direction: the mesh adds up to one, and its mean and variance are
    /// those of the reference distribution.
    #[test]
    fn the_mesh_carries_the_reference_distribution() {
        let n = 40;
        let bias = Array1::from_shape_fn(n, |i| 0.4 * (i as f64 / n as f64) - 0.3);
        let mut u = Array2::from_shape_fn((n, 1), |(i, _)| 1.0 + 0.5 * (i as f64).sin());
        let norm = u.iter().map(|u| u * u).sum::<f64>().sqrt();
        u /= norm;
        let p = Projection { bias, u };
        let points = p.mesh(&Array1::from_elem(1, -0.6), &Array1::from_elem(1, 0.6), 400);
        let sum =
            |f: &dyn Fn(f64) -> f64| points.iter().map(|p| p.log_volume.exp() * f(p.m[0])).sum::<f64>();
        let t = p.bias.mapv(f64::tanh);
        let mean = p.u.column(0).dot(&t) / (n as f64).sqrt();
        let var =
            p.u.column(0).iter().zip(&t).map(|(u, t)| u * u * (1.0 - t * t)).sum::<f64>() / n as f64;
        assert!((sum(&|_| 1.0) - 1.0).abs() < 0.01, "{}", sum(&|_| 1.0));
        assert!((sum(&|m| m) - mean).abs() < 1e-3);
        assert!((sum(&|m| (m - mean).powi(2)) / var - 1.0).abs() < 0.03);
    }
}
