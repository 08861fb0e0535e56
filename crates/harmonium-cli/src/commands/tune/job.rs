//! A search: prepares the data, searches, evaluates the winner on the test rows once, and reports.

use super::watch::Reporter;
use crate::args::Common;
use crate::commands::train::{Prepared, is_read_once, keep_input};
use crate::config::{Config, TuneConfig};
use crate::error::{Failure, Result};
use crate::evaluation::{Effort, Evaluation};
use crate::output::{command, duration, grouped, put, say, score, setting};
use crate::run::{self, RunDirectory};
use crate::signals::Stop;
use harmonium::train::{Data, Regulariser, StopReason};
use harmonium::tune::{Division, Record, Search, Stage, Trials, TuneParams, Tuned, hold_out};
use harmonium_table::machine_for;
use serde_json::{Value, json};
use std::time::Instant;

/// Seconds of the evaluation after an interruption.
const HURRY: f64 = 10.0;

/// A new search.
pub(super) fn start(mut config: Config, run: RunDirectory, common: &Common) -> Result {
    let clock = Instant::now();
    let mut set = config.load()?;
    let (machine, layout) = machine_for(&mut config.machine, &set.train)?;
    let input = config.data.name.as_deref().is_some_and(is_read_once).then(|| set.train.clone());
    let data = layout.take_data(&machine, &mut set.train)?;
    // Settings are validated before anything is written.
    config.train.plan(&machine, &data)?;
    run.not_an_input(&[&config.data.name, &config.data.test, &config.data.valid])?;
    let lock = run.create(common.force)?;
    if let Some(train) = input {
        keep_input(&mut config, &train, set.test.as_ref(), &run)?;
    }
    let tune = config.tune.get_or_insert_default();
    if let (None, Some(time)) = (tune.work, tune.time_budget) {
        tune.work = Some(Division::of(time).work(&machine, &data, &config.train)?);
    }
    run::write(&run.config(), true, config.text()?.as_bytes())?;
    search(Prepared::new(config, run, lock, set, data, (machine, layout))?, clock, common)
}

/// A search that was stopped.
pub(super) fn resume(run: RunDirectory, common: &Common) -> Result {
    let clock = Instant::now();
    let lock = run.lock()?;
    let mut config = Config::read(&run.config())?;
    if config.tune.as_ref().and_then(|t| t.work).is_none() {
        return Err(Failure::usage(format!(
            "{}: this is a run of `train`, not a search; continue it with `{}`",
            run.dir.display(),
            command(&["train", &run.dir.display().to_string()])
        )));
    }
    let mut set = config.load()?;
    let (machine, layout) = machine_for(&mut config.machine, &set.train)?;
    let data = layout.take_data(&machine, &mut set.train)?;
    search(Prepared::new(config, run, lock, set, data, (machine, layout))?, clock, common)
}

fn search(prepared: Prepared, clock: Instant, common: &Common) -> Result {
    let tune = prepared.config.tune.clone().unwrap_or_default();
    let time = tune.time_budget.map(Division::of);
    let seed = prepared.config.train.seed.unwrap_or(0);
    let (train, valid) = match prepared.valid()? {
        Some(valid) => (None, valid),
        None => {
            let (train, valid) = hold_out(&prepared.data, seed);
            (Some(train), valid)
        }
    };
    let train: &Data = train.as_ref().unwrap_or(&prepared.data);
    let params = TuneParams {
        work: tune.work.unwrap_or_default(),
        keep_hidden: tune.keep_hidden,
        keep_kind: tune.keep_kind,
        train: prepared.config.train.clone(),
    };
    if !common.quiet {
        introduce(&prepared, train, &valid, &tune);
    }
    let mut trials = Trials::open(&prepared.run.dir)?;
    let provenance = prepared.provenance();
    let mut reporter = Reporter {
        run: &prepared.run,
        provenance: &provenance,
        stop: Stop::listen()?,
        start: clock,
        deadline: time.map(|t| t.deadline()),
        common,
    };
    let search = Search::new(&prepared.machine, train, &valid, &params, &mut trials)?;
    let tuned = search.run(&mut reporter)?;
    tuned.machine.save(prepared.run.model(), &provenance)?;
    if let Some(record) = &tuned.record {
        write_results(&prepared, record, &trials)?;
    }
    let searched = clock.elapsed().as_secs_f64();
    // Only the likelihood of the result looks at the test rows.
    let effort = match tuned.reason {
        StopReason::Interrupted => Effort::new(Some(HURRY)),
        _ => time.map_or_else(Effort::after_training, |t| Effort::new(Some(t.evaluation()))),
    };
    if !common.quiet && !common.json {
        table(&trials, &tuned)?;
        say!("searched for {}: {}", duration(searched), tuned.reason);
    }
    let found = prepared.evaluate(&tuned.machine, &effort, common, &mut |_| {})?;
    conclude(&prepared, &tuned, &trials, found.as_ref(), searched, common)?;
    if tuned.reason == StopReason::Interrupted {
        if !common.quiet {
            say!("resume with: {}", command(&["tune", &prepared.run.dir.display().to_string()]));
        }
        return Err(Failure::Interrupted);
    }
    match found.map(|e| e.verdict()).filter(|v| v.condemns_model()) {
        Some(verdict) => Err(Failure::new(format!("the model is not to be used: {verdict}"))),
        None => Ok(()),
    }
}

