//! The path from a base model to a machine, with as many layers traced out as are independent.

use super::Base;
use crate::sample::{Order, sweep};
use crate::{Bits, Clamp, Clamps, Key, Layer, Machine, Real, Result, Role, States, Tempered};
use ndarray::Array2;
use rayon::prelude::*;

/// Fewest rows of a parallel task.
const ROWS: usize = 16;

/// The unnormalised distributions
///
/// $$f_\beta(x) = \nu(x) \exp\Big(-(1-\beta)E_0(x) - \beta E(x)\Big)$$
///
/// of the kept layers, the traced ones summed over. Only the dependence of the logarithm on β is needed: kept layers
/// are linear in β, traced ones give Γ.
pub(crate) struct Path<'m, T: Real> {
    machine: &'m Machine<T>,
    base: Base<T>,
    /// Own minus base parameters of each layer: the slope of the linear part.
    rise: Vec<Layer<T>>,
    kept: Vec<usize>,
    traced: Vec<usize>,
    order: Order,
    /// Clamps of the sweep over the kept layers.
    clamps: Clamps,
}

/// The quantities from which $\ln f_\beta$ of a batch of configurations follows, for any β.
pub(crate) struct Fields<T> {
    slope: Vec<f64>,
    /// Inputs of the traced layers at β = 1.
    inputs: Vec<Array2<T>>,
}

impl<'m, T: Real> Path<'m, T> {
    /// The path of a machine; units that are clamped are given and never sampled, and their layers not traced out.
    pub(crate) fn new(machine: &'m Machine<T>, base: Base<T>, clamps: &Clamps) -> Result<Self> {
        machine.check_normalisable()?;
        machine.between(base.layers(), 0.0)?;
        let order = Order::new(machine);
        let independent = |role: Role| {
            let free = |l: &&usize| machine.role(**l) == role && *clamps.layer(**l) == Clamp::Free;
            order.layers().iter().filter(free).fold(Vec::new(), |mut set, &l| {
                set.push(l);
                if !machine.independent(&set) {
                    set.pop();
                }
                set
            })
        };
        // Keep the visible layers, so that data can serve as starts; trace them out only where no hidden layer can be.
        let mut traced = independent(Role::Hidden);
        if traced.is_empty() {
            traced = independent(Role::Visible);
        }
        let kept = (0..machine.len()).filter(|l| !traced.contains(l)).collect();
        let clamps = traced.iter().fold(clamps.clone(), |c, &l| c.with(l, Clamp::All));
        let rise = machine.members().iter().zip(base.layers()).map(|(m, b)| {
            let mut rise = m.layer.clone();
            *rise.params_mut() -= b.params();
            rise
        });
        let rise = rise.collect();
        Ok(Self { machine, base, rise, kept, traced, order, clamps })
    }

