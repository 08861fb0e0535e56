//! Markov chains, free or with what is known clamped.

use crate::machine::Machine;
use crate::rows::Rows;
use crate::work::{Link, whole};
use harmonium::evaluate::{self, Filling};
use harmonium::sample::{How, purpose};
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

/// A source of samples at the temperature 1/beta: exact draws, plain chains or replica exchange.
#[pyclass(frozen, module = "harmonium._core")]
pub(crate) struct Sampler {
    sampler: Mutex<harmonium::sample::Sampler>,
}

#[pymethods]
impl Sampler {
    /// Samples by whatever it takes (`tempering` is `None`), by plain chains (0) or by replica exchange over that many
    /// temperatures, started and clamped as [`Chains`] are.
    #[new]
    #[pyo3(signature = (machine, n, seed, beta, tempering, sweeps, threads, given=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        machine: &Machine,
        n: usize,
        seed: u64,
        beta: f64,
        tempering: Option<usize>,
        sweeps: usize,
        threads: usize,
        given: Option<&Rows>,
    ) -> PyResult<Self> {
        let how = match tempering {
            None => How::Auto,
            Some(0) => How::Plain,
            Some(rungs) => How::Tempered(rungs),
        };
        whole(py, threads, |link| {
            let Chains { chains, clamps } = Chains::start(&machine.inner, n, seed, given, None)?;
            let chains = chains.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
            let mut machine = (*machine.inner).clone();
            // E is linear in the parameters: a temperature is a factor.
            if beta != 1.0 {
                let mut parameters = machine.parameters();
                parameters.scale(beta as f32);
                machine.set_parameters(&parameters)?;
            }
            let (states, mut go_on) = (chains.states().clone(), || !link.stopped());
            let sampler =
                harmonium::sample::Sampler::new(machine, clamps, states, how, seed, sweeps, &mut go_on)?;
            Ok(Self { sampler: Mutex::new(sampler) })
        })
    }

    fn sweep(&self, py: Python<'_>, n: usize, threads: usize) -> PyResult<()> {
        whole(py, threads, |link| {
            let mut sampler = self.lock();
            // Exact draws are independent of those before.
            let n = if sampler.is_exact() { 1 } else { n };
            (0..n).take_while(|_| !link.stopped()).try_for_each(|_| sampler.sweep(1))
        })
    }

    /// The present states of all layers.
    fn rows(&self, machine: &Machine) -> Rows {
        Rows::new(&machine.inner, Data::new(self.lock().states().clone()))
    }

    /// What was done that nobody asked for, and what speaks against the samples.
    fn remarks(&self) -> (Option<String>, Option<String>) {
        self.lock().remarks()
    }
}

impl Sampler {
    fn lock(&self) -> std::sync::MutexGuard<'_, harmonium::sample::Sampler> {
        self.sampler.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
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

type Marginals<'py> = (Vec<(usize, Bound<'py, PyArray2<f64>>)>, Rows);

/// Conditional means of every visible layer given the known entries of each row, in dense form, and a draw of each row:
/// exactly, or by `chains` chains per row and `sweeps` sweeps.
#[pyfunction]
pub(crate) fn marginals<'py>(
    py: Python<'py>,
    machine: &Machine,
    given: &Rows,
    chains: usize,
    sweeps: usize,
    seed: u64,
    threads: usize,
) -> PyResult<Marginals<'py>> {
    let machine = &*machine.inner;
    let found = whole(py, threads, |link| {
        let (states, known) = (given.data.states(), given.data.known());
        let filling = Filling { chains, sweeps, seed };
        evaluate::complete(machine, states, known, filling, &mut || !link.stopped())
    })?;
    let means = found.means.into_iter().enumerate();
    let means = means.filter(|(l, _)| machine.role(*l) == Role::Visible);
    let means = means.map(|(l, m)| (l, m.into_pyarray(py))).collect();
    Ok((means, Rows::new(machine, Data::new(found.drawn))))
}
