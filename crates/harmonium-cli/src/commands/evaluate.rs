//! `evaluate`: the likelihood with its interval and verdict, diagnostics, quality of samples.

use crate::args::Common;
use crate::data::DataArgs;
use crate::error::{Failure, Result};
use crate::layout::Layout;
use crate::model::Model;
use crate::output::{duration, grouped, is_live, put, say};
use clap::Args;
use harmonium::judge::{
    self, Adversarial, Budget, Duplicates, Equilibrium, Estimate, LogZParams, MomentMatch,
};
use harmonium::partition::{self, Progress, Verdict};
use harmonium::{Machine, Role, States};
use harmonium_data::Table;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

/// Flags of `evaluate`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  harmonium evaluate runs/digits                     on the data the run held out
  harmonium evaluate runs/digits digits:test --json  one object: log_z, log_likelihood, verdict, reasons
  harmonium evaluate model.safetensors table.csv --time-budget 5m

The verdict is `exact` (enumerated), `certified` (estimates from both sides agree and every check passed) or
`not converged` (the interval must not be relied upon; the reasons say why). Exit code 0 says that it was
computed, whatever the verdict.")]
pub(crate) struct EvaluateArgs {
    /// A run, or a model file
    #[arg(value_name = "RUN|MODEL")]
    model: PathBuf,
    /// The data [default: what the run held out, or learned from]
    data: Option<String>,
    /// Most seconds for ln Z
    #[arg(long, value_name = "TIME", value_parser = crate::config::seconds)]
    time_budget: Option<f64>,
    /// Standard error of ln Z to aim at, in nats
    #[arg(long, value_name = "X", default_value_t = 0.1)]
    std_err: f64,
    /// Chains of each annealing run
    #[arg(long, value_name = "N")]
    chains: Option<usize>,
    /// Leave out the diagnostics of chains and the quality of samples
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    read: DataArgs,
}

/// How much an evaluation may cost.
pub(crate) struct Effort {
    seconds: Option<f64>,
    std_err: f64,
    chains: Option<usize>,
}

impl Effort {
    pub(crate) fn new(seconds: Option<f64>) -> Self {
        Self { seconds, std_err: 0.1, chains: None }
    }

    /// Little enough not to keep anybody waiting.
    pub(crate) fn after_training() -> Self {
        Self::new(Some(30.0))
    }

    /// A second or so, for points of a curve.
    pub(crate) fn quick() -> Self {
        Self { seconds: Some(2.0), std_err: 0.2, chains: Some(64) }
    }

    fn params(&self, seed: u64) -> LogZParams {
        let default = LogZParams::default();
        LogZParams {
            chains: self.chains.unwrap_or(default.chains),
            std_err: self.std_err,
            seed,
            ..default
        }
    }
}

/// What was found.
pub(crate) struct Evaluation {
    /// ln Z with its verdict.
    z: Estimate,
    /// Why the verdict, in words.
    reasons: Vec<String>,
    /// Mean log-likelihood and its interval: ln Z and the choice of rows together.
    mean: f64,
    lower: f64,
    upper: f64,
    rows: usize,
    /// What the rows are: `test`, `training`, or the data's name.
    name: String,
    seconds: f64,
}

impl Evaluation {
    /// Mean log-likelihood.
    pub(crate) fn mean(&self) -> f64 {
        self.mean
    }
    /// Lower and upper end of its interval.
    pub(crate) fn ends(&self) -> (f64, f64) {
        (self.lower, self.upper)
    }

    /// The object of `evaluate --json`.
    pub(crate) fn json(&self) -> Value {
        let z = &self.z;
        let ess = if z.log_z.ess.is_finite() { json!(z.log_z.ess) } else { Value::Null };
        json!({
            "log_z": {
                "value": z.log_z.value,
                "lower": z.interval.lower,
                "upper": z.interval.upper,
                "std_err": z.log_z.std_err,
                "ess": ess,
                "method": z.log_z.method,
            },
            "log_likelihood": {"mean": self.mean, "lower": self.lower, "upper": self.upper},
            "verdict": z.verdict,
            "reasons": self.reasons,
            "rows": self.rows,
            "data": self.name,
            "seconds": self.seconds,
        })
    }

