//! The machine: immutable, so that its weights can be seen without a copy and threads can share it.

use crate::error::{raise, value};
use crate::objects::{from_python, to_python};
use crate::precision::{AnyMachine, Precise, Precision, array_for, cast, each, named};
use crate::rows::Rows;
use crate::work::compute;
use harmonium::io::{LayerInfo, Provenance};
use harmonium::train::Data;
use harmonium::{Coupling, Kind, Layer, Member, Real, Result};
use ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A machine in single or double precision.
#[pyclass(frozen, module = "harmonium._core")]
pub(crate) struct Machine {
    pub(crate) inner: AnyMachine,
}

impl<T: Precise> From<harmonium::Machine<T>> for Machine {
    fn from(machine: harmonium::Machine<T>) -> Self {
        Self { inner: T::machine(Arc::new(machine)) }
    }
}

fn provenance(seed: Option<u64>, details: BTreeMap<String, String>) -> Provenance {
    Provenance { seed, details, ..Provenance::default() }
}

/// A machine of these layers whose parameters are all at their start.
fn made<T: Precise>(infos: &[LayerInfo], couplings: &[(usize, usize)]) -> PyResult<Machine> {
    let zeros = |info: &LayerInfo| {
        // A kind without states is refused before a layer of it is made.
        match info.kind.has_states() {
            true => Ok(Layer::new(info.kind, info.units)),
            false => Layer::with_params(info.kind, Array2::zeros((0, 0))),
        }
    };
    let sizes: Vec<_> = infos.iter().map(|info| (info.kind, info.units)).collect();
    harmonium::Machine::<T>::check_size(&sizes, couplings).map_err(raise)?;
    let members = infos
        .iter()
        .map(|info| Ok(Member { name: info.name.clone(), role: info.role, layer: zeros(info)? }));
    let members: Vec<Member<T>> = members.collect::<Result<_>>().map_err(raise)?;
    let weights = couplings.iter().map(|&(a, b)| match (members.get(a), members.get(b)) {
        (Some(x), Some(y)) => {
            Coupling::new(a, b, Array2::zeros((x.layer.width(), y.layer.width()))).map_err(raise)
        }
        _ => Err(value("couplings", format!("there is no layer {}", a.max(b)))),
    });
    let weights = weights.collect::<PyResult<_>>()?;
    Ok(harmonium::Machine::new(members, weights).map_err(raise)?.into())
}

/// A machine with what its model file says of seed and details.
type Loaded = (Machine, Option<u64>, BTreeMap<String, String>);

#[pymethods]
impl Machine {
    /// Layers as dicts (name, role, kind, units) and the pairs that are coupled.
    #[new]
    fn new(layers: &Bound<'_, PyList>, couplings: Vec<(usize, usize)>, dtype: &str) -> PyResult<Self> {
        let infos: Vec<LayerInfo> = from_python("layers", layers)?;
        match named(dtype)? {
            Precision::Single(()) => made::<f32>(&infos, &couplings),
            Precision::Double(()) => made::<f64>(&infos, &couplings),
        }
    }

