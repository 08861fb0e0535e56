//! The machine: immutable, so that its weights can be seen without a copy and threads can share it.

use crate::error::{raise, value};
use crate::objects::{from_python, to_python};
use crate::rows::Rows;
use crate::work::whole;
use harmonium::io::{LayerInfo, Provenance};
use harmonium::train::Data;
use harmonium::{Coupling, Layer, Member, Result};
use ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A machine in single precision.
#[pyclass(frozen, module = "harmonium._core")]
pub(crate) struct Machine {
    pub(crate) inner: Arc<harmonium::Machine>,
}

impl From<harmonium::Machine> for Machine {
    fn from(machine: harmonium::Machine) -> Self {
        Self { inner: Arc::new(machine) }
    }
}

fn provenance(seed: Option<u64>, details: BTreeMap<String, String>) -> Provenance {
    Provenance { seed, details, ..Provenance::default() }
}

#[pymethods]
impl Machine {
    /// Layers as dicts (name, role, kind, units) and the pairs that are coupled.
    #[new]
    fn new(layers: &Bound<'_, PyList>, couplings: Vec<(usize, usize)>) -> PyResult<Self> {
        let infos: Vec<LayerInfo> = from_python("layers", layers)?;
        let zeros = |info: &LayerInfo| {
            // A kind without states is refused before a layer of it is made.
            match info.kind.has_states() {
                true => Ok(Layer::new(info.kind, info.units)),
                false => Layer::with_params(info.kind, Array2::zeros((0, 0))),
            }
        };
        let members = infos
            .iter()
            .map(|info| Ok(Member { name: info.name.clone(), role: info.role, layer: zeros(info)? }));
        let members: Vec<Member<f32>> = members.collect::<Result<_>>().map_err(raise)?;
        let weights = couplings.iter().map(|&(a, b)| match (members.get(a), members.get(b)) {
            (Some(x), Some(y)) => {
                Coupling::new(a, b, Array2::zeros((x.layer.width(), y.layer.width()))).map_err(raise)
            }
            _ => Err(value("couplings", format!("there is no layer {}", a.max(b)))),
        });
        let weights = weights.collect::<PyResult<_>>()?;
        Ok(harmonium::Machine::new(members, weights).map_err(raise)?.into())
    }

    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let machine = py.detach(|| harmonium::Machine::load(path)).map_err(raise)?;
        Ok(machine.into())
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        let machine = py.detach(|| harmonium::Machine::from_bytes(bytes)).map_err(raise)?;
        Ok(machine.into())
    }

    fn save(
        &self,
        py: Python<'_>,
        path: PathBuf,
        seed: Option<u64>,
        details: BTreeMap<String, String>,
    ) -> PyResult<()> {
        py.detach(|| self.inner.save(path, &provenance(seed, details))).map_err(raise)
    }

    fn to_bytes<'py>(
        &self,
        py: Python<'py>,
        seed: Option<u64>,
        details: BTreeMap<String, String>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.inner.to_bytes(&provenance(seed, details))).map_err(raise)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Seed and details that a model file holds.
    #[staticmethod]
    fn provenance(path: PathBuf) -> PyResult<(Option<u64>, BTreeMap<String, String>)> {
        let found = harmonium::io::inspect(path).map_err(raise)?.provenance;
        Ok((found.seed, found.details))
    }

    /// Layers and couplings, as lists of dicts.
    fn describe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let d = self.inner.describe(&Provenance::default());
        let found = PyDict::new(py);
        found.set_item("layers", to_python(py, &d.layers)?)?;
        found.set_item("couplings", to_python(py, &d.couplings)?)?;
        Ok(found)
    }

    /// Names of the rows of a layer's parameters.
    fn param_names(&self, layer: usize) -> PyResult<Vec<&'static str>> {
        Ok(self.layer(layer)?.kind().params().to_vec())
    }

    /// The weights of a coupling, for `numpy.asarray`.
    fn weights(&self, coupling: usize) -> PyResult<View> {
        self.coupling(coupling)?;
        Ok(View { machine: self.inner.clone(), part: Part::Weights(coupling) })
    }

    /// The parameters of a layer, for `numpy.asarray`.
    fn params(&self, layer: usize) -> PyResult<View> {
        self.layer(layer)?;
        Ok(View { machine: self.inner.clone(), part: Part::Params(layer) })
    }

    /// Which weights may differ from zero.
    fn mask<'py>(
        &self,
        py: Python<'py>,
        coupling: usize,
    ) -> PyResult<Option<Bound<'py, PyArray2<bool>>>> {
        let bits = self.coupling(coupling)?.mask();
        let array = bits.map(|b| Array2::from_shape_fn((b.rows(), b.cols()), |(i, j)| b.get(i, j)));
        Ok(array.map(|a| a.into_pyarray(py)))
    }

    fn with_weights(&self, coupling: usize, w: PyReadonlyArray2<'_, f32>) -> PyResult<Self> {
        self.coupling(coupling)?;
        self.changed(|_, couplings| {
            let old = &couplings[coupling];
            let ((a, b), mask) = (old.ends(), old.mask().cloned());
            let new = Coupling::new(a, b, w.as_array().to_owned())?;
            couplings[coupling] = match mask {
                Some(mask) => new.with_mask(mask)?,
                None => new,
            };
            Ok(())
        })
    }

    fn with_mask(&self, coupling: usize, mask: PyReadonlyArray2<'_, bool>) -> PyResult<Self> {
        self.coupling(coupling)?;
        let mask = mask.as_array();
        let bits = harmonium::Bits::from_fn(mask.nrows(), mask.ncols(), |i, j| mask[[i, j]]);
        self.changed(|_, couplings| {
            couplings[coupling] = couplings[coupling].clone().with_mask(bits)?;
            Ok(())
        })
    }

    fn with_params(&self, layer: usize, params: PyReadonlyArray2<'_, f32>) -> PyResult<Self> {
        let kind = self.layer(layer)?.kind();
        self.changed(|members, _| {
            members[layer].layer = Layer::with_params(kind, params.as_array().to_owned())?;
            Ok(())
        })
    }

    /// Whether Z is finite; the reason why not otherwise.
    fn check_normalisable(&self) -> PyResult<()> {
        self.inner.check_normalisable().map_err(raise)
    }

    /// E of each row; every layer must be held.
    fn energy<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let x = whole(py, threads, |_| self.inner.energy(rows.states()))?;
        Ok(x.into_pyarray(py))
    }

    /// F of each row at inverse temperature β, by enumeration of the hidden layers where they are coupled.
    fn free_energy<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        beta: f64,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let x = whole(py, threads, |_| free_energy(&self.inner, &rows.data, beta))?;
        Ok(x.into_pyarray(py))
    }

    /// p(y|v) ∝ e^{−F(v,y)} of the classes of the single Potts unit in `layer`, and what is to be known of it.
    fn posterior<'py>(
        &self,
        py: Python<'py>,
        layer: usize,
        rows: &Rows,
        seed: u64,
        threads: usize,
    ) -> PyResult<(Bound<'py, PyArray2<f64>>, Option<String>)> {
        self.layer(layer)?;
        let found = whole(py, threads, |link| {
            let name = &self.inner.members()[layer].name;
            let task = self.inner.classify(&rows.data).layer(name).seed(seed);
            task.on_progress(crate::evaluate::observer(link)).run()
        })?;
        Ok((found.probabilities.into_pyarray(py), found.remark))
    }

    /// Conditional means of a layer given the others, or what reaches it.
    fn mean<'py>(
        &self,
        py: Python<'py>,
        layer: usize,
        rows: &Rows,
        inputs: bool,
        beta: f64,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        self.layer(layer)?;
        let x = whole(py, threads, |_| match inputs {
            true => self.inner.at(beta).inputs(layer, rows.states()),
            false => self.inner.at(beta).mean(layer, rows.states()),
        })?;
        Ok(x.into_pyarray(py))
    }

    /// Means (or inputs) of all hidden layers, one after the other.
    fn features<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        inputs: bool,
        seed: u64,
        threads: usize,
    ) -> PyResult<Vec<Bound<'py, PyArray2<f32>>>> {
        let parts = whole(py, threads, |link| {
            let task = self.inner.features(&rows.data).inputs(inputs).seed(seed);
            task.stop_when(|| link.stopped()).run()
        })?;
        Ok(parts.into_iter().map(|p| p.into_pyarray(py)).collect())
    }

    /// Number of states that exact answers enumerate, and the seconds that takes.
    fn exact_cost(&self, py: Python<'_>, threads: usize) -> PyResult<(f64, f64)> {
        whole(py, threads, |_| self.inner.exact().cost())
    }

    /// ln p of each row by enumeration.
    fn log_probability<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        seconds: f64,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let exact = self.inner.exact().within(seconds);
        let x = whole(py, threads, |_| match rows.data.is_missing() {
            true => exact.log_probability_known(rows.states(), rows.data.known()),
            false => exact.log_probability(rows.states()),
        })?;
        let offset = |r: usize| rows.data.offsets().map_or(0.0, |o| o[r]);
        let x: Vec<f64> = x.into_iter().enumerate().map(|(r, x)| x + offset(r)).collect();
        Ok(x.into_pyarray(py))
    }

    /// ln Z, ⟨x⟩ of every layer and ⟨t⟩ of every parameter by enumeration.
    fn moments<'py>(&self, py: Python<'py>, seconds: f64, threads: usize) -> PyResult<Moments<'py>> {
        let m = whole(py, threads, |_| self.inner.exact().within(seconds).moments())?;
        let means = m.means.into_iter().map(|x| x.into_pyarray(py)).collect();
        let stats = m.stats.arrays().map(|x| x.clone().into_pyarray(py)).collect();
        Ok((m.log_z, means, stats))
    }

    /// Gradient of the mean log-likelihood by enumeration, one array per layer and one per coupling.
    fn gradient<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        seconds: f64,
        threads: usize,
    ) -> PyResult<Vec<Bound<'py, PyArray2<f64>>>> {
        let g = whole(py, threads, |_| self.inner.gradient(&rows.data).within(seconds).run())?;
        Ok(g.arrays().map(|x| x.clone().into_pyarray(py)).collect())
    }
}

