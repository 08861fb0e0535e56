//! The flags of `train`, and how they override a configuration.

use super::job::Job;
use crate::args::Common;
use crate::config::Config;
use crate::data::{DataArgs, TestArgs};
use crate::error::{Failure, Result};
use crate::run::{self, RunDirectory};
use clap::Args;
use harmonium::estimate::Estimator;
use harmonium::train::{Coordinates, Init, Optimiser};
use harmonium_data::{nearest, seconds};
use harmonium_table::MachineKind;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Flags of `train`.
#[derive(Args, Debug, Default)]
#[command(after_help = "Examples:
  harmonium train digits                             all settings chosen automatically
  harmonium train mnist --hidden 500 --time-budget 10m -o runs/mnist
  harmonium train table.csv --label species --machine class
  harmonium train family.fasta --hidden-kind drelu   Potts visible units, one per position
  harmonium train ising:16x16,t=2.3 --machine fully-visible
  harmonium train runs/mnist                         resume a stopped run
  harmonium train --config runs/mnist/config.toml -o runs/again

The run directory holds config.toml (repeats the run), metrics.jsonl, checkpoints/, model.safetensors,
evaluation.json, samples.png (for images) and log.txt. Ctrl-C finishes the update, saves and prints how to resume.")]
pub(crate) struct TrainArgs {
    /// The data, or a run directory to continue
    #[arg(value_name = "DATA|RUN")]
    data: Option<String>,
    /// The run directory [default: runs/NAME]
    #[arg(long, short, value_name = "RUN")]
    output: Option<PathBuf>,
    /// Take everything from this file; flags override it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Data that decide which model is kept and when to stop
    #[arg(long, value_name = "DATA", help_heading = "Data")]
    valid: Option<String>,
    #[command(flatten)]
    held_out: TestArgs,
    /// Which couplings there are [default: rbm]
    #[arg(long, value_name = "KIND", value_enum, help_heading = "Machine")]
    machine: Option<MachineKind>,
    /// Number of hidden units, or several numbers for a deep machine (100,50) [default: from the data]
    #[arg(long, value_name = "N", value_delimiter = ',', help_heading = "Machine")]
    hidden: Option<Vec<usize>>,
    /// Kind of the hidden units: binary, spin, gaussian, relu, drelu, potts:Q [default: binary]
    #[arg(long, value_name = "KIND", help_heading = "Machine")]
    hidden_kind: Option<String>,
    /// Units of count columns: poisson, binomial:N, neg_binomial:R:N, or ordinal:N [default: whichever fits the counts best]
    #[arg(long, value_name = "KIND", help_heading = "Machine")]
    counts: Option<String>,
    /// Estimator of the negative phase: exact, cd, pcd, … [default: exact if that is quick, otherwise pcd]
    #[arg(long, value_name = "NAME", help_heading = "Learning")]
    estimator: Option<String>,
    /// Sweeps of the chains for each update [default: pcd: 1 to 16, adapted to their autocorrelation]
    #[arg(long, value_name = "N", help_heading = "Learning")]
    sweeps: Option<usize>,
    /// Number of chains
    #[arg(long, value_name = "N", help_heading = "Learning")]
    chains: Option<usize>,
    /// Rows of a minibatch
    #[arg(long, value_name = "N", help_heading = "Learning")]
    batch: Option<usize>,
    /// Learning rate at the start
    #[arg(long, value_name = "X", help_heading = "Learning", allow_negative_numbers = true)]
    learning_rate: Option<f64>,
    /// Number of updates
    #[arg(long, value_name = "N", help_heading = "Learning", conflicts_with = "epochs")]
    updates: Option<u64>,
    /// Number of passes over the data
    #[arg(long, value_name = "X", help_heading = "Learning")]
    epochs: Option<f64>,
    /// Wall time for training, as in 90s, 10m or 1h; the number of updates follows from it
    #[arg(long, value_name = "TIME", value_parser = seconds, help_heading = "Learning")]
    time_budget: Option<f64>,
    /// How a gradient becomes an update: sgd, momentum, nesterov, adam, cosine
    #[arg(long, value_name = "NAME", help_heading = "Learning")]
    optimiser: Option<String>,
    /// Coordinates of the gradient: plain, centred, standardised
    #[arg(long, value_name = "FORM", help_heading = "Learning")]
    form: Option<String>,
    /// Where the parameters start: data (marginals and small random weights), low_rank (the density along the principal
    /// directions, for binary data) [default: data]
    #[arg(long, value_name = "NAME", help_heading = "Learning")]
    init: Option<String>,
    /// Strength of the penalty on absolute weights
    #[arg(long, value_name = "X", help_heading = "Learning", allow_negative_numbers = true)]
    l1: Option<f64>,
    /// Strength of the penalty on squared weights [default: 0.3 / rows where rows are few, else 0]
    #[arg(long, value_name = "X", help_heading = "Learning", allow_negative_numbers = true)]
    l2: Option<f64>,
    /// Evaluations without a better held-out score after which to stop; 0 for never
    #[arg(long, value_name = "N", help_heading = "Learning")]
    patience: Option<usize>,
    /// Number of models to keep along the run, at exponentially spaced updates [default: 20]
    #[arg(long, value_name = "N", help_heading = "Learning")]
    keep: Option<usize>,
    #[command(flatten)]
    read: DataArgs,
}

