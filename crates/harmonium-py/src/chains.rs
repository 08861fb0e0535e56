//! Markov chains, free or with what is known clamped.

use crate::machine::Machine;
use crate::rows::Rows;
use crate::work::{Link, whole};
use harmonium::sample::{SamplingMethod, purpose};
use harmonium::tasks::Fill;
use harmonium::train::Data;
use harmonium::{Bits, Clamp, Clamps, Result, Role};
use numpy::{IntoPyArray, PyArray2};
use pyo3::prelude::*;
use std::sync::Mutex;

/// Sweeps between two looks at whether to stop.
const PATIENCE: usize = 16;

/// Chains that go on where they stopped.
#[pyclass(frozen, module = "harmonium._core")]
pub(crate) struct Chains {
    chains: Mutex<harmonium::Chains>,
    clamps: Clamps,
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
        whole(py, 1, |_| Self::start(&machine.inner, n, seed, given, start))
    }

    fn sweep(
        &self,
        py: Python<'_>,
        machine: &Machine,
        n: usize,
        beta: f64,
        threads: usize,
    ) -> PyResult<()> {
        whole(py, threads, |link| {
            let model = machine.inner.at(beta);
            sweep(&mut self.lock(), &model, &self.clamps, n, link)
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
        whole(py, threads, |link| {
            let mut chains = self.lock();
            for k in (0..steps).take_while(|_| !link.stopped()) {
                let part = (k + 1) as f64 / steps as f64;
                chains.sweep(&machine.inner.at(beta * part), &self.clamps, 1)?;
            }
            Ok(())
        })
    }

    /// The present states of all layers.
    fn rows(&self, machine: &Machine) -> Rows {
        Rows::new(&machine.inner, Data::new(self.lock().states().clone()))
    }

    #[getter]
    fn sweeps(&self) -> u64 {
        self.lock().sweeps()
    }
}

impl Chains {
    fn lock(&self) -> std::sync::MutexGuard<'_, harmonium::Chains> {
        self.chains.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn start(
        machine: &harmonium::Machine,
        n: usize,
        seed: u64,
        given: Option<&Rows>,
        start: Option<&Rows>,
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
            let rows: Vec<usize> = (0..n).map(|r| r % given.data.rows()).collect();
            let data = given.data.select(&rows);
            for l in machine.with_role(Role::Visible).filter(|&l| data.states().get(l).is_some()) {
                let all = || Bits::from_fn(n, machine.layer(l).len(), |_, _| true);
                let bits = data.known()[l].clone().unwrap_or_else(all);
                clamps = clamps.with(l, Clamp::Units(bits));
            }
            clamps.put(data.states(), &mut states);
        }
        let chains = harmonium::Chains::new(states, seed, purpose::USER);
        Ok(Self { chains: Mutex::new(chains), clamps })
    }
}

/// `n` sweeps, fewer when asked to stop.
fn sweep(
    chains: &mut harmonium::Chains,
    model: &harmonium::Tempered<'_>,
    clamps: &Clamps,
    n: usize,
    link: &Link<'_>,
) -> Result<()> {
    let mut left = n;
    while left > 0 && !link.stopped() {
        let some = left.min(PATIENCE);
        chains.sweep(model, clamps, some)?;
        left -= some;
    }
    Ok(())
}

/// Samples, a note on what was done beyond the settings, and a warning about them.
type Sampled = (Rows, Option<String>, Option<String>);

/// `n` samples of all layers: by whatever it takes (`tempering` is `None`), by plain chains (0) or by replica exchange over
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
    let machine = &*machine.inner;
    let found = whole(py, threads, |link| {
        let mut task = machine.sample(n).sweeps(sweeps).between(between).temperature(temperature);
        task = task.method(how).seed(seed).stop_when(|| link.stopped());
        if let Some(chains) = chains {
            task = task.chains(chains);
        }
        if let Some(given) = given {
            task = task.given(&given.data);
        }
        task.run()
    })?;
    let (note, warning) = (found.note.clone(), found.warning.clone());
    Ok((Rows::new(machine, Data::new(found.states)), note, warning))
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
    let machine = &*machine.inner;
    let fill = if draw { Fill::Sample } else { Fill::Best };
    let filled = whole(py, threads, |link| {
        let task = machine.complete(&given.data).chains(chains).sweeps(sweeps).seed(seed);
        let found = task.stop_when(|| link.stopped()).run()?;
        let visible = machine.with_role(Role::Visible);
        visible
            .map(|l| Ok((l, found.values(&machine.members()[l].name, fill)?)))
            .collect::<Result<Vec<_>>>()
    })?;
    Ok(filled.into_iter().map(|(l, x)| (l, x.into_pyarray(py))).collect())
}
