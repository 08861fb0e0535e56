//! Pseudo-likelihood: each visible unit given all other visible ones, hidden units traced out.

use super::{Context, Info, NegativePhase, Setup};
use crate::machine::{Given, Parameters, Phase, clear_self};
use crate::units::BLOCK;
use crate::{Archive, Layer, Machine, Real, Result, Role, States};
use ndarray::{Array1, Array2, ArrayView1};
use rayon::prelude::*;

/// The gradient of
///
/// $$\mathrm{PL} = \Big\langle\sum_i \ln p(v_i\mid v_{-i})\Big\rangle_{\text{data}},\qquad
/// p(v_i = a\mid v_{-i}) = \frac{e^{-F(v^{i\to a})}}{\sum_{a'} e^{-F(v^{i\to a'})}},$$
///
/// exactly, without sampling: $\sum_i\big[\hat t(v) - \sum_a p(a\mid v_{-i}) \hat t(v^{i\to a})\big]$ with
/// $\hat t(v) = \langle t\rangle_{h\mid v}$. Its maximum is the true parameters for infinite data. Conditional
/// layers of units without hidden neighbours may be of any kind; others need finitely many states.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pl;

impl Pl {
    /// The estimator, which has neither settings nor state.
    ///
    /// # Errors
    /// A machine it does not apply to.
    pub fn new<T: Real>(setup: &Setup<'_, T>) -> Result<Self> {
        super::Estimator::Pl.check(setup.machine)?;
        Ok(Self)
    }

    /// PL and its gradient, shaped like the parameters.
    ///
    /// # Errors
    /// When a visible layer is not held.
    pub fn gradient<T: Real>(
        machine: &Machine<T>,
        data: &States<T>,
        wts: Option<&[f64]>,
    ) -> Result<(f64, Parameters<f64>)> {
        let machine: Machine<f64> = machine.cast();
        let rows = Conditionals::new(&machine, data)?;
        let total = wts.map_or(data.rows() as f64, |w| w.iter().sum());
        let blocks: Vec<_> = (0..data.rows().div_ceil(BLOCK))
            .into_par_iter()
            .map(|b| {
                let mut sum = (0.0, machine.zero_parameters::<f64>());
                for r in b * BLOCK..data.rows().min((b + 1) * BLOCK) {
                    let wt = wts.map_or(1.0, |w| w[r]) / total;
                    rows.add(r, wt, &mut sum);
                }
                sum
            })
            .collect();
        let mut out = (0.0, machine.zero_parameters());
        for (value, gradient) in blocks {
            out.0 += value;
            out.1.add(1.0, &gradient);
        }
        for (c, g) in machine.couplings().iter().zip(&mut out.1.couplings) {
            if c.is_lateral() {
                clear_self(g, machine.layer(c.ends().0).kind());
            }
            if let Some(mask) = c.mask() {
                g.indexed_iter_mut().filter(|((i, j), _)| !mask.get(*i, *j)).for_each(|(_, g)| *g = 0.0);
            }
        }
        Ok(out)
    }
}

impl<T: Real> NegativePhase<T> for Pl {
    fn name(&self) -> &'static str {
        "pl"
    }

    fn estimate(&mut self, context: &Context<'_, T>, out: &mut Phase<T>) -> Result<Info> {
        let machine = context.model.machine();
        let (value, gradient) = Self::gradient(machine, context.data, context.wts)?;
        let out = out.parameters_mut();
        *out = context.positive.parameters();
        out.add(-T::one(), &gradient.cast());
        Ok(Info { metrics: vec![("pseudo_likelihood", value)] })
    }

    fn save(&self, _archive: &mut Archive) {}

    fn load(&mut self, _archive: &Archive) -> Result<()> {
        Ok(())
    }
}

/// The machine's parameters in double precision, shared by all rows of a batch.
struct Conditionals<'m> {
    machine: &'m Machine<f64>,
    hidden: Vec<usize>,
    given: Given,
    /// The units of each visible layer that is coupled to hidden ones.
    units: Vec<Vec<Layer<f64>>>,
}

/// The hidden layers at one state of the visible ones.
struct Hidden {
    cgf: f64,
    inputs: Vec<Vec<f64>>,
}

impl<'m> Conditionals<'m> {
    fn new<T: Real>(machine: &'m Machine<f64>, data: &States<T>) -> Result<Self> {
        let hidden: Vec<_> = machine.with_role(Role::Hidden).collect();
        let units = (0..machine.len()).map(|l| {
            let layer = machine.layer(l);
            let seen = hidden.iter().any(|&h| machine.coupling_between(l, h).is_some());
            let n = if machine.role(l) == Role::Visible && seen { layer.len() } else { 0 };
            (0..n).map(|i| layer.unit(i)).collect()
        });
        let units = units.collect();
        Ok(Self { machine, hidden, given: Given::new(machine, data)?, units })
    }

