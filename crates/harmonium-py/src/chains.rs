//! Markov chains, free or with what is known clamped.

use crate::error::raise;
use crate::machine::Machine;
use crate::rows::Rows;
use crate::work::{Link, whole};
use harmonium::sample::purpose;
use harmonium::train::Data;
use harmonium::{Batch, Bits, Clamp, Clamps, Result, Role};
use ndarray::Array2;
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

/// Chains that exchange places with hotter ones, at the temperature 1/beta.
#[pyclass(frozen, module = "harmonium._core")]
pub(crate) struct Replicas {
    /// With its parameters scaled: E is linear in them, so that the ladder starts at 1 all the same.
    machine: harmonium::Machine,
    replicas: Mutex<harmonium::sample::Replicas>,
}

#[pymethods]
impl Replicas {
    /// Replicas at `rungs` temperatures, started and clamped as [`Chains`] are; the temperatures are adapted in the first
    /// half of `sweeps`.
    #[new]
    #[pyo3(signature = (machine, n, seed, beta, rungs, sweeps, given=None, start=None))]
    fn new(
        py: Python<'_>,
        machine: &Machine,
        n: usize,
        seed: u64,
        beta: f64,
        rungs: usize,
        sweeps: usize,
        given: Option<&Rows>,
        start: Option<&Rows>,
    ) -> PyResult<Self> {
        whole(py, 1, |_| {
            let Chains { chains, clamps } = Chains::start(&machine.inner, n, seed, given, start)?;
            let chains = chains.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
            let mut machine = (*machine.inner).clone();
            if beta != 1.0 {
                let mut parameters = machine.parameters();
                parameters.scale(beta as f32);
                machine.set_parameters(&parameters)?;
            }
            let replicas = harmonium::sample::Replicas::new(
                &machine,
                clamps,
                chains.states(),
                rungs,
                seed,
                sweeps,
            )?;
            Ok(Self { machine, replicas: Mutex::new(replicas) })
        })
    }

    fn sweep(&self, py: Python<'_>, n: usize, threads: usize) -> PyResult<()> {
        whole(py, threads, |link| {
            let mut replicas = self.lock();
            (0..n).take_while(|_| !link.stopped()).try_for_each(|_| replicas.sweep(&self.machine, 1))
        })
    }

    /// The present states of all layers.
    fn rows(&self, machine: &Machine) -> Rows {
        Rows::new(&machine.inner, Data::new(self.lock().states().clone()))
    }

    /// Round trips for each chain, and the acceptance between neighbouring temperatures.
    fn report(&self) -> (f64, Vec<f64>) {
        let replicas = self.lock();
        (replicas.round_trips(), replicas.ladder().acceptance().to_vec())
    }
}

impl Replicas {
    fn lock(&self) -> std::sync::MutexGuard<'_, harmonium::sample::Replicas> {
        self.replicas.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
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
            for l in 0..machine.len() {
                let Some(batch) = data.states().get(l) else { continue };
                if machine.role(l) == Role::Condition {
                    states.set(l, batch.clone());
                    continue;
                }
                let all = || Bits::from_fn(n, machine.layer(l).len(), |_, _| true);
                let bits = data.known()[l].clone().unwrap_or_else(all);
                let old = states.take(l).expect("chains hold every layer");
                states.set(l, merge(batch, &old, &bits));
                clamps = clamps.with(l, Clamp::Units(bits));
            }
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

/// The entries of `from` where the bit is set, else those of `to`.
fn merge(from: &Batch<f32>, to: &Batch<f32>, bits: &Bits) -> Batch<f32> {
    fn pick<A: Copy>(from: &Array2<A>, to: &Array2<A>, bits: &Bits) -> Array2<A> {
        Array2::from_shape_fn(to.dim(), |(r, j)| if bits.get(r, j) { from[[r, j]] } else { to[[r, j]] })
    }
    match (from, to) {
        (Batch::Bits(a), Batch::Bits(b)) => Batch::Bits(Bits::from_fn(b.rows(), b.cols(), |r, j| {
            if bits.get(r, j) { a.get(r, j) } else { b.get(r, j) }
        })),
        (Batch::Codes(a), Batch::Codes(b)) => Batch::Codes(pick(a, b, bits)),
        (Batch::Reals(a), Batch::Reals(b)) => Batch::Reals(pick(a, b, bits)),
        _ => unreachable!("a layer's batches have one form"),
    }
}

type Marginals<'py> = (Vec<(usize, Bound<'py, PyArray2<f64>>)>, Rows);

/// Conditional means of every visible layer given the known entries of each row, in dense form, averaged over
/// `chains` chains per row and `sweeps` sweeps; and the chains as they stand.
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
    let rows = given.data.rows();
    let (sums, last) = whole(py, threads, |link| {
        let start = Chains::start(machine, rows * chains, seed, Some(given), None)?;
        let mut chain = start.lock();
        let model = machine.at(1.0);
        sweep(&mut chain, &model, &start.clamps, sweeps, link)?;
        let mut sums: Vec<(usize, Array2<f64>)> = machine
            .with_role(Role::Visible)
            .map(|l| (l, Array2::zeros((rows, machine.layer(l).width()))))
            .collect();
        for _ in (0..sweeps).take_while(|_| !link.stopped()) {
            chain.sweep(&model, &start.clamps, 1)?;
            for (l, sum) in &mut sums {
                // The mean given the other layers has less noise than the state, where it is defined.
                let x = match machine.has_lateral(*l) {
                    false => model.mean(*l, chain.states())?,
                    true => machine.layer(*l).dense(chain.states().layer(*l)?),
                };
                for (r, x) in x.rows().into_iter().enumerate() {
                    sum.row_mut(r % rows).zip_mut_with(&x, |s, &x| *s += f64::from(x));
                }
            }
        }
        let scale = 1.0 / (chains * sweeps).max(1) as f64;
        sums.iter_mut().for_each(|(_, s)| *s *= scale);
        Ok((sums, chain.states().clone()))
    })?;
    machine.check_normalisable().map_err(raise)?;
    let means = sums.into_iter().map(|(l, s)| (l, s.into_pyarray(py))).collect();
    Ok((means, Rows::new(machine, Data::new(last))))
}
