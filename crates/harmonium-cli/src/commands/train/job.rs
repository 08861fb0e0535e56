//! A training job: prepares data, machine and plan, trains, then evaluates.

use super::watch::{Keeper, Levels};
use crate::args::Common;
use crate::config::Config;
use crate::error::{Context, Failure, Result};
use crate::evaluation::{Effort, Evaluation, TableStates, possible_rows};
use crate::lock::Lock;
use crate::output::{command, counted, duration, grouped, put, say, width};
use crate::picture;
use crate::progress::Progress;
use crate::run::{self, RunDirectory};
use crate::signals::Stop;
use harmonium::estimate::Estimator;
use harmonium::io::Provenance;
use harmonium::train::{
    CHECKPOINT_SECONDS, Data, Draft, Event, Floor, Hooks, LeftOut, Metrics, Observer, RECORDED_UPDATES,
    Snapshots, StopReason, TrainPlan, Trainer, checkpoint_params, trainer,
};
use harmonium::{Archive, Machine, Role};
use harmonium_data::{Dataset, Table};
use harmonium_table::{Layout, machine_for, schema_to_json};
use serde_json::json;
use std::cell::Cell;
use std::path::Path;
use std::time::Instant;

/// Seconds of silence before a run begins.
const PATIENCE: f64 = 2.0;
/// Models kept along a run.
const KEEP: usize = 20;

/// A training job, ready to run.
pub(in crate::commands) struct Job {
    pub(in crate::commands) config: Config,
    pub(in crate::commands) run: RunDirectory,
    /// The data; the entries of the training rows are in `data` only.
    pub(in crate::commands) set: Dataset,
    pub(in crate::commands) data: Data,
    pub(in crate::commands) machine: Machine,
    pub(in crate::commands) layout: Layout,
    /// Independent columns with the marginals of the training rows; none for discriminative training, which
    /// does not model the rows.
    floor: Option<Floor>,
    /// What rows said that were left out to find the length of the run; unknown where it is resumed.
    left_out: Option<LeftOut>,
    start: Start,
    /// Held until the run is over.
    _lock: Lock,
}

