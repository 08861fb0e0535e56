//! Which trials go on, and which model is the result.

use super::score::Scorer;
use super::setting::Free;
use super::stage::{Ended, Shared, Trial};
use super::trials::{What, name};
use super::{Origin, Record, Setting, Stage, Trials, Watch, work};
use crate::evaluate::LogZParams;
use crate::partition::{Interval, Verdict};
use crate::train::{Data, StopReason, TrainParams, has_only_bits, shuffled};
use crate::{Error, Machine, Real, Result, Role};
use serde::{Deserialize, Serialize};

/// Work of each stage, in units of the first, number of its trials, and how many of these are variants of the best one.
const STAGES: [(f64, usize, usize); 4] = [(1.0, 6, 0), (1.0, 4, 2), (2.0, 3, 1), (4.0, 2, 1)];

/// Trials that get the last stage, in which the rate falls, for half of the work that they have had.
const FINALISTS: usize = 2;

/// Part of the work of the first stage that a score takes.
const SCORE: f64 = 0.05;

/// Part of the whole work that the likelihood of a finalist takes at most.
const EVALUATION: f64 = 0.04;

/// Nats by which a model whose ln Z is not converged must lead to be preferred.
const LEAD: f64 = 0.5;

/// Fraction and limits of the training rows that are held out where no validation rows are given.
const HELD: (f64, usize, usize) = (0.1, 20, 5000);

/// Settings of a search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TuneParams {
    /// Its size: estimated seconds on one thread.
    pub work: f64,
    /// Whether the number of hidden units stays that of the machine.
    pub keep_hidden: bool,
    /// Whether the kind of hidden units stays that of the machine.
    pub keep_kind: bool,
    /// Settings of every run; those that are set here are not searched.
    pub train: TrainParams,
}

/// A search.
pub struct Search<'a, T: Real> {
    shared: Shared<'a, T>,
    default: Setting,
    free: Free,
    /// Work of the first stage of a trial.
    share: f64,
    work: f64,
    seed: u64,
    trials: &'a mut Trials,
    members: Vec<Trial>,
}

/// The likelihood of a finalist on the held-out rows, from both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finalist {
    /// The trial.
    pub trial: usize,
    /// Mean log-likelihood in nats per row.
    pub mean: f64,
    /// Its 95 % interval.
    pub interval: Interval,
    /// Whether it is reliable.
    pub verdict: Verdict,
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct Tuned<T: Real> {
    /// The model.
    pub machine: Machine<T>,
    /// Where it comes from; `None` if the search was stopped before the first stage of the first trial was over.
    pub record: Option<Record>,
    /// The likelihoods that decided at the end; empty if the search was stopped before.
    pub finalists: Vec<Finalist>,
    /// Why it ended.
    pub reason: StopReason,
}

/// Rows to train on, and rows held out for the search, by a seed.
pub fn hold_out<T: Real>(data: &Data<T>, seed: u64) -> (Data<T>, Data<T>) {
    let (part, fewest, most) = HELD;
    let rows = data.rows();
    let held = ((part * rows as f64) as usize).clamp(fewest, most).min(rows / 2);
    let order = shuffled(rows, seed);
    let sorted = |places: &[usize]| {
        let mut places = places.to_vec();
        places.sort_unstable();
        data.select(&places)
    };
    (sorted(&order[held..]), sorted(&order[..held]))
}

