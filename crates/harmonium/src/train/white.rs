//! Whitening coordinates for real columns: the same model, with one learning rate suitable for all directions.

use super::Data;
use super::em::moments_with_gaps;
use super::init::spare_variance;
use crate::machine::{Cholesky, Linear};
use crate::sample::purpose;
use crate::{Batch, Bits, Key, Machine, Real, Result, Role};
use harmonium_kernels::Stream;
use ndarray::{Array1, Array2, ArrayView1, Axis};
use rand_distr::{Distribution, StandardNormal};

/// Most coupled units that are whitened: the factorisation must not cost more than an update.
const MANY: usize = 1000;

/// Changes of coordinates $z = L^\top x$ with $LL^\top = S^{-1}$, S being the covariance of the data, for every visible
/// Gaussian layer with lateral couplings.
///
/// Where columns depend on each other linearly, as a total on its parts, no precision is large enough for them: the
/// likelihood has no maximum, and single precision soon cannot hold the machine. Their training rows get noise of
/// variance 1/[`ROOM`] in z, which bounds it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct White {
    maps: Vec<Linear>,
    /// The layers whose training rows get noise.
    noisy: Vec<usize>,
}

/// By how much the precision of dependent columns may grow before rounding it could make it indefinite.
const ROOM: f64 = 100.0;

impl White {
    /// The coordinates for data, or `None` where none apply: entries are missing, couplings are masked, or nothing is
    /// coupled.
    pub(super) fn new<T: Real>(machine: &Machine<T>, data: &Data<T>) -> Result<Option<Self>> {
        let coupled = |l: &usize| {
            let layer = machine.layer(*l);
            let free = |c: &crate::Coupling<T>| c.other(*l).is_none() || c.mask().is_none();
            let complete = data.known()[*l].is_none();
            let wanted = layer.kind().is_normal() && machine.has_lateral(*l);
            wanted && complete && layer.len() <= MANY && machine.couplings().iter().all(free)
        };
        let (mut maps, mut noisy) = (Vec::new(), Vec::new());
        for l in machine.with_role(Role::Visible).filter(coupled) {
            let Batch::Reals(x) = data.states().layer(l)? else { continue };
            let x = x.mapv(Real::f64);
            let Some(mut normal) = Normal::new(&x, data.wts(), None) else { continue };
            if !normal.explains_all_directions(&x, data.wts()) {
                let Some(roomy) = Normal::with_room(&x, data.wts(), None, ROOM) else { continue };
                normal = roomy;
                noisy.push(l);
            }
            maps.push(Linear::new(l, normal.factor));
        }
        Ok((!maps.is_empty()).then_some(Self { maps, noisy }))
    }

    /// $\sum\ln\det L$: log-densities in x minus those in z.
    pub(super) fn log_det(&self) -> f64 {
        self.maps.iter().map(Linear::log_det).sum()
    }

    /// Rows to train on: [`data`](Self::data) with noise where columns depend on each other.
    pub(super) fn training_data<T: Real>(&self, data: &Data<T>) -> Data<T> {
        let mut states = self.data(data).states().clone();
        for &l in &self.noisy {
            let Some(Batch::Reals(mut z)) = states.take(l) else { continue };
            let mut rng =
                Stream::new(Key { seed: 0, purpose: purpose::INIT, block: l as u32, sweep: 0 });
            let sd = ROOM.recip().sqrt();
            z.mapv_inplace(|z| {
                let e: f64 = StandardNormal.sample(&mut rng);
                z + T::of(sd * e)
            });
            states.set(l, Batch::Reals(z));
        }
        data.with_states(states, self.log_det())
    }

    pub(super) fn data<T: Real>(&self, data: &Data<T>) -> Data<T> {
        let states = self.maps.iter().fold(data.states().clone(), |s, map| map.states_of_z(&s));
        data.with_states(states, self.log_det())
    }

    pub(super) fn machine_of_z<T: Real>(&self, machine: &Machine<T>) -> Result<Machine<T>> {
        self.maps.iter().try_fold(machine.clone(), |m, map| map.machine_of_z(&m))
    }