type Moments<'py> = (f64, Vec<Bound<'py, PyArray1<f64>>>, Vec<Bound<'py, PyArray2<f64>>>);

impl Machine {
    pub(crate) fn layer(&self, l: usize) -> PyResult<&Layer> {
        let members = self.inner.members();
        members.get(l).map(|m| &m.layer).ok_or_else(|| value("layer", format!("there is no layer {l}")))
    }

    fn coupling(&self, c: usize) -> PyResult<&Coupling> {
        let found = self.inner.couplings().get(c);
        found.ok_or_else(|| value("coupling", format!("there is no coupling {c}")))
    }

    fn changed(
        &self,
        change: impl FnOnce(&mut Vec<Member<f32>>, &mut Vec<Coupling>) -> Result<()>,
    ) -> PyResult<Self> {
        let mut members = self.inner.members().to_vec();
        let mut couplings = self.inner.couplings().to_vec();
        change(&mut members, &mut couplings).map_err(raise)?;
        Ok(harmonium::Machine::new(members, couplings).map_err(raise)?.into())
    }
}

/// Which numbers of a machine.
enum Part {
    Params(usize),
    Weights(usize),
}

/// Numbers of a machine where they are: `numpy.asarray` makes a read-only array of it without a copy.
#[pyclass(frozen, module = "harmonium._core")]
pub(crate) struct View {
    machine: Arc<harmonium::Machine>,
    part: Part,
}

