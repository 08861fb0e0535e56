//! What a run tells while it goes on, and who listens.

use super::{TrainPlan, Trainer};
use crate::partition::Progress;
use crate::{Real, Result};

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The run starts, or goes on from a checkpoint, with this many updates done.
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
    /// An update and all that belongs to it are done: the moment for a checkpoint.
    UpdateFinished {
        /// Updates done.
        update: u64,
    },
    /// The model is being evaluated, as after a run: sent by the caller of the evaluation.
    Evaluating {
        /// Updates done.
        update: u64,
        /// How far the evaluation has come.
        progress: Progress,
    },
    /// The run is over.
    Stopped {
        /// Updates done.
        update: u64,
        /// Why it stopped.
        reason: String,
    },
}

/// An update and what it looked like.
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
    /// What the estimator says of itself.
    pub metrics: Vec<(&'static str, f64)>,
}

/// What an evaluation found; of the averaged parameters where there are some.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Evaluated {
    /// Updates done.
    pub update: u64,
    /// Passes over the data so far.
    pub epoch: f64,
    /// Named numbers: `train_pseudo_likelihood`, `free_energy_gap`, `valid_log_likelihood` and the like.
    pub metrics: Vec<(&'static str, f64)>,
    /// The number that the choice of the best model goes by: larger is better.
    pub score: Option<f64>,
}

/// What an observer wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// Go on.
    Continue,
    /// Stop, for this reason.
    Stop(String),
}

/// Listens to a run: progress bars, metrics files, checkpoints, early stopping.
pub trait Observer<T: Real> {
    /// Told of every event, with the run as it stands after it.
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
    pub reason: String,
    /// The settings it ran with.
    pub plan: TrainPlan,
}
