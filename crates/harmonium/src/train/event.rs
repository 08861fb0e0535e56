//! Events of a run and their observers.

use super::{TrainPlan, Trainer};
use crate::partition::Progress;
use crate::{Real, Result};
use std::fmt;
use std::time::Instant;

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The run starts, or resumes from a checkpoint, with this many updates done.
    Started {
        /// Updates done.
        update: u64,
    },
    /// An update was made.
    Updated(Updated),
    /// An update was undone.
    Undone {
        /// The update that was tried.
        update: u64,
        /// Why it was undone.
        why: String,
        /// Factor on the learning rate from now on.
        rate_factor: f64,
    },
    /// The model was evaluated.
    Evaluated(Evaluated),
    /// An update and its evaluation are done: the time to write a checkpoint.
    UpdateFinished {
        /// Updates done.
        update: u64,
    },
    /// Progress of the evaluation after a run, sent by the caller of the evaluation.
    Evaluating {
        /// Updates done.
        update: u64,
        /// Progress of the evaluation.
        progress: Progress,
    },
    /// The run is over.
    Stopped {
        /// Updates done.
        update: u64,
        /// Why it stopped.
        reason: StopReason,
    },
}

/// Why a run stopped.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum StopReason {
    /// All updates are done.
    Finished,
    /// The held-out score has not improved for this many evaluations.
    PatienceExhausted {
        /// Evaluations without a better score.
        evaluations: u64,
        /// The update of the best score.
        best: u64,
    },
    /// The chains did not mix: an annealed likelihood fell below that of independent columns.
    LostModes {
        /// The likelihood, about.
        log_likelihood: f64,
        /// The update whose model is kept.
        kept: u64,
    },
    /// Every one of so many updates in a row had to be undone.
    GaveUp {
        /// Updates undone.
        undone: u32,
    },
    /// The time budget is used up.
    TimeBudget {
        /// Seconds since the start, where they are known.
        seconds: Option<f64>,
    },
    /// A signal or a person.
    Interrupted,
    /// An observer, with its own reason.
    Requested(String),
}

impl StopReason {
    /// Why a run that began at `start` has to stop now, if it has: it was `asked` to, or its time budget in seconds is used up.
    pub fn due(asked: bool, start: Instant, budget: Option<f64>) -> Option<Self> {
        let is_over = || budget.is_some_and(|seconds| start.elapsed().as_secs_f64() > seconds);
        match asked {
            true => Some(Self::Interrupted),
            false => is_over().then_some(Self::TimeBudget { seconds: budget }),
        }
    }

    /// Its name in metrics and JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::PatienceExhausted { .. } => "patience_exhausted",
            Self::LostModes { .. } => "lost_modes",
            Self::GaveUp { .. } => "gave_up",
            Self::TimeBudget { .. } => "time_budget",
            Self::Interrupted => "interrupted",
            Self::Requested(_) => "requested",
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished => f.write_str("all updates are done"),
            Self::PatienceExhausted { evaluations, best } => {
                write!(f, "no better score in {evaluations} evaluations: the best was at update {best}")
            }
            Self::LostModes { log_likelihood, kept } => write!(
                f,
                "the chains did not mix: the likelihood fell to about {log_likelihood:.2}, below independent columns; the \
                 model of update {kept} is kept (the estimators pt and ptt mix better)"
            ),
            Self::GaveUp { undone } => write!(f, "{undone} updates in a row had to be undone"),
            Self::TimeBudget { seconds: None } => f.write_str("the time budget is used up"),
            Self::TimeBudget { seconds: Some(s) } => {
                write!(f, "the time budget of {s:.0} s is used up")
            }
            Self::Interrupted => f.write_str("interrupted"),
            Self::Requested(why) => f.write_str(why),
        }
    }
}

/// An update and its diagnostics.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Updated {
    /// Number of the update, from 1.
    pub update: u64,
    /// Passes over the data so far.
    pub epoch: f64,
    /// Learning rate.
    pub rate: f64,
    /// Euclidean norm of the gradient in the run's coordinates.
    pub gradient_norm: f64,
    /// Euclidean norm of the change of the parameters.
    pub update_norm: f64,
    /// Diagnostics of the estimator.
    pub metrics: Vec<(&'static str, f64)>,
}

/// The result of an evaluation, of the averaged parameters if there are any.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Evaluated {
    /// Updates done.
    pub update: u64,
    /// Passes over the data so far.
    pub epoch: f64,
    /// Named numbers: `train_pseudo_likelihood`, `free_energy_gap`, `valid_log_likelihood` and the like.
    pub metrics: Vec<(&'static str, f64)>,
    /// The score that selects the best model: larger is better.
    pub score: Option<f64>,
}

/// An observer's decision.
#[derive(Clone, Debug, PartialEq)]
pub enum Control {
    /// Go on.
    Continue,
    /// Stop, for this reason.
    Stop(StopReason),
}

/// Observes a run: progress bars, metrics files, checkpoints, early stopping.
pub trait Observer<T: Real> {
    /// Called with every event and the state of the run after it.
    ///
    /// # Errors
    /// Ends the run with this error.
    fn on_event(&mut self, event: &Event, run: &Trainer<'_, T>) -> Result<Control>;
}

impl<T: Real, F: FnMut(&Event, &Trainer<'_, T>) -> Result<Control>> Observer<T> for F {
    fn on_event(&mut self, event: &Event, run: &Trainer<'_, T>) -> Result<Control> {
        self(event, run)
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Updates done.
    pub updates: u64,
    /// Why it stopped.
    pub reason: StopReason,
    /// The settings it ran with.
    pub plan: TrainPlan,
}
