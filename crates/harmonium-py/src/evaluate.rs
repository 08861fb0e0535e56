//! Evaluating a machine: ln Z, likelihood, diagnostics.

use crate::machine::Machine;
use crate::objects::{from_python, to_python};
use crate::precision::each;
use crate::rows::Rows;
use crate::work::{Link, compute};
use harmonium::Result;
use harmonium::evaluate::{self, Estimate, LogZParams};
use harmonium::partition::Progress;
use harmonium::tasks::Evaluation;
use harmonium::train::Floor;
use ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ops::ControlFlow;
use std::time::Duration;

/// An estimate of ln Z with its interval, verdict and diagnostics.
#[pyclass(frozen, module = "harmonium._core")]
pub(crate) struct LogZ {
    estimate: Estimate,
}

#[pymethods]
impl LogZ {
    #[getter]
    fn value(&self) -> f64 {
        self.estimate.log_z.value
    }
    /// Lower and upper end of the 95 % interval.
    #[getter]
    fn interval(&self) -> (f64, f64) {
        (self.estimate.interval.lower, self.estimate.interval.upper)
    }
    #[getter]
    fn verdict(&self) -> String {
        self.estimate.verdict.to_string()
    }
    #[getter]
    fn reasons(&self) -> Vec<String> {
        self.estimate.reasons.clone()
    }
    /// All that was found, as a dict.
    fn details<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.estimate)
    }
}

/// The log-likelihood of rows.
#[pyclass(frozen, module = "harmonium._core")]
pub(crate) struct LogLikelihood {
    found: Evaluation,
}

#[pymethods]
impl LogLikelihood {
    #[getter]
    fn mean(&self) -> f64 {
        self.found.mean()
    }
    /// Lower and upper end of the 95 % interval.
    #[getter]
    fn interval(&self) -> (f64, f64) {
        (self.found.interval().lower, self.found.interval().upper)
    }
    #[getter]
    fn sampling_err(&self) -> f64 {
        self.found.log_likelihood.sampling_err
    }
    #[getter]
    fn verdict(&self) -> String {
        self.found.verdict().to_string()
    }
    /// Whether the verdict is on the model itself, not on the estimate.
    #[getter]
    fn is_bad_model(&self) -> bool {
        self.found.verdict().condemns_model()
    }
    #[getter]
    fn reasons(&self) -> Vec<String> {
        self.found.reasons().to_vec()
    }
    /// Mean of independent columns, gain over it and its standard error.
    #[getter]
    fn gain(&self) -> Option<(f64, f64, f64)> {
        self.found.gain().map(|g| (g.floor, g.value, g.std_err))
    }
    /// ln p of each row.
    #[getter]
    fn rows<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.found.log_likelihood.rows)
    }
    /// Ends of the interval of each row.
    #[getter]
    fn intervals<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray2<f64>> {
        let ends = &self.found.log_likelihood.intervals;
        let end = |(r, k): (usize, usize)| if k == 0 { ends[r].lower } else { ends[r].upper };
        Array2::from_shape_fn((ends.len(), 2), end).into_pyarray(py)
    }
    /// ln Z; conditional machines have one for each condition instead.
    #[getter]
    fn log_z(&self) -> Option<LogZ> {
        self.found.log_z.clone().map(|estimate| LogZ { estimate })
    }
}