    fn hidden(&self, inputs: Vec<Vec<f64>>) -> Hidden {
        let cgf = self.hidden.iter().zip(&inputs).map(|(&h, i)| self.machine.layer(h).cgf_of(i)).sum();
        Hidden { cgf, inputs }
    }

    /// Adds the contribution of row `r` to PL and its gradient.
    fn add(&self, r: usize, wt: f64, (value, gradient): &mut (f64, Parameters<f64>)) {
        let now =
            self.hidden(self.hidden.iter().map(|&h| self.given.inputs[h].row(r).to_vec()).collect());
        // Σ_i Σ_a q_a h(v^{i→a}) of each hidden layer, with q_a = δ(a, v_i) − p(a).
        let mut sums: Vec<Array1<f64>> =
            self.hidden.iter().map(|&h| Array1::zeros(self.machine.layer(h).width())).collect();
        for l in self.machine.with_role(Role::Visible) {
            let residual = if self.units[l].is_empty() {
                self.without_hidden(l, r, wt, value, gradient)
            } else {
                self.with_hidden(l, r, wt, &now, value, gradient, &mut sums)
            };
            for (k, c) in self.machine.couplings().iter().enumerate() {
                if let Some(x) = c.other(l).and_then(|o| self.given.dense[o].as_ref()) {
                    let forward = c.ends().1 == l;
                    let g = &mut gradient.couplings[k];
                    if forward || c.is_lateral() {
                        add_outer(g, wt, x.row(r), residual.view());
                    }
                    if !forward || c.is_lateral() {
                        add_outer(g, wt, residual.view(), x.row(r));
                    }
                }
            }
        }
        for (&h, sum) in self.hidden.iter().zip(&sums) {
            for (k, c) in self.machine.couplings().iter().enumerate() {
                if let Some(x) = c.other(h).and_then(|o| self.given.dense[o].as_ref()) {
                    let g = &mut gradient.couplings[k];
                    if c.ends().1 == h {
                        add_outer(g, wt, x.row(r), sum.view());
                    } else {
                        add_outer(g, wt, sum.view(), x.row(r));
                    }
                }
            }
        }
    }

    /// A layer that is not coupled to hidden ones: its conditionals are of its own kind. Returns $v - \langle
    /// v\rangle$.
    fn without_hidden(
        &self,
        l: usize,
        r: usize,
        wt: f64,
        value: &mut f64,
        gradient: &mut Parameters<f64>,
    ) -> Array1<f64> {
        let layer = self.machine.layer(l);
        let values = self.given.values[l].as_ref().expect("visible layers are held");
        let x = self.given.dense[l].as_ref().expect("visible layers are held").row(r);
        let (values, inputs) = (values.row(r).to_vec(), self.given.inputs[l].row(r).to_vec());
        let mut mean = vec![0.0; layer.width()];
        layer.mean_row(&inputs, &mut mean);
        let mut own = vec![0.0; layer.params().len()];
        layer.stats_row(&values, 1.0, &mut own);
        let base: f64 = own.iter().zip(layer.params()).map(|(t, p)| t * p).sum();
        let received: f64 = x.iter().zip(&inputs).map(|(x, i)| x * i).sum();
        *value += wt * (base + received + layer.log_measure_row(&values) - layer.cgf_of(&inputs));
        let g = gradient.layers[l].as_slice_mut().expect("gradients are in standard layout");
        layer.stats_row(&values, wt, g);
        layer.mean_stats_row(&inputs, -wt, g);
        x.iter().zip(mean).map(|(x, m)| x - m).collect()
    }

    /// A layer coupled to hidden ones: a sum over all states of every unit. Returns $v - \langle v\rangle$.
    #[allow(clippy::too_many_arguments)]
    fn with_hidden(
        &self,
        l: usize,
        r: usize,
        wt: f64,
        now: &Hidden,
        value: &mut f64,
        gradient: &mut Parameters<f64>,
        sums: &mut [Array1<f64>],
    ) -> Array1<f64> {
        let layer = self.machine.layer(l);
        let c = layer.kind().columns();
        let values = self.given.values[l].as_ref().expect("visible layers are held");
        let mut residual = Array1::zeros(layer.width());
        for (i, unit) in self.units[l].iter().enumerate() {
            let input: Vec<f64> = (0..c).map(|k| self.given.inputs[l][[r, i * c + k]]).collect();
            let x = values[[r, i]];
            let states: Vec<f64> = (0..layer.kind().states().expect("finitely many states"))
                .map(|code| layer.kind().value(code))
                .collect();
            let changed: Vec<Option<Hidden>> =
                states.iter().map(|&a| (a != x).then(|| self.changed(l, i, x, a, now))).collect();
            let log_p: Vec<f64> = states
                .iter()
                .zip(&changed)
                .map(|(&a, h)| unit.log_factor(&input, a) + h.as_ref().unwrap_or(now).cgf)
                .collect();
            let max = log_p.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let log_z = max + log_p.iter().map(|p| (p - max).exp()).sum::<f64>().ln();
            for ((&a, h), log_p) in states.iter().zip(&changed).zip(log_p) {
                let p = (log_p - log_z).exp();
                let here = if a == x { 1.0 } else { 0.0 };
                *value += wt * here * (log_p - log_z);
                let q = here - p;
                let own = self.add_unit(l, i, wt * q, a, gradient);
                own.iter().enumerate().for_each(|(k, e)| residual[i * c + k] += q * e);
                self.add_hidden(l, i, x, a, wt, q, h.as_ref().unwrap_or(now), gradient, sums);
            }
        }
        residual
    }

