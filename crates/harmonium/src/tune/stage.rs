//! One stage of one trial: the run goes on for so much work and is scored.

use super::score::{Score, Scorer};
use super::trials::{What, name};
use super::{Origin, Record, Setting, Stage, Trials, work};
use crate::estimate::Estimator;
use crate::train::{
    Control, Data, Event, Init, Observer, Schedule, StopReason, TrainParams, Trainer, checkpoint_params,
    grown, resized, with_params,
};
use crate::{Archive, Error, Kind, Machine, Real, Result};
use std::time::Instant;

/// Where the rate begins to fall: the last stage is half as long as all before it.
const PLATEAU: f64 = 2.0 / 3.0;

/// Evaluations of a stage, which keep the best model within it, and fewest updates between two.
const EVALUATIONS: u64 = 5;

/// Fewest updates of a stage.
const FEWEST: u64 = 50;

/// A stage ends when it has taken so many times the planned work, because its chains need more sweeps than before.
const OVERSPENT: f64 = 1.25;

/// Seconds between two states that are kept within a stage.
const KEEP_EVERY: f64 = 30.0;

/// Standard deviation of the weights of new units.
const STD: f64 = 0.01;

/// Watches a search, which it can stop.
pub trait Watch<T: Real> {
    /// Asked after every update: a reason to end the search with what it has found.
    fn stopped(&mut self) -> Option<StopReason>;

    /// Called with every stage that ends, but not again with those of a search that is resumed.
    ///
    /// # Errors
    /// Ends the search with this error.
    fn finished(&mut self, record: &Record) -> Result<()>;

    /// Called with the model of a stage that is better than all before.
    ///
    /// # Errors
    /// Ends the search with this error.
    fn best(&mut self, record: &Record, machine: &Machine<T>) -> Result<()>;
}

/// A trial.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    pub(super) number: usize,
    pub(super) setting: Setting,
    pub(super) origin: Option<Origin>,
}

/// What all trials have in common.
pub(super) struct Shared<'a, T: Real> {
    pub(super) machine: &'a Machine<T>,
    pub(super) data: &'a Data<T>,
    pub(super) valid: &'a Data<T>,
    pub(super) params: &'a TrainParams,
    pub(super) scorer: Scorer<T>,
}

/// How a stage ended.
pub(super) enum Ended<T: Real> {
    /// The record, with the model that it scored.
    Finished(Box<Record>, Machine<T>),
    /// Stopped from outside, with what had been learnt.
    Stopped(StopReason, Machine<T>),
}

