//! The task of training.

use super::IntoData;
use crate::estimate::Estimator;
use crate::train::{
    Control, Data, Event, Floor, Observer, Regulariser, StopReason, TrainParams, TrainPlan, Trainer,
    settings, starts_from_levels, trainer,
};
use crate::{Archive, Error, Machine, Real, Result};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// A training run to be; [`run`](Self::run) carries it out.
#[must_use = "nothing is trained until `run` is called"]
pub struct Train<'a, T: Real = f32> {
    machine: &'a mut Machine<T>,
    data: Result<Cow<'a, Data<T>>>,
    valid: Option<Result<Cow<'a, Data<T>>>>,
    params: TrainParams,
    budget: Option<Duration>,
    pretrain: Option<bool>,
    resume: Option<&'a Archive>,
    observers: Vec<Box<dyn Observer<T> + 'a>>,
    stopped: Box<dyn Fn() -> bool + 'a>,
}

/// What a run has done.
#[derive(Clone, Debug)]
pub struct Trained {
    /// Updates done.
    pub updates: u64,
    /// Why it stopped.
    pub reason: StopReason,
    /// The settings it ran with.
    pub plan: TrainPlan,
    /// Likelihoods of independent columns with the marginals of the training rows, which evaluations compare with. None where the
    /// machine learnt to tell classes apart, which is no model of the rows.
    pub floor: Option<Floor>,
    /// Everything the rest of the run depends on, for [`Train::resume`].
    pub checkpoint: Archive,
}

impl<T: Real> Machine<T> {
    /// The task of training this machine on rows.
    pub fn train<'a>(&'a mut self, rows: impl IntoData<'a, T>) -> Train<'a, T> {
        let data = rows.into_data(self);
        Train {
            data,
            machine: self,
            valid: None,
            params: TrainParams::default(),
            budget: None,
            pretrain: None,
            resume: None,
            observers: Vec::new(),
            stopped: Box::new(|| false),
        }
    }
}

impl<'a, T: Real> Train<'a, T> {
    /// Number of updates.
    pub fn updates(mut self, updates: u64) -> Self {
        self.params.updates = Some(updates);
        self
    }
    /// Number of passes over the rows, in place of updates.
    pub fn epochs(mut self, epochs: f64) -> Self {
        self.params.epochs = Some(epochs);
        self
    }
    /// Seed of all random numbers.
    pub fn seed(mut self, seed: u64) -> Self {
        self.params.seed = Some(seed);
        self
    }
    /// Estimator of the negative phase.
    pub fn estimator(mut self, estimator: Estimator) -> Self {
        self.params.estimator = Some(estimator);
        self
    }
    /// Rows of a minibatch.
    pub fn batch(mut self, rows: usize) -> Self {
        self.params.batch = Some(rows);
        self
    }
    /// Learning rate at the start.
    pub fn rate(mut self, rate: f64) -> Self {
        self.params.rate = Some(rate);
        self
    }
    /// Penalties and bounds.
    pub fn regulariser(mut self, regulariser: Regulariser) -> Self {
        self.params.regulariser = regulariser;
        self
    }
    /// All settings at once; those set before are replaced.
    pub fn params(mut self, params: TrainParams) -> Self {
        self.params = params;
        self
    }
    /// Held-out rows, by which the best model is chosen.
    pub fn valid(mut self, rows: impl IntoData<'a, T>) -> Self {
        self.valid = Some(rows.into_data(self.machine));
        self
    }
    /// Time for the whole run: as many updates as fit into it where no number is set.
    pub fn budget(mut self, budget: Duration) -> Self {
        self.budget = Some(budget);
        self
    }
    /// Whether a deep machine starts from RBMs trained level by level; by default a blank one does.
    pub fn pretrain(mut self, pretrain: bool) -> Self {
        self.pretrain = Some(pretrain);
        self
    }
    /// Goes on from a checkpoint: settings are the checkpoint's.
    pub fn resume(mut self, checkpoint: &'a Archive) -> Self {
        self.resume = Some(checkpoint);
        self
    }
    /// Told of every event of the run; several observers are told in order.
    pub fn observe(mut self, observer: impl Observer<T> + 'a) -> Self {
        self.observers.push(Box::new(observer));
        self
    }
    /// Asked between updates, and while the length of the run is looked for, whether to stop.
    pub fn stop_when(mut self, stopped: impl Fn() -> bool + 'a) -> Self {
        self.stopped = Box::new(stopped);
        self
    }

    /// Trains. The machine then has the best parameters of the run, also where an observer stopped it; after an error it is as it
    /// was.
    ///
    /// # Errors
    /// Rows or settings that do not fit the machine; whatever sampling or an observer may refuse.
    pub fn run(self) -> Result<Trained> {
        let Self { machine, data, valid, params, budget, pretrain, resume, mut observers, stopped } =
            self;
        machine.check()?;
        let (data, valid) = (data?, valid.transpose()?);
        let start = Instant::now();
        let seconds = budget.map(|b| b.as_secs_f64());
        let mut watch = |event: &Event, _: &Trainer<'_, T>| {
            Ok(match event {
                Event::UpdateFinished { .. } if stopped() => Control::Stop(StopReason::Interrupted),
                Event::UpdateFinished { .. }
                    if seconds.is_some_and(|s| start.elapsed().as_secs_f64() > s) =>
                {
                    Control::Stop(StopReason::TimeBudget { seconds })
                }
                _ => Control::Continue,
            })
        };
        let mut trainer = match resume {
            Some(checkpoint) => Trainer::resume(machine.clone(), &data, checkpoint)?,
            None => {
                let pretrain = pretrain.unwrap_or_else(|| starts_from_levels(machine, &params));
                let params = settings(params, machine, &data, seconds, &stopped)?;
                trainer(machine.clone(), params, &data, pretrain, &mut watch, &stopped)?
                    .ok_or(Error::Stopped { what: "training of the levels" })?
            }
        };
        if let Some(valid) = &valid {
            trainer = trainer.with_valid(valid)?;
        }
        let mut told: Vec<&mut dyn Observer<T>> = Vec::new();
        for observer in &mut observers {
            told.push(&mut **observer);
        }
        told.push(&mut watch);
        let outcome = trainer.run(&mut told)?;
        let floor = match trainer.plan().estimator() {
            Estimator::Labels(_) => None,
            _ => Some(Floor::new(machine, &data)?),
        };
        let (checkpoint, learnt) = (trainer.checkpoint(), trainer.result());
        *machine = learnt;
        Ok(Trained {
            updates: outcome.updates,
            reason: outcome.reason,
            plan: outcome.plan,
            floor,
            checkpoint,
        })
    }
}
