//! Markov chains, free or with what is known clamped.

use crate::error::value;
use crate::machine::Machine;
use crate::precision::{AnyChains, Precise, each};
use crate::rows::Rows;
use crate::work::{Link, compute};
use harmonium::sample::{SamplingMethod, purpose};
use harmonium::tasks::Fill;
use harmonium::train::Data;
use harmonium::{Bits, Clamp, Clamps, Result, Role};
use numpy::{IntoPyArray, PyArray2};
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard};

/// Sweeps between two checks for an interruption.
const SWEEPS_AT_ONCE: usize = 16;

/// Chains that continue from their present states.
#[pyclass(frozen, module = "harmonium._core")]
pub(crate) struct Chains {
    chains: AnyChains,
    clamps: Clamps,
}

fn locked<T: Precise>(chains: &Mutex<harmonium::Chains<T>>) -> MutexGuard<'_, harmonium::Chains<T>> {
    chains.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[pymethods]
impl Chains {
    /// `n` chains that start with all couplings cut, or from `start`; the known entries of `given` (row r from its row
    /// r modulo their number) are put in and kept.
    #[new]
    #[pyo3(signature = (machine, n, seed, given=None, start=None))]
    fn new(
        py: Python<'_>,
        machine: &Machine,
        n: usize,
        seed: u64,
        given: Option<&Rows>,
        start: Option<&Rows>,
    ) -> PyResult<Self> {
        // One thread: the states are drawn before anything is computed.
        each!(&machine.inner, m => {
            let given = given.map(|rows| rows.of(m)).transpose()?;
            let start = start.map(|rows| rows.of(m)).transpose()?;
            compute(py, 1, |_| Self::start(m, n, seed, given, start))
        })
    }

    fn sweep(
        &self,
        py: Python<'_>,
        machine: &Machine,
        n: usize,
        beta: f64,
        threads: usize,
    ) -> PyResult<()> {
        each!(&machine.inner, m => {
            let chains = self.of(m)?;
            compute(py, threads, |link| sweep(&mut locked(chains), &m.at(beta), &self.clamps, n, link))
        })
    }

    /// One sweep at each of `steps` inverse temperatures from high temperature up to `beta`.
    fn anneal(
        &self,
        py: Python<'_>,
        machine: &Machine,
        steps: usize,
        beta: f64,
        threads: usize,
    ) -> PyResult<()> {
        each!(&machine.inner, m => {
            let chains = self.of(m)?;
            compute(py, threads, |link| {
                let mut chains = locked(chains);
                for k in (0..steps).take_while(|_| !link.stopped()) {
                    let part = (k + 1) as f64 / steps as f64;
                    chains.sweep(&m.at(beta * part), &self.clamps, 1)?;
                }
                Ok(())
            })
        })
    }

    /// The present states of all layers.
    fn rows(&self, machine: &Machine) -> PyResult<Rows> {
        each!(&machine.inner, m => Ok(Rows::new(m, Data::new(locked(self.of(m)?).states().clone()))))
    }

    #[getter]
    fn sweeps(&self) -> u64 {
        each!(&self.chains, chains => locked(chains).sweeps())
    }
}

impl Chains {
    /// The chains, which must be in the precision of the machine.
    fn of<T: Precise>(&self, _: &harmonium::Machine<T>) -> PyResult<&Mutex<harmonium::Chains<T>>> {
        let why = || format!("they are not in the precision of the machine, {}", T::DTYPE);
        T::chains_of(&self.chains).ok_or_else(|| value("chains", why()))
    }

