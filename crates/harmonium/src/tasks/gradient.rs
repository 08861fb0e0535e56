//! The task of computing the gradient of the mean log-likelihood.

use super::IntoData;
use crate::train::Data;
use crate::{Error, Machine, Parameters, Real, Result};
use std::borrow::Cow;

/// A gradient task; [`run`](Self::run) carries it out.
#[must_use = "nothing is computed until `run` is called"]
pub struct Gradient<'a, T: Real = f32> {
    machine: &'a Machine<T>,
    data: Result<Cow<'a, Data<T>>>,
    seconds: Option<f64>,
}

impl<T: Real> Machine<T> {
    /// The task of computing the exact gradient of the mean log-likelihood of rows, by enumeration. Estimates of it are in
    /// [`estimate`](crate::estimate).
    pub fn gradient<'a>(&'a self, rows: impl IntoData<'a, T>) -> Gradient<'a, T> {
        let data = rows.into_data(self);
        Gradient { machine: self, data, seconds: None }
    }
}

impl<T: Real> Gradient<'_, T> {
    /// Longest enumeration, in seconds; longer ones are refused.
    pub fn within(mut self, seconds: f64) -> Self {
        self.seconds = Some(seconds);
        self
    }

    /// Computes the gradient: one array for each layer and coupling.
    ///
    /// # Errors
    /// A machine with too many states, rows that do not fit or have gaps.
    pub fn run(self) -> Result<Parameters<f64>> {
        self.machine.check()?;
        let data = self.data?;
        data.check(self.machine)?;
        if data.is_missing() {
            return Err(Error::value("missing entries of the rows", "none", "some"));
        }
        let exact = self.machine.exact();
        let exact = self.seconds.map_or(exact.clone(), |s| exact.within(s));
        exact.gradient(data.states(), data.wts())
    }
}