    /// The same for people.
    pub(crate) fn words(&self) -> Vec<String> {
        let z = &self.z;
        let half = 0.5 * (self.upper - self.lower);
        let mut out = vec![format!(
            "{} log-likelihood {:.3} ± {half:.3} nats per row ({} rows, 95 %)",
            self.name, self.mean, self.rows
        )];
        let by = match z.verdict {
            Verdict::Exact => "exactly".to_owned(),
            _ => {
                format!("from {:.3} to {:.3}, by {}", z.interval.lower, z.interval.upper, z.log_z.method)
            }
        };
        out.push(format!("ln Z {:.3} {by}, in {}", z.log_z.value, duration(self.seconds)));
        out.push(format!("verdict: {}", z.verdict));
        if z.verdict == Verdict::NotConverged {
            out.push("  do not rely on these numbers:".into());
        }
        out.extend(self.reasons.iter().map(|r| format!("  · {r}")));
        out
    }
}

/// F(v) of each row: where the hidden layers are coupled, by enumerating them.
pub(crate) fn free_energy(machine: &Machine, states: &States) -> Result<Vec<f64>> {
    match machine.free_energy(states) {
        Err(harmonium::Error::Undefined { .. }) => machine.exact().free_energy(states).map_err(|e| {
            Failure::new(format!("F(v) of this machine takes enumeration of its hidden layers: {e}"))
        }),
        other => Ok(other?),
    }
}

/// ln Z of a model; the base of the estimate is the machine's own.
pub(crate) fn log_z(model: &Model, effort: &Effort, common: &Common) -> Result<Estimate> {
    estimate(&model.machine, None, effort, common, &mut |_| {})
}

/// Seconds between lines where no live bar can be drawn.
const CALM: f64 = 5.0;

fn estimate(
    machine: &Machine,
    data: Option<&States>,
    effort: &Effort,
    common: &Common,
    heard: &mut dyn FnMut(Progress),
) -> Result<Estimate> {
    let params = effort.params(common.seed.unwrap_or(0));
    let start = Instant::now();
    let clock = || start.elapsed().as_secs_f64();
    let budget = effort.seconds.map(|seconds| Budget { seconds, clock: &clock });
    let bar = (!common.quiet && is_live()).then(|| {
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr_with_hz(8));
        let style = ProgressStyle::with_template("{bar:24.cyan/dim} ln Z: {msg} ({elapsed})");
        bar.set_style(style.expect("a valid template").progress_chars("━╸─"));
        bar
    });
    let mut said = 0.0;
    let mut observer = |p: Progress| {
        if let Some(bar) = &bar {
            bar.set_length(p.total.max(1));
            bar.set_position(p.done);
            bar.set_message(p.stage);
        } else if !common.quiet && clock() - said > CALM {
            said = clock();
            say!("ln Z: {}, step {} of {}", p.stage, grouped(p.done), grouped(p.total));
        }
        heard(p);
        ControlFlow::Continue(())
    };
    let estimate = harmonium::judge::log_z(machine, data, &params, budget, &mut observer);
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    Ok(estimate?)
}

