//! The task of evaluating a machine on rows: their log-likelihood with an interval and a verdict.

use super::IntoData;
use super::log_z::{Effort, effort_settings};
use crate::evaluate::{
    Estimate, Gain, LogLikelihood, conditional_log_likelihood, log_likelihood, log_z,
};
use crate::partition::{Interval, Verdict};
use crate::train::{Data, Floor};
use crate::{Machine, Real, Result, Role};
use std::borrow::Cow;

/// An evaluation task; [`run`](Self::run) carries it out.
#[must_use = "nothing is evaluated until `run` is called"]
pub struct Evaluate<'a, T: Real = f32> {
    machine: &'a Machine<T>,
    data: Result<Cow<'a, Data<T>>>,
    z: Option<&'a Estimate>,
    floor: Reference<'a>,
    effort: Effort<'a>,
}

/// The independent columns to compare with.
enum Reference<'a> {
    /// The marginals of the rows themselves: no model of independent columns does better on them.
    OwnRows,
    Given(&'a Floor),
    Nothing,
}

/// The log-likelihood of rows, and ln Z.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// Mean and every row, with intervals, verdict and reasons.
    pub log_likelihood: LogLikelihood,
    /// ln Z; conditional machines have one for each condition instead.
    pub log_z: Option<Estimate>,
}

impl Evaluation {
    /// Mean log-likelihood in nats per row.
    pub fn mean(&self) -> f64 {
        self.log_likelihood.mean
    }
    /// Its 95 % interval.
    pub fn interval(&self) -> Interval {
        self.log_likelihood.interval
    }
    /// Whether the value is reliable, or what is wrong with the model.
    pub fn verdict(&self) -> Verdict {
        self.log_likelihood.verdict
    }
    /// Why.
    pub fn reasons(&self) -> &[String] {
        &self.log_likelihood.reasons
    }
    /// Gain over independent columns on the same rows.
    pub fn gain(&self) -> Option<Gain> {
        self.log_likelihood.gain
    }
}

impl<T: Real> Machine<T> {
    /// The task of finding the log-likelihood of rows. Missing entries are summed over, and so is a visible layer that
    /// is absent from the rows, such as the class of unlabelled rows. Conditional machines give ln p(v | condition).
    pub fn log_likelihood<'a>(&'a self, rows: impl IntoData<'a, T>) -> Evaluate<'a, T> {
        let data = rows.into_data(self);
        Evaluate { machine: self, data, z: None, floor: Reference::OwnRows, effort: Effort::new() }
    }
}

impl<'a, T: Real> Evaluate<'a, T> {
    effort_settings!();

    /// Uses this ln Z of the same machine in place of a new estimate.
    pub fn log_z(mut self, z: &'a Estimate) -> Self {
        self.z = Some(z);
        self
    }
    /// Compares with these independent columns, as in [`Trained::floor`](super::Trained::floor); `None` for no
    /// comparison. The default are columns with the marginals of the rows themselves.
    pub fn floor(mut self, floor: Option<&'a Floor>) -> Self {
        self.floor = floor.map_or(Reference::Nothing, Reference::Given);
        self
    }

    /// Evaluates.
    ///
    /// # Errors
    /// A machine that cannot be normalised, rows that do not fit, an observer that stops.
    pub fn run(mut self) -> Result<Evaluation> {
        self.machine.check()?;
        let data = self.data?;
        let (machine, unlabelled) = self.machine.summing_over_unheld(data.states())?;
        data.check(&machine)?;
        let (states, known, wts) = (data.states(), data.known(), data.wts());
        let conditional = machine.with_role(Role::Condition).next().is_some();
        let z = match self.z {
            _ if conditional => None,
            Some(z) => Some(z.clone()),
            None => {
                let base = data.whole();
                Some(self.effort.spend(|params, budget, observer| {
                    log_z(&machine, base.as_deref(), params, budget, observer)
                })?)
            }
        };
        let mut found = self.effort.spend(|params, budget, observer| match &z {
            Some(z) => log_likelihood(&machine, states, known, wts, z, params.seed, observer),
            None => conditional_log_likelihood(&machine, states, known, wts, params, budget, observer),
        })?;
        if let Some(offsets) = data.offsets() {
            found = found.in_units(offsets, wts)?;
        }
        let own;
        let floor = match self.floor {
            // The floor includes the labels, so unlabelled rows cannot be compared with it.
            _ if unlabelled || conditional => None,
            Reference::Nothing => None,
            Reference::Given(floor) => Some(floor),
            Reference::OwnRows => {
                own = Floor::new(&machine, &data)?;
                Some(&own)
            }
        };
        if let Some(floor) = floor {
            found = found.above(&floor.log_probability(&data)?, wts)?;
        }
        if unlabelled {
            found
                .reasons
                .push("the rows have no labels: this is ln p(v), summed over the classes".into());
        }
        let (gaps, rows) = (data.rows_with_gaps(), data.rows());
        if gaps > 0 {
            found.reasons.push(format!(
                "{gaps} of {rows} rows have missing entries and count with ln p of what is known of them"
            ));
        }
        Ok(Evaluation { log_likelihood: found, log_z: z })
    }
}
