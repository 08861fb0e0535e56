//! The task of classifying rows.

use super::IntoData;
use crate::evaluate::class_probabilities;
use crate::partition::{Progress, silent};
use crate::train::Data;
use crate::{Error, Machine, Real, Result};
use ndarray::Array2;
use std::borrow::Cow;
use std::ops::ControlFlow;

/// A classification task; [`run`](Self::run) carries it out.
#[must_use = "nothing is classified until `run` is called"]
pub struct Classify<'a, T: Real = f32> {
    machine: &'a Machine<T>,
    data: Result<Cow<'a, Data<T>>>,
    layer: Option<String>,
    seed: u64,
    observer: Box<dyn FnMut(Progress) -> ControlFlow<()> + 'a>,
}

/// The probabilities of the classes.
#[derive(Clone, Debug, PartialEq)]
pub struct Classes {
    /// p(y|v), a row for each row and a column for each class.
    pub probabilities: Array2<f64>,
    /// A note on their accuracy, where they had to be estimated.
    pub remark: Option<String>,
}

impl Classes {
    /// The most probable class of each row.
    pub fn predicted(&self) -> Vec<usize> {
        let top = |row: ndarray::ArrayView1<'_, f64>| {
            row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |m| m.0)
        };
        self.probabilities.rows().into_iter().map(top).collect()
    }
}

impl<T: Real> Machine<T> {
    /// The task of finding p(y|v) of a class machine; classes in the rows are not read, missing entries are summed
    /// over.
    pub fn classify<'a>(&'a self, rows: impl IntoData<'a, T>) -> Classify<'a, T> {
        let data = rows.into_data(self);
        Classify { machine: self, data, layer: None, seed: 0, observer: Box::new(silent) }
    }
}

impl<'a, T: Real> Classify<'a, T> {
    /// The layer of the class, a single Potts unit; by default the one called `y`.
    pub fn layer(mut self, name: &str) -> Self {
        self.layer = Some(name.to_owned());
        self
    }
    /// Seed of all random numbers, which deep machines may need.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }
    /// Called with the progress of the work, which it may stop.
    pub fn on_progress(mut self, observer: impl FnMut(Progress) -> ControlFlow<()> + 'a) -> Self {
        self.observer = Box::new(observer);
        self
    }

    /// Finds the probabilities.
    ///
    /// # Errors
    /// A machine without a class unit, rows that do not fit, an observer that stops.
    pub fn run(mut self) -> Result<Classes> {
        self.machine.check()?;
        let data = self.data?;
        let layer = match &self.layer {
            Some(name) => self.machine.layer_named(name)?,
            None => self.machine.class_layer().ok_or_else(|| Error::Undefined {
                what: "p(class | row)",
                why: "the machine has no class unit".into(),
            })?,
        };
        let (states, known) = (data.states(), data.known());
        let found =
            class_probabilities(self.machine, layer, states, known, self.seed, &mut *self.observer)?;
        Ok(Classes { probabilities: found.0, remark: found.1 })
    }
}
