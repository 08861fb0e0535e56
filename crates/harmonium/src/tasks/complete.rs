//! The task of filling missing entries.

use super::IntoData;
use crate::evaluate::{CHAINS, Completion, Filling, SWEEPS, complete};
use crate::train::Data;
use crate::{Error, Machine, Real, Result, Role, States};
use ndarray::Array2;
use std::borrow::Cow;

/// The value to fill a gap with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fill {
    /// The most probable value given the known entries of the row; for real units the mean, for counts the integer
    /// nearest to it.
    #[default]
    Best,
    /// One draw, jointly for all gaps of a row.
    Sample,
}

/// A completion task; [`run`](Self::run) carries it out.
#[must_use = "nothing is filled until `run` is called"]
pub struct Complete<'a, T: Real = f32> {
    machine: &'a Machine<T>,
    data: Result<Cow<'a, Data<T>>>,
    filling: Filling,
    stopped: Box<dyn Fn() -> bool + 'a>,
}

/// Rows with their gaps filled.
#[derive(Clone, Debug)]
pub struct Completed<'a, T: Real = f32> {
    machine: &'a Machine<T>,
    data: Cow<'a, Data<T>>,
    found: Completion<T>,
}

impl<T: Real> Machine<T> {
    /// The task of filling the missing entries of rows, given the known entries of each row.
    pub fn complete<'a>(&'a self, rows: impl IntoData<'a, T>) -> Complete<'a, T> {
        let filling = Filling { chains: CHAINS, sweeps: SWEEPS, seed: 0 };
        let data = rows.into_data(self);
        Complete { machine: self, data, filling, stopped: Box::new(|| false) }
    }
}

impl<'a, T: Real> Complete<'a, T> {
    /// Chains of each row, where its gaps cannot be enumerated.
    pub fn chains(mut self, chains: usize) -> Self {
        self.filling.chains = chains;
        self
    }
    /// Sweeps of every chain before, and again while, it is averaged.
    pub fn sweeps(mut self, sweeps: usize) -> Self {
        self.filling.sweeps = sweeps;
        self
    }
    /// Seed of all random numbers.
    pub fn seed(mut self, seed: u64) -> Self {
        self.filling.seed = seed;
        self
    }
    /// Called between sweeps; returns true to stop.
    pub fn stop_when(mut self, stopped: impl Fn() -> bool + 'a) -> Self {
        self.stopped = Box::new(stopped);
        self
    }

    /// Fills the gaps.
    ///
    /// # Errors
    /// A machine that cannot be normalised, rows or settings that do not fit, being stopped.
    pub fn run(self) -> Result<Completed<'a, T>> {
        self.machine.check()?;
        let data = self.data?;
        if self.filling.chains == 0 || self.filling.sweeps == 0 {
            return Err(Error::value("chains and sweeps", "at least one", 0));
        }
        let mut go_on = || !(self.stopped)();
        let found = complete(self.machine, data.states(), data.known(), self.filling, &mut go_on)?;
        if (self.stopped)() {
            return Err(Error::Stopped { what: "completion" });
        }
        Ok(Completed { machine: self.machine, data, found })
    }
}

impl<T: Real> Completed<'_, T> {
    /// $\langle x\rangle$ of a visible layer given the known entries of each row, in dense form.
    ///
    /// # Errors
    /// No layer of this name.
    pub fn means(&self, layer: &str) -> Result<&Array2<f64>> {
        Ok(&self.found.means[self.machine.layer_named(layer)?])
    }

    /// One draw of all visible layers for each row.
    pub fn into_drawn(self) -> States<T> {
        let mut drawn = self.found.drawn;
        self.machine.with_role(Role::Hidden).for_each(|l| drop(drawn.take(l)));
        drawn
    }

    /// The values of a visible layer: known entries as they were, the others filled.
    ///
    /// # Errors
    /// No visible layer of this name.
    pub fn values(&self, layer: &str, fill: Fill) -> Result<Array2<f64>> {
        let l = self.machine.layer_named(layer)?;
        let units = self.machine.layer(l);
        let mut values = units.values(self.data.states().layer(l)?);
        if let Some(known) = &self.data.known()[l] {
            let filled = match fill {
                Fill::Best => units.most_probable(&self.found.means[l]),
                Fill::Sample => units.values(self.found.drawn.layer(l)?),
            };
            for ((r, j), x) in values.indexed_iter_mut() {
                if !known.get(r, j) {
                    *x = filled[[r, j]];
                }
            }
        }
        Ok(values)
    }

    /// The probability of a value of each unit given the known entries of its row; NaN where the units are not discrete or have
    /// only their means.
    ///
    /// # Errors
    /// No visible layer of this name.
    pub fn probabilities(&self, layer: &str, values: &Array2<f64>) -> Result<Array2<f64>> {
        let l = self.machine.layer_named(layer)?;
        Ok(self.machine.layer(l).probabilities(&self.found.means[l], values))
    }
}