    pub(super) fn machine_of_x<T: Real>(&self, machine: &Machine<T>) -> Result<Machine<T>> {
        self.maps.iter().try_fold(machine.clone(), |m, map| map.machine_of_x(&m))
    }
}

/// Means, and the factor of the inverse covariance, of the columns of a layer.
pub(super) struct Normal {
    pub(super) mean: Array1<f64>,
    pub(super) factor: Cholesky,
}

/// Candidates for the shrinkage of correlations towards zero.
const SHRINKAGES: [f64; 9] = [1e-6, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 0.6, 1.0];

/// Folds of the cross-validation that selects one, and rows per column beyond which the smallest is used.
const FOLDS: usize = 5;
const PLENTY: usize = 100;

impl Normal {
    /// The normal distribution of weighted rows, over their known entries. Its correlations are shrunk towards zero by
    /// the amount that cross-validation selects, because few rows determine directions of small variance poorly. `None`
    /// if no positive definite covariance is found.
    pub(super) fn new(x: &Array2<f64>, wts: Option<&[f64]>, known: Option<&Bits>) -> Option<Self> {
        Self::with_room(x, wts, known, 1.0)
    }

    /// The same with a precision that can grow by this factor in any direction before rounding matters.
    fn with_room(x: &Array2<f64>, wts: Option<&[f64]>, known: Option<&Bits>, room: f64) -> Option<Self> {
        let rows = WeightedRows::new(x, wts, known);
        let enough = x.nrows() >= PLENTY * x.ncols() || x.ncols() < 2;
        let best = if enough { SHRINKAGES[0] } else { rows.best_shrinkage() };
        let moments = Moments::new(&rows, |_| true);
        // Dependent columns, or inconsistent correlations due to gaps, may need more.
        let survives = |n: &Self| n.survives_rounding(room);
        SHRINKAGES.into_iter().filter(|&s| s >= best).filter_map(|s| moments.normal(s)).find(survives)
    }

    /// Whether the inverse covariance stays positive definite when it is rounded to single precision, with errors this
    /// many times as large.
    fn survives_rounding(&self, times: f64) -> bool {
        let lower = self.factor.lower();
        let mut p = lower.dot(&lower.t());
        let n = p.nrows();
        let scale = p.diag().mapv(f64::sqrt);
        p.indexed_iter_mut().for_each(|((i, j), p)| *p /= scale[i] * scale[j]);
        // Errors of all entries together change an eigenvalue by at most this much.
        p.diag_mut().mapv_inplace(|d| d - times * n as f64 * f64::from(f32::EPSILON));
        Cholesky::new(&p).is_some()
    }

    /// Whether the rows have in every direction a variance that is no less than 1/[`ROOM`] of this distribution's.
    fn explains_all_directions(&self, x: &Array2<f64>, wts: Option<&[f64]>) -> bool {
        let z = x.dot(self.factor.lower());
        let rows = WeightedRows::new(&z, wts, None);
        let Moments { scale, correlation, .. } = Moments::new(&rows, |_| true);
        let covariance = Array2::from_shape_fn(correlation.dim(), |(i, j)| {
            let c = correlation[[i, j]] * scale[i] * scale[j];
            if i == j { c - ROOM.recip() } else { c }
        });
        Cholesky::new(&covariance).is_some()
    }

    /// ln p of a row, up to a constant.
    fn log_density(&self, row: ArrayView1<'_, f64>) -> f64 {
        let gap = &row - &self.mean;
        // |Lᵀd|² is dᵀPd.
        let z = gap.dot(self.factor.lower());
        self.factor.log_det() - 0.5 * z.dot(&z)
    }
}

/// ln p of each of `rows` up to a constant, under the normal distribution fitted to `train` from which coupled real
/// units start. `None` where `train` has none.
pub fn normal_log_density(train: &Array2<f64>, rows: &Array2<f64>) -> Option<Vec<f64>> {
    let normal = Normal::new(train, None, None)?;
    Some(rows.rows().into_iter().map(|row| normal.log_density(row)).collect())
}

