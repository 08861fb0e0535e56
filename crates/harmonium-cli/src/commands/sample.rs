//! `sample`: draws from a model, unconditional or with some columns fixed.

use crate::args::Common;
use crate::commands::data::write_table;
use crate::data::DataArgs;
use crate::error::{Failure, Result};
use crate::model::Model;
use crate::output::{is_shown, put, say, width};
use crate::picture;
use clap::Args;
use harmonium::Role;
use harmonium::sample::{SamplingMethod, TEMPERATURES};
use harmonium::tasks::{SWEEPS, SWEEPS_BETWEEN, Samples};
use harmonium_data::Table;
use std::ffi::OsStr;
use std::path::PathBuf;

/// Flags of `sample`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  harmonium sample runs/digits -n 5                       on a terminal, images are drawn
  harmonium sample runs/digits -n 100 -o grid.png         one grid of images
  harmonium sample runs/digits -n 10000 --chains 100 --between 20 -o samples.npy
  harmonium sample runs/table --clamp age=41 --clamp smoker=yes -n 3
  harmonium sample runs/table --given half.csv            one sample for each row, gaps filled
  harmonium sample runs/table -n 1000 --tempering 20      replica exchange, even if plain chains mix
  harmonium sample runs/family -n 50 --temperature 0.8 -o new.fasta

Samples of machines small enough to be enumerated at once are exact and independent of each other. Otherwise a few pairs of
chains from different starts are compared first: if they stay correlated with their starts, replica exchange replaces
plain chains, with a message. --no-tempering always uses plain chains.")]
pub(crate) struct SampleArgs {
    /// A run, or a model file
    #[arg(value_name = "RUN|MODEL")]
    model: PathBuf,
    /// Number of samples [default: 10, or one for each row of --given]
    #[arg(long, short, value_name = "N")]
    n: Option<usize>,
    /// Number of chains; each gives every chains-th sample [default: one for each sample]
    #[arg(long, value_name = "N")]
    chains: Option<usize>,
    /// Sweeps of every chain before its first sample
    #[arg(long, default_value_t = SWEEPS, value_name = "N")]
    sweeps: usize,
    /// Sweeps between two samples of a chain
    #[arg(long, default_value_t = SWEEPS_BETWEEN, value_name = "N")]
    between: usize,
    /// Temperature: below 1 samples are more typical, above 1 more varied
    #[arg(long, default_value_t = 1.0, value_name = "T")]
    temperature: f64,
    /// Always use replica exchange: every chain has replicas at this many temperatures, the hottest of which move freely,
    /// and swaps states with them after every sweep, so that it reaches all modes [default if given: 12]
    #[arg(long, value_name = "TEMPERATURES", num_args = 0..=1,
          value_parser = clap::value_parser!(u16).range(2..=1000))]
    tempering: Option<Option<u16>>,
    /// Always use plain chains, even if samples could be exact or chains do not mix
    #[arg(long, conflicts_with = "tempering")]
    no_tempering: bool,
    /// A column and its value, kept in every sample; may be repeated
    #[arg(long, value_name = "COLUMN=VALUE")]
    clamp: Vec<String>,
    /// A table with gaps: known entries are kept, missing ones are sampled
    #[arg(long, value_name = "DATA", conflicts_with = "clamp")]
    given: Option<String>,
    /// The file to write: .csv, .npy, .npz, .fasta, or .png for a grid of images
    /// [default: csv on standard output; images are drawn on a terminal]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    read: DataArgs,
}

impl SampleArgs {
    pub(crate) fn run(self, common: &Common) -> Result {
        if !(self.temperature.is_finite() && self.temperature > 0.0) {
            return Err(Failure::usage(format!(
                "--temperature {}: expected a positive number",
                self.temperature
            )));
        }
        if let Some(path) = &self.output {
            let given = self.given.as_ref().map(|name| name.as_ref());
            let inputs: Vec<&OsStr> = given.into_iter().chain([self.model.as_os_str()]).collect();
            crate::run::may_write_beside(path, common.force, &inputs)?;
        }
        let model = Model::open(&self.model)?;
        let table = self.draw(&model, common)?;
        match &self.output {
            None if is_shown() && !common.json && draw(&table)? => Ok(()),
            path => write_table(&table, path.as_deref(), common.force),
        }
    }

    fn draw(&self, model: &Model, common: &Common) -> Result<Table> {
        let (machine, layout) = (&model.machine, &model.layout);
        let seed = common.seed.unwrap_or(0);
        let given = match &self.given {
            Some(name) => Some(self.read.load_like(name, &layout.schema, seed)?),
            None => None,
        };
        let n = self.n.unwrap_or(given.as_ref().map_or(10, Table::rows));
        let chains = self.chains.unwrap_or(n).min(n);
        if n == 0 || chains == 0 {
            return Err(Failure::usage("-n and --chains: expected at least 1"));
        }
        if let Some(c) = machine.with_role(Role::Condition).next() {
            let name = &machine.members()[c].name;
            return Err(Failure::new(format!(
                "this machine needs its layer {name:?} to be given, which `sample` cannot do"
            )));
        }
        let how = match self.tempering {
            Some(rungs) => SamplingMethod::Tempered(rungs.map_or(TEMPERATURES, usize::from)),
            None if self.no_tempering => SamplingMethod::Plain,
            None => SamplingMethod::Auto,
        };
        let mut task = machine
            .sample(n)
            .chains(chains)
            .sweeps(self.sweeps)
            .between(self.between)
            .temperature(self.temperature)
            .method(how)
            .seed(seed);
        for text in &self.clamp {
            let (column, entry) = text.split_once('=').ok_or_else(|| {
                Failure::usage(format!("--clamp {text}: expected COLUMN=VALUE, as in --clamp age=41"))
            })?;
            let found = layout.clamp(machine, column, entry);
            let (layer, unit, x) = found.map_err(|e| Failure::usage(format!("--clamp {text}: {e}")))?;
            task = task.clamp(layer, unit, x);
        }
        if let Some(table) = &given {
            task = task.given(layout.data(machine, table)?);
        }
        let samples = task.run()?;
        if !common.quiet {
            print_notes(&samples);
        }
        Ok(layout.table(machine, &samples.states)?)
    }
}

/// Prints notes and warnings about the sampling.
fn print_notes(samples: &Samples) {
    samples.note.iter().for_each(|note| say!("{note}"));
    if let Some(exchange) = samples.exchange {
        say!(
            "replica exchange over {} temperatures: acceptance at least {:.2}, {:.1} round trips per chain",
            exchange.temperatures,
            exchange.acceptance,
            exchange.round_trips
        );
    }
    samples.warning.iter().for_each(|warning| say!("{warning}"));
}

/// Draws images on the terminal; whether the rows are images.
fn draw(table: &Table) -> Result<bool> {
    let Some(images) = picture::images(table, 0..table.rows().min(60)).filter(|i| i[0].width <= 100)
    else {
        return Ok(false);
    };
    let across = (width() / (images[0].width + 2)).max(1);
    for line in picture::Picture::grid(&images, across, 2, 0.0).half_blocks() {
        put!("{line}")?;
    }
    Ok(true)
}
