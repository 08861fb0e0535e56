//! The task of training.

use super::IntoData;
use crate::estimate::{Estimator, NegativePhase};
use crate::train::{
    Control, Data, Event, Floor, Gradient, Hooks, LeftOut, Observer, Reduce, Regulariser, StepRule,
    StopReason, TrainParams, TrainPlan, Trainer, starts_from_levels, trainer,
};
use crate::{Archive, Error, Machine, Real, Result};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// A training task; [`run`](Self::run) carries it out.
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
    hooks: Hooks<'a, T>,
    stopped: Box<dyn Fn() -> bool + 'a>,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Trained {
    /// Updates done.
    pub updates: u64,
    /// Why it stopped.
    pub reason: StopReason,
    /// The settings it ran with.
    pub plan: TrainPlan,
    /// The likelihood of rows that were left out in turn, where the length of the run was found by cross-validation.
    pub left_out: Option<LeftOut>,
    /// Independent columns with the marginals of the training rows, for comparison in evaluations. `None` for
    /// discriminative training, which is not a model of the rows.
    pub floor: Option<Floor>,
    /// The state of the run, for [`Train::resume`].
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
            hooks: Hooks::default(),
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
    /// Penalties and bounds; without any, runs on few rows have a small penalty on squared weights.
    pub fn regulariser(mut self, regulariser: Regulariser) -> Self {
        self.params.regulariser = Some(regulariser);
        self
    }
    /// All settings at once; those set before are replaced.
    pub fn params(mut self, params: TrainParams) -> Self {
        self.params = params;
        self
    }
    /// Held-out rows, on which the best model is selected.
    pub fn valid(mut self, rows: impl IntoData<'a, T>) -> Self {
        self.valid = Some(rows.into_data(self.machine));
        self
    }
    /// Time budget of the whole run: unless a number of updates is set, as many as fit into it.
    pub fn budget(mut self, budget: Duration) -> Self {
        self.budget = Some(budget);
        self
    }
    /// Whether to pretrain a deep machine as a stack of RBMs; by default if its weights are zero.
    pub fn pretrain(mut self, pretrain: bool) -> Self {
        self.pretrain = Some(pretrain);
        self
    }
    /// The learning rate of each update, counted from 1, in place of rate and schedule.
    ///
    /// ```
    /// # use harmonium::{Machine, binary};
    /// # fn main() -> harmonium::Result<()> {
    /// let x = ndarray::Array2::from_shape_fn((100, 4), |(r, j)| (r >> (j % 2)) & 1);
    /// let mut rbm = Machine::rbm(binary(4), binary(2));
    /// let warm_up = |update: u64| 0.05 * (update as f64 / 100.0).min(1.0);
    /// rbm.train(&x).updates(300).rate_with(warm_up).run()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Updates that had to be undone still lower it. For this and all custom components of a run: an unset number of
    /// updates gets its default without cross-validation; a checkpoint does not contain closures, so a resumed run must
    /// be given the same components again, or is refused.
    pub fn rate_with(mut self, rate: impl FnMut(u64) -> f64 + Send + 'a) -> Self {
        self.hooks = self.hooks.rate(rate);
        self
    }
    /// A custom step rule in place of the optimiser: the closure turns the gradient into the step, in place.
    ///
    /// ```
    /// # use harmonium::{Machine, Parameters, binary};
    /// # fn main() -> harmonium::Result<()> {
    /// let x = ndarray::Array2::from_shape_fn((100, 4), |(r, j)| (r >> (j % 2)) & 1);
    /// let mut rbm = Machine::rbm(binary(4), binary(2));
    /// let sign = |gradient: &mut Parameters, rate: f64| {
    ///     gradient.arrays_mut().for_each(|a| a.mapv_inplace(|g| rate as f32 * g.signum()));
    /// };
    /// rbm.train(&x).updates(300).rate(0.01).optimiser_with(sign).run()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A rule with state is a [`StepRule`], which can save it. Defaults that depend on the optimiser, such as the rate,
    /// follow the optimiser in the settings.
    pub fn optimiser_with(mut self, rule: impl StepRule<T> + 'a) -> Self {
        self.hooks = self.hooks.step_rule(rule);
        self
    }
    /// A custom estimator of the negative phase: a [`NegativePhase`], or a closure that writes the moments.
    ///
    /// ```
    /// # use harmonium::estimate::{Context, Info};
    /// # use harmonium::{Machine, Phase, binary};
    /// # fn main() -> harmonium::Result<()> {
    /// let x = ndarray::Array2::from_shape_fn((100, 4), |(r, j)| (r >> (j % 2)) & 1);
    /// let mut rbm = Machine::rbm(binary(4), binary(2));
    /// let enumerate = |context: &Context<'_, f32>, out: &mut Phase| {
    ///     let moments = context.model.machine().exact().moments()?;
    ///     *out.parameters_mut() = moments.stats.cast();
    ///     Ok(Info::default())
    /// };
    /// rbm.train(&x).updates(300).estimator_with(enumerate).run()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Defaults that depend on the estimator, such as the minibatch, follow the estimator in the settings, or
    /// persistent chains if none is set.
    pub fn estimator_with(mut self, estimator: impl NegativePhase<T> + 'a) -> Self {
        self.hooks = self.hooks.estimator(estimator);
        self
    }
    /// Called with the gradient of every update, to which it may add: for observation or a custom penalty.
    pub fn gradient_with(
        mut self,
        f: impl FnMut(&mut Gradient<T>, &Machine<T>) -> Result<()> + Send + 'a,
    ) -> Self {
        self.hooks = self.hooks.gradient(f);
        self
    }
    /// Adds the contributions of other processes to every gradient.
    pub fn reduce_with(mut self, reduce: impl Reduce<T> + 'a) -> Self {
        self.hooks = self.hooks.reduce(reduce);
        self
    }
    /// Resumes from a checkpoint, with its settings.
    pub fn resume(mut self, checkpoint: &'a Archive) -> Self {
        self.resume = Some(checkpoint);
        self
    }
    /// Called with every event of the run; several observers are called in order.
    pub fn observe(mut self, observer: impl Observer<T> + 'a) -> Self {
        self.observers.push(Box::new(observer));
        self
    }
    /// Called between updates, and while the length of the run is determined; returns true to stop.
    pub fn stop_when(mut self, stopped: impl Fn() -> bool + 'a) -> Self {
        self.stopped = Box::new(stopped);
        self
    }

    /// Trains. The machine then has the best parameters of the run, even if an observer stopped it; after an error it
    /// is unchanged.
    ///
    /// # Errors
    /// Rows or settings that do not fit the machine; errors of sampling or of an observer.
    pub fn run(self) -> Result<Trained> {
        let Self { machine, data, valid, params, budget, pretrain, resume, .. } = self;
        let Self { mut observers, hooks, stopped, .. } = self;
        machine.check()?;
        let (data, valid) = (data?, valid.transpose()?);
        let start = Instant::now();
        let seconds = budget.map(|b| b.as_secs_f64());
        let stop = || StopReason::due(stopped(), start, seconds);
        let mut left_out = None;
        let mut trainer = match resume {
            Some(checkpoint) => Trainer::resume_with(machine.clone(), &data, checkpoint, hooks)?,
            None => {
                let pretrain = pretrain.unwrap_or_else(|| starts_from_levels(machine, &params));
                let (plan, found) = hooks.plan(params, machine, &data, seconds, &stopped)?;
                left_out = found;
                trainer(
                    machine.clone(),
                    plan,
                    &data,
                    pretrain,
                    hooks,
                    &mut |_: &Event, _: &Trainer<'_, T>| Ok(Control::Continue),
                    &stop,
                )?
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
        let outcome = trainer.run_until(&mut told, &stop)?;
        let floor = match trainer.plan().estimator().models_rows() {
            true => Some(Floor::new(machine, &data)?),
            false => None,
        };
        let (checkpoint, learnt) = (trainer.checkpoint(), trainer.result());
        *machine = learnt;
        Ok(Trained {
            updates: outcome.updates,
            reason: outcome.reason,
            plan: outcome.plan,
            left_out,
            floor,
            checkpoint,
        })
    }
}
