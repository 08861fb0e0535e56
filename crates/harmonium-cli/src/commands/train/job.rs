//! A training job: prepares data, machine and plan, trains, then evaluates.

use super::prepared::{Prepared, is_read_once, keep_input};
use super::watch::{Keeper, Levels};
use crate::args::Common;
use crate::config::Config;
use crate::error::{Context, Failure, Result};
use crate::evaluation::{Effort, Evaluation};
use crate::output::{command, counted, duration, grouped, put, say};
use crate::progress::Progress;
use crate::run::{self, RunDirectory};
use crate::signals::Stop;
use harmonium::io::Provenance;
use harmonium::train::{
    CHECKPOINT_SECONDS, Data, Draft, Event, Hooks, LeftOut, Metrics, Observer, RECORDED_UPDATES,
    Snapshots, StopReason, TrainPlan, Trainer, checkpoint_params, trainer,
};
use harmonium::{Archive, Role};
use harmonium_data::Table;
use harmonium_table::machine_for;
use serde_json::json;
use std::cell::Cell;
use std::time::Instant;

/// Seconds of silence before a run begins.
const PATIENCE: f64 = 2.0;
/// Models kept along a run.
const KEEP: usize = 20;

/// A training job, ready to run.
pub(super) struct Job {
    prepared: Prepared,
    /// What rows said that were left out to find the length of the run; unknown where it is resumed.
    left_out: Option<LeftOut>,
    start: Start,
}

/// What a run starts from.
enum Start {
    Plan(Box<TrainPlan>),
    Checkpoint(Archive),
}

impl Job {
    /// A new run.
    pub(super) fn new(mut config: Config, run: RunDirectory, common: &Common) -> Result<Self> {
        let mut set = config.load()?;
        let (machine, layout) = machine_for(&mut config.machine, &set.train)?;
        // Standard input cannot be read again: the run will keep a copy.
        let input = config.data.name.as_deref().is_some_and(is_read_once).then(|| set.train.clone());
        let data = layout.take_data(&machine, &mut set.train)?;
        // The runs that choose length and rate may take longer than the run itself: say so once.
        let (start, told) = (Instant::now(), Cell::new(common.quiet));
        let never_stop = || {
            if start.elapsed().as_secs_f64() > PATIENCE && !told.replace(true) {
                say!("choosing the length and the rate of the run by cross-validation …");
            }
            false
        };
        // Settings are validated before anything is written, and the output folder before the search for the length.
        let draft = Draft::new(config.train, &machine, &data)?;
        run.not_an_input(&[&config.data.name, &config.data.test, &config.data.valid])?;
        let lock = run.create(common.force)?;
        let (plan, left_out) = draft.finish(&machine, &data, config.run.time_budget, &never_stop)?;
        config.train = plan.params();
        if let Some(train) = input {
            keep_input(&mut config, &train, set.test.as_ref(), &run)?;
        }
        run::write(&run.config(), true, config.text()?.as_bytes())?;
        let prepared = Prepared::new(config, run, lock, set, data, (machine, layout))?;
        Ok(Self { prepared, left_out, start: Start::Plan(Box::new(plan)) })
    }

    /// Resumes a run.
    pub(super) fn resume(run: RunDirectory, _: &Common) -> Result<Self> {
        let lock = run.lock()?;
        let mut config = Config::read(&run.config())?;
        if config.tune.is_some() {
            let dir = run.dir.display().to_string();
            let again = command(&["train", "--config", &format!("{dir}/best.toml"), "-o", "NEW"]);
            return Err(Failure::usage(format!(
                "{dir}: this is a search, which `{}` resumes; `{again}` trains with the settings it found",
                command(&["tune", &dir])
            )));
        }
        let mut set = config.load()?;
        let (machine, layout) = machine_for(&mut config.machine, &set.train)?;
        let data = layout.take_data(&machine, &mut set.train)?;
        let path = Keeper::path(&run);
        let start = match path.is_file() {
            true => {
                let archive = Archive::load(&path).context("the checkpoint of this run")?;
                config.agrees_with(&checkpoint_params(&archive)?).context(run.config().display())?;
                Start::Checkpoint(archive)
            }
            false => Start::Plan(Box::new(config.train.plan(&machine, &data)?)),
        };
        let prepared = Prepared::new(config, run, lock, set, data, (machine, layout))?;
        Ok(Self { prepared, left_out: None, start })
    }