    fn start<T: Precise>(
        machine: &harmonium::Machine<T>,
        n: usize,
        seed: u64,
        given: Option<&Data<T>>,
        start: Option<&Data<T>>,
    ) -> Result<Self> {
        let first = harmonium::Chains::independent(machine, n, seed, purpose::USER)?;
        let mut states = first.states().clone();
        for l in 0..machine.len() {
            if let Some(batch) = start.and_then(|s| s.states().get(l)) {
                states.set(l, batch.clone());
            }
        }
        let mut clamps = Clamps::none(machine);
        if let Some(given) = given {
            let rows: Vec<usize> = (0..n).map(|r| r % given.rows()).collect();
            let data = given.select(&rows);
            for l in machine.with_role(Role::Visible).filter(|&l| data.states().get(l).is_some()) {
                let all = || Bits::from_fn(n, machine.layer(l).len(), |_, _| true);
                let bits = data.known()[l].clone().unwrap_or_else(all);
                clamps = clamps.with(l, Clamp::Units(bits));
            }
            clamps.put(data.states(), &mut states);
        }
        let chains = harmonium::Chains::new(states, seed, purpose::USER);
        Ok(Self { chains: T::chains(chains), clamps })
    }
}

/// `n` sweeps, fewer when asked to stop.
fn sweep<T: Precise>(
    chains: &mut harmonium::Chains<T>,
    model: &harmonium::Tempered<'_, T>,
    clamps: &Clamps,
    n: usize,
    link: &Link<'_>,
) -> Result<()> {
    let mut left = n;
    while left > 0 && !link.stopped() {
        let some = left.min(SWEEPS_AT_ONCE);
        chains.sweep(model, clamps, some)?;
        left -= some;
    }
    Ok(())
}

/// Samples, a note on what was done beyond the settings, and a warning about them.
type Sampled = (Rows, Option<String>, Option<String>);

/// `n` samples of all layers: by the method that the machine needs (`tempering` is `None`), by plain chains (0) or by replica exchange over
/// that many temperatures. The known entries of `given` are kept.
#[pyfunction]
#[pyo3(signature = (machine, n, chains, sweeps, between, temperature, tempering, seed, threads, given=None))]
pub(crate) fn sample(
    py: Python<'_>,
    machine: &Machine,
    n: usize,
    chains: Option<usize>,
    sweeps: usize,
    between: usize,
    temperature: f64,
    tempering: Option<usize>,
    seed: u64,
    threads: usize,
    given: Option<&Rows>,
) -> PyResult<Sampled> {
    let how = match tempering {
        None => SamplingMethod::Auto,
        Some(0) => SamplingMethod::Plain,
        Some(rungs) => SamplingMethod::Tempered(rungs),
    };
    each!(&machine.inner, m => {
        let given = given.map(|rows| rows.of(m)).transpose()?;
        let found = compute(py, threads, |link| {
            let mut task = m.sample(n).sweeps(sweeps).between(between).temperature(temperature);
            task = task.method(how).seed(seed).stop_when(|| link.stopped());
            if let Some(chains) = chains {
                task = task.chains(chains);
            }
            if let Some(given) = given {
                task = task.given(given);
            }
            task.run()
        })?;
        let (note, warning) = (found.note.clone(), found.warning.clone());
        Ok((Rows::new(m, Data::new(found.states)), note, warning))
    })
}

/// The values of every visible layer with the gaps filled, by the place of the layer.
type Filled<'py> = Vec<(usize, Bound<'py, PyArray2<f64>>)>;

/// Fills what is missing in rows by the most probable values, or by one draw (`draw`).
#[pyfunction]
pub(crate) fn complete<'py>(
    py: Python<'py>,
    machine: &Machine,
    given: &Rows,
    draw: bool,
    chains: usize,
    sweeps: usize,
    seed: u64,
    threads: usize,
) -> PyResult<Filled<'py>> {
    let fill = if draw { Fill::Sample } else { Fill::Best };
    let filled = each!(&machine.inner, m => {
        let given = given.of(m)?;
        compute(py, threads, |link| {
            let task = m.complete(given).chains(chains).sweeps(sweeps).seed(seed);
            let found = task.stop_when(|| link.stopped()).run()?;
            let visible = m.with_role(Role::Visible);
            visible.map(|l| Ok((l, found.values(&m.members()[l].name, fill)?))).collect::<Result<Vec<_>>>()
        })?
    });
    Ok(filled.into_iter().map(|(l, x)| (l, x.into_pyarray(py))).collect())
}