/// Rows, and the square roots of the weights of their known entries.
struct WeightedRows<'a> {
    x: &'a Array2<f64>,
    held: Array2<f64>,
}

impl<'a> WeightedRows<'a> {
    fn new(x: &'a Array2<f64>, wts: Option<&[f64]>, known: Option<&Bits>) -> Self {
        let wt = |r: usize| wts.map_or(1.0, |w| w[r]);
        let held = Array2::from_shape_fn(x.dim(), |(r, j)| {
            if known.is_none_or(|k| k.get(r, j)) { wt(r).sqrt() } else { 0.0 }
        });
        Self { x, held }
    }

    /// The shrinkage with the largest likelihood of left-out complete rows. One or two rows say nothing of correlations: a
    /// single row that is left has no spread, and two always lie on a line.
    fn best_shrinkage(&self) -> f64 {
        let folds = FOLDS.min(self.x.nrows());
        if folds < 3 {
            return SHRINKAGES[SHRINKAGES.len() - 1];
        }
        let mut scores = [0.0; SHRINKAGES.len()];
        let complete = |r: usize| self.held.row(r).iter().all(|h| *h > 0.0);
        for fold in 0..folds {
            let moments = Moments::new(self, |r| r % folds != fold);
            for (score, shrinkage) in scores.iter_mut().zip(SHRINKAGES) {
                let Some(normal) = moments.normal(shrinkage) else {
                    *score = f64::NEG_INFINITY;
                    continue;
                };
                let left_out = (fold..self.x.nrows()).step_by(folds).filter(|&r| complete(r));
                *score += left_out
                    .map(|r| self.held[[r, 0]].powi(2) * normal.log_density(self.x.row(r)))
                    .sum::<f64>();
            }
        }
        let best = (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b]));
        best.map_or(1.0, |i| SHRINKAGES[i])
    }
}

/// Means, scales and correlations.
struct Moments {
    mean: Array1<f64>,
    scale: Array1<f64>,
    correlation: Array2<f64>,
}

impl Moments {
    /// The moments of the rows that are `wanted`.
    fn new(rows: &WeightedRows<'_>, wanted: impl Fn(usize) -> bool) -> Self {
        let chosen: Vec<usize> = (0..rows.x.nrows()).filter(|&r| wanted(r)).collect();
        let (x, held) = (rows.x.select(Axis(0), &chosen), rows.held.select(Axis(0), &chosen));
        let total = (&held * &held).sum_axis(Axis(0)).mapv(|t| t.max(f64::MIN_POSITIVE));
        let mean = (&x * &held * &held).sum_axis(Axis(0)) / &total;
        let centred = (&x - &mean.view().insert_axis(Axis(0))) * &held;
        let together = held.t().dot(&held).mapv(|t| t.max(f64::MIN_POSITIVE));
        let covariance = centred.t().dot(&centred) / together;
        let pairs = Self::of_covariance(mean, covariance);
        if held.iter().all(|h| *h > 0.0) { pairs } else { pairs.with_gaps(&x, &held).unwrap_or(pairs) }
    }

    fn of_covariance(mean: Array1<f64>, covariance: Array2<f64>) -> Self {
        // A constant column has no scale of its own, and gets that of an independent one.
        let variance = |j: usize| match covariance[[j, j]] {
            v if v > 0.0 => v,
            _ => spare_variance(mean[j]),
        };
        let scale = Array1::from_shape_fn(mean.len(), |j| variance(j).sqrt());
        let correlation = Array2::from_shape_fn(covariance.dim(), |(i, j)| match i == j {
            true => 1.0,
            false => covariance[[i, j]] / (scale[i] * scale[j]),
        });
        Self { mean, scale, correlation }
    }

