//! The conditional machine of the free units when the others are given: one small machine for each row.

use super::{Coupling, Machine, Member};
use crate::{Batch, Bits, Layer, Real, Result, States};
use ndarray::{Array2, Axis};
use std::collections::BTreeMap;

/// Which units of a layer are given.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Known<'a> {
    All,
    Nothing,
    /// Unit j of row r where bit (r, j) is set.
    Units(&'a Bits),
}

/// Rows with the same free units, and these units for each layer.
pub(crate) struct Pattern {
    pub(crate) free: Vec<Vec<usize>>,
    pub(crate) rows: Vec<usize>,
}

impl Pattern {
    /// All rows, grouped by their free units; `known` has an entry for each layer.
    pub(crate) fn of<T: Real>(machine: &Machine<T>, known: &[Known<'_>], rows: usize) -> Vec<Self> {
        let mut groups = BTreeMap::<Vec<&[u64]>, Vec<usize>>::new();
        for r in 0..rows {
            let words = known.iter().filter_map(|k| match k {
                Known::Units(bits) => Some(bits.row(r)),
                _ => None,
            });
            groups.entry(words.collect()).or_default().push(r);
        }
        let of_rows = |rows: Vec<usize>| {
            let free = |(l, known): (usize, &Known<'_>)| {
                let given = |j: &usize| match known {
                    Known::All => true,
                    Known::Nothing => false,
                    Known::Units(bits) => bits.get(rows[0], *j),
                };
                (0..machine.layer(l).len()).filter(|j| !given(j)).collect()
            };
            Self { free: known.iter().enumerate().map(free).collect(), rows }
        };
        groups.into_values().map(of_rows).collect()
    }
}

/// The free units of some rows: a machine of these alone, and their inputs from the given ones.
pub(crate) struct Rest {
    /// The free units with the couplings among them; `None` when everything is given.
    machine: Option<Machine<f64>>,
    /// For each of its layers, the layer and the units of the whole machine.
    pub(crate) parts: Vec<(usize, Vec<usize>)>,
    /// The input of each of its layers from the given units.
    inputs: Vec<Array2<f64>>,
    /// $\ln\nu - \beta E$ inside the given units of each row.
    pub(crate) log_weight: Vec<f64>,
}

impl Rest {
    /// The rows of a pattern; what `states` hold of free units is not read.
    ///
    /// # Errors
    /// A given layer that is not held or does not fit.
    pub(crate) fn new<T: Real>(
        machine: &Machine<f64>,
        beta: f64,
        states: &States<T>,
        pattern: &Pattern,
    ) -> Result<Self> {
        let n = pattern.rows.len();
        let mut log_weight = vec![0.0; n];
        let mut dense: Vec<Option<Array2<f64>>> = vec![None; machine.len()];
        let mut parts = Vec::new();
        for (l, free) in pattern.free.iter().enumerate() {
            let layer = machine.layer(l);
            if free.len() < layer.len() {
                let x = states.layer(l)?;
                layer.cast::<T>().check_batch(x)?;
                dense[l] = Some(given(layer, beta, &x.select(&pattern.rows), free, &mut log_weight)?);
            }
            if !free.is_empty() {
                parts.push((l, free.clone()));
            }
        }
        for c in machine.couplings() {
            let (a, b) = c.ends();
            if let (Some(x), Some(y)) = (&dense[a], &dense[b]) {
                let half = if a == b { 0.5 } else { 1.0 };
                let products = (x.dot(c.w()) * y).sum_axis(Axis(1));
                log_weight.iter_mut().zip(products).for_each(|(w, p)| *w += half * beta * p);
            }
        }
        let columns = |(l, units): &(usize, Vec<usize>)| columns(machine.layer(*l), units);
        let receive = |part: &(usize, Vec<usize>)| {
            let mut inputs = Array2::zeros((n, machine.layer(part.0).width()));
            for c in machine.couplings() {
                if let Some(x) = c.other(part.0).and_then(|o| dense[o].as_ref()) {
                    inputs += &if c.ends().1 == part.0 { x.dot(c.w()) } else { x.dot(&c.w().t()) };
                }
            }
            inputs.select(Axis(1), &columns(part))
        };
        let inputs = parts.iter().map(receive).collect();
        let alone = if parts.is_empty() { None } else { Some(alone(machine, &parts)?) };
        Ok(Self { machine: alone, parts, inputs, log_weight })
    }