    /// Trains, evaluates and reports.
    pub(super) fn run(self, common: &Common) -> Result {
        let start = Instant::now();
        let data = &self.prepared.data;
        let valid = self.prepared.valid()?;
        let stop = Stop::listen()?;
        let mut trainer = match &self.start {
            Start::Checkpoint(archive) => {
                let trainer = Trainer::resume(self.prepared.machine.clone(), data, archive);
                let trainer = trainer.context(self.prepared.run.dir.display())?;
                match self.prepared.config.train.updates {
                    Some(updates) => {
                        trainer.with_updates(updates, self.prepared.config.train.stop_after)
                    }
                    None => trainer,
                }
            }
            Start::Plan(plan) => self.start(plan, data, &stop, common)?,
        };
        if let Some(valid) = &valid {
            trainer = trainer.with_valid(valid)?;
        }
        if !common.quiet {
            self.introduce(&trainer);
        }
        let provenance = self.prepared.provenance();
        let reason = self.train(&mut trainer, data, &provenance, &stop, common)?;
        let trained = start.elapsed().as_secs_f64();
        if reason == StopReason::Interrupted {
            if !common.quiet {
                let dir = self.prepared.run.dir.display();
                say!(
                    "interrupted after update {}; everything is saved.",
                    grouped(trainer.update_count())
                );
                say!("resume with: {}", command(&["train", &dir.to_string()]));
            }
            return Err(Failure::Interrupted);
        }
        stop.quit_when_asked();
        self.conclude(&trainer, &reason, trained, common)
    }