impl<'a, T: Real> Search<'a, T> {
    /// A search for the settings of a machine with at most one hidden layer; what `trials` hold of it already is not done again.
    ///
    /// # Errors
    /// Settings that do not fit the machine or the data.
    pub fn new(
        machine: &'a Machine<T>,
        data: &'a Data<T>,
        valid: &'a Data<T>,
        params: &'a TuneParams,
        trials: &'a mut Trials,
    ) -> Result<Self> {
        let hidden: Vec<usize> = machine.with_role(Role::Hidden).collect();
        if hidden.len() > 1 || machine.class_layer().is_some() {
            let why =
                "it is for machines with one hidden layer whose aim is the likelihood of rows".into();
            return Err(Error::Undefined { what: "the search for settings", why });
        }
        if !(params.work.is_finite() && params.work > 0.0) {
            return Err(Error::value("work", "a positive number", params.work));
        }
        valid.check(machine)?;
        let train = &params.train;
        let plan = train.plan(machine, data)?;
        let layer = hidden.first().map(|&h| machine.layer(h));
        let penalty = train.regulariser.unwrap_or_default();
        let default = Setting {
            hidden: layer.map_or(0, |l| l.len()),
            hidden_kind: layer.map_or_else(|| "binary".into(), |l| l.kind().word()),
            l1: penalty.l1,
            l2: penalty.l2,
            rate: plan.params().rate.unwrap_or_default(),
        };
        let free = Free {
            hidden: !params.keep_hidden && layer.is_some(),
            kind: !params.keep_kind && layer.is_some(),
            penalty: train.regulariser.is_none(),
            rate: train.rate.is_none(),
        };
        // A trial that gets to the end has had the work of all stages and half as much again.
        let through: f64 = STAGES.iter().map(|s| s.0).sum();
        let all = STAGES.iter().map(|s| s.0 * s.1 as f64).sum::<f64>();
        let scores = SCORE * (STAGES.iter().map(|s| s.1).sum::<usize>() + FINALISTS) as f64;
        let evaluations = EVALUATION * FINALISTS as f64;
        let share =
            params.work * (1.0 - evaluations) / (all + FINALISTS as f64 * 0.5 * through + scores);
        let seed = train.seed.unwrap_or(0);
        let scorer = Scorer::new(machine, data, valid, SCORE * share, seed);
        let shared = Shared { machine, data, valid, params: train, scorer };
        let members = default.first(has_only_bits(machine), data.rows(), free);
        let members = members.into_iter().enumerate();
        let members = members.map(|(number, setting)| Trial { number, setting, origin: None }).collect();
        Ok(Self { shared, default, free, share, work: params.work, seed, trials, members })
    }

    /// Searches until the work is done or the watch stops it.
    ///
    /// # Errors
    /// Errors of training with the default settings, of files, or of the watch.
    pub fn run(mut self, watch: &mut dyn Watch<T>) -> Result<Tuned<T>> {
        let mut active: Vec<usize> = (0..self.members.len()).collect();
        for (rung, &(length, ..)) in STAGES.iter().enumerate() {
            for &trial in &active {
                let share = length * self.share;
                if let Some((reason, model)) = self.advance(trial, Stage::Rung(rung), share, watch)? {
                    return self.stopped(reason, model);
                }
            }
            active = match STAGES.get(rung + 1) {
                Some(&(_, trials, variants)) => self.promote(rung, &active, trials, variants),
                None => Vec::new(),
            };
            self.prune();
        }
        let finalists: Vec<usize> =
            self.trials.ranking().iter().take(FINALISTS).map(|r| r.trial).collect();
        for &trial in &finalists {
            if let Some((reason, model)) = self.advance(trial, Stage::Last, 0.0, watch)? {
                return self.stopped(reason, model);
            }
        }
        self.decide(&finalists, watch)
    }

    /// Carries out a stage unless it is done already; the reason and the model if it was stopped.
    fn advance(
        &mut self,
        trial: usize,
        stage: Stage,
        share: f64,
        watch: &mut dyn Watch<T>,
    ) -> Result<Option<(StopReason, Machine<T>)>> {
        if self.trials.recall(trial, stage) {
            return Ok(None);
        }
        let member = self.members[trial].clone();
        let ended = self.shared.run(&member, stage, share, self.trials, watch);
        let (record, model) = match ended {
            Ok(Ended::Stopped(reason, model)) => return Ok(Some((reason, model))),
            Ok(Ended::Finished(record, model)) => (*record, Some(model)),
            // Settings other than the defaults may not suit the machine.
            Err(e) if member.setting != self.default && !is_of_files(&e) => {
                (failed(&member, stage, &e), None)
            }
            Err(e) => return Err(e),
        };
        let best = self.trials.best().is_none_or(|best| record.value() > best.value());
        self.trials.add(record.clone())?;
        watch.finished(&record)?;
        match model {
            Some(model) if best && record.score.is_some() => watch.best(&record, &model)?,
            _ => {}
        }
        Ok(None)
    }

    /// The trials of the next stage: the better ones of this one that still improve, and variants of the best of all.
    fn promote(&mut self, rung: usize, active: &[usize], trials: usize, variants: usize) -> Vec<usize> {
        let stage = Stage::Rung(rung);
        let improves = |t: usize| self.trials.best_of(t).is_some_and(|best| best.stage == stage);
        let ranking = self.trials.ranking();
        let survivors = ranking.iter().map(|r| r.trial).filter(|&t| active.contains(&t) && improves(t));
        let mut next: Vec<usize> = survivors.take(trials - variants).collect();
        let Some(best) = ranking.first() else { return next };
        let origin = Some(Origin { trial: best.trial, stage: best.stage });
        let overfits = !improves(best.trial) || self.overfits(best);
        let new = best.setting.variants(overfits, self.free);
        // Settings that lost from the start may win from here.
        let tried = |s: &Setting| {
            self.members
                .iter()
                .any(|t| t.setting == *s && (t.origin == origin || next.contains(&t.number)))
        };
        let new: Vec<Setting> =
            new.into_iter().filter(|s| !tried(s)).take(trials - next.len()).collect();
        for setting in new {
            next.push(self.members.len());
            self.members.push(Trial { number: self.members.len(), setting, origin });
        }
        next
    }