impl TrainArgs {
    pub(crate) fn run(mut self, common: &Common) -> Result {
        if let Some(dir) = self.data.as_deref().map(Path::new).filter(|p| RunDirectory::new(p).exists())
        {
            let run = RunDirectory::new(dir);
            self.data = None;
            self.nothing_changes(&run)?;
            return Job::resume(run, common)?.run(common);
        }
        let base = match &self.config {
            Some(path) => Config { tune: None, ..Config::read(path)? },
            None => Config::default(),
        };
        let output = self.output.take();
        let config = self.over(base, common)?;
        let name = config.data.name.clone().ok_or_else(|| {
            Failure::usage("no data to train on; name them, as in `harmonium train digits`, or list some with `harmonium data`")
        })?;
        let dir = output.unwrap_or_else(|| run::fresh(&name));
        Job::new(config, RunDirectory::new(dir), common)?.run(common)
    }

    /// A resumed run keeps its settings: with others it would not be the same run.
    fn nothing_changes(&self, run: &RunDirectory) -> Result {
        let same = format!("{self:?}") == format!("{:?}", Self::default());
        if same {
            return Ok(());
        }
        Err(Failure::usage(format!(
            "{0} is a run, which resumes with its own settings; \
             for other settings start anew: `harmonium train --config {1} -o NEW …`",
            run.dir.display(),
            run.config().display()
        )))
    }

    /// The configuration with the flags over it.
    fn over(self, mut config: Config, common: &Common) -> Result<Config> {
        let data = &mut config.data;
        data.name = self.data.or(data.name.take());
        data.valid = self.valid.or(data.valid.take());
        data.test = self.held_out.test.or(data.test.take());
        data.split = self.held_out.split.or(data.split.take());
        data.seed = common.seed.or(data.seed);
        data.read = self.read.or(std::mem::take(&mut data.read));
        let machine = &mut config.machine;
        machine.kind = self.machine.or(machine.kind);
        machine.hidden = self.hidden.or(machine.hidden.take());
        machine.hidden_kind = self.hidden_kind.or(machine.hidden_kind.take());
        machine.counts = self.counts.or(machine.counts.take());
        let train = &mut config.train;
        train.seed = common.seed.or(train.seed);
        train.batch = self.batch.or(train.batch);
        train.rate = self.learning_rate.or(train.rate);
        if self.updates.is_some() || self.epochs.is_some() {
            (train.updates, train.epochs) = (self.updates, self.epochs);
        }
        if self.time_budget.is_some() {
            config.run.time_budget = self.time_budget;
            if self.updates.is_none() && self.epochs.is_none() {
                (train.updates, train.epochs) = (None, None);
            }
        }
        config.run.keep = self.keep.or(config.run.keep);
        train.patience = self.patience.or(train.patience);
        if self.l1.is_some() || self.l2.is_some() {
            let penalty = train.regulariser.get_or_insert_default();
            penalty.l1 = self.l1.unwrap_or(penalty.l1);
            penalty.l2 = self.l2.unwrap_or(penalty.l2);
        }
        if self.estimator.is_some() || self.sweeps.is_some() || self.chains.is_some() {
            let old = train.estimator.take();
            train.estimator = Some(estimator(self.estimator.as_deref(), self.sweeps, self.chains, old)?);
        }
        if let Some(word) = &self.optimiser {
            train.optimiser = Some(named::<Optimiser>("--optimiser", word, &[])?);
        }
        if let Some(word) = &self.init {
            train.init = Some(named::<Init>("--init", word, &[])?);
        }
        if let Some(word) = &self.form {
            let form = serde_json::from_value::<Coordinates>(json!(word));
            train.form =
                Some(form.map_err(|e| Failure::usage(format!("--form {word}: {}", tidy(word, &e))))?);
        }
        Ok(config)
    }
}

fn estimator(
    name: Option<&str>,
    sweeps: Option<usize>,
    chains: Option<usize>,
    old: Option<Estimator>,
) -> Result<Estimator> {
    let number = |n: Option<usize>| n.map_or(Value::Null, |n| json!(n));
    let settings = [("sweeps", number(sweeps)), ("chains", number(chains))];
    match (name, old) {
        (None, Some(old)) => {
            // Settings of the configuration's estimator that no flag names stay.
            let mut value = serde_json::to_value(&old).unwrap_or_default();
            for (key, x) in settings.into_iter().filter(|(_, x)| !x.is_null()) {
                value[key] = x;
            }
            serde_json::from_value(value)
                .map_err(|e| Failure::usage(format!("estimator {}: {e}", old.name())))
        }
        (name, _) => {
            let name = name.unwrap_or("pcd");
            let estimator: Estimator = named("--estimator", name, &settings)?;
            // Variants without settings take any.
            match settings.iter().find(|(_, x)| !estimator.has_settings() && !x.is_null()) {
                Some((key, _)) => Err(Failure::usage(format!(
                    "--{key} has no effect on the estimator {name}, which has no chains"
                ))),
                None => Ok(estimator),
            }
        }
    }
}

/// A setting that is a name with options, from its name as typed.
fn named<T: serde::de::DeserializeOwned>(
    flag: &str,
    name: &str,
    settings: &[(&str, Value)],
) -> Result<T> {
    let mut object = json!({ "name": name });
    for (key, x) in settings.iter().filter(|(_, x)| !x.is_null()) {
        object[*key] = x.clone();
    }
    serde_json::from_value(object)
        .map_err(|e| Failure::usage(format!("{flag} {name}: {}", tidy(name, &e))))
}

/// Rewrites serde's message about an unknown name or setting in terms of flags.
fn tidy(name: &str, error: &serde_json::Error) -> String {
    let message = error.to_string();
    let words: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match words[..] {
        [_, ref known @ ..] if message.starts_with("unknown variant") => {
            let near = nearest(name, known.iter().copied());
            let near = near.map(|n| format!("did you mean {n}? ")).unwrap_or_default();
            format!("there is none of this name; {near}expected one of {}", known.join(", "))
        }
        [field, ..] if message.starts_with("unknown field") => format!("it has no --{field}"),
        _ => message,
    }
}