impl<T: Real> Shared<'_, T> {
    /// A blank machine of a trial.
    pub(super) fn blank(&self, setting: &Setting) -> Result<Machine<T>> {
        let kind: Kind = setting.hidden_kind.parse()?;
        Ok(resized(self.machine, setting.hidden, kind)?.unwrap_or_else(|| self.machine.clone()))
    }

    /// The settings of a fresh run of a trial, but for its length.
    fn params(&self, setting: &Setting) -> TrainParams {
        let mut params = self.params.clone();
        params.rate = Some(setting.rate);
        let penalty = params.regulariser.get_or_insert_default();
        (penalty.l1, penalty.l2) = (setting.l1, setting.l2);
        params.schedule = Some(Schedule::Plateau { until: PLATEAU });
        params
    }

    /// The best model of a finished stage.
    pub(super) fn model(&self, record: &Record, trials: &Trials) -> Result<Machine<T>> {
        let mut machine = self.blank(&record.setting)?;
        let archive = trials.get(&name(record.trial, record.stage, What::Model))?;
        machine.set_parameters(&archive.parameters("machine", &machine.parameters())?)?;
        Ok(machine)
    }

    /// The checkpoint that a stage continues, if the trial does not start anew with it.
    fn before(&self, trial: &Trial, trials: &Trials) -> Result<Option<(Archive, Record)>> {
        // Trials that go on improve, so that their best stage is the last one; only finalists may go on from an earlier one.
        let own = trials.best_of(trial.number);
        let from = own.or_else(|| trial.origin.and_then(|o| trials.find(o.trial, o.stage)));
        let Some(record) = from else { return Ok(None) };
        let archive = trials.get(&name(record.trial, record.stage, What::Checkpoint))?;
        Ok(Some((archive, record.clone())))
    }

    /// The run at the start of a stage, with its length set, and the number of updates before the trial's own.
    fn start<'d>(
        &'d self,
        trial: &Trial,
        stage: Stage,
        share: f64,
        before: Option<(Archive, Record)>,
    ) -> Result<Trainer<'d, T>> {
        let machine = self.blank(&trial.setting)?;
        let fresh = self.params(&trial.setting);
        let sweeps = before.as_ref().map_or(1.0, |(_, record)| record.sweeps);
        let same_size = |r: &Record| r.setting.hidden == trial.setting.hidden;
        if let Some((archive, _)) = before.as_ref().filter(|(_, r)| same_size(r)) {
            let done = archive.u64s("counters")?.first().copied().unwrap_or(0);
            let params = TrainParams {
                rate: fresh.rate,
                regulariser: fresh.regulariser,
                ..checkpoint_params(archive)?
            };
            let each = work::update(&machine, &params.plan(&machine, self.data)?, self.data, sweeps);
            let params = with_length(params, done, updates_of(share, each), stage);
            return Trainer::resume(machine, self.data, &with_params(archive.clone(), &params));
        }
        let (machine, fresh) = match before {
            Some((archive, record)) => {
                let mut small = self.blank(&record.setting)?;
                small.set_parameters(&archive.parameters("machine", &small.parameters())?)?;
                let seed = fresh.seed.unwrap_or(0);
                let grown = grown(&small, self.data, trial.setting.hidden, STD, seed)?;
                let fresh = TrainParams { init: Some(Init::Keep), ..fresh };
                (grown.ok_or_else(|| Error::value("machine", "one hidden layer", "another"))?, fresh)
            }
            None => (machine, fresh),
        };
        let plan = fresh.plan(&machine, self.data)?;
        let each = work::update(&machine, &plan, self.data, sweeps);
        let params = with_length(plan.params(), 0, updates_of(share, each), stage);
        Trainer::new(machine.clone(), params.plan(&machine, self.data)?, self.data)
    }

    /// Carries out a stage with its share of the work and keeps its checkpoint and its model.
    pub(super) fn run(
        &self,
        trial: &Trial,
        stage: Stage,
        share: f64,
        trials: &mut Trials,
        watch: &mut dyn Watch<T>,
    ) -> Result<Ended<T>> {
        let clock = Instant::now();
        let part = name(trial.number, stage, What::Part);
        let before = self.before(trial, trials)?;
        let grew = before.as_ref().filter(|(_, r)| r.setting.hidden != trial.setting.hidden);
        let earlier = match (&before, grew) {
            (_, Some((_, record))) => record.updates,
            (Some((archive, record)), None) => {
                record.updates - archive.u64s("counters")?.first().copied().unwrap_or(0)
            }
            _ => 0,
        };
        let (run, spent) = match trials.has(&part) {
            true => {
                let archive = trials.get(&part)?;
                let spent = archive.f64s("spent")?.first().copied().unwrap_or(0.0);
                (Trainer::resume(self.blank(&trial.setting)?, self.data, &archive)?, spent)
            }
            false => (self.start(trial, stage, share, before)?, 0.0),
        };
        let mut run = run.with_valid(self.valid)?;
        let blank = self.blank(&trial.setting)?;
        let each = |sweeps| work::update(&blank, run.plan(), self.data, sweeps);
        let mut observer = StageObserver {
            each: (each(0.0), each(1.0) - each(0.0)),
            watch,
            trials,
            part: &part,
            limit: if stage == Stage::Last { f64::INFINITY } else { OVERSPENT * share },
            spent,
            sweeps: 1.0,
            kept: Instant::now(),
            stopped: None,
        };
        run.run(&mut [&mut observer])?;
        let StageObserver { stopped, spent, sweeps, .. } = observer;
        if let Some(reason) = stopped {
            return Ok(Ended::Stopped(reason, run.result()));
        }
        let (model, score) = self.best(&run)?;
        trials.keep(&name(trial.number, stage, What::Checkpoint), run.checkpoint())?;
        let mut archive = Archive::default();
        archive.put_parameters("machine", &model.parameters());
        trials.keep(&name(trial.number, stage, What::Model), archive)?;
        trials.forget(&part);
        let record = Record {
            trial: trial.number,
            stage,
            setting: trial.setting.clone(),
            origin: trial.origin,
            updates: earlier + run.update_count(),
            sweeps,
            score: score.map(|s| s.value),
            error: score.map(|s| s.error),
            excess: score.and_then(|s| s.excess),
            method: score.map(|s| s.method),
            failure: score.is_none().then(|| "the likelihood is not finite".into()),
            work: spent,
            seconds: clock.elapsed().as_secs_f64(),
        };
        Ok(Ended::Finished(Box::new(record), model))
    }

    /// The better one of the last model and of the one that evaluations within the stages liked best.
    fn best(&self, run: &Trainer<'_, T>) -> Result<(Machine<T>, Option<Score>)> {
        let (last, kept) = (run.averaged(), run.result());
        let score = self.scorer.score(&last, run)?;
        if kept == last {
            return Ok((last, score));
        }
        let other = self.scorer.score(&kept, run)?;
        let value = |s: &Option<Score>| s.map_or(f64::NEG_INFINITY, |s| s.value);
        Ok(if value(&other) > value(&score) { (kept, other) } else { (last, score) })
    }
}