/// Judges a machine on a table.
pub(crate) fn judge(
    machine: &Machine,
    layout: &Layout,
    table: &Table,
    name: &str,
    effort: &Effort,
    common: &Common,
    heard: &mut dyn FnMut(Progress),
) -> Result<Evaluation> {
    if machine.with_role(Role::Condition).next().is_some() {
        return Err(Failure::new(
            "this machine is a distribution given a condition; its likelihood is not computed here",
        ));
    }
    let start = Instant::now();
    let (states, known) = layout.states(machine, table)?;
    let whole = whole_rows(table.rows(), &known);
    if whole.is_empty() {
        return Err(Failure::new(format!(
            "{name}: every row has a missing entry, and a likelihood needs whole rows; fill them with `harmonium complete`"
        )));
    }
    let states = if whole.len() < table.rows() { states.select(&whole) } else { states };
    let z = estimate(machine, Some(&states), effort, common, heard)?;
    let seed = common.seed.unwrap_or(0);
    let mut l =
        harmonium::judge::log_likelihood(machine, &states, None, &z, seed, &mut partition::silent)?;
    if whole.len() < table.rows() {
        let (gaps, rows) = (table.rows() - whole.len(), table.rows());
        l.reasons.push(format!("{gaps} of {rows} rows have missing entries and were left out"));
    }
    Ok(Evaluation {
        mean: l.mean,
        lower: l.interval.lower,
        upper: l.interval.upper,
        rows: l.rows.len(),
        name: name.into(),
        seconds: start.elapsed().as_secs_f64(),
        reasons: l.reasons,
        z,
    })
}

/// Rows without missing entries.
fn whole_rows(rows: usize, known: &[(usize, harmonium::Bits)]) -> Vec<usize> {
    let whole = |r: usize| known.iter().all(|(_, bits)| (0..bits.cols()).all(|j| bits.get(r, j)));
    (0..rows).filter(|&r| whole(r)).collect()
}

impl EvaluateArgs {
    pub(crate) fn run(self, common: &Common) -> Result {
        let model = Model::open(&self.model)?;
        let (table, name) = match &self.data {
            Some(name) => (
                self.read.load_like(name, &model.layout.schema, common.seed.unwrap_or(0))?,
                name.clone(),
            ),
            None => held_out(&model)?,
        };
        let effort = Effort { seconds: self.time_budget, std_err: self.std_err, chains: self.chains };
        if !common.quiet {
            let (cost, seconds) = harmonium::judge::log_z_cost(&model.machine, &effort.params(0))?;
            match (cost.sweeps, self.time_budget) {
                (0.0, _) => say!("ln Z by enumeration: about {}", duration(seconds)),
                (sweeps, budget) => say!(
                    "ln Z by sampling: at most {sweeps:.1e} sweeps, {}; most machines take a fraction of it",
                    duration(budget.map_or(seconds, |b| b.min(seconds)))
                ),
            }
        }
        let evaluation =
            judge(&model.machine, &model.layout, &table, &name, &effort, common, &mut |_| {})?;
        let quality = match self.quick {
            true => None,
            false => Some(Quality::new(&model, &table, common.seed.unwrap_or(0))?),
        };
        if common.json {
            let mut object = evaluation.json();
            if let Some(quality) = &quality {
                object["chains"] = json!(quality.chains);
                object["samples"] = json!(quality.samples);
                object["pseudo_log_likelihood"] = json!(quality.pseudo);
                object["free_energy_gap"] = quality
                    .gap
                    .map_or(Value::Null, |(value, err)| json!({"value": value, "std_err": err}));
            }
            return put!("{object}");
        }
        evaluation.words().iter().try_for_each(|line| put!("{line}"))?;
        quality.iter().flat_map(Quality::words).try_for_each(|line| put!("{line}"))
    }
}

/// Rows and samples that are compared with each other.
const COMPARED: usize = 1000;

/// Whether chains forget their start, and whether samples resemble the data.
struct Quality {
    chains: Equilibrium,
    samples: Samples,
    /// Mean pseudo-log-likelihood of the rows.
    pseudo: f64,
    /// Mean free energy of the rows above that of as many training rows, with its standard error.
    gap: Option<(f64, f64)>,
}

/// How samples compare with data.
#[derive(serde::Serialize)]
struct Samples {
    adversarial: Adversarial,
    moments: [MomentMatch; 3],
    duplicates: Duplicates,
    /// Whether copies were looked for among the rows of the training, or among those at hand.
    of_training: bool,
}