    /// The machine of a model file, in the precision of the file where none is asked for.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf, dtype: Option<&str>) -> PyResult<Loaded> {
        let wanted = dtype.map(named).transpose()?;
        let (machine, found) = py.detach(|| {
            let found = harmonium::io::inspect(&path).map_err(raise)?;
            let double = match wanted {
                Some(wanted) => matches!(wanted, Precision::Double(())),
                None => found.precision == harmonium::io::Precision::F64,
            };
            let machine: Result<Self> = match double {
                true => harmonium::Machine::<f64>::load(&path).map(Into::into),
                false => harmonium::Machine::<f32>::load(&path).map(Into::into),
            };
            PyResult::Ok((machine.map_err(raise)?, found.provenance))
        })?;
        Ok((machine, found.seed, found.details))
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8], dtype: &str) -> PyResult<Self> {
        let machine: Result<Self> = match named(dtype)? {
            Precision::Single(()) => {
                py.detach(|| harmonium::Machine::<f32>::from_bytes(bytes)).map(Into::into)
            }
            Precision::Double(()) => {
                py.detach(|| harmonium::Machine::<f64>::from_bytes(bytes)).map(Into::into)
            }
        };
        machine.map_err(raise)
    }

    fn save(
        &self,
        py: Python<'_>,
        path: PathBuf,
        seed: Option<u64>,
        details: BTreeMap<String, String>,
    ) -> PyResult<()> {
        py.detach(|| each!(&self.inner, m => m.save(path, &provenance(seed, details)))).map_err(raise)
    }

    fn to_bytes<'py>(
        &self,
        py: Python<'py>,
        seed: Option<u64>,
        details: BTreeMap<String, String>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| each!(&self.inner, m => m.to_bytes(&provenance(seed, details))));
        Ok(PyBytes::new(py, &bytes.map_err(raise)?))
    }

    /// NumPy's name of the type that the parameters have.
    #[getter]
    fn dtype(&self) -> &'static str {
        match &self.inner {
            Precision::Single(_) => f32::DTYPE,
            Precision::Double(_) => f64::DTYPE,
        }
    }

    /// The same machine with its parameters in this type.
    fn astype(&self, dtype: &str) -> PyResult<Self> {
        match named(dtype)? {
            Precision::Single(()) => each!(&self.inner, m => cast::<_, f32>(m)).map(Into::into),
            Precision::Double(()) => each!(&self.inner, m => cast::<_, f64>(m)).map(Into::into),
        }
        .map_err(raise)
    }

    /// Layers and couplings, as lists of dicts.
    fn describe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let d = each!(&self.inner, m => m.describe(&Provenance::default()));
        let found = PyDict::new(py);
        found.set_item("layers", to_python(py, &d.layers)?)?;
        found.set_item("couplings", to_python(py, &d.couplings)?)?;
        Ok(found)
    }

    /// Names of the rows of a layer's parameters.
    fn param_names(&self, layer: usize) -> PyResult<Vec<&'static str>> {
        Ok(self.kind(layer)?.params().to_vec())
    }

    /// The weights of a coupling, for `numpy.asarray`.
    fn weights(&self, coupling: usize) -> PyResult<View> {
        self.check_coupling(coupling)?;
        Ok(View { machine: self.shared(), part: Part::Weights(coupling) })
    }

    /// The parameters of a layer, for `numpy.asarray`.
    fn params(&self, layer: usize) -> PyResult<View> {
        self.kind(layer)?;
        Ok(View { machine: self.shared(), part: Part::Params(layer) })
    }

    /// Which weights may differ from zero.
    fn mask<'py>(
        &self,
        py: Python<'py>,
        coupling: usize,
    ) -> PyResult<Option<Bound<'py, PyArray2<bool>>>> {
        self.check_coupling(coupling)?;
        let bits = each!(&self.inner, m => m.couplings()[coupling].mask());
        let array = bits.map(|b| Array2::from_shape_fn((b.rows(), b.cols()), |(i, j)| b.get(i, j)));
        Ok(array.map(|a| a.into_pyarray(py)))
    }

    fn with_weights(&self, coupling: usize, w: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.check_coupling(coupling)?;
        each!(&self.inner, m => {
            let w = array_for(m, "w", w)?;
            changed(m, |_, couplings| {
                let old = &couplings[coupling];
                let ((a, b), mask) = (old.ends(), old.mask().cloned());
                let new = Coupling::new(a, b, w)?;
                couplings[coupling] = match mask {
                    Some(mask) => new.with_mask(mask)?,
                    None => new,
                };
                Ok(())
            })
        })
    }

    fn with_mask(&self, coupling: usize, mask: PyReadonlyArray2<'_, bool>) -> PyResult<Self> {
        self.check_coupling(coupling)?;
        let mask = mask.as_array();
        let bits = harmonium::Bits::from_fn(mask.nrows(), mask.ncols(), |i, j| mask[[i, j]]);
        each!(&self.inner, m => changed(m, |_, couplings| {
            couplings[coupling] = couplings[coupling].clone().with_mask(bits)?;
            Ok(())
        }))
    }

    fn with_params(&self, layer: usize, params: &Bound<'_, PyAny>) -> PyResult<Self> {
        let kind = self.kind(layer)?;
        each!(&self.inner, m => {
            let params = array_for(m, "params", params)?;
            changed(m, |members, _| {
                members[layer].layer = Layer::with_params(kind, params)?;
                Ok(())
            })
        })
    }

    /// E of each row; every layer must be held.
    fn energy<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let x = each!(&self.inner, m => {
            let data = rows.of(m)?;
            compute(py, threads, |_| m.energy(data.states()))?
        });
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
        let x = each!(&self.inner, m => {
            let data = rows.of(m)?;
            compute(py, threads, |_| free_energy(m, data, beta))?
        });
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
        self.kind(layer)?;
        let found = each!(&self.inner, m => {
            let data = rows.of(m)?;
            compute(py, threads, |link| {
                let task = m.classify(data).layer(&m.members()[layer].name).seed(seed);
                task.on_progress(crate::evaluate::observer(link)).run()
            })?
        });
        Ok((found.probabilities.into_pyarray(py), found.remark))
    }

    /// Means of a layer given those coupled to it, or its inputs.
    fn mean<'py>(
        &self,
        py: Python<'py>,
        layer: usize,
        rows: &Rows,
        inputs: bool,
        beta: f64,
        threads: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.kind(layer)?;
        each!(&self.inner, m => {
            let states = rows.of(m)?.states();
            let x = compute(py, threads, |_| match inputs {
                true => m.at(beta).inputs(layer, states),
                false => m.at(beta).mean(layer, states),
            })?;
            Ok(x.into_pyarray(py).into_any())
        })
    }

    /// Means (or inputs) of all hidden layers, one after the other.
    fn features<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        inputs: bool,
        seed: u64,
        threads: usize,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        each!(&self.inner, m => {
            let data = rows.of(m)?;
            let parts = compute(py, threads, |link| {
                let task = m.features(data).inputs(inputs).seed(seed);
                task.stop_when(|| link.stopped()).run()
            })?;
            Ok(parts.into_iter().map(|p| p.into_pyarray(py).into_any()).collect())
        })
    }

    /// ln p of each row by enumeration.
    fn log_probability<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        seconds: f64,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let (x, offsets) = each!(&self.inner, m => {
            let (exact, data) = (m.exact().within(seconds), rows.of(m)?);
            let x = compute(py, threads, |_| match data.is_missing() {
                true => exact.log_probability_known(data.states(), data.known()),
                false => exact.log_probability(data.states()),
            })?;
            (x, data.offsets())
        });
        let offset = |r: usize| offsets.map_or(0.0, |o| o[r]);
        let x: Vec<f64> = x.into_iter().enumerate().map(|(r, x)| x + offset(r)).collect();
        Ok(x.into_pyarray(py))
    }

    /// ln Z, ⟨x⟩ of every layer and ⟨t⟩ of every parameter by enumeration.
    fn moments<'py>(&self, py: Python<'py>, seconds: f64, threads: usize) -> PyResult<Moments<'py>> {
        let m = each!(&self.inner, m => compute(py, threads, |_| m.exact().within(seconds).moments())?);
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
        let g = each!(&self.inner, m => {
            let data = rows.of(m)?;
            compute(py, threads, |_| m.gradient(data).within(seconds).run())?
        });
        Ok(g.arrays().map(|x| x.clone().into_pyarray(py)).collect())
    }
}