fn updates_of(share: f64, each: f64) -> u64 {
    ((share / each) as u64).max(FEWEST)
}

/// The settings of a run that has made `done` updates and makes `more` of them in this stage; in the last one half as many
/// as before.
fn with_length(params: TrainParams, done: u64, more: u64, stage: Stage) -> TrainParams {
    let more = if stage == Stage::Last { done.div_ceil(2).max(1) } else { more };
    let end = done + more;
    let every = (more / EVALUATIONS).max(1);
    let exact = params.estimator == Some(Estimator::Exact);
    TrainParams {
        updates: Some(if stage == Stage::Last { end } else { end + end.div_ceil(2) }),
        stop_after: Some(end),
        epochs: None,
        // At a constant rate the average takes the place of a falling one.
        average: Some(if exact { 0 } else { every }),
        evaluate_every: Some(every),
        patience: Some(0),
        ..params
    }
}

/// Counts the work of a stage, keeps its state from time to time, and passes on the wish to stop.
struct StageObserver<'a, T: Real> {
    /// Work of an update: a constant, and for each sweep.
    each: (f64, f64),
    watch: &'a mut dyn Watch<T>,
    trials: &'a mut Trials,
    part: &'a std::path::Path,
    limit: f64,
    spent: f64,
    sweeps: f64,
    kept: Instant,
    stopped: Option<StopReason>,
}

impl<T: Real> StageObserver<'_, T> {
    fn keep(&mut self, run: &Trainer<'_, T>) -> Result<()> {
        let mut archive = run.checkpoint();
        archive.put_f64s("spent", &[self.spent]);
        self.kept = Instant::now();
        self.trials.keep(self.part, archive)
    }
}

impl<T: Real> Observer<T> for StageObserver<'_, T> {
    fn on_event(&mut self, event: &Event, run: &Trainer<'_, T>) -> Result<Control> {
        match event {
            Event::Updated(u) => {
                let sweeps = u.metrics.iter().find(|(name, _)| *name == "sweeps");
                self.sweeps = sweeps.map_or(1.0, |s| s.1);
                self.spent += self.each.0 + self.each.1 * self.sweeps;
            }
            Event::UpdateFinished { .. } => {
                self.stopped = self.watch.stopped();
                if self.stopped.is_some() {
                    self.keep(run)?;
                    return Ok(Control::Stop(StopReason::Interrupted));
                }
                if self.spent > self.limit {
                    return Ok(Control::Stop(StopReason::Finished));
                }
                if self.kept.elapsed().as_secs_f64() > KEEP_EVERY {
                    self.keep(run)?;
                }
            }
            _ => {}
        }
        Ok(Control::Continue)
    }
}
