//! The loop: updates, evaluations, events.

use super::interruptible::Interruptible;
use super::mixing::LikelihoodRange;
use super::optimise::Stepper;
use super::watch::{Best, Finding, Slack};
use super::white::White;
use super::{
    Control, Data, Evaluated, Event, Gradient, Hooks, Init, Observer, OffsetsAndScales, Outcome,
    StopReason, TrainPlan,
};
use crate::estimate::{Estimator, NegativePhase, Positive, Setup};
use crate::{Machine, Real, Result, States};
use ndarray::Array2;
use std::borrow::Cow;

/// Updates between two steps of the averaged parameters.
pub(super) const AVERAGE_EVERY: u64 = 8;

/// Updates undone in a row after which a run gives up.
const GIVE_UP: u32 = 30;

/// A training run: the machine, the two phases, the optimiser and the counters.
pub struct Trainer<'d, T: Real = f32> {
    pub(super) plan: TrainPlan,
    /// The data in the coordinates of the run: whitened if `white` is set.
    pub(super) data: Cow<'d, Data<T>>,
    pub(super) valid: Option<Cow<'d, Data<T>>>,
    /// The whitening coordinates of the run, if they are not the machine's own.
    pub(super) white: Option<White>,
    pub(super) machine: Machine<T>,
    /// The machine that the next update is written into.
    pub(super) next: Machine<T>,
    /// The machine's margin of normalisation.
    pub(super) margin: Option<f64>,
    pub(super) positive: Positive<T>,
    pub(super) estimator: Box<dyn NegativePhase<T> + 'd>,
    /// Custom components.
    pub(super) hooks: Hooks<'d, T>,
    pub(super) coordinates: OffsetsAndScales<T>,
    pub(super) stepper: Stepper<T>,
    pub(super) gradient: Gradient<T>,
    /// Corrections of the positive moments of some layers.
    pub(super) smoothing: Vec<(usize, Array2<T>)>,
    /// Rows of positive weight, and the order of the present epoch.
    pub(super) rows: Vec<usize>,
    pub(super) order: (u64, Vec<usize>),
    /// The rows of the present minibatch and their weights.
    pub(super) batch: (Vec<usize>, Vec<f64>),
    /// Mean weight of the rows of positive weight, where rows have weights.
    pub(super) mean_weight: f64,
    pub(super) update: u64,
    pub(super) rate_factor: f64,
    /// Running average of the gradient's norm.
    pub(super) usual_norm: f64,
    pub(super) undone_in_a_row: u32,
    pub(super) best: Best<T>,
    /// The best model by annealed likelihood, where the score of evaluations cannot see the weights of modes.
    pub(super) safe: Best<T>,
    pub(super) climb: LikelihoodRange,
}

impl<'d, T: Real> Trainer<'d, T> {
    /// A run that has not started: the machine is given its initial parameters.
    ///
    /// # Errors
    /// Data that do not fit, or errors of the estimator.
    pub fn new(machine: Machine<T>, plan: TrainPlan, data: &'d Data<T>) -> Result<Self> {
        Self::with_hooks(machine, plan, data, Hooks::default())
    }