impl Quality {
    fn new(model: &Model, table: &Table, seed: u64) -> Result<Self> {
        let machine = &model.machine;
        let data = some_rows(model, table, COMPARED)?;
        let drawn = crate::commands::sample::chains(
            machine,
            data.rows().max(100),
            crate::commands::sample::SWEEPS,
            seed,
        )?;
        let drawn = drawn.states();
        // The rows that the machine has seen, where the run knows them: copies of these are what memory would show.
        let train = model.run.as_ref().and_then(|run| {
            let mut config = crate::config::Config::read(&run.config()).ok()?;
            let set = crate::commands::train::load(&mut config).ok()?;
            some_rows(model, &set.train, usize::MAX).ok()
        });
        let chains = judge::equilibrium(machine, &data, 32, 500, seed, &mut partition::silent)?;
        let samples = Samples {
            adversarial: judge::adversarial(machine, &data, drawn)?,
            moments: judge::moments(machine, &data, drawn, 10_000)?,
            duplicates: judge::duplicates(machine, train.as_ref().unwrap_or(&data), drawn)?,
            of_training: train.is_some(),
        };
        let pseudo = judge::pseudo_log_likelihood(machine, &data)?;
        let pseudo = pseudo.iter().sum::<f64>() / pseudo.len().max(1) as f64;
        let gap = train.and_then(|train| judge::free_energy_gap(machine, &train, &data).ok());
        Ok(Self { chains, samples, pseudo, gap })
    }

    fn words(&self) -> Vec<String> {
        let mut out = vec![format!(
            "chains: {}",
            if self.chains.verdict == Verdict::Certified {
                "forget their start"
            } else {
                "do not forget their start"
            }
        )];
        out.extend(self.chains.reasons.iter().map(|r| format!("  · {r}")));
        let s = &self.samples;
        out.push("samples against these rows:".into());
        let [a, b, c] = &s.moments;
        out.push(format!(
            "  · means, covariances, third moments correlate {:.3}, {:.3}, {:.3}",
            a.correlation, b.correlation, c.correlation
        ));
        out.push(format!(
            "  · nearest-neighbour adversarial accuracy {:.3} (0.5 is ideal)",
            s.adversarial.accuracy()
        ));
        let copied = if s.of_training { "a row of the training" } else { "one of these rows" };
        out.push(format!(
            "  · {:.1} % of samples equal {copied}; {:.1} % of those rows repeat another",
            100.0 * s.duplicates.of_training,
            100.0 * s.duplicates.within_training
        ));
        out.push(format!("pseudo-log-likelihood {:.3} nats per row", self.pseudo));
        if let Some((gap, err)) = self.gap {
            out.push(format!(
                "free energy of these rows above that of the training: {gap:.3} ± {:.3} nats",
                1.96 * err
            ));
        }
        out
    }
}

/// At most about `most` rows without missing entries, evenly spread.
fn some_rows(model: &Model, table: &Table, most: usize) -> Result<States> {
    let (states, known) = model.layout.states(&model.machine, table)?;
    let whole = whole_rows(table.rows(), &known);
    let step = whole.len().div_ceil(most).max(1);
    Ok(states.select(&whole.into_iter().step_by(step).collect::<Vec<_>>()))
}

/// The data that a run has held out, else those that it has learned from.
pub(crate) fn held_out(model: &Model) -> Result<(Table, String)> {
    let Some(run) = &model.run else {
        return Err(Failure::usage(
            "which data? Name them after the model, as in `harmonium evaluate model.safetensors table.csv`",
        ));
    };
    let mut config = crate::config::Config::read(&run.config())?;
    let set = crate::commands::train::load(&mut config)?;
    Ok(match set.test {
        Some(test) => (test, "test".into()),
        None => (set.train, "training".into()),
    })
}
