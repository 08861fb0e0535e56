//! The score of a model: the log-likelihood of held-out rows, with the error of ln Z.

use super::work;
use crate::train::{Data, Trainer, annealed_log_z, likelihood_with};
use crate::{Machine, Real, Result};
use serde::{Deserialize, Serialize};

/// Longest enumeration of a score, in seconds by estimate.
const EXACT: f64 = 0.5;

/// Chains of an annealing, and limits of its steps.
const CHAINS: usize = 128;
const STEPS: (f64, f64) = (200.0, 10_000.0);

/// How a score was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// ln Z by enumeration.
    Exact,
    /// ln Z by an annealing, the same for all trials: the likelihood is too high on average.
    Annealed,
    /// The pseudo-likelihood, or what else the evaluations of a run use, where rows have gaps or conditions.
    Substitute,
}

/// A score and its error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Score {
    pub(super) value: f64,
    /// Standard error of ln Z. The rows are the same for all trials and add none to a comparison.
    pub(super) error: f64,
    pub(super) method: Method,
}

/// What scores the models of a search.
pub(super) struct Judge<T: Real> {
    /// The held-out rows without gaps, if there are enough.
    rows: Option<Data<T>>,
    steps: usize,
    seed: u64,
}

impl<T: Real> Judge<T> {
    /// Scores that cost about `seconds` each, where they are annealed and the machine is as large as this one.
    pub(super) fn new(machine: &Machine<T>, valid: &Data<T>, seconds: f64, seed: u64) -> Self {
        let conditional = machine.with_role(crate::Role::Condition).next().is_some();
        let hidden: Vec<_> = machine.with_role(crate::Role::Hidden).collect();
        let direct = !conditional && machine.independent(&hidden);
        let rows = valid.without_gaps().filter(|_| direct).map(|rows| rows.into_owned());
        // A step is half of what an update does with a row.
        let steps = seconds / (CHAINS as f64 * 0.5 * work::row(machine));
        Self { rows, steps: steps.clamp(STEPS.0, STEPS.1) as usize, seed }
    }

    /// The score of a model of a run. `None` if its likelihood is not finite.
    ///
    /// # Errors
    /// Errors of the free energy.
    pub(super) fn score(&self, machine: &Machine<T>, run: &Trainer<'_, T>) -> Result<Option<Score>> {
        let Some(rows) = &self.rows else {
            let value = run.evaluate()?.score;
            let score = value.map(|value| Score { value, error: 0.0, method: Method::Substitute });
            return Ok(score.filter(|s| s.value.is_finite()));
        };
        let exact = machine.exact().within(EXACT);
        let score = match exact.cost() {
            Ok((_, seconds)) if seconds < EXACT => {
                let found = exact.log_likelihood(rows.states(), rows.wts())?;
                let value = found + rows.mean_offset();
                Score { value, error: 0.0, method: Method::Exact }
            }
            _ => {
                let f = machine.free_energy(rows.states())?;
                let z = annealed_log_z(machine, rows, (CHAINS, self.steps), self.seed)?;
                let value = likelihood_with(z.value, rows, &f);
                Score { value, error: z.std_err, method: Method::Annealed }
            }
        };
        Ok(Some(score).filter(|s| s.value.is_finite()))
    }
}
