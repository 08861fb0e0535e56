//! The score of a model: the log-likelihood of held-out rows, with the error of ln Z.

use super::work;
use crate::train::{Data, Trainer, annealed_log_z, likelihood_with, sample_rows};
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
    /// By how much training rows are more likely.
    pub(super) excess: Option<f64>,
    pub(super) method: Method,
}

/// What scores the models of a search.
pub(super) struct Scorer<T: Real> {
    /// The held-out rows without gaps, if there are enough, and as many training rows.
    rows: Option<(Data<T>, Data<T>)>,
    steps: usize,
    seed: u64,
}

impl<T: Real> Scorer<T> {
    /// Scores that cost about `seconds` each, where they are annealed and the machine is as large as this one.
    pub(super) fn new(
        machine: &Machine<T>,
        data: &Data<T>,
        valid: &Data<T>,
        seconds: f64,
        seed: u64,
    ) -> Self {
        let conditional = machine.with_role(crate::Role::Condition).next().is_some();
        let hidden: Vec<_> = machine.with_role(crate::Role::Hidden).collect();
        let direct = !conditional && machine.independent(&hidden);
        let valid = valid.without_gaps().filter(|_| direct);
        let rows = valid.zip(data.without_gaps());
        let rows = rows.map(|(valid, data)| {
            let few = sample_rows(&data, valid.rows());
            (valid.into_owned(), few)
        });
        // A step is half of what an update does with a row.
        let steps = seconds / (CHAINS as f64 * 0.5 * work::row(machine));
        Self { rows, steps: steps.clamp(STEPS.0, STEPS.1) as usize, seed }
    }

    /// The score of a model of a run. `None` if its likelihood is not finite.
    ///
    /// # Errors
    /// Errors of the free energy.
    pub(super) fn score(&self, machine: &Machine<T>, run: &Trainer<'_, T>) -> Result<Option<Score>> {
        let Some((rows, training)) = &self.rows else {
            let value = run.evaluate()?.score;
            let method = Method::Substitute;
            let score = value.map(|value| Score { value, error: 0.0, excess: None, method });
            return Ok(score.filter(|s| s.value.is_finite()));
        };
        let exact = machine.exact().within(EXACT);
        let (log_z, error, method) = match exact.cost() {
            Ok((_, seconds)) if seconds < EXACT => (exact.log_z()?, 0.0, Method::Exact),
            _ => {
                let z = annealed_log_z(machine, rows, (CHAINS, self.steps), self.seed)?;
                (z.value, z.std_err, Method::Annealed)
            }
        };
        let likelihood = |rows: &Data<T>| -> Result<f64> {
            Ok(likelihood_with(log_z, rows, &machine.free_energy(rows.states())?))
        };
        let value = likelihood(rows)?;
        let excess = Some(likelihood(training)? - value);
        let score = Score { value, error, excess, method };
        Ok(Some(score).filter(|s| s.value.is_finite()))
    }
}
