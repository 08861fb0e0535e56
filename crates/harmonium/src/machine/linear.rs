//! Linear changes of coordinates of coupled Gaussian units: the machine is of the same family before and after.
//!
//! A Gaussian layer with lateral couplings has the energy $\tfrac12x^\top Px - \theta^\top x - x^\top Wy$ with
//! $P = \mathrm{diag}(\gamma) - U$. With $z = L^\top x$ for any lower triangle L it reads the same, with
//! $P' = L^{-1}PL^{-\top}$, $\theta' = L^{-1}\theta$ and $W' = L^{-1}W$. Two choices of L are useful. That of
//! $P = LL^\top$ makes the units independent given all others, so that enumeration and annealing see an ordinary
//! layer. That of the inverse covariance of data makes the data white, so that one learning rate fits all directions.

use super::cholesky::Cholesky;
use super::{Coupling, Machine, Member};
use crate::{Batch, Real, Result, States};
use ndarray::{Array2, Axis};

/// $z = L^\top x$ in one layer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Linear {
    layer: usize,
    factor: Cholesky,
}

impl Linear {
    pub(crate) fn new(layer: usize, factor: Cholesky) -> Self {
        Self { layer, factor }
    }

    /// $\ln\det L$: $\ln p(x) = \ln p(z) + \ln\det L$.
    pub(crate) fn log_det(&self) -> f64 {
        self.factor.log_det()
    }

    /// The machine that has z for x.
    pub(crate) fn machine_of_z<T: Real>(&self, machine: &Machine<T>) -> Result<Machine<T>> {
        self.machine(machine, |m| lanes(m, |x| self.factor.solve_lower(x)))
    }

    /// The machine that has x for z.
    pub(crate) fn machine_of_x<T: Real>(&self, machine: &Machine<T>) -> Result<Machine<T>> {
        self.machine(machine, |m| *m = self.factor.lower().dot(m))
    }

    /// The machine with every array of the layer multiplied from the left; masks of its couplings are dropped.
    fn machine<T: Real>(
        &self,
        machine: &Machine<T>,
        multiply: impl Fn(&mut Array2<f64>),
    ) -> Result<Machine<T>> {
        let l = self.layer;
        let mut members = machine.members().to_vec();
        let mut couplings = Vec::with_capacity(machine.couplings().len());
        let mut theta = members[l].layer.params().row(0).mapv(Real::f64).insert_axis(Axis(1));
        multiply(&mut theta);
        let mut p = precision(machine, l);
        multiply(&mut p);
        let mut p = p.t().to_owned();
        multiply(&mut p);
        for j in 0..p.nrows() {
            members[l].layer.params_mut()[[0, j]] = T::of(theta[[j, 0]]);
            members[l].layer.params_mut()[[1, j]] = T::of(p[[j, j]]);
        }
        for c in machine.couplings() {
            if c.other(l).is_none() {
                couplings.push(c.clone());
                continue;
            }
            let (a, b) = c.ends();
            let mut w = c.w().mapv(Real::f64);
            if a == b {
                // The upper triangle is copied to the lower, so that rounding cannot make them differ.
                w = Array2::from_shape_fn(p.dim(), |(i, j)| match i == j {
                    true => 0.0,
                    false => -p[[i.min(j), i.max(j)]],
                });
            } else if a == l {
                multiply(&mut w);
            } else {
                w = w.t().to_owned();
                multiply(&mut w);
                w = w.t().to_owned();
            }
            // The mask is dropped, because zeros do not stay zeros.
            couplings.push(Coupling::new(a, b, w.mapv(T::of))?);
        }
        Machine::new(members, couplings)
    }

    /// States with z for x.
    pub(crate) fn states_of_z<T: Real>(&self, states: &States<T>) -> States<T> {
        self.states(states, |x| x.dot(self.factor.lower()))
    }

    /// States with x for z.
    pub(crate) fn states_of_x<T: Real>(&self, states: &States<T>) -> States<T> {
        self.states(states, |z| {
            let mut x = z.to_owned();
            for mut row in x.rows_mut() {
                self.factor.solve_upper(row.as_slice_mut().expect("rows are contiguous"));
            }
            x
        })
    }

    fn states<T: Real>(
        &self,
        states: &States<T>,
        map: impl Fn(&Array2<f64>) -> Array2<f64>,
    ) -> States<T> {
        let mut out = states.clone();
        if let Some(Batch::Reals(x)) = states.get(self.layer) {
            out.set(self.layer, Batch::Reals(map(&x.mapv(Real::f64)).mapv(T::of)));
        }
        out
    }

    /// The layer, and a function from moments in which z is the row to those in which x is: $m \leftarrow L^{-\top}m$.
    pub(crate) fn moments_of_x(&self, m: &mut Array2<f64>) {
        lanes(m, |x| self.factor.solve_upper(x));
    }

    pub(crate) fn layer(&self) -> usize {
        self.layer
    }
}

/// Applies `f` to every column.
fn lanes(m: &mut Array2<f64>, f: impl Fn(&mut [f64])) {
    for mut column in m.columns_mut() {
        let mut x = column.to_vec();
        f(&mut x);
        column.iter_mut().zip(x).for_each(|(c, x)| *c = x);
    }
}

