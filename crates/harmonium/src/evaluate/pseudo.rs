//! Pseudo-likelihood: the conditional of every visible unit given all others.

use crate::machine::Given;
use crate::units::Form;
use crate::{Error, Layer, Machine, Real, Result, Role, States};
use rayon::prelude::*;

/// Nats below the largest value at which a density counts as zero.
const NEGLIGIBLE: f64 = 45.0;

/// $\sum_i \ln p(v_i\mid v_{-i})$ of each row, over all visible units, with the hidden layers traced out.
///
/// With $g(a) = e^{-F(v^{i\to a})}$ the conditional is $g(v_i)/\sum_a g(a)$: a sum over all states of the unit, over as
/// many counts as matter for Poisson units, and an integral for real ones (in closed form without hidden neighbours, by
/// Simpson's rule otherwise). Nothing is sampled. A soft bit is compared with 1 − v_i, as in scikit-learn:
/// $g(v_i)/(g(v_i) + g(1-v_i))$, which is not a probability.
///
/// # Errors
/// [`Error::Undefined`] when the hidden layers are not independent given the visible ones.
pub fn pseudo_log_likelihood<T: Real>(machine: &Machine<T>, data: &States<T>) -> Result<Vec<f64>> {
    let hidden: Vec<usize> = machine.with_role(Role::Hidden).collect();
    if !machine.independent(&hidden) {
        let why = "hidden layers are coupled to each other".into();
        return Err(Error::Undefined { what: "the pseudo-likelihood", why });
    }
    let machine: Machine<f64> = machine.cast();
    let rows = Conditionals::new(&machine, data)?;
    (0..data.rows()).into_par_iter().map(|r| Ok(rows.row(r))).collect()
}

struct Conditionals<'m> {
    machine: &'m Machine<f64>,
    given: Given,
    /// For each layer, the hidden layers coupled to it.
    hidden: Vec<Vec<usize>>,
    /// One-unit layers.
    units: Vec<Vec<Layer<f64>>>,
}

impl<'m> Conditionals<'m> {
    fn new<T: Real>(machine: &'m Machine<f64>, data: &States<T>) -> Result<Self> {
        for l in (0..machine.len()).filter(|&l| machine.role(l) != Role::Hidden) {
            let (layer, x) = (machine.layer(l).cast::<T>(), data.layer(l)?);
            match machine.role(l) {
                Role::Visible => layer.check_data(x)?,
                _ => layer.check_batch(x)?,
            }
        }
        let hidden = |l: usize| {
            let coupled = |&h: &usize| machine.coupling_between(l, h).is_some();
            machine.with_role(Role::Hidden).filter(coupled).collect()
        };
        let hidden = (0..machine.len()).map(hidden).collect();
        let units = |l: usize| (0..machine.layer(l).len()).map(|i| machine.layer(l).unit(i)).collect();
        let units = (0..machine.len()).map(units).collect();
        Ok(Self { machine, given: Given::new(machine, data)?, hidden, units })
    }

    fn row(&self, r: usize) -> f64 {
        let mut sum = 0.0;
        for l in self.machine.with_role(Role::Visible) {
            for i in 0..self.machine.layer(l).len() {
                sum += self.unit(r, l, i);
            }
        }
        sum
    }

    /// $\ln p(v_i\mid v_{-i})$ of unit i of layer l.
    fn unit(&self, r: usize, l: usize, i: usize) -> f64 {
        let (layer, kind) = (&self.units[l][i], self.machine.layer(l).kind());
        let c = kind.columns();
        let x = self.given.values[l].as_ref().expect("visible layers are held")[[r, i]];
        let field: Vec<f64> = (i * c..(i + 1) * c).map(|j| self.given.inputs[l][[r, j]]).collect();
        if self.hidden[l].is_empty() && kind.allows(x) {
            return layer.log_density(&field, x);
        }
        let hidden = HiddenPart::new(self, r, l, i * c, x);
        let mut scratch = Vec::new();
        let mut log_g = |a: f64| layer.log_factor(&field, a) + hidden.cgf(a, &mut scratch);
        let at_x = log_g(x);
        let total = match kind.states() {
            None if kind.form() == Form::Reals => reals(&mut log_g, x, layer),
            None => counts(&mut log_g),
            Some(_) if kind.takes_soft_data() => log_sum([log_g(1.0 - x), at_x].into_iter()),
            Some(states) => log_sum((0..states).map(|a| log_g(kind.value(a)))),
        };
        at_x - total
    }
}

