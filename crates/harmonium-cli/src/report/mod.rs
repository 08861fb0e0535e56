//! The report: what a run did and what its model is like, in figures and words.

mod curves;
mod mixing;
mod page;
mod resemblance;
mod weights;

pub(crate) use page::page;

use crate::args::Common;
use crate::config::Config;
use crate::error::Result;
use crate::evaluation::TableStates;
use crate::figure::Figure;
use crate::model::Model;
use crate::output::say;
use crate::run::RunDirectory;
use harmonium::{Bits, Machine, States};
use harmonium_data::{Dataset, Table};

/// Samples that are compared with the data.
const SAMPLES: usize = 1000;

/// A section of the page: figures, each with its name as a file, and words.
pub(crate) struct Section {
    pub(crate) title: &'static str,
    pub(crate) words: String,
    pub(crate) figures: Vec<(String, Figure)>,
}

/// What the sections are made from.
struct Material<'a> {
    model: &'a Model,
    run: &'a RunDirectory,
    set: Dataset,
    /// Training rows, at most as many as samples; as states, what is missing is drawn given the rest of the row.
    rows: Table,
    data: States,
    /// For each layer, which entries of these rows are known; all when `None`.
    known: Vec<Option<Bits>>,
    samples: Table,
    sampled: States,
    /// Models along the run, with their updates.
    trajectory: Vec<(u64, Machine)>,
    common: &'a Common,
}

/// All sections.
pub(crate) fn sections(model: &Model, run: &RunDirectory, common: &Common) -> Result<Vec<Section>> {
    let tell = |what: &str| {
        if !common.quiet {
            say!("{what} …");
        }
    };
    let mut config = Config::read(&run.config())?;
    let set = config.load()?;
    tell("drawing samples");
    let seed = common.seed.or(config.train.seed).unwrap_or(0);
    let sampled = model.machine.sample(SAMPLES).seed(seed).run()?.states;
    let samples = model.layout.table(&model.machine, &sampled)?;
    let step = set.train.rows().div_ceil(SAMPLES).max(1);
    let rows = set.train.select(&(0..set.train.rows()).step_by(step).collect::<Vec<_>>())?;
    let seen = TableStates::new(&model.machine, &model.layout, &rows, None)?;
    let (data, known) = (seen.filled(seed)?, seen.known().to_vec());
    let kept = run.kept().into_iter();
    let trajectory = kept.map(|(_, file)| model.checkpoint(&file)).collect::<Result<_>>()?;
    let m = Material { model, run, set, rows, data, known, samples, sampled, trajectory, common };
    tell("likelihood along the run");
    let mut sections = vec![curves::section(&m)?];
    tell("weights and samples");
    sections.push(resemblance::side_by_side(&m));
    sections.push(weights::section(&m)?);
    sections.push(weights::spectrum(&m));
    sections.push(resemblance::section(&m)?);
    tell("chains");
    sections.push(mixing::section(&m, seed)?);
    sections.push(weights::activity(&m)?);
    sections.retain(|s| !s.figures.is_empty());
    Ok(sections)
}