    /// The machine of the free units of the i-th row, given the others; `None` when all are given.
    pub(crate) fn row(&self, i: usize) -> Option<Machine<f64>> {
        let mut machine = self.machine.clone()?;
        for (l, inputs) in self.inputs.iter().enumerate() {
            let layer = machine.layer_mut(l);
            for (k, name) in layer.kind().params().iter().enumerate() {
                if name.starts_with("theta") {
                    let mut theta = layer.params_mut().row_mut(k);
                    theta += &inputs.row(i);
                }
            }
        }
        Some(machine)
    }

    /// Groups of rows with equal inputs, which follow the same distribution.
    pub(crate) fn alike(&self) -> Vec<Vec<usize>> {
        let mut groups = BTreeMap::<Vec<u64>, Vec<usize>>::new();
        for i in 0..self.log_weight.len() {
            let received = self.inputs.iter().flat_map(|x| x.row(i).to_vec()).map(f64::to_bits);
            groups.entry(received.collect()).or_default().push(i);
        }
        groups.into_values().collect()
    }

    /// Columns of the dense form that a part has in the whole machine.
    pub(crate) fn columns<T: Real>(&self, machine: &Machine<T>, part: usize) -> Vec<usize> {
        columns(machine.layer(self.parts[part].0), &self.parts[part].1)
    }
}

/// The dense form of the given units, zero in the columns of the free ones; their weight is added.
fn given<T: Real>(
    layer: &Layer<f64>,
    beta: f64,
    x: &Batch<T>,
    free: &[usize],
    log_weight: &mut [f64],
) -> Result<Array2<f64>> {
    let values = layer.cast::<T>().values(x);
    let units: Vec<usize> = (0..layer.len()).filter(|j| free.binary_search(j).is_err()).collect();
    let own = part(layer, &units)?;
    let x = own.batch(values.select(Axis(1), &units).view())?;
    let mut energy = vec![0.0; log_weight.len()];
    own.add_energy(&x, &mut energy);
    own.add_log_measure(&x, log_weight);
    log_weight.iter_mut().zip(energy).for_each(|(w, e)| *w -= beta * e);
    let mut dense = Array2::zeros((values.nrows(), layer.width()));
    let known = own.dense(&x);
    for (column, from) in columns(layer, &units).into_iter().zip(known.columns()) {
        dense.column_mut(column).assign(&from);
    }
    Ok(dense)
}

/// The free units as a separate machine.
fn alone(machine: &Machine<f64>, parts: &[(usize, Vec<usize>)]) -> Result<Machine<f64>> {
    let member = |(l, units): &(usize, Vec<usize>)| {
        let m = &machine.members()[*l];
        Ok(Member { name: m.name.clone(), role: m.role, layer: part(&m.layer, units)? })
    };
    let members = parts.iter().map(member).collect::<Result<_>>()?;
    let place = |l: usize| parts.iter().position(|p| p.0 == l);
    let mut couplings = Vec::new();
    for c in machine.couplings() {
        let (a, b) = c.ends();
        if let (Some(i), Some(j)) = (place(a), place(b)) {
            let rows = columns(machine.layer(a), &parts[i].1);
            let w = c.w().select(Axis(0), &rows);
            let w = w.select(Axis(1), &columns(machine.layer(b), &parts[j].1));
            // Without weights the layers are independent, and one of them need not be walked.
            if w.iter().any(|&w| w != 0.0) {
                couplings.push(Coupling::new(i, j, w)?);
            }
        }
    }
    Machine::new(members, couplings)
}

/// Some units of a layer.
fn part(layer: &Layer<f64>, units: &[usize]) -> Result<Layer<f64>> {
    Layer::with_params(layer.kind(), layer.params().select(Axis(1), &columns(layer, units)))
}

/// Columns of the dense form of some units.
fn columns<T: Real>(layer: &Layer<T>, units: &[usize]) -> Vec<usize> {
    let c = layer.kind().columns();
    units.iter().flat_map(|j| j * c..(j + 1) * c).collect()
}

/// Puts `values` of some units into row `r` of a batch.
pub(crate) fn put<T: Real>(x: &mut Batch<T>, r: usize, units: &[usize], values: &[f64]) {
    for (&j, &value) in units.iter().zip(values) {
        match x {
            Batch::Bits(bits) => bits.set(r, j, value > 0.0),
            Batch::Codes(codes) => codes[[r, j]] = value as u32,
            Batch::Reals(reals) => reals[[r, j]] = T::of(value),
        }
    }
}