type Moments<'py> = (f64, Vec<Bound<'py, PyArray1<f64>>>, Vec<Bound<'py, PyArray2<f64>>>);

impl Machine {
    /// The kind of a layer; an error where there is no such layer.
    pub(crate) fn kind(&self, l: usize) -> PyResult<Kind> {
        let kind = each!(&self.inner, m => m.members().get(l).map(|m| m.layer.kind()));
        kind.ok_or_else(|| value("layer", format!("there is no layer {l}")))
    }

    fn check_coupling(&self, c: usize) -> PyResult<()> {
        match c < each!(&self.inner, m => m.couplings().len()) {
            true => Ok(()),
            false => Err(value("coupling", format!("there is no coupling {c}"))),
        }
    }

    fn shared(&self) -> AnyMachine {
        match &self.inner {
            Precision::Single(m) => Precision::Single(m.clone()),
            Precision::Double(m) => Precision::Double(m.clone()),
        }
    }
}

/// The machine with other members or couplings.
fn changed<T: Precise>(
    machine: &harmonium::Machine<T>,
    change: impl FnOnce(&mut Vec<Member<T>>, &mut Vec<Coupling<T>>) -> Result<()>,
) -> PyResult<Machine> {
    let mut members = machine.members().to_vec();
    let mut couplings = machine.couplings().to_vec();
    change(&mut members, &mut couplings).map_err(raise)?;
    Ok(harmonium::Machine::new(members, couplings).map_err(raise)?.into())
}

/// Which numbers of a machine.
enum Part {
    Params(usize),
    Weights(usize),
}

/// Numbers of a machine where they are: `numpy.asarray` makes a read-only array of it without a copy.
#[pyclass(frozen, module = "harmonium._core")]
pub(crate) struct View {
    machine: AnyMachine,
    part: Part,
}

#[pymethods]
impl View {
    /// NumPy's array interface, version 3. The machine never changes and lives as long as this object, which the
    /// array keeps.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (shape, data, bytes) = each!(&self.machine, m => {
            let array = match self.part {
                Part::Params(l) => m.layer(l).params(),
                Part::Weights(c) => m.couplings()[c].w(),
            };
            (array.dim(), array.as_ptr() as usize, item_size(array))
        });
        let order = if cfg!(target_endian = "little") { '<' } else { '>' };
        let dict = PyDict::new(py);
        dict.set_item("version", 3)?;
        dict.set_item("shape", shape)?;
        dict.set_item("typestr", format!("{order}f{bytes}"))?;
        dict.set_item("data", (data, true))?;
        Ok(dict)
    }
}

/// Bytes of a number.
fn item_size<T>(_: &Array2<T>) -> usize {
    size_of::<T>()
}

/// F(v) at β; coupled hidden layers and missing entries are enumerated.
fn free_energy<T: Real>(machine: &harmonium::Machine<T>, data: &Data<T>, beta: f64) -> Result<Vec<f64>> {
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