    /// As [`new`](Self::new), with custom components.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn with_hooks(
        mut machine: Machine<T>,
        plan: TrainPlan,
        data: &'d Data<T>,
        hooks: Hooks<'d, T>,
    ) -> Result<Self> {
        data.check(&machine)?;
        let white = White::new(&machine, data)?;
        let data = match &white {
            Some(white) => Cow::Owned(white.training_data(data)),
            None => Cow::Borrowed(data),
        };
        match (plan.init, &white) {
            (Init::Keep, Some(white)) => machine = white.machine_of_z(&machine)?,
            (Init::Keep, None) => {}
            (Init::Data { std }, _) => super::init::from_data(&mut machine, &data, std, plan.seed)?,
            (Init::LowRank { directions, std }, _) => {
                super::init::low_rank(&mut machine, &data, directions, std, plan.seed)?;
            }
        }
        let coordinates = OffsetsAndScales::new(plan.form, &machine, &data)?;
        Self::assemble(machine, plan, data, white, coordinates, hooks, true)
    }

    /// A run at update 0 of the given machine; without `draw` a checkpoint will replace its chains.
    pub(super) fn assemble(
        machine: Machine<T>,
        plan: TrainPlan,
        data: Cow<'d, Data<T>>,
        white: Option<White>,
        coordinates: OffsetsAndScales<T>,
        mut hooks: Hooks<'d, T>,
        draw: bool,
    ) -> Result<Self> {
        let (states, batch, seed) = (data.states(), plan.batch, plan.seed);
        let setup = Setup { machine: &machine, data: states, batch, seed, draw };
        let estimator = match hooks.take_estimator() {
            Some(own) => own,
            None => plan.estimator.build(&setup)?,
        };
        let positive = Positive::new(plan.positive, &machine, states, data.known(), seed, draw)?;
        let stepper =
            Stepper::new(plan.optimiser, plan.regulariser, plan.rate, plan.average > 0, &machine);
        let smoothing = super::init::smoothing(&machine, &data)?;
        let rows = data.positive_weight_rows();
        let all: f64 = data.wts().map_or(0.0, |w| w.iter().sum());
        Ok(Self {
            smoothing,
            gradient: Gradient::new(&machine),
            mean_weight: all / rows.len() as f64,
            rows,
            batch: (Vec::new(), Vec::new()),
            order: (u64::MAX, Vec::new()),
            next: machine.clone(),
            margin: machine.margin(),
            plan,
            data,
            valid: None,
            white,
            machine,
            positive,
            estimator,
            hooks,
            coordinates,
            stepper,
            update: 0,
            rate_factor: 1.0,
            usual_norm: 0.0,
            undone_in_a_row: 0,
            best: Best::new(),
            safe: Best::new(),
            climb: LikelihoodRange::new(),
        })
    }

    /// The same run with held-out data for evaluations.
    ///
    /// # Errors
    /// Data that do not fit the machine.
    pub fn with_valid(mut self, valid: &'d Data<T>) -> Result<Self> {
        valid.check(&self.machine)?;
        let white = self.white.as_ref().map(|w| Cow::Owned(w.data(valid)));
        self.valid = Some(white.unwrap_or(Cow::Borrowed(valid)));
        Ok(self)
    }

    /// The same run with another number of updates, and the update after which it ends if that is not the last. Its schedule is
    /// stretched accordingly.
    #[must_use]
    pub fn with_updates(mut self, updates: u64, stop_after: Option<u64>) -> Self {
        self.plan.updates = updates.max(1);
        self.plan.stop_after = stop_after.unwrap_or(updates).min(updates);
        self
    }

    /// The present machine.
    pub fn machine(&self) -> Machine<T> {
        self.given_back(self.machine.clone())
    }
    /// The settings.
    pub fn plan(&self) -> &TrainPlan {
        &self.plan
    }
    /// Updates done.
    pub fn update_count(&self) -> u64 {
        self.update
    }
    /// Whether the run stopped because too many updates in a row had to be undone.
    pub fn gave_up(&self) -> bool {
        self.undone_in_a_row >= GIVE_UP
    }
    /// Passes over the data.
    pub fn epoch(&self) -> f64 {
        self.update as f64 * self.plan.batch as f64 / self.rows.len() as f64
    }
    /// The coordinates of the gradient.
    pub fn coordinates(&self) -> &OffsetsAndScales<T> {
        &self.coordinates
    }

    /// The machine to be evaluated: with averaged parameters where an average is kept.
    pub fn averaged(&self) -> Machine<T> {
        self.given_back(self.averaged_inside())
    }

    /// A machine of the run in the coordinates of the user's data.
    fn given_back(&self, machine: Machine<T>) -> Machine<T> {
        match &self.white {
            Some(white) => white.machine_of_x(&machine).expect("a sound machine has sound images"),
            None => machine,
        }
    }

    pub(super) fn averaged_inside(&self) -> Machine<T> {
        let mut machine = self.machine.clone();
        if let (Some(average), true) = (self.stepper.average(), self.update >= AVERAGE_EVERY) {
            // An average of normalisable machines might fail the test of normalisation; then use the last one.
            let _ = machine.set_parameters(average);
        }
        machine
    }

    /// The result of the run: the one with the best held-out score where there are held-out data and evaluations, else
    /// [`averaged`](Self::averaged).
    pub fn result(&self) -> Machine<T> {
        let mut machine = self.averaged_inside();
        if let (true, Some(safe)) = (self.has_lost_modes(), self.safe.parameters()) {
            let _ = machine.set_parameters(safe);
            return self.given_back(machine);
        }
        if let (true, Some(best)) = (self.prefers_best(), self.best.parameters()) {
            let _ = machine.set_parameters(best);
        }
        self.given_back(machine)
    }

    /// Whether the best model is the result. With held-out rows, yes. On training rows only if the run ended below its
    /// start, or far below its best likelihood because its chains lost a mode: more training always looks better on these rows,
    /// and the last average is less noisy than the best. If the run gave up, its last machine is not usable.
    fn prefers_best(&self) -> bool {
        self.valid.is_some() || self.gave_up() || self.best.is_below_start(0.0) || self.climb.is_down()
    }

    /// Whether the negative phase is enumerated (not known of custom estimators).
    pub(super) fn is_exact(&self) -> bool {
        self.plan.estimator == Estimator::Exact && !self.hooks.has_estimator()
    }

    /// F of rows under the present machine.
    ///
    /// # Errors
    /// Rows that do not fit, or a machine whose F cannot be computed.
    pub fn free_energy(&self, rows: &States<T>) -> Result<Vec<f64>> {
        match &self.white {
            None => self.machine.free_energy(rows),
            Some(_) => self.machine().free_energy(rows),
        }
    }

    /// F of the estimator's persistent chains, if it has some and F can be computed.
    pub fn chain_free_energies(&self) -> Option<Vec<f64>> {
        self.machine.free_energy(self.estimator.chains()?).ok()
    }

    /// Makes updates until the plan is done or an observer stops the run.
    ///
    /// # Errors
    /// Errors of sampling or of an observer.
    pub fn run(&mut self, observers: &mut [&mut dyn Observer<T>]) -> Result<Outcome> {
        self.run_until(observers, &|| None)
    }

    /// As [`run`](Self::run), until `stop` gives a reason. It is asked after every update, and between the sweeps of a long one, which
    /// is then undone: the run can be resumed from its checkpoint as if it had stopped before this update.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub fn run_until(
        &mut self,
        observers: &mut [&mut dyn Observer<T>],
        stop: &dyn Fn() -> Option<StopReason>,
    ) -> Result<Outcome> {
        let mut reason = self.notify(&Event::Started { update: self.update }, observers)?;
        if self.update == 0 && self.plan.evaluate_every > 0 {
            // The start counts as a model: a run need not end below it.
            let evaluated = self.evaluate()?;
            reason = reason.or(self.notify(&Event::Evaluated(evaluated.clone()), observers)?);
            // A run that was stopped in its first update has recorded it already.
            if self.best.is_blank() {
                self.record_evaluation(&evaluated)?;
            }
        }
        let mut interruptible = Interruptible::new();
        while reason.is_none() && self.update < self.plan.stop_after {
            reason = self.patience_exhausted();
            if reason.is_some() {
                break;
            }
            let Some(event) = interruptible.update(self, stop)? else {
                reason = stop();
                break;
            };
            reason = self.notify(&event, observers)?;
            let every = self.plan.evaluate_every;
            let due =
                every > 0 && (self.update.is_multiple_of(every) || self.update == self.plan.stop_after);
            if due && matches!(event, Event::Updated(_)) {
                let evaluated = self.evaluate()?;
                reason = reason.or(self.notify(&Event::Evaluated(evaluated.clone()), observers)?);
                if let Some(event) = self.record_evaluation(&evaluated)? {
                    reason = reason.or(self.notify(&event, observers)?);
                }
                if let Some(found) = self.lost_modes(&evaluated)? {
                    match self.back_to_safe(found)? {
                        Some(event) => reason = reason.or(self.notify(&event, observers)?),
                        None => reason = reason.or(Some(self.gives_up_modes(found))),
                    }
                }
            }
            if self.gave_up() {
                reason = reason.or(Some(StopReason::GaveUp { undone: GIVE_UP }));
            }
            reason = reason.or(self.notify(&Event::UpdateFinished { update: self.update }, observers)?);
            reason = reason.or_else(stop);
        }
        let reason = reason.unwrap_or(StopReason::Finished);
        self.notify(&Event::Stopped { update: self.update, reason: reason.clone() }, observers)?;
        Ok(Outcome { updates: self.update, reason, plan: self.plan.clone() })
    }

    pub(super) fn is_last(&self) -> bool {
        self.update == self.plan.stop_after
    }

    /// A reason to stop if the best model has not changed for too long.
    fn patience_exhausted(&self) -> Option<StopReason> {
        let patience = self.plan.patience as u64;
        (patience > 0 && self.best.stale >= patience).then(|| StopReason::PatienceExhausted {
            evaluations: patience,
            best: self.best.update().unwrap_or(0),
        })
    }

    /// Records the result of an evaluation: a new best model, chains that do not mix, or a collapse to be undone.
    fn record_evaluation(&mut self, e: &Evaluated) -> Result<Option<Event>> {
        if let Some(event) = self.check_mixing(e)? {
            return Ok(Some(event));
        }
        let Some(score) = e.score else { return Ok(None) };
        let likelihood =
            e.metrics.iter().any(|(name, x)| *name == "train_log_likelihood" && *x == score);
        let climbs = self.is_exact() && likelihood;
        let slack = if climbs { Slack::Narrow } else { Slack::Wide };
        let mut best = std::mem::replace(&mut self.best, Best::new());
        let found = best.see(score, e.update, slack, || self.averaged_inside().parameters());
        self.best = best;
        if found != Finding::Collapsed {
            return Ok(None);
        }
        self.back_to_best()?;
        self.undone_in_a_row += 1;
        let why = format!("the score fell to {score:.3}: back to the best model");
        Ok(Some(self.lower(self.update, why)))
    }

    fn notify(
        &self,
        event: &Event,
        observers: &mut [&mut dyn Observer<T>],
    ) -> Result<Option<StopReason>> {
        let mut stop = None;
        for o in observers {
            if let Control::Stop(reason) = o.on_event(event, self)? {
                stop = stop.or(Some(reason));
            }
        }
        Ok(stop)
    }
}