    /// The hidden layers after unit `i` of layer `l` went from x to a.
    fn changed(&self, l: usize, i: usize, x: f64, a: f64, now: &Hidden) -> Hidden {
        let mut inputs = now.inputs.clone();
        for (&h, inputs) in self.hidden.iter().zip(&mut inputs) {
            self.weights(l, i, x, a, h, |_, scale, w| {
                inputs.iter_mut().zip(w).for_each(|(i, w)| *i += scale * w);
            });
        }
        self.hidden(inputs)
    }

    /// Calls `f(column, change of the column, its weights to layer h)` for the columns of unit `i` that
    /// change when it goes from x to a.
    fn weights(
        &self,
        l: usize,
        i: usize,
        x: f64,
        a: f64,
        h: usize,
        mut f: impl FnMut(usize, f64, ArrayView1<'_, f64>),
    ) {
        if self.machine.coupling_between(l, h).is_none() {
            return;
        }
        let w = |k: usize| self.machine.weights_of(l, k, h).expect("coupled layers");
        match self.machine.layer(l).kind().one_hot() {
            Some(q) => {
                let column = |state: f64| i * q as usize + state as usize;
                f(column(x), -1.0, w(column(x)));
                f(column(a), 1.0, w(column(a)));
            }
            None => f(i, a - x, w(i)),
        }
    }

    /// Adds the unit's own statistics in state a; returns the dense form of a.
    fn add_unit(&self, l: usize, i: usize, wt: f64, a: f64, gradient: &mut Parameters<f64>) -> Vec<f64> {
        let unit = &self.units[l][i];
        let c = unit.width();
        let mut t = vec![0.0; unit.params().len()];
        unit.stats_row(&[a], wt, &mut t);
        for (k, t) in t.into_iter().enumerate() {
            gradient.layers[l][[k / c, i * c + k % c]] += t;
        }
        let mut dense = vec![0.0; c];
        unit.dense_row(&[a], &mut dense);
        dense
    }

    /// Adds the hidden units' statistics with unit `i` in state a: their own, those with this unit, and, in `sums`,
    /// those with all other units.
    #[allow(clippy::too_many_arguments)]
    fn add_hidden(
        &self,
        l: usize,
        i: usize,
        x: f64,
        a: f64,
        wt: f64,
        q: f64,
        state: &Hidden,
        gradient: &mut Parameters<f64>,
        sums: &mut [Array1<f64>],
    ) {
        for ((&h, inputs), sum) in self.hidden.iter().zip(&state.inputs).zip(sums) {
            let layer = self.machine.layer(h);
            let mut mean = vec![0.0; layer.width()];
            layer.mean_row(inputs, &mut mean);
            let g = gradient.layers[h].as_slice_mut().expect("gradients are in standard layout");
            layer.mean_stats_row(inputs, wt * q, g);
            sum.iter_mut().zip(&mean).for_each(|(s, m)| *s += q * m);
            if a == x {
                continue;
            }
            let Some(c) = self.machine.coupling_between(l, h) else { continue };
            let forward = self.machine.couplings()[c].ends().0 == l;
            let g = &mut gradient.couplings[c];
            self.weights(l, i, x, a, h, |column, change, _| {
                let mut to = if forward { g.row_mut(column) } else { g.column_mut(column) };
                to.iter_mut().zip(&mean).for_each(|(g, m)| *g += wt * q * change * m);
            });
        }
    }
}

/// `g ← g + scale · a bᵀ`.
fn add_outer(g: &mut Array2<f64>, scale: f64, a: ArrayView1<'_, f64>, b: ArrayView1<'_, f64>) {
    for (mut row, &a) in g.rows_mut().into_iter().zip(a) {
        if a != 0.0 {
            row.iter_mut().zip(b).for_each(|(g, &b)| *g += scale * a * b);
        }
    }
}