    /// The most likely moments where entries are missing. Pairwise correlations come from different rows, so together
    /// they need not be positive definite, and shrinking them until they are costs nats.
    fn with_gaps(&self, x: &Array2<f64>, held: &Array2<f64>) -> Option<Self> {
        let z = (x - &self.mean.view().insert_axis(Axis(0))) / self.scale.view().insert_axis(Axis(0));
        let wts: Vec<f64> =
            held.rows().into_iter().map(|h| h.fold(0.0, |a: f64, b| a.max(*b)).powi(2)).collect();
        let (mean, covariance) =
            moments_with_gaps(&z, &wts, |r, j| held[[r, j]] > 0.0, &self.correlation)?;
        let covariance = Array2::from_shape_fn(covariance.dim(), |(i, j)| {
            covariance[[i, j]] * self.scale[i] * self.scale[j]
        });
        Some(Self::of_covariance(&self.mean + &(mean * &self.scale), covariance))
    }

    /// The normal distribution with correlations shrunk by this fraction.
    fn normal(&self, shrinkage: f64) -> Option<Normal> {
        let shrunk = Array2::from_shape_fn(self.correlation.dim(), |(i, j)| match i == j {
            true => 1.0,
            false => (1.0 - shrinkage) * self.correlation[[i, j]],
        });
        let mut precision = Cholesky::new(&shrunk)?.inverse();
        precision.indexed_iter_mut().for_each(|((i, j), p)| *p /= self.scale[i] * self.scale[j]);
        Some(Normal { mean: self.mean.clone(), factor: Cholesky::new(&precision)? })
    }
}

/// Gives a Gaussian layer with lateral couplings the parameters of a normal distribution.
pub(super) fn set_normal<T: Real>(machine: &mut Machine<T>, l: usize, normal: &Normal) {
    let lower = normal.factor.lower();
    let p = lower.dot(&lower.t());
    let theta = p.dot(&normal.mean);
    for j in 0..p.nrows() {
        machine.layer_mut(l).params_mut()[[0, j]] = T::of(theta[j]);
        machine.layer_mut(l).params_mut()[[1, j]] = T::of(p[[j, j]]);
    }
    if let Some(c) = machine.coupling_between(l, l) {
        let u = |(i, j): (usize, usize)| if i == j { 0.0 } else { -p[[i.min(j), i.max(j)]] };
        let w = Array2::from_shape_fn(p.dim(), |ij| T::of(u(ij)));
        machine.coupling_mut(c).w_mut().assign(&w);
        machine.coupling_mut(c).apply_mask();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudo-random numbers without correlations.
    fn noise(n: usize, p: usize) -> Array2<f64> {
        let mut x = 0.3f64;
        Array2::from_shape_fn((n, p), |_| {
            x = 3.99 * x * (1.0 - x);
            x - 0.5
        })
    }

    #[test]
    fn correlations_are_shrunk_as_far_as_rows_are_few() {
        let few = noise(30, 12);
        let independent = WeightedRows::new(&few, None, None).best_shrinkage();
        // A column that repeats another with little noise is determined by few rows.
        let mut tied = noise(60, 4);
        for r in 0..60 {
            tied[[r, 3]] = tied[[r, 0]] + 0.05 * tied[[r, 3]];
        }
        let strong = WeightedRows::new(&tied, None, None).best_shrinkage();
        assert!(independent >= 0.6 && strong <= 0.01, "{independent} {strong}");
    }

    #[test]
    fn rounding_leaves_a_positive_definite_matrix() {
        // The last column is nearly the sum of the others.
        for noise_level in [1e-1, 1e-3, 1e-5, 0.0] {
            let mut x = noise(300, 6);
            for r in 0..300 {
                x[[r, 5]] = x.row(r).iter().take(5).sum::<f64>() + noise_level * x[[r, 5]];
            }
            let normal = Normal::new(&x, None, None).unwrap();
            let lower = normal.factor.lower();
            let rounded = lower.dot(&lower.t()).mapv(|p| f64::from(p as f32));
            assert!(Cholesky::new(&rounded).is_some(), "{noise_level}");
        }
    }

    #[test]
    fn dependent_columns_have_a_normal_distribution_still() {
        let mut x = noise(40, 3);
        for r in 0..40 {
            x[[r, 2]] = x[[r, 0]] + x[[r, 1]];
        }
        assert!(Normal::new(&x, None, None).is_some());
    }
}