    pub(crate) fn machine(&self) -> &'m Machine<T> {
        self.machine
    }
    pub(crate) fn kept(&self) -> &[usize] {
        &self.kept
    }
    pub(crate) fn at(&self, beta: f64) -> Tempered<'_, T> {
        self.machine.between(self.base.layers(), beta).expect("checked when the path was made")
    }

    /// ln Z₀ with nothing given.
    pub(crate) fn log_z0(&self) -> f64 {
        self.base.log_z(0..self.machine.len())
    }

    /// ln Z₀ of each row with the layers that `states` hold given, or only the units whose bit in `known` is set.
    pub(crate) fn log_z0_given(&self, states: &States<T>, known: &[Option<Bits>]) -> Result<Vec<f64>> {
        let bits = |l: usize| known.get(l).and_then(Option::as_ref);
        let whole = |l: &usize| states.get(*l).is_some() && bits(*l).is_none();
        let (given, free): (Vec<_>, Vec<_>) = (0..self.machine.len()).partition(whole);
        let mut out = self.at(0.0).log_weight_of(&given, states)?;
        let log_z = self.base.log_z(free);
        out.iter_mut().for_each(|x| *x += log_z);
        for l in 0..self.machine.len() {
            let (Some(x), Some(bits)) = (states.get(l), bits(l)) else { continue };
            // Z₀ of all units times the probability of those that are given.
            let (layer, values) = (&self.base.layers()[l], self.machine.layer(l).values(x));
            let nothing = vec![T::zero(); layer.kind().columns()];
            for j in 0..layer.len() {
                let unit = layer.unit(j);
                for (r, out) in out.iter_mut().enumerate().filter(|(r, _)| bits.get(*r, j)) {
                    *out += unit.log_density(&nothing, values[[r, j]]);
                }
            }
        }
        Ok(out)
    }

    /// Draws the kept units that are not given from the base model.
    pub(crate) fn start(&self, states: &mut States<T>, key: Key) {
        for &l in self.kept.iter().filter(|&&l| *self.clamps.layer(l) != Clamp::All) {
            let layer = &self.base.layers()[l];
            let mut x = layer.zeros(states.rows());
            let key = Key { purpose: key.purpose << 8 | l as u32, ..key };
            layer.sample_into(&Array2::zeros((states.rows(), layer.width())), key, &mut x);
            if let (Clamp::Units(mask), Some(given)) = (self.clamps.layer(l), states.get(l)) {
                x.copy_masked(given, mask);
            }
            states.set(l, x);
        }
    }

    /// The fields of the kept layers of `states`.
    pub(crate) fn observe(&self, states: &States<T>) -> Result<Fields<T>> {
        let mut energy = self.machine.coupling_energy(&self.kept, states)?;
        for &l in &self.kept {
            self.rise[l].add_energy(states.layer(l)?, &mut energy);
        }
        energy.iter_mut().for_each(|e| *e = -*e);
        let full = self.at(1.0);
        let inputs = self.traced.iter().map(|&l| full.inputs(l, states)).collect::<Result<_>>()?;
        Ok(Fields { slope: energy, inputs })
    }

    /// $\ln f_b(x) - \ln f_a(x)$ of each row.
    pub(crate) fn log_ratio(&self, fields: &Fields<T>, a: f64, b: f64) -> Vec<f64> {
        let mut out: Vec<f64> = fields.slope.iter().map(|s| (b - a) * s).collect();
        for (&l, inputs) in self.traced.iter().zip(&fields.inputs) {
            let ends = [(self.layer(l, a), T::of(a), -1.0), (self.layer(l, b), T::of(b), 1.0)];
            out.par_chunks_mut(ROWS).enumerate().for_each(|(block, out)| {
                let mut scaled = vec![T::zero(); inputs.ncols()];
                let mut scratch = scaled.clone();
                for (r, out) in out.iter_mut().enumerate() {
                    for (layer, beta, sign) in &ends {
                        let row = inputs.row(block * ROWS + r);
                        scaled.iter_mut().zip(row).for_each(|(s, &x)| *s = *beta * x);
                        *out += sign * layer.cgf_row(&scaled, &mut scratch);
                    }
                }
            });
        }
        out
    }

    /// $\partial\ln f_\beta/\partial\beta$ of each row.
    pub(crate) fn derivative(&self, fields: &Fields<T>, beta: f64) -> Vec<f64> {
        let mut out = fields.slope.clone();
        for (&l, inputs) in self.traced.iter().zip(&fields.inputs) {
            let (layer, rise) = (self.layer(l, beta), self.rise[l].params());
            let scaled = scaled(inputs, beta);
            let mut t = vec![0.0; rise.len()];
            let mut mean = vec![T::zero(); layer.width()];
            for (r, out) in out.iter_mut().enumerate() {
                let input = scaled.row(r).to_slice().expect("rows are contiguous");
                t.fill(0.0);
                layer.mean_stats_row(input, 1.0, &mut t);
                layer.mean_row(input, &mut mean);
                *out += t.iter().zip(rise).map(|(t, p)| t * p.f64()).sum::<f64>();
                *out += mean.iter().zip(inputs.row(r)).map(|(m, i)| m.f64() * i.f64()).sum::<f64>();
            }
        }
        out
    }

    fn layer(&self, l: usize, beta: f64) -> Layer<T> {
        self.machine.layer(l).mixed(&self.base.layers()[l], beta)
    }

    /// One sweep that leaves $f_\beta$ unchanged: the traced layers are drawn from the inputs in `fields`, then the
    /// kept layers.
    pub(crate) fn transition(
        &self,
        states: &mut States<T>,
        fields: &Fields<T>,
        beta: f64,
        key: Key,
    ) -> Result<()> {
        for (&l, inputs) in self.traced.iter().zip(&fields.inputs) {
            let layer = self.layer(l, beta);
            let mut x = states.take(l).unwrap_or_else(|| layer.zeros(inputs.nrows()));
            let key = Key { purpose: key.purpose << 8 | l as u32, ..key };
            layer.sample_into(&scaled(inputs, beta), key, &mut x);
            states.set(l, x);
        }
        sweep(&self.at(beta), &self.order, states, &self.clamps, key)
    }

    /// A sweep of states whose fields have not been computed.
    pub(crate) fn sweep(&self, states: &mut States<T>, beta: f64, key: Key) -> Result<()> {
        let fields = self.observe(states)?;
        self.transition(states, &fields, beta, key)
    }

    /// `states` without the traced layers.
    pub(crate) fn keep(&self, mut states: States<T>) -> States<T> {
        for &l in &self.traced {
            states.take(l);
        }
        states
    }
}

fn scaled<T: Real>(inputs: &Array2<T>, beta: f64) -> Array2<T> {
    let beta = T::of(beta);
    inputs.mapv(|x| beta * x)
}
