//! The task of diagnosing a machine on rows: whether its chains mix, and whether its samples resemble the rows.

use super::IntoData;
use crate::evaluate::{Equilibrium, SampleQuality, compared_rows, equilibrium, sample_quality};
use crate::train::Data;
use crate::{Error, Machine, Real, Result, Role, States};
use std::borrow::Cow;
use std::ops::ControlFlow;

/// Chains from the rows, and as many independent ones, by default.
pub const DIAGNOSE_CHAINS: usize = 32;
/// Sweeps of each, by default.
pub const DIAGNOSE_SWEEPS: usize = 500;
/// Fewest samples that are compared with the rows.
const FEWEST_SAMPLES: usize = 100;

/// A diagnosis task; [`run`](Self::run) carries it out.
#[must_use = "nothing is diagnosed until `run` is called"]
pub struct Diagnose<'a, T: Real = f32> {
    machine: &'a Machine<T>,
    data: Result<Cow<'a, Data<T>>>,
    training: Option<&'a States<T>>,
    chains: usize,
    sweeps: usize,
    seed: u64,
    stopped: Box<dyn Fn() -> bool + 'a>,
}

/// How the chains of a machine mix, and how its samples compare with rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnosis {
    /// Chains that start at the rows against independently initialised ones.
    pub chains: Equilibrium,
    /// Samples against the rows.
    pub samples: SampleQuality,
}

impl<T: Real> Machine<T> {
    /// The task of finding out whether chains forget their start, and whether samples resemble rows. Of more than 1000 rows, evenly
    /// spread ones are taken ([`compared_rows`]).
    pub fn diagnose<'a>(&'a self, rows: impl IntoData<'a, T>) -> Diagnose<'a, T> {
        let data = rows.into_data(self);
        let (chains, sweeps) = (DIAGNOSE_CHAINS, DIAGNOSE_SWEEPS);
        Diagnose {
            machine: self,
            data,
            training: None,
            chains,
            sweeps,
            seed: 0,
            stopped: Box::new(|| false),
        }
    }
}

impl<'a, T: Real> Diagnose<'a, T> {
    chain_settings!();

    /// The rows that the machine was trained on: samples that equal one of them may have been memorised. Without them copies are
    /// looked for among the diagnosed rows.
    pub fn training(mut self, rows: &'a States<T>) -> Self {
        self.training = Some(rows);
        self
    }
    /// Number of chains that start at rows, and of independent ones.
    pub fn chains(mut self, chains: usize) -> Self {
        self.chains = chains;
        self
    }
    /// Sweeps of each chain.
    pub fn sweeps(mut self, sweeps: usize) -> Self {
        self.sweeps = sweeps;
        self
    }

    /// Runs the chains and draws the samples.
    ///
    /// # Errors
    /// Fewer than two rows, rows that do not fit or have gaps, fewer than 2 chains or 8 sweeps, a machine that cannot be normalised
    /// or is conditional, being stopped.
    pub fn run(self) -> Result<Diagnosis> {
        let machine = self.machine;
        machine.check()?;
        let data = self.data?;
        data.check(machine)?;
        if data.is_missing() {
            return Err(Error::value("missing entries of the rows", "none", "some"));
        }
        let rows = compared_rows(data.rows());
        let data = match rows.len() == data.rows() {
            true => Cow::Borrowed(data.states()),
            false => Cow::Owned(data.states().select(&rows)),
        };
        let mut observer = |_| match (self.stopped)() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let chains = equilibrium(machine, &data, self.chains, self.sweeps, self.seed, &mut observer)?;
        let n = data.rows().max(FEWEST_SAMPLES);
        let mut drawn = machine.sample(n).seed(self.seed).stop_when(&self.stopped).run()?.states;
        machine.with_role(Role::Hidden).for_each(|l| drop(drawn.take(l)));
        let samples = sample_quality(machine, &data, self.training, &drawn)?;
        Ok(Diagnosis { chains, samples })
    }
}
