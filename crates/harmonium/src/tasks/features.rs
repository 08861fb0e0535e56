//! The task of computing hidden features of rows.

use super::IntoData;
use crate::evaluate::features;
use crate::train::Data;
use crate::{Error, Machine, Real, Result, Role};
use ndarray::Array2;
use std::borrow::Cow;

/// A feature task; [`run`](Self::run) carries it out.
#[must_use = "nothing is computed until `run` is called"]
pub struct Features<'a, T: Real = f32> {
    machine: &'a Machine<T>,
    data: Result<Cow<'a, Data<T>>>,
    inputs: bool,
    seed: u64,
    stopped: Box<dyn Fn() -> bool + 'a>,
}

impl<T: Real> Machine<T> {
    /// The task of computing the mean of every hidden unit given each row. Deeper layers get their input from the most
    /// probable states of the layer below; for rows with gaps it is the mean over all completions.
    pub fn features<'a>(&'a self, rows: impl IntoData<'a, T>) -> Features<'a, T> {
        let data = rows.into_data(self);
        Features { machine: self, data, inputs: false, seed: 0, stopped: Box::new(|| false) }
    }
}

impl<'a, T: Real> Features<'a, T> {
    chain_settings!();

    /// Returns the inputs of the hidden units in place of their means.
    pub fn inputs(mut self, inputs: bool) -> Self {
        self.inputs = inputs;
        self
    }

    /// Computes the features: an array for each hidden layer, a row for each row of the data.
    ///
    /// # Errors
    /// A machine without hidden units, rows that do not fit, being stopped.
    pub fn run(self) -> Result<Vec<Array2<T>>> {
        self.machine.check()?;
        let data = self.data?;
        if self.machine.with_role(Role::Hidden).next().is_none() {
            let why = "the machine has no hidden units".into();
            return Err(Error::Undefined { what: "features", why });
        }
        let mut go_on = || !(self.stopped)();
        let (states, known) = (data.states(), data.known());
        let found = features(self.machine, states, known, self.inputs, self.seed, &mut go_on)?;
        match (self.stopped)() {
            true => Err(Error::Stopped { what: "features" }),
            false => Ok(found),
        }
    }
}
