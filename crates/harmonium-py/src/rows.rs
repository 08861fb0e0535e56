//! Rows of data: states of some layers with weights and missing entries, from and to numpy arrays.

use crate::error::{raise, value};
use crate::machine::Machine;
use harmonium::train::Data;
use harmonium::{Batch, Bits, Kind, Layer, States};
use ndarray::{Array2, ArrayView2, Axis};
use numpy::{IntoPyArray, PyArray2, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyAny;

/// Rows that are converted at a time, so that a large array of small numbers never becomes a large array of large ones.
const CHUNK: usize = 1024;

/// Layer, name of the argument, iterable of 2-d arrays that follow each other, known entries.
type Part<'py> = (usize, String, Bound<'py, PyAny>, Option<PyReadonlyArray2<'py, bool>>);

/// Rows of some layers of a machine.
#[pyclass(frozen, module = "harmonium._core")]
pub(crate) struct Rows {
    pub(crate) data: Data,
    kinds: Vec<Kind>,
}

impl Rows {
    pub(crate) fn new(machine: &harmonium::Machine, data: Data) -> Self {
        Self { data, kinds: machine.members().iter().map(|m| m.layer.kind()).collect() }
    }
    pub(crate) fn states(&self) -> &States {
        self.data.states()
    }
    pub(crate) fn wts(&self) -> Option<&[f64]> {
        self.data.wts()
    }
}

#[pymethods]
impl Rows {
    #[new]
    fn py_new(machine: &Machine, layers: Vec<Part<'_>>, weights: Option<Vec<f64>>) -> PyResult<Self> {
        let mut batches: Vec<(usize, Batch<f32>, Option<Bits>)> = Vec::new();
        for (l, name, parts, known) in layers {
            let layer = machine.layer(l)?;
            let known = known.map(|k| {
                let k = k.as_array();
                Bits::from_fn(k.nrows(), k.ncols(), |r, j| k[[r, j]])
            });
            let mut whole = Pieces::new(layer, &name, known.as_ref());
            for part in parts.try_iter()? {
                whole.push(&part?)?;
            }
            batches.push((l, whole.finish()?, known));
        }
        let rows = batches.first().map_or(0, |b| b.1.rows());
        let mut states = States::empty(machine.inner.len(), rows);
        let mut known = Vec::new();
        for (l, batch, bits) in batches {
            if batch.rows() != rows {
                let name = &machine.inner.members()[l].name;
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
        Ok(Self::new(&machine.inner, data))
    }

    fn __len__(&self) -> usize {
        self.data.rows()
    }

    /// The layers that are held.
    fn layers(&self) -> Vec<usize> {
        (0..self.states().len()).filter(|&l| self.states().get(l).is_some()).collect()
    }

    /// The values of a layer, a column per unit: int8 for spins, uint8 for bits, uint32 for codes, float32 for reals.
    fn values<'py>(&self, py: Python<'py>, layer: usize) -> PyResult<Bound<'py, PyAny>> {
        let batch = self.states().layer(layer).map_err(raise)?;
        Ok(match batch {
            Batch::Bits(b) if self.kinds[layer] == Kind::Spin => {
                let spin = |(r, j)| if b.get(r, j) { 1i8 } else { -1 };
                Array2::from_shape_fn((b.rows(), b.cols()), spin).into_pyarray(py).into_any()
            }
            Batch::Bits(b) => {
                let bit = |(r, j)| u8::from(b.get(r, j));
                Array2::from_shape_fn((b.rows(), b.cols()), bit).into_pyarray(py).into_any()
            }
            Batch::Codes(c) => c.clone().into_pyarray(py).into_any(),
            Batch::Reals(x) => x.clone().into_pyarray(py).into_any(),
        })
    }

    /// Which entries of a layer are known; all when `None`.
    fn known<'py>(&self, py: Python<'py>, layer: usize) -> Option<Bound<'py, PyArray2<bool>>> {
        let bits = self.data.known().get(layer)?.as_ref()?;
        let known = Array2::from_shape_fn((bits.rows(), bits.cols()), |(r, j)| bits.get(r, j));
        Some(known.into_pyarray(py))
    }

    fn weights(&self) -> Option<Vec<f64>> {
        self.wts().map(<[f64]>::to_vec)
    }

    /// The given rows.
    fn select(&self, rows: Vec<usize>) -> PyResult<Self> {
        if let Some(r) = rows.iter().find(|&&r| r >= self.data.rows()) {
            return Err(value("rows", format!("there is no row {r}")));
        }
        Ok(Self { data: self.data.select(&rows), kinds: self.kinds.clone() })
    }
}

