//! Rows of data: states of some layers with weights and missing entries, from and to numpy arrays.

use crate::error::{raise, value};
use crate::machine::Machine;
use crate::pieces::{Pieces, draw};
use crate::precision::{AnyData, Precise, Precision, each};
use crate::work::compute;
use harmonium::train::Data;
use harmonium::{Batch, Bits, Kind, Role, States};
use ndarray::Array2;
use numpy::{IntoPyArray, PyArray2, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyAny;

/// Layer, name of the argument, iterable of 2-d arrays that follow each other, known entries.
type Part<'py> = (usize, String, Bound<'py, PyAny>, Option<PyReadonlyArray2<'py, bool>>);

/// Rows of some layers of a machine, in its precision.
#[pyclass(frozen, module = "harmonium._core")]
pub(crate) struct Rows {
    data: AnyData,
    kinds: Vec<Kind>,
}

impl Rows {
    pub(crate) fn new<T: Precise>(machine: &harmonium::Machine<T>, data: Data<T>) -> Self {
        Self { data: T::data(data), kinds: machine.members().iter().map(|m| m.layer.kind()).collect() }
    }

    fn of_layer<T: Precise>(machine: &harmonium::Machine<T>, layer: usize, batch: Batch<T>) -> Self {
        let mut states = States::empty(machine.len(), batch.rows());
        states.set(layer, batch);
        Self::new(machine, Data::new(states))
    }

    /// The rows, which must be in the precision of the machine that they are for.
    pub(crate) fn of<T: Precise>(&self, _: &harmonium::Machine<T>) -> PyResult<&Data<T>> {
        let why = || format!("they are not in the precision of the machine, {}", T::DTYPE);
        T::data_of(&self.data).ok_or_else(|| value("rows", why()))
    }
}

/// Rows of several layers, with what is said of weights and offsets.
fn assembled<T: Precise>(
    machine: &harmonium::Machine<T>,
    layers: Vec<Part<'_>>,
    weights: Option<Vec<f64>>,
    soft: bool,
    offsets: Option<Vec<f64>>,
) -> PyResult<Rows> {
    let mut batches: Vec<(usize, Batch<T>, Option<Bits>)> = Vec::new();
    for (l, name, parts, known) in layers {
        let known = known.map(|k| {
            let k = k.as_array();
            Bits::from_fn(k.nrows(), k.ncols(), |r, j| k[[r, j]])
        });
        let soft = soft && machine.role(l) == Role::Visible;
        let mut pieces = Pieces::new(machine.layer(l), &name, known.as_ref(), soft);
        for part in parts.try_iter()? {
            pieces.push(&part?)?;
        }
        batches.push((l, pieces.finish()?, known));
    }
    let rows = batches.first().map_or(0, |b| b.1.rows());
    let mut states = States::empty(machine.len(), rows);
    let mut known = Vec::new();
    for (l, batch, bits) in batches {
        if batch.rows() != rows {
            let name = &machine.members()[l].name;
            let why = format!("layer {name} has {} rows, others have {rows}", batch.rows());
            return Err(value("rows", why));
        }
        states.set(l, batch);
        known.extend(bits.map(|b| (l, b)));
    }
    let mut data = Data::new(states);
    for (l, bits) in known {
        data = data.with_known(l, bits).map_err(raise)?;
    }
    if let Some(weights) = weights {
        data = data.with_weights(weights).map_err(raise)?;
    }
    if let Some(offsets) = offsets {
        data = data.with_offsets(offsets).map_err(raise)?;
    }
    Ok(Rows::new(machine, data))
}

#[pymethods]
impl Rows {
    /// `soft` says whether values between 0 and 1 may stand for bits of visible layers.
    #[new]
    #[pyo3(signature = (machine, layers, weights, soft=false, offsets=None))]
    fn py_new(
        machine: &Machine,
        layers: Vec<Part<'_>>,
        weights: Option<Vec<f64>>,
        soft: bool,
        offsets: Option<Vec<f64>>,
    ) -> PyResult<Self> {
        for part in &layers {
            machine.kind(part.0)?;
        }
        each!(&machine.inner, m => assembled(m, layers, weights, soft, offsets))
    }

    /// Rows of 0 and 1 of a binary layer; `None` when there is another value among them.
    #[staticmethod]
    fn bits(machine: &Machine, layer: usize, parts: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        machine.kind(layer)?;
        each!(&machine.inner, m => {
            let mut pieces = Pieces::new(m.layer(layer), "X", None, false);
            for part in parts.try_iter()? {
                if !pieces.push_bits(&part?)? {
                    return Ok(None);
                }
            }
            Ok(Some(Self::of_layer(m, layer, pieces.finish()?)))
        })
    }

    /// Rows of values from 0 to 1 of a binary layer; `None` when there is another value among them.
    #[staticmethod]
    fn soft(machine: &Machine, layer: usize, parts: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        machine.kind(layer)?;
        each!(&machine.inner, m => {
            let mut pieces = Pieces::new(m.layer(layer), "X", None, true);
            for part in parts.try_iter()? {
                if !pieces.push_soft(&part?)? {
                    return Ok(None);
                }
            }
            Ok(Some(Self::of_layer(m, layer, pieces.finish()?)))
        })
    }

    /// Rows of bits of a binary layer that are drawn from probabilities, `times` for each row of them. Values below 0 are
    /// taken as 0, values above 1 as 1.
    #[staticmethod]
    fn drawn(
        py: Python<'_>,
        machine: &Machine,
        layer: usize,
        parts: &Bound<'_, PyAny>,
        times: u64,
        seed: u64,
        threads: usize,
    ) -> PyResult<Self> {
        machine.kind(layer)?;
        let n = each!(&machine.inner, m => m.layer(layer).len());
        let mut words = Vec::new();
        for (k, part) in parts.try_iter()?.enumerate() {
            let part = part?;
            let p = part.extract::<PyReadonlyArray2<'_, f32>>()?;
            if p.as_array().ncols() != n {
                return Err(value("X", format!("expected {n} columns, got {}", p.as_array().ncols())));
            }
            let p = p.as_array();
            words.extend(compute(py, threads, |_| Ok(draw(p, k as u64, times, seed)))?);
        }
        let rows = words.len() / n.div_ceil(64).max(1);
        let bits = Bits::from_words(rows, n, words).map_err(|e| raise(e.into()))?;
        Ok(each!(&machine.inner, m => Self::of_layer(m, layer, Batch::Bits(bits))))
    }

    fn __len__(&self) -> usize {
        each!(&self.data, data => data.rows())
    }

    /// The layers that are held.
    fn layers(&self) -> Vec<usize> {
        each!(&self.data, data => {
            let states = data.states();
            (0..states.len()).filter(|&l| states.get(l).is_some()).collect()
        })
    }

    /// The values of a layer, a column per unit: int8 for spins, uint8 for bits, uint32 for codes, the machine's own type for
    /// reals.
    fn values<'py>(&self, py: Python<'py>, layer: usize) -> PyResult<Bound<'py, PyAny>> {
        each!(&self.data, data => Ok(match data.states().layer(layer).map_err(raise)? {
            Batch::Bits(b) if self.kinds[layer].lowest() < 0.0 => {
                let spin = |(r, j)| if b.get(r, j) { 1i8 } else { -1 };
                Array2::from_shape_fn((b.rows(), b.cols()), spin).into_pyarray(py).into_any()
            }
            Batch::Bits(b) => {
                let bit = |(r, j)| u8::from(b.get(r, j));
                Array2::from_shape_fn((b.rows(), b.cols()), bit).into_pyarray(py).into_any()
            }
            Batch::Codes(c) => c.clone().into_pyarray(py).into_any(),
            Batch::Reals(x) => x.clone().into_pyarray(py).into_any(),
        }))
    }

    /// Which entries of a layer are known; all when `None`.
    fn known<'py>(&self, py: Python<'py>, layer: usize) -> Option<Bound<'py, PyArray2<bool>>> {
        let bits = each!(&self.data, data => data.known().get(layer)?.as_ref()?);
        let known = Array2::from_shape_fn((bits.rows(), bits.cols()), |(r, j)| bits.get(r, j));
        Some(known.into_pyarray(py))
    }

    fn weights(&self) -> Option<Vec<f64>> {
        each!(&self.data, data => data.wts()).map(<[f64]>::to_vec)
    }

    /// The given rows.
    fn select(&self, rows: Vec<usize>) -> PyResult<Self> {
        let count = self.__len__();
        if let Some(r) = rows.iter().find(|&&r| r >= count) {
            return Err(value("rows", format!("there is no row {r}")));
        }
        let data = match &self.data {
            Precision::Single(data) => Precision::Single(data.select(&rows)),
            Precision::Double(data) => Precision::Double(data.select(&rows)),
        };
        Ok(Self { data, kinds: self.kinds.clone() })
    }
}