    /// The trainer at its start; the levels of deep machines are pretrained first.
    fn start<'d>(
        &self,
        plan: &TrainPlan,
        data: &'d Data,
        stop: &Stop,
        common: &Common,
    ) -> Result<Trainer<'d, f32>> {
        let pretrain = self.prepared.config.machine.pretrain == Some(true);
        let levels = self.prepared.machine.with_role(Role::Hidden).count();
        let mut watch = Levels { stop, quiet: common.quiet, levels, level: 0 };
        let (machine, plan) = (self.prepared.machine.clone(), plan.clone());
        let start = Instant::now();
        let reason = || self.reason_to_stop(stop, start);
        match trainer(machine, plan, data, pretrain, Hooks::default(), &mut watch, &reason)? {
            Some(trainer) => Ok(trainer),
            None => {
                if !common.quiet {
                    say!(
                        "interrupted while the levels were trained; the same command with `train RUN` starts again"
                    );
                }
                Err(Failure::Interrupted)
            }
        }
    }

    /// A signal, or the end of the time that training may take.
    fn reason_to_stop(&self, stop: &Stop, start: Instant) -> Option<StopReason> {
        StopReason::due(stop.asked(), start, self.prepared.config.run.time_budget)
    }

    fn train(
        &self,
        trainer: &mut Trainer<'_, f32>,
        data: &Data,
        provenance: &Provenance,
        stop: &Stop,
        common: &Common,
    ) -> Result<StopReason> {
        let updates = trainer.plan().updates();
        let done = trainer.update_count();
        let mut metrics =
            Metrics::new(self.prepared.run.metrics(), done, (updates / RECORDED_UPDATES).max(1))?;
        let keep = self.prepared.config.run.keep.unwrap_or(KEEP);
        let ratio = (updates.max(2) as f64).powf(1.0 / keep.max(1) as f64);
        let mut trajectory = Snapshots::new(self.prepared.run.checkpoints(), ratio);
        let start = Instant::now();
        let mut keeper = Keeper {
            run: &self.prepared.run,
            start,
            every: self.prepared.config.run.checkpoint_every.unwrap_or(CHECKPOINT_SECONDS),
            saved: Instant::now(),
            provenance,
        };
        let last = trainer.plan().stop_after();
        let mut progress = Progress::new(common.quiet, last, data.states());
        let reason = || self.reason_to_stop(stop, start);
        let outcome = match keep {
            0 => trainer.run_until(&mut [&mut metrics, &mut progress, &mut keeper], &reason),
            _ => {
                let observers: &mut [&mut dyn Observer<f32>] =
                    &mut [&mut metrics, &mut trajectory, &mut progress, &mut keeper];
                trainer.run_until(observers, &reason)
            }
        };
        progress.finish();
        Ok(outcome?.reason)
    }

    fn introduce(&self, trainer: &Trainer<'_, f32>) {
        let name = self.prepared.config.data.name.as_deref().unwrap_or("data");
        let held = |t: &Option<Table>, what: &str| {
            t.as_ref().map(|t| format!(", {} {what}", grouped(t.rows() as u64))).unwrap_or_default()
        };
        let rows = grouped(self.prepared.set.train.rows() as u64);
        let test = held(&self.prepared.set.test, "held out");
        let valid = held(&self.prepared.set.valid, "to validate");
        say!("{name}: {rows} rows to train{valid}{test}, {} columns", self.prepared.set.train.cols());
        let layers = self.prepared.machine.members().iter().map(|m| {
            let role = if m.role == Role::Hidden { "hidden" } else { "visible" };
            let units = if m.layer.len() == 1 { "unit" } else { "units" };
            format!("{} {role} {} {units}", m.layer.len(), m.layer.kind())
        });
        let params = trainer.plan().params();
        say!("machine: {}", layers.collect::<Vec<_>>().join(", "));
        say!(
            "plan: {} · batch {} · {} updates · rate {}{}",
            estimator_words(trainer.plan().estimator()),
            trainer.plan().batch(),
            grouped(trainer.plan().updates()),
            params.rate.unwrap_or_default(),
            match params.regulariser.map_or(0.0, |r| r.l2) {
                0.0 => String::new(),
                l2 => format!(" · penalty {l2:.2e}"),
            }
        );
        if let Some(last) = params.stop_after {
            say!(
                "  ends after update {}, where rows that were left out in turn did best",
                grouped(last)
            );
        }
        if trainer.update_count() > 0 {
            say!("resuming from update {}", grouped(trainer.update_count()));
        }
    }

    /// Evaluates the model and reports the results and the files written.
    fn conclude(
        &self,
        trainer: &Trainer<'_, f32>,
        reason: &StopReason,
        trained: f64,
        common: &Common,
    ) -> Result {
        let machine = trainer.result();
        if !common.quiet {
            let updates = counted(trainer.update_count() as usize, "update", "updates");
            say!("trained for {}, {updates}: {reason}", duration(trained));
        }
        let update = trainer.update_count();
        let mut metrics = Metrics::new(self.prepared.run.metrics(), update, 1)?;
        let mut lost = None;
        let mut heard = |progress| {
            let event = Event::Evaluating { update, progress };
            lost = metrics.on_event(&event, trainer).err().or(lost.take());
        };
        let evaluation = self.prepared.evaluate(&machine, &Effort::after_training(), common, &mut heard);
        lost.map_or(Ok(()), Err)?;
        let evaluation = evaluation?;
        let images = self.prepared.draw(&machine, common)?;
        if common.json {
            put!("{}", self.summary(trainer, reason, trained, evaluation.as_ref()))?;
        } else if !common.quiet {
            self.prepared.tell(evaluation.as_ref(), images.as_deref(), self.left_out)?;
        }
        self.failure(trainer, reason, evaluation.as_ref())
    }

    /// The failure of a run whose model has been written: training gave up, or the model is no distribution, diverged or is worse
    /// than independent columns.
    fn failure(
        &self,
        trainer: &Trainer<'_, f32>,
        reason: &StopReason,
        evaluation: Option<&Evaluation>,
    ) -> Result {
        let verdict = evaluation.map(Evaluation::verdict).filter(|v| v.condemns_model());
        let what = match (trainer.gave_up(), verdict) {
            (true, _) => format!("training gave up: {reason}"),
            (false, Some(verdict)) => format!("the model is not to be used: {verdict}"),
            (false, None) => match trainer.result().check_normalisable() {
                Err(why) => format!("the model is not to be used: {why}"),
                Ok(()) => return Ok(()),
            },
        };
        Err(Failure::new(format!(
            "{what}; try fewer hidden units (--hidden), a smaller --learning-rate, `--estimator pt`, or other kinds of columns \
             (`harmonium data describe` shows them, `--column NAME=real` changes one)"
        )))
    }

    fn summary(
        &self,
        trainer: &Trainer<'_, f32>,
        reason: &StopReason,
        trained: f64,
        evaluation: Option<&Evaluation>,
    ) -> serde_json::Value {
        json!({
            "run": self.prepared.run.dir,
            "model": self.prepared.run.model(),
            "updates": trainer.update_count(),
            "stop": reason.name(),
            "reason": reason.to_string(),
            "seconds": trained,
            "left_out": self.left_out,
            "evaluation": evaluation.map(Evaluation::json),
        })
    }
}

fn estimator_words(estimator: &harmonium::estimate::Estimator) -> String {
    let value = serde_json::to_value(estimator).unwrap_or_default();
    let mut words = vec![estimator.name().to_uppercase()];
    for (key, x) in value.as_object().into_iter().flatten().filter(|(k, x)| *k != "name" && !x.is_null())
    {
        words.push(format!("{key} {x}"));
    }
    words.join(", ")
}