/// A batch in the making.
struct Pieces<'a> {
    layer: &'a Layer,
    name: &'a str,
    known: Option<&'a Bits>,
    rows: usize,
    words: Vec<u64>,
    codes: Vec<u32>,
    reals: Vec<f32>,
}

impl<'a> Pieces<'a> {
    fn new(layer: &'a Layer, name: &'a str, known: Option<&'a Bits>) -> Self {
        Self { layer, name, known, rows: 0, words: vec![], codes: vec![], reals: vec![] }
    }

    fn push(&mut self, part: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Ok(x) = part.extract::<PyReadonlyArray2<'_, u8>>() {
            self.add(x.as_array(), f64::from)
        } else if let Ok(x) = part.extract::<PyReadonlyArray2<'_, f32>>() {
            self.add(x.as_array(), f64::from)
        } else if let Ok(x) = part.extract::<PyReadonlyArray2<'_, f64>>() {
            self.add(x.as_array(), |x| x)
        } else {
            Err(value(self.name, "expected a 2-d array of uint8, float32 or float64"))
        }
    }

    fn add<S: Copy>(&mut self, x: ArrayView2<'_, S>, number: impl Fn(S) -> f64) -> PyResult<()> {
        let (kind, n) = (self.layer.kind(), self.layer.len());
        if x.ncols() != n {
            return Err(value(self.name, format!("expected {n} columns, got {}", x.ncols())));
        }
        for from in (0..x.nrows()).step_by(CHUNK) {
            let part = x.slice_axis(Axis(0), (from..(from + CHUNK).min(x.nrows())).into());
            let mut values = part.mapv(&number);
            for ((r, j), x) in values.indexed_iter_mut() {
                let row = self.rows + r;
                let is_known = self.known.is_none_or(|k| row >= k.rows() || k.get(row, j));
                if !is_known {
                    // Whatever stands there does not matter, but must be a state.
                    *x = if kind == Kind::Spin { -1.0 } else { 0.0 };
                } else if !kind.allows(*x) {
                    let got = if x.is_nan() { "NaN".into() } else { x.to_string() };
                    let why = format!(
                        "row {row}, column {j}: {got} is not allowed, expected {}",
                        kind.allowed()
                    );
                    return Err(value(self.name, why));
                }
            }
            self.rows += part.nrows();
            match self.layer.batch(values.view()).map_err(raise)? {
                Batch::Bits(b) => self.words.extend_from_slice(b.words()),
                Batch::Codes(c) => self.codes.extend(c.iter()),
                Batch::Reals(x) => self.reals.extend(x.iter()),
            }
        }
        Ok(())
    }

    fn finish(self) -> PyResult<Batch<f32>> {
        let shape = (self.rows, self.layer.len());
        let wrong = |e: ndarray::ShapeError| value(self.name, e);
        Ok(match self.layer.zeros(0) {
            Batch::Bits(_) => {
                Batch::Bits(Bits::from_words(shape.0, shape.1, self.words).map_err(raise)?)
            }
            Batch::Codes(_) => Batch::Codes(Array2::from_shape_vec(shape, self.codes).map_err(wrong)?),
            Batch::Reals(_) => Batch::Reals(Array2::from_shape_vec(shape, self.reals).map_err(wrong)?),
        })
    }
}
