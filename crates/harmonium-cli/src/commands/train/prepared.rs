//! What a run and a search for settings have in common: data, a blank machine and a locked directory; the evaluation of a model, and
//! what is said of it at the end.

use crate::args::Common;
use crate::config::Config;
use crate::error::{Failure, Result};
use crate::evaluation::{Effort, Evaluation, TableStates, possible_rows};
use crate::lock::Lock;
use crate::output::{command, put, say, width};
use crate::picture;
use crate::run::{self, RunDirectory};
use harmonium::Machine;
use harmonium::estimate::Estimator;
use harmonium::io::Provenance;
use harmonium::train::{Data, Floor, LeftOut};
use harmonium_data::{Dataset, Table};
use harmonium_table::{Layout, schema_to_json};
use std::path::Path;

/// Data and a machine in the directory of a run.
pub(in crate::commands) struct Prepared {
    pub(in crate::commands) config: Config,
    pub(in crate::commands) run: RunDirectory,
    /// The data; the entries of the training rows are in `data` only.
    pub(in crate::commands) set: Dataset,
    pub(in crate::commands) data: Data,
    pub(in crate::commands) machine: Machine,
    layout: Layout,
    /// Independent columns with the marginals of the training rows; none for discriminative training, which
    /// does not model the rows.
    floor: Option<Floor>,
    /// Held until the run is over.
    _lock: Lock,
}

impl Prepared {
    pub(in crate::commands) fn new(
        config: Config,
        run: RunDirectory,
        lock: Lock,
        set: Dataset,
        data: Data,
        (machine, layout): (Machine, Layout),
    ) -> Result<Self> {
        let floor = match config.train.estimator.as_ref().is_none_or(Estimator::models_rows) {
            true => Some(Floor::new(&machine, &data)?),
            false => None,
        };
        Ok(Self { config, run, set, data, machine, layout, floor, _lock: lock })
    }

    /// The validation rows that the machine gives a probability.
    pub(in crate::commands) fn valid(&self) -> Result<Option<Data>> {
        let valid = |t: &Table| -> Result<Data> {
            let (possible, _) = possible_rows(&self.machine, &self.layout, t)?;
            Ok(self.layout.data(&self.machine, &possible)?)
        };
        self.set.valid.as_ref().map(valid).transpose()
    }

    /// What a model file says of where its model comes from.
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

    /// The final summary: likelihood and verdict, samples, files written, commands to try next.
    pub(in crate::commands) fn tell(
        &self,
        evaluation: Option<&Evaluation>,
        images: Option<&[picture::Picture]>,
        left_out: Option<LeftOut>,
    ) -> Result {
        put!("")?;
        for line in evaluation.map(Evaluation::words).unwrap_or_default() {
            put!("{line}")?;
        }
        // Rows that the model has learnt from say little of others.
        if let (Some(left_out), None) = (left_out, &self.set.test) {
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
