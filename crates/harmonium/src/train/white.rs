//! Coordinates in which measured data are white: training there is the same model, learnt at one pace in all directions.

use super::Data;
use crate::machine::{Cholesky, Linear};
use crate::{Batch, Bits, Kind, Machine, Real, Result, Role};
use ndarray::{Array1, Array2, Axis};

/// Most coupled units whose covariance is taken: its factorisation must not outweigh an update.
const MANY: usize = 1000;

/// Changes of coordinates $z = L^\top x$ with $LL^\top = S^{-1}$, S being the covariance of the data, for every visible
/// Gaussian layer with lateral couplings.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct White {
    maps: Vec<Linear>,
}

impl White {
    /// The coordinates for data, or `None` where no layer has them: entries are missing, couplings are masked, or nothing
    /// is coupled.
    pub(super) fn new<T: Real>(machine: &Machine<T>, data: &Data<T>) -> Result<Option<Self>> {
        let coupled = |l: &usize| {
            let layer = machine.layer(*l);
            let free = |c: &crate::Coupling<T>| c.other(*l).is_none() || c.mask().is_none();
            let complete = data.known()[*l].is_none();
            let wanted = layer.kind() == Kind::Gaussian && machine.has_lateral(*l);
            wanted && complete && layer.len() <= MANY && machine.couplings().iter().all(free)
        };
        let mut maps = Vec::new();
        for l in machine.with_role(Role::Visible).filter(coupled) {
            let Batch::Reals(x) = data.states().layer(l)? else { continue };
            let x = x.mapv(Real::f64);
            if let Some(normal) = Normal::new(&x, data.wts(), None) {
                maps.push(Linear::new(l, normal.factor));
            }
        }
        Ok((!maps.is_empty()).then_some(Self { maps }))
    }

    /// $\sum\ln\det L$: what densities in x have over those in z.
    pub(super) fn log_det(&self) -> f64 {
        self.maps.iter().map(Linear::log_det).sum()
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

impl Normal {
    /// The normal distribution of weighted rows, of which only the known entries count. Its covariance is drawn towards
    /// its diagonal as far as the number of rows demands: the oracle approximating shrinkage of Chen, Wiesel, Eldar and
    /// Hero (2010), applied to correlations. `None` where no positive definite one is found.
    pub(super) fn new(x: &Array2<f64>, wts: Option<&[f64]>, known: Option<&Bits>) -> Option<Self> {
        let wt = |r: usize| wts.map_or(1.0, |w| w[r]);
        let held = Array2::from_shape_fn(x.dim(), |(r, j)| {
            if known.is_none_or(|k| k.get(r, j)) { wt(r).sqrt() } else { 0.0 }
        });
        let total = (&held * &held).sum_axis(Axis(0)).mapv(|t| t.max(f64::MIN_POSITIVE));
        let mean = (x * &held * &held).sum_axis(Axis(0)) / &total;
        let centred = (x - &mean.view().insert_axis(Axis(0))) * &held;
        let together = held.t().dot(&held).mapv(|t| t.max(f64::MIN_POSITIVE));
        let covariance = centred.t().dot(&centred) / together;
        // A constant column has no scale of its own.
        let scale = covariance.diag().mapv(|v| if v > 0.0 { v.sqrt() } else { 1.0 });
        let correlation = Array2::from_shape_fn(covariance.dim(), |(i, j)| match i == j {
            true => 1.0,
            false => covariance[[i, j]] / (scale[i] * scale[j]),
        });
        let mut shrink = shrinkage(&correlation, x.nrows());
        loop {
            let shrunk = Array2::from_shape_fn(correlation.dim(), |(i, j)| match i == j {
                true => 1.0,
                false => (1.0 - shrink) * correlation[[i, j]],
            });
            if let Some(factor) = Cholesky::new(&shrunk) {
                let mut precision = factor.inverse();
                precision.indexed_iter_mut().for_each(|((i, j), p)| *p /= scale[i] * scale[j]);
                if let Some(factor) = Cholesky::new(&precision) {
                    return Some(Self { mean, factor });
                }
            }
            // Dependent columns, or gaps that make correlations disagree, need more than the number of rows demands.
            if shrink >= 1.0 {
                return None;
            }
            shrink = (4.0 * shrink).min(1.0);
        }
    }
}

/// The part by which correlations of so many rows are drawn towards zero.
fn shrinkage(correlation: &Array2<f64>, rows: usize) -> f64 {
    let (n, p) = (rows as f64, correlation.nrows() as f64);
    let squares: f64 = correlation.iter().map(|c| c * c).sum();
    let part = ((1.0 - 2.0 / p) * squares + p * p) / ((n + 1.0 - 2.0 / p) * (squares - p).max(1e-12));
    part.clamp(1e-6, 1.0)
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
