//! Evaluating a machine: ln Z, likelihood, diagnostics. Results are JSON.

use crate::error::value;
use crate::machine::Machine;
use crate::rows::Rows;
use crate::work::{Link, whole};
use harmonium::evaluate::{self, Budget, Estimate, LogZParams};
use harmonium::exact::whole_rows;
use harmonium::partition::Progress;
use harmonium::train::Floor;
use harmonium::{Result, Role, States};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use serde_json::json;
use std::ops::ControlFlow;
use std::time::Instant;

/// ln Z with everything that speaks for or against it.
#[pyclass(frozen, module = "harmonium._core")]
pub(crate) struct LogZ {
    estimate: Estimate,
}

#[pymethods]
impl LogZ {
    fn json(&self) -> String {
        text(&self.estimate)
    }
}

fn text(x: &impl serde::Serialize) -> String {
    serde_json::to_string(x).expect("results are plain data")
}

/// Breaks off when the link says so.
pub(crate) fn observer<'a>(link: &'a Link<'a>) -> impl FnMut(Progress) -> ControlFlow<()> + 'a {
    |_| if link.stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// ln Z; `params` is the JSON of `LogZParams`.
#[pyfunction]
pub(crate) fn log_z(
    py: Python<'_>,
    machine: &Machine,
    data: Option<&Rows>,
    params: &str,
    time_budget: Option<f64>,
    threads: usize,
) -> PyResult<LogZ> {
    let params: LogZParams = serde_json::from_str(params).map_err(|e| value("log_z", e))?;
    let start = Instant::now();
    let estimate = whole(py, threads, |link| {
        let clock = || start.elapsed().as_secs_f64();
        let budget = time_budget.map(|seconds| Budget { seconds, clock: &clock });
        // Rows with gaps say nothing about the base of the estimate.
        let base = data.and_then(|d| match whole_rows(d.states().rows(), d.data.known()) {
            rows if rows.is_empty() => None,
            rows if rows.len() == d.states().rows() => Some(d.states().clone()),
            rows => Some(d.states().select(&rows)),
        });
        evaluate::log_z(&machine.inner, base.as_ref(), &params, budget, &mut observer(link))
    })?;
    Ok(LogZ { estimate })
}

/// ln p(v) of rows given ln Z, or p(v|u) of a conditional machine, which finds that of every condition as `params` say.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub(crate) fn log_likelihood(
    py: Python<'_>,
    machine: &Machine,
    data: &Rows,
    log_z: Option<&LogZ>,
    floor: Option<&str>,
    params: &str,
    time_budget: Option<f64>,
    threads: usize,
) -> PyResult<String> {
    let params: LogZParams = serde_json::from_str(params).map_err(|e| value("log_z", e))?;
    let start = Instant::now();
    let machine = &*machine.inner;
    // One that cannot be read is no reason to withhold the likelihood.
    let floor: Option<Floor> = floor.and_then(|text| serde_json::from_str(text).ok());
    let likelihood = whole(py, threads, |link| {
        let (states, known, wts) = (data.states(), data.data.known(), data.wts());
        let mut observer = observer(link);
        let found = match log_z {
            Some(z) => evaluate::log_likelihood(
                machine,
                states,
                known,
                wts,
                &z.estimate,
                params.seed,
                &mut observer,
            ),
            None => {
                let clock = || start.elapsed().as_secs_f64();
                let budget = time_budget.map(|seconds| Budget { seconds, clock: &clock });
                evaluate::conditional_log_likelihood(
                    machine,
                    states,
                    known,
                    wts,
                    &params,
                    budget,
                    &mut observer,
                )
            }
        }?;
        let found = match data.data.offsets() {
            Some(offsets) => found.in_units(offsets, wts)?,
            None => found,
        };
        match &floor {
            Some(floor) => found.above(&floor.log_probability(&data.data)?, wts),
            None => Ok(found),
        }
    })?;
    Ok(text(&likelihood))
}

#[pyfunction]
pub(crate) fn pseudo_log_likelihood<'py>(
    py: Python<'py>,
    machine: &Machine,
    data: &Rows,
    threads: usize,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let x = whole(py, threads, |_| evaluate::pseudo_log_likelihood(&machine.inner, data.states()))?;
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
    let by_flips =
        |_: &Link<'_>| evaluate::pseudo_log_likelihood_by_flips(&machine.inner, data.states(), seed);
    Ok(whole(py, threads, by_flips)?.into_pyarray(py))
}

/// Whether chains from data and from nowhere forget their start.
#[pyfunction]
pub(crate) fn equilibrium(
    py: Python<'_>,
    machine: &Machine,
    data: &Rows,
    chains: usize,
    sweeps: usize,
    seed: u64,
    threads: usize,
) -> PyResult<String> {
    let found = whole(py, threads, |link| {
        let mut observer = observer(link);
        evaluate::equilibrium(&machine.inner, data.states(), chains, sweeps, seed, &mut observer)
    })?;
    Ok(text(&found))
}

/// How samples compare with data.
#[pyfunction]
pub(crate) fn quality(
    py: Python<'_>,
    machine: &Machine,
    data: &Rows,
    samples: &Rows,
    threads: usize,
) -> PyResult<String> {
    let machine = &*machine.inner;
    let found = whole(py, threads, |_| {
        let (data, samples) = (data.states(), &visible(machine, samples.states()));
        Ok(json!({
            "adversarial": evaluate::adversarial(machine, data, samples)?,
            "moments": evaluate::moments(machine, data, samples, 10_000)?,
            "duplicates": evaluate::duplicates(machine, data, samples)?,
        }))
    })?;
    Ok(found.to_string())
}

fn visible(machine: &harmonium::Machine, states: &States) -> States {
    let mut states = states.clone();
    for l in machine.with_role(Role::Hidden) {
        states.take(l);
    }
    states
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
) -> PyResult<String> {
    let v = whole(py, threads, |link| {
        evaluate::verify(&machine.inner, chains, sweeps, seed, &mut observer(link))
    })?;
    let report =
        json!({"p_value": v.p_value, "partial": v.partial, "units": v.units, "checks": v.checks});
    Ok(report.to_string())
}

/// R-hat, effective sample sizes and autocorrelation time of a trace, a row per chain.
#[pyfunction]
pub(crate) fn mixing(py: Python<'_>, trace: PyReadonlyArray2<'_, f64>) -> PyResult<String> {
    let trace = trace.as_array().to_owned();
    let found: Result<_> = py.detach(|| evaluate::mixing(trace.view()));
    Ok(text(&found.map_err(crate::error::raise)?))
}