#[pymethods]
impl View {
    /// NumPy's array interface, version 3. The machine never changes and lives as long as this object, which the
    /// array keeps.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let array = match self.part {
            Part::Params(l) => self.machine.layer(l).params(),
            Part::Weights(c) => self.machine.couplings()[c].w(),
        };
        let dict = PyDict::new(py);
        dict.set_item("version", 3)?;
        dict.set_item("shape", array.dim())?;
        dict.set_item("typestr", if cfg!(target_endian = "little") { "<f4" } else { ">f4" })?;
        dict.set_item("data", (array.as_ptr() as usize, true))?;
        Ok(dict)
    }
}

/// F(v) at β; coupled hidden layers and missing entries are enumerated.
fn free_energy(machine: &harmonium::Machine, data: &Data, beta: f64) -> Result<Vec<f64>> {
    let states = data.states();
    if data.is_missing() {
        return machine.exact().at(beta).free_energy_known(states, data.known());
    }
    match machine.at(beta).free_energy(states) {
        Err(harmonium::Error::Undefined { .. }) => machine.exact().at(beta).free_energy(states),
        other => other,
    }
}

/// Every kind of unit with small sizes: its word as a setting, its name, and its description in model files.
#[pyfunction]
pub(crate) fn kinds(py: Python<'_>) -> PyResult<Vec<(String, String, Bound<'_, PyAny>)>> {
    let described = |kind: harmonium::Kind| Ok((kind.word(), kind.to_string(), to_python(py, &kind)?));
    harmonium::Kind::ALL.into_iter().map(described).collect()
}