/// An observer that ends a computation when it is to stop.
pub(crate) fn observer<'a>(link: &'a Link<'a>) -> impl FnMut(Progress) -> ControlFlow<()> + 'a {
    |_| if link.stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// ln Z; `params` are those of `LogZParams`, unset ones have their defaults.
#[pyfunction]
pub(crate) fn log_z(
    py: Python<'_>,
    machine: &Machine,
    data: Option<&Rows>,
    params: &Bound<'_, PyDict>,
    time_budget: Option<f64>,
    threads: usize,
) -> PyResult<LogZ> {
    let params: LogZParams = from_python("log_z", params)?;
    let estimate = each!(&machine.inner, m => {
        let data = data.map(|rows| rows.of(m)).transpose()?;
        compute(py, threads, |link| {
            let mut task = m.log_z().params(params).on_progress(observer(link));
            if let Some(data) = data {
                task = task.base(data);
            }
            if let Some(seconds) = time_budget {
                task = task.budget(Duration::from_secs_f64(seconds));
            }
            task.run()
        })?
    });
    Ok(LogZ { estimate })
}

/// ln p(v) of rows, with this ln Z where it is given, or p(v|u) of a conditional machine.
#[pyfunction]
pub(crate) fn log_likelihood(
    py: Python<'_>,
    machine: &Machine,
    data: &Rows,
    log_z: Option<&LogZ>,
    floor: Option<&str>,
    params: &Bound<'_, PyDict>,
    time_budget: Option<f64>,
    threads: usize,
) -> PyResult<LogLikelihood> {
    let params: LogZParams = from_python("log_z", params)?;
    // The likelihood does not depend on it, so an unreadable entry is ignored.
    let floor: Option<Floor> = floor.and_then(|text| serde_json::from_str(text).ok());
    let found = each!(&machine.inner, m => {
        let data = data.of(m)?;
        compute(py, threads, |link| {
            let mut task = m.log_likelihood(data).params(params);
            task = task.floor(floor.as_ref()).on_progress(observer(link));
            if let Some(z) = log_z {
                task = task.log_z(&z.estimate);
            }
            if let Some(seconds) = time_budget {
                task = task.budget(Duration::from_secs_f64(seconds));
            }
            task.run()
        })?
    });
    Ok(LogLikelihood { found })
}

#[pyfunction]
pub(crate) fn pseudo_log_likelihood<'py>(
    py: Python<'py>,
    machine: &Machine,
    data: &Rows,
    threads: usize,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let x = each!(&machine.inner, m => {
        let states = data.of(m)?.states();
        compute(py, threads, |_| evaluate::pseudo_log_likelihood(m, states))?
    });
    Ok(x.into_pyarray(py))
}

/// From one flipped unit of each row.
#[pyfunction]
pub(crate) fn pseudo_log_likelihood_by_flips<'py>(
    py: Python<'py>,
    machine: &Machine,
    data: &Rows,
    seed: u64,
    threads: usize,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let x = each!(&machine.inner, m => {
        let states = data.of(m)?.states();
        compute(py, threads, |_| evaluate::pseudo_log_likelihood_by_flips(m, states, seed))?
    });
    Ok(x.into_pyarray(py))
}

/// Whether chains started at rows and independently initialised ones agree, and how samples compare with the rows.
#[pyfunction]
pub(crate) fn diagnose<'py>(
    py: Python<'py>,
    machine: &Machine,
    data: &Rows,
    chains: usize,
    sweeps: usize,
    seed: u64,
    threads: usize,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let found = each!(&machine.inner, m => {
        let data = data.of(m)?;
        compute(py, threads, |link| {
            let task = m.diagnose(data).chains(chains).sweeps(sweeps).seed(seed);
            task.stop_when(|| link.stopped()).run()
        })?
    });
    Ok((to_python(py, &found.chains)?, to_python(py, &found.samples)?))
}

/// The sampler against enumeration.
#[pyfunction]
pub(crate) fn verify(
    py: Python<'_>,
    machine: &Machine,
    chains: usize,
    sweeps: usize,
    seed: u64,
    threads: usize,
) -> PyResult<Py<PyAny>> {
    let v = each!(&machine.inner, m => compute(py, threads, |link| {
        evaluate::verify(m, chains, sweeps, seed, &mut observer(link))
    })?);
    let found = PyDict::new(py);
    found.set_item("agrees", v.agrees())?;
    found.set_item("p_value", v.p_value)?;
    found.set_item("partial", v.partial)?;
    found.set_item("units", to_python(py, &v.units)?)?;
    found.set_item("checks", to_python(py, &v.checks)?)?;
    Ok(found.into_any().unbind())
}

/// R-hat, effective sample sizes and autocorrelation time of a trace, a row per chain.
#[pyfunction]
pub(crate) fn mixing(py: Python<'_>, trace: PyReadonlyArray2<'_, f64>) -> PyResult<Py<PyAny>> {
    let trace = trace.as_array().to_owned();
    let found: Result<_> = py.detach(|| evaluate::mixing(trace.view()));
    Ok(to_python(py, &found.map_err(crate::error::raise)?)?.unbind())
}