/// What a run starts from.
enum Start {
    /// Nothing: the settings are to be found.
    Search,
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
        let floor = floor(&config, &machine, &data)?;
        let start = Start::Plan(Box::new(plan));
        Ok(Self { config, run, set, data, machine, layout, floor, left_out, start, _lock: lock })
    }

    /// Resumes a run.
    pub(super) fn resume(run: RunDirectory, _: &Common) -> Result<Self> {
        let lock = run.lock()?;
        let mut config = Config::read(&run.config())?;
        if config.tune.is_some() {
            let dir = run.dir.display();
            return Err(Failure::usage(format!(
                "{dir}: this is a search, which `harmonium tune {dir}` resumes; \
                 `harmonium train --config {dir}/best.toml -o NEW` trains with the settings it found"
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
        let floor = floor(&config, &machine, &data)?;
        Ok(Self { config, run, set, data, machine, layout, floor, left_out: None, start, _lock: lock })
    }

    /// The data and the blank machine of a search for settings.
    pub(in crate::commands) fn search(
        config: Config,
        run: RunDirectory,
        set: Dataset,
        data: Data,
        (machine, layout): (Machine, Layout),
        lock: Lock,
    ) -> Result<Self> {
        let floor = floor(&config, &machine, &data)?;
        let (start, left_out) = (Start::Search, None);
        Ok(Self { config, run, set, data, machine, layout, floor, left_out, start, _lock: lock })
    }

    /// The validation rows that the machine gives a probability.
    pub(in crate::commands) fn valid(&self) -> Result<Option<Data>> {
        let valid = |t: &Table| -> Result<Data> {
            let (possible, _) = possible_rows(&self.machine, &self.layout, t)?;
            Ok(self.layout.data(&self.machine, &possible)?)
        };
        self.set.valid.as_ref().map(valid).transpose()
    }

    /// Trains, evaluates and reports.
    pub(super) fn run(self, common: &Common) -> Result {
        let start = Instant::now();
        let data = &self.data;
        let valid = self.valid()?;
        let stop = Stop::listen()?;
        let mut trainer = match &self.start {
            Start::Checkpoint(archive) => {
                let trainer = Trainer::resume(self.machine.clone(), data, archive);
                let trainer = trainer.context(self.run.dir.display())?;
                match self.config.train.updates {
                    Some(updates) => trainer.with_updates(updates, self.config.train.stop_after),
                    None => trainer,
                }
            }
            Start::Plan(plan) => self.start(plan, data, &stop, common)?,
            Start::Search => return Err(Failure::new("a search has no run of its own".to_owned())),
        };
        if let Some(valid) = &valid {
            trainer = trainer.with_valid(valid)?;
        }
        if !common.quiet {
            self.introduce(&trainer);
        }
        let provenance = self.provenance();
        let reason = self.train(&mut trainer, data, &provenance, &stop, common)?;
        let trained = start.elapsed().as_secs_f64();
        if reason == StopReason::Interrupted {
            if !common.quiet {
                let dir = self.run.dir.display();
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
        let pretrain = self.config.machine.pretrain == Some(true);
        let levels = self.machine.with_role(Role::Hidden).count();
        let mut watch = Levels { stop, quiet: common.quiet, levels, level: 0 };
        let (machine, plan) = (self.machine.clone(), plan.clone());
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
        let seconds = self.config.run.time_budget;
        match seconds.is_some_and(|budget| start.elapsed().as_secs_f64() > budget) {
            _ if stop.asked() => Some(StopReason::Interrupted),
            true => Some(StopReason::TimeBudget { seconds }),
            false => None,
        }
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
        let mut metrics = Metrics::new(self.run.metrics(), done, (updates / RECORDED_UPDATES).max(1))?;
        let keep = self.config.run.keep.unwrap_or(KEEP);
        let ratio = (updates.max(2) as f64).powf(1.0 / keep.max(1) as f64);
        let mut trajectory = Snapshots::new(self.run.checkpoints(), ratio);
        let start = Instant::now();
        let mut keeper = Keeper {
            run: &self.run,
            start,
            every: self.config.run.checkpoint_every.unwrap_or(CHECKPOINT_SECONDS),
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
        let name = self.config.data.name.as_deref().unwrap_or("data");
        let held = |t: &Option<Table>, what: &str| {
            t.as_ref().map(|t| format!(", {} {what}", grouped(t.rows() as u64))).unwrap_or_default()
        };
        let rows = grouped(self.set.train.rows() as u64);
        let test = held(&self.set.test, "held out");
        let valid = held(&self.set.valid, "to validate");
        say!("{name}: {rows} rows to train{valid}{test}, {} columns", self.set.train.cols());
        let layers = self.machine.members().iter().map(|m| {
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

    pub(in crate::commands) fn provenance(&self) -> Provenance {
        let floor = self.floor.as_ref().and_then(|f| serde_json::to_string(f).ok());
        let details = [
            ("schema", Some(schema_to_json(&self.layout.schema))),
            ("floor", floor),
            ("data", Some(self.config.data.name.clone().unwrap_or_default())),
            ("config", Some(toml::to_string(&self.config).unwrap_or_default())),
        ];
        Provenance {
            seed: self.config.train.seed,
            details: details.into_iter().filter_map(|(k, v)| Some((k.into(), v?))).collect(),
            ..Provenance::default()
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
        let mut metrics = Metrics::new(self.run.metrics(), update, 1)?;
        let mut lost = None;
        let mut heard = |progress| {
            let event = Event::Evaluating { update, progress };
            lost = metrics.on_event(&event, trainer).err().or(lost.take());
        };
        let evaluation = self.evaluate(&machine, &Effort::after_training(), common, &mut heard);
        lost.map_or(Ok(()), Err)?;
        let evaluation = evaluation?;
        let images = self.draw(&machine, common)?;
        if common.json {
            put!("{}", self.summary(trainer, reason, trained, evaluation.as_ref()))?;
        } else if !common.quiet {
            self.tell(evaluation.as_ref(), images.as_deref())?;
        }
        self.failure(trainer, reason, evaluation.as_ref())
    }

    /// The likelihood of the test rows, or else of the training rows, also into the run. The model has been written, whether or
    /// not its likelihood can be computed.
    pub(in crate::commands) fn evaluate(
        &self,
        machine: &Machine,
        effort: &Effort,
        common: &Common,
        heard: &mut dyn FnMut(harmonium::partition::Progress),
    ) -> Result<Option<Evaluation>> {
        let (name, rows) = match &self.set.test {
            Some(test) => ("test", TableStates::new(machine, &self.layout, test, self.floor.as_ref())),
            None => ("training", Ok(TableStates::of_data(machine, &self.data, self.floor.as_ref()))),
        };
        match rows.and_then(|rows| rows.evaluate(name, effort, common, heard)) {
            Ok(evaluation) => {
                run::write(&self.run.evaluation(), true, evaluation.json().to_string().as_bytes())?;
                self.run.note(&format!("{}", evaluation.json()))?;
                Ok(Some(evaluation))
            }
            Err(Failure::Failed(why)) => {
                self.run.note(&format!("no likelihood: {why}"))?;
                say!("no likelihood: {why}");
                Ok(None)
            }
            Err(other) => Err(other),
        }
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

    /// Samples as a picture file, and their images.
    pub(in crate::commands) fn draw(
        &self,
        machine: &Machine,
        common: &Common,
    ) -> Result<Option<Vec<picture::Picture>>> {
        if self.layout.shape().is_none() {
            return Ok(None);
        }
        let seed = common.seed.or(self.config.train.seed).unwrap_or(0);
        let states = machine.sample(100).seed(seed).run()?.states;
        let table = self.layout.table(machine, &states)?;
        let Some(images) = picture::images(&table, 0..table.rows()) else { return Ok(None) };
        let png = crate::commands::data::grid_png(&images);
        run::write(&self.run.samples(), true, &png)?;
        Ok(Some(images))
    }

    fn summary(
        &self,
        trainer: &Trainer<'_, f32>,
        reason: &StopReason,
        trained: f64,
        evaluation: Option<&Evaluation>,
    ) -> serde_json::Value {
        json!({
            "run": self.run.dir,
            "model": self.run.model(),
            "updates": trainer.update_count(),
            "stop": reason.name(),
            "reason": reason.to_string(),
            "seconds": trained,
            "left_out": self.left_out,
            "evaluation": evaluation.map(Evaluation::json),
        })
    }

    /// The final summary: likelihood and verdict, samples, files written, commands to try next.
    pub(in crate::commands) fn tell(
        &self,
        evaluation: Option<&Evaluation>,
        images: Option<&[picture::Picture]>,
    ) -> Result {
        put!("")?;
        for line in evaluation.map(Evaluation::words).unwrap_or_default() {
            put!("{line}")?;
        }
        // Rows that the model has learnt from say little of others.
        if let (Some(left_out), None) = (self.left_out, &self.set.test) {
            let error = left_out.std_err.map(|e| format!(" ± {:.3}", 1.96 * e)).unwrap_or_default();
            put!(
                "rows that were left out in turn: about {:.3}{error} nats per row, {:+.3} against the start of the run",
                left_out.log_likelihood,
                left_out.gain
            )?;
        }
        if let Some(images) = images.filter(|i| i[0].width <= 40) {
            let across = ((width() - 4) / (images[0].width + 2)).clamp(1, 10);
            let lines = if images[0].height <= 16 { 3 } else { 1 };
            let shown: Vec<_> = images.iter().take(across * lines).cloned().collect();
            put!("\nsamples:")?;
            for line in picture::Picture::grid(&shown, across, 2, 0.0).half_blocks() {
                put!("  {line}")?;
            }
        }
        let dir = self.run.dir.display();
        put!("\nmodel    {}", self.run.model().display())?;
        if images.is_some() {
            put!("samples  {}", self.run.samples().display())?;
        }
        let parts = match self.config.tune {
            Some(_) => "config.toml, tune.jsonl, trials/, best.toml, evaluation.json, log.txt",
            None => "config.toml, metrics.jsonl, checkpoints/, evaluation.json, log.txt",
        };
        put!("run      {dir} ({parts})")?;
        put!("\ntry next:")?;
        let (dir, data) = (dir.to_string(), self.config.data.name.as_deref().unwrap_or("DATA"));
        put!("  {}", command(&["sample", &dir, "-n", "5"]))?;
        put!("  {}", command(&["score", &dir, data]))?;
        put!("  {}", command(&["report", &dir]))
    }
}

/// Independent columns, where the machine is a model of the rows.
fn floor(config: &Config, machine: &Machine, data: &Data) -> Result<Option<Floor>> {
    Ok(match config.train.estimator.as_ref().is_none_or(Estimator::models_rows) {
        true => Some(Floor::new(machine, data)?),
        false => None,
    })
}

/// Whether data of this name can be read only once: standard input, or a pipe.
pub(in crate::commands) fn is_read_once(name: &str) -> bool {
    let path = Path::new(name);
    name == "-" || path.exists() && !path.is_file() && !path.is_dir()
}

/// Saves a copy of the data read from standard input or a pipe.
pub(in crate::commands) fn keep_input(
    config: &mut Config,
    train: &Table,
    test: Option<&Table>,
    run: &RunDirectory,
) -> Result {
    let path = run.dir.join("data.csv");
    harmonium_data::write_csv(&path, train)?;
    config.data.split = Some("0".into());
    if let Some(test) = test {
        let path = run.dir.join("test.csv");
        harmonium_data::write_csv(&path, test)?;
        config.data.test = Some(path.display().to_string());
    }
    let path = std::path::absolute(&path).unwrap_or(path);
    config.data.name = Some(path.display().to_string());
    Ok(())
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