fn introduce(prepared: &Prepared, train: &Data, valid: &Data, tune: &TuneConfig) {
    let name = prepared.config.data.name.as_deref().unwrap_or("data");
    let rows = |n: usize| grouped(n as u64);
    let test =
        prepared.set.test.as_ref().map_or(String::new(), |t| format!(", {} held out", rows(t.rows())));
    say!(
        "{name}: {} rows to train, {} to compare models{test}, {} columns",
        rows(train.rows()),
        rows(valid.rows()),
        prepared.set.train.cols()
    );
    let work = duration(tune.work.unwrap_or_default());
    match tune.time_budget {
        Some(time) => say!("search: {} in all; about {work} of work for one thread", duration(time)),
        None => say!("search: about {work} of work for one thread"),
    }
}

/// The learning curve of the winner as metrics of a run, and its settings as a configuration of `train`.
fn write_results(prepared: &Prepared, winner: &Record, trials: &Trials) -> Result {
    let mut line: Vec<&Record> = Vec::new();
    let mut place = Some((winner.trial, winner.stage));
    while let Some((trial, last)) = place {
        let own = trials.records().iter().filter(|r| r.trial == trial && r.stage <= last);
        let own: Vec<_> = own.collect();
        line.extend(own.iter().rev());
        place = own.first().and_then(|r| r.origin).map(|o| (o.trial, o.stage));
    }
    let mut seconds = 0.0;
    let lines = line.iter().rev().filter_map(|r| {
        seconds += r.seconds;
        let score = r.score?;
        let event = json!({"event": "evaluated", "update": r.updates, "valid_log_likelihood": score,
                           "score": score, "trial": r.trial, "seconds": seconds});
        Some(format!("{event}\n"))
    });
    let text: String = lines.collect();
    run::write(&prepared.run.metrics(), true, text.as_bytes())?;
    let mut best = Config { tune: None, ..prepared.config.clone() };
    let s = &winner.setting;
    if best.machine.hidden.as_ref().is_some_and(|h| h.len() == 1) {
        best.machine.hidden = Some(vec![s.hidden]);
        best.machine.hidden_kind = Some(s.hidden_kind.clone());
    }
    best.train.rate = Some(s.rate);
    best.train.updates = Some(winner.updates);
    best.train.regulariser =
        Some(Regulariser { l1: s.l1, l2: s.l2, ..best.train.regulariser.unwrap_or_default() });
    run::write(&prepared.run.dir.join("best.toml"), true, best.text()?.as_bytes())
}

/// What was tried, the best first.
fn table(trials: &Trials, tuned: &Tuned<f32>) -> Result {
    put!("\ntried, by the log-likelihood of held-out rows (nats per row; the error is that of ln Z):")?;
    let winner = tuned.record.as_ref().map(|r| r.trial);
    for r in trials.ranking() {
        let mark = if winner == Some(r.trial) { "→" } else { " " };
        let from = r.origin.map_or(String::new(), |o| format!(" · from trial {}", o.trial));
        let stage = match r.stage {
            Stage::Last => "finished".to_owned(),
            stage => format!("stage {stage}"),
        };
        let updates = grouped(r.updates);
        put!(
            "{mark} {:<22} trial {:<2} {} · {updates} updates · {stage}{from}",
            score(r),
            r.trial,
            setting(&r.setting)
        )?;
    }
    for f in &tuned.finalists {
        put!(
            "  trial {:<2} evaluated from both sides: {:.3}, {:.3} to {:.3}, {}",
            f.trial,
            f.mean,
            f.interval.lower,
            f.interval.upper,
            f.verdict
        )?;
    }
    Ok(())
}

fn conclude(
    prepared: &Prepared,
    tuned: &Tuned<f32>,
    trials: &Trials,
    found: Option<&Evaluation>,
    searched: f64,
    common: &Common,
) -> Result {
    let images = prepared.draw(&tuned.machine, common)?;
    if common.json {
        let json: Value = json!({
            "run": prepared.run.dir,
            "model": prepared.run.model(),
            "winner": tuned.record,
            "trials": trials.records(),
            "finalists": tuned.finalists,
            "stop": tuned.reason.name(),
            "reason": tuned.reason.to_string(),
            "seconds": searched,
            "evaluation": found.map(Evaluation::json),
        });
        put!("{json}")
    } else if common.quiet {
        Ok(())
    } else {
        prepared.tell(found, images.as_deref(), None)
    }
}