/// $\mathrm{diag}(\gamma) - U$ of a Gaussian layer.
pub(crate) fn precision<T: Real>(machine: &Machine<T>, l: usize) -> Array2<f64> {
    let mut p = Array2::from_diag(&machine.layer(l).params().row(1).mapv(Real::f64));
    if let Some(c) = machine.coupling_between(l, l) {
        p.zip_mut_with(machine.couplings()[c].w(), |p, w| *p -= w.f64());
    }
    p
}

/// A machine whose Gaussian units are independent given all others, and the way back.
#[derive(Clone, Debug)]
pub(crate) struct Decoupled<T: Real> {
    pub(crate) machine: Machine<T>,
    pub(crate) maps: Vec<Linear>,
}

impl<T: Real> Machine<T> {
    /// The machine with every Gaussian layer of `these` that has lateral couplings in the coordinates in which it has
    /// none; `None` when there is no such layer, or a precision matrix is not positive definite.
    pub(crate) fn decoupled(&self, these: impl Fn(usize) -> bool) -> Option<Decoupled<T>> {
        let coupled = |l: &usize| self.layer(*l).kind().is_normal() && self.has_lateral(*l) && these(*l);
        let layers: Vec<usize> = (0..self.len()).filter(coupled).collect();
        if layers.is_empty() {
            return None;
        }
        let mut maps = Vec::new();
        let mut machine = self.clone();
        for l in layers {
            let map = Linear::new(l, Cholesky::new(&precision(self, l))?);
            machine = map.machine_of_z(&machine).ok()?;
            maps.push(map);
        }
        let done = |c: &Coupling<T>| c.is_lateral() && maps.iter().any(|m| m.layer == c.ends().0);
        let couplings = machine.couplings().iter().filter(|c| !done(c)).cloned().collect();
        let members: Vec<Member<T>> = machine.members().to_vec();
        Some(Decoupled { machine: Machine::new(members, couplings).ok()?, maps })
    }
}

impl<T: Real> Decoupled<T> {
    /// $\ln Z$ of the machine in x minus that in z: $-\sum\ln\det L$.
    pub(crate) fn log_z_shift(&self) -> f64 {
        -self.maps.iter().map(Linear::log_det).sum::<f64>()
    }

    /// States with x for z.
    pub(crate) fn states_of_x(&self, states: &States<T>) -> States<T> {
        self.maps.iter().fold(states.clone(), |states, map| map.states_of_x(&states))
    }

    /// States with z for x.
    pub(crate) fn states(&self, states: &States<T>) -> States<T> {
        self.maps.iter().fold(states.clone(), |states, map| map.states_of_z(&states))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use crate::Layer;

    fn machine() -> Machine<f64> {
        let mut m = Machine::semi_restricted(Layer::new(Kind::Gaussian, 3), Layer::new(Kind::Binary, 2));
        m.layer_mut(0).params_mut().assign(&ndarray::arr2(&[[0.3, -0.7, 1.1], [2.0, 1.5, 3.0]]));
        m.layer_mut(1).params_mut().assign(&ndarray::arr2(&[[0.2, -0.4]]));
        m.coupling_mut(0).w_mut().assign(&ndarray::arr2(&[[0.5, -0.2], [0.1, 0.9], [-0.6, 0.3]]));
        let u = ndarray::arr2(&[[0.0, 0.8, -0.3], [0.8, 0.0, 0.5], [-0.3, 0.5, 0.0]]);
        m.coupling_mut(1).w_mut().assign(&u);
        m
    }

    /// Energies are equal, densities differ by the determinant; a round trip gives the original machine.
    #[test]
    fn energies_are_the_same_in_other_coordinates() {
        let m = machine();
        let factor = ndarray::arr2(&[[2.0, 0.5, -0.3], [0.5, 1.0, 0.2], [-0.3, 0.2, 1.5]]);
        let map = Linear::new(0, Cholesky::new(&factor).unwrap());
        let other = map.machine_of_z(&m).unwrap();
        let x = Batch::Reals(ndarray::arr2(&[[0.4, -1.0, 2.0], [1.5, 0.3, -0.8]]));
        let x = m.data(vec![x]).unwrap();
        let z = map.states_of_z(&x);
        for (a, b) in m.free_energy(&x).unwrap().iter().zip(other.free_energy(&z).unwrap()) {
            assert!((a - b).abs() < 1e-12, "{a} {b}");
        }
        let mut gap = map.machine_of_x(&other).unwrap().parameters();
        gap.add(-1.0, &m.parameters());
        assert!(gap.norm() < 1e-12);
    }

    #[test]
    fn a_decoupled_machine_has_no_lateral_coupling_left() {
        let m = machine();
        let d = m.decoupled(|_| true).unwrap();
        assert_eq!(d.machine.couplings().len(), 1);
        assert!(d.machine.layer(0).params().row(1).iter().all(|g| (g - 1.0).abs() < 1e-12));
        assert!(m.decoupled(|l| l == 1).is_none());
    }
}