/// Γ of the hidden layers as a function of one visible unit.
struct HiddenPart<'r> {
    machine: &'r Machine<f64>,
    /// Hidden layers and their inputs without the unit.
    layers: Vec<(usize, Vec<f64>)>,
    l: usize,
    first: usize,
}

impl<'r> HiddenPart<'r> {
    /// For the unit of layer `l` whose columns begin at `first`, with the value `x` in row `r`.
    fn new(c: &Conditionals<'r>, r: usize, l: usize, first: usize, x: f64) -> Self {
        let mut out = Self { machine: c.machine, layers: Vec::new(), l, first };
        for &h in &c.hidden[l] {
            let mut without = c.given.inputs[h].row(r).to_vec();
            out.add(h, x, -1.0, &mut without);
            out.layers.push((h, without));
        }
        out
    }

    fn cgf(&self, a: f64, scratch: &mut Vec<f64>) -> f64 {
        let mut sum = 0.0;
        for (h, without) in &self.layers {
            let mut inputs = without.clone();
            self.add(*h, a, 1.0, &mut inputs);
            scratch.resize(inputs.len(), 0.0);
            sum += self.machine.layer(*h).cgf_row(&inputs, scratch);
        }
        sum
    }

    /// Adds the input of layer `h` from the unit at the value `x`.
    fn add(&self, h: usize, x: f64, sign: f64, inputs: &mut [f64]) {
        let (column, x) = self.machine.layer(self.l).kind().dense(self.first, x);
        let w = self.machine.weights_of(self.l, column, h).expect("coupled layers");
        inputs.iter_mut().zip(w).for_each(|(i, w)| *i += sign * x * w);
    }
}

fn log_sum(x: impl Iterator<Item = f64>) -> f64 {
    let x: Vec<f64> = x.collect();
    crate::partition::log_mean_exp(&x) + (x.len() as f64).ln()
}

/// $\ln\sum_{a\ge 0} g(a)$: terms until they have fallen far below the largest and keep falling.
fn counts(log_g: &mut impl FnMut(f64) -> f64) -> f64 {
    let (mut terms, mut largest) = (Vec::new(), f64::NEG_INFINITY);
    for a in 0..10_000_000u32 {
        let g = log_g(f64::from(a));
        largest = largest.max(g);
        let falling = terms.last().is_some_and(|&before| g < before);
        terms.push(g);
        if falling && g < largest - NEGLIGIBLE {
            break;
        }
    }
    log_sum(terms.into_iter())
}

/// $\ln\int g$ over the values of a real unit: a window that grows until the density has vanished at its ends.
fn reals(log_g: &mut impl FnMut(f64) -> f64, x: f64, layer: &Layer<f64>) -> f64 {
    let gamma = layer.kind().gamma_rows().map(|k| layer.params()[[k, 0]]).fold(0.0, f64::max);
    // The error of the rule falls with the fourth power of the step: about 1e-8 here.
    let step = 0.04 / gamma.sqrt();
    let lowest = layer.kind().lowest();
    let mut half = 200.0 * step;
    loop {
        let (from, to) = ((x - half).max(lowest), x + half);
        let ends = [from, to].map(&mut *log_g);
        let total = match layer.kind().has_sides() {
            // The density may have a kink at zero.
            true if from < 0.0 && to > 0.0 => {
                crate::units::log_add_exp(simpson(log_g, from, 0.0, step), simpson(log_g, 0.0, to, step))
            }
            _ => simpson(log_g, from, to, step),
        };
        let vanished = |end: f64, edge: bool| edge || end < total - NEGLIGIBLE;
        if vanished(ends[0], from == lowest) && vanished(ends[1], false) || half > 1e6 * step {
            return total;
        }
        half *= 2.0;
    }
}

/// $\ln\int e^{\log g}$ by Simpson's rule with steps of at most `step`.
fn simpson(log_g: &mut impl FnMut(f64) -> f64, from: f64, to: f64, step: f64) -> f64 {
    let n = 2 * ((to - from) / (2.0 * step)).ceil().max(4.0) as usize;
    let h = (to - from) / n as f64;
    let term = |k: usize| {
        let weight = if k == 0 || k == n {
            1.0
        } else if k % 2 == 1 {
            4.0
        } else {
            2.0f64
        };
        log_g(from + h * k as f64) + (weight * h / 3.0).ln()
    };
    log_sum((0..=n).map(term))
}
