//! Checkpoints: files and bytes from which a run is resumed.

use crate::error::{raise, value};
use crate::machine::Machine;
use crate::objects::to_python;
use crate::precision::{Precise, each};
use crate::rows::Rows;
use harmonium::train::Data;
use harmonium::{Archive, Tensor};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;

/// Everything the rest of a run depends on.
#[pyclass(frozen, module = "harmonium._core")]
pub(crate) struct Checkpoint {
    pub(crate) archive: Archive,
}

#[pymethods]
impl Checkpoint {
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Ok(Self { archive: py.detach(|| Archive::load(&path)).map_err(raise)? })
    }
    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        Ok(Self { archive: Archive::from_bytes(bytes).map_err(raise)? })
    }
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.archive.save(&path)).map_err(raise)
    }
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.archive.to_bytes().map_err(raise)?))
    }
    /// The run's settings, as a dict.
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &harmonium::train::checkpoint_params(&self.archive).map_err(raise)?)
    }
    /// The chains of the estimator, where it has persistent ones and they are in the machine's own coordinates.
    fn chains(&self, machine: &Machine) -> Option<Rows> {
        if self.archive.tensors().keys().any(|name| name.starts_with("inside")) {
            return None;
        }
        let estimator = self.archive.below("estimator");
        each!(&machine.inner, m => Some(Rows::new(m, Data::new(estimator.states("chains").ok()?))))
    }
    /// Updates done.
    #[getter]
    fn updates(&self) -> PyResult<u64> {
        let counters = self.archive.u64s("counters").map_err(raise)?;
        counters.first().copied().ok_or_else(|| value("checkpoint", "it has no counters"))
    }
}

impl Checkpoint {
    /// The archive, for a machine of the precision that the run had: numbers of the other would be rounded without a word.
    pub(crate) fn archive_for<T: Precise>(&self, _: &harmonium::Machine<T>) -> PyResult<&Archive> {
        let dtype = match self.archive.get("machine/0") {
            Ok(Tensor::F64(_)) => f64::DTYPE,
            _ => f32::DTYPE,
        };
        match dtype == T::DTYPE {
            true => Ok(&self.archive),
            false => {
                let why = format!("its run is of a machine of {dtype}, this one has {}", T::DTYPE);
                Err(value("checkpoint", why))
            }
        }
    }
}