    /// Whether a trial is ahead on the training rows by more than its last stage has brought: then there is more to win by a
    /// penalty than by more units.
    fn overfits(&self, record: &Record) -> bool {
        let earlier = |r: &&Record| r.trial == record.trial && r.stage < record.stage;
        let own = self.trials.records().iter().rfind(earlier);
        let origin = || record.origin.and_then(|o| self.trials.find(o.trial, o.stage));
        let before = own.or_else(origin).and_then(|r| r.score);
        before.is_some_and(|before| record.excess > Some(record.value() - before))
    }

    /// Forgets checkpoints and models from which nothing will go on: all but those of the best stage of each trial. A trial
    /// that goes on has its best one last.
    fn prune(&mut self) {
        let best: Vec<_> = self.trials.ranking().iter().map(|r| (r.trial, r.stage)).collect();
        let all: Vec<_> = self.trials.records().iter().map(|r| (r.trial, r.stage)).collect();
        for (trial, stage) in all.into_iter().filter(|place| !best.contains(place)) {
            self.trials.forget(&name(trial, stage, What::Checkpoint));
            self.trials.forget(&name(trial, stage, What::Model));
        }
    }

    /// The finalist with the best likelihood from both sides.
    fn decide(self, finalists: &[usize], watch: &mut dyn Watch<T>) -> Result<Tuned<T>> {
        let mut found: Vec<(Finalist, Machine<T>, Record)> = Vec::new();
        for &trial in finalists {
            let Some(record) = self.trials.best_of(trial).cloned() else { continue };
            let machine = self.shared.model(&record, self.trials)?;
            let params = self.effort(&machine);
            let evaluation = machine.log_likelihood(self.shared.valid).floor(None).params(params).run();
            // Machines whose likelihood is not defined are ranked by their scores.
            let finalist = match evaluation {
                Ok(e) => {
                    Finalist { trial, mean: e.mean(), interval: e.interval(), verdict: e.verdict() }
                }
                Err(e) if is_of_files(&e) => return Err(e),
                Err(_) => {
                    let mean = record.value();
                    let interval = Interval { lower: mean, upper: mean };
                    Finalist { trial, mean, interval, verdict: Verdict::NotConverged }
                }
            };
            found.push((finalist, machine, record));
        }
        let rank =
            |f: &Finalist| if f.verdict == Verdict::NotConverged { f.mean - LEAD } else { f.mean };
        let places = (0..found.len()).rev();
        let winner = places.max_by(|&a, &b| rank(&found[a].0).total_cmp(&rank(&found[b].0)));
        let finalists = found.iter().map(|f| f.0.clone()).collect();
        let Some(winner) = winner else {
            return Err(Error::value("score of every trial", "a finite number", "none"));
        };
        let (_, machine, record) = found.swap_remove(winner);
        watch.best(&record, &machine)?;
        Ok(Tuned { machine, record: Some(record), finalists, reason: StopReason::Finished })
    }

    /// How precisely the likelihood of a finalist is estimated: by work, not by the clock.
    fn effort(&self, machine: &Machine<T>) -> LogZParams {
        let default = LogZParams::default();
        // Runs up and down, each finer than the one before.
        let step = 6.0 * default.chains as f64 * 0.5 * work::row(machine);
        let steps = EVALUATION * self.work / step;
        let temperatures = (steps as usize).clamp(500, default.temperatures);
        LogZParams { temperatures, seed: self.seed, ..default }
    }

    /// The best model so far.
    fn stopped(self, reason: StopReason, running: Machine<T>) -> Result<Tuned<T>> {
        let record = self.trials.best().cloned();
        let machine = match &record {
            Some(record) => self.shared.model(record, self.trials)?,
            None => running,
        };
        Ok(Tuned { machine, record, finalists: Vec::new(), reason })
    }
}

/// Whether an error has nothing to do with the settings of a trial.
fn is_of_files(e: &Error) -> bool {
    matches!(e, Error::Io { .. } | Error::Format { .. } | Error::Stopped { .. })
}

fn failed(trial: &Trial, stage: Stage, why: &Error) -> Record {
    Record {
        trial: trial.number,
        stage,
        setting: trial.setting.clone(),
        origin: trial.origin,
        updates: 0,
        sweeps: 1.0,
        score: None,
        error: None,
        excess: None,
        method: None,
        failure: Some(why.to_string()),
        work: 0.0,
        seconds: 0.0,
    }
}
