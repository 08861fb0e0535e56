//! A model to work with: of a run, kept along a run, of a model file, or of another program's file.

use crate::data::DataArgs;
use crate::error::{Context, Failure, Result};
use crate::output::command;
use crate::run::RunDirectory;
use harmonium::io::Provenance;
use harmonium::train::Floor;
use harmonium::{Archive, Machine, Role};
use harmonium_data::{Schema, Table};
use harmonium_table::{Layout, given_schema, schema_from_json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A machine with the columns it was trained on.
pub(crate) struct Model {
    pub(crate) path: PathBuf,
    pub(crate) machine: Machine,
    pub(crate) layout: Layout,
    /// Independent columns with the marginals of the training rows, where the file has them.
    pub(crate) floor: Option<Floor>,
    pub(crate) provenance: Provenance,
    pub(crate) run: Option<RunDirectory>,
    /// The update it was kept at, where it is not what the run ended with.
    pub(crate) update: Option<u64>,
}

impl Model {
    /// Opens a run directory, a checkpoint in one, or a file.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        if path.is_dir() {
            let run = RunDirectory::new(path);
            if !run.exists() {
                return Err(Failure::new(format!(
                    "{}: this directory holds no run (no config.toml); make one with `{}`",
                    path.display(),
                    command(&["train", "DATA", "-o", &path.display().to_string()])
                )));
            }
            let file = run.model();
            if !file.is_file() {
                return Err(Failure::new(format!(
                    "{}: this run has no model yet; continue it with `{}`",
                    path.display(),
                    command(&["train", &path.display().to_string()])
                )));
            }
            return Ok(Self { run: Some(run), ..Self::file(&file)? });
        }
        if !path.exists() {
            return Err(Failure::new(format!(
                "{}: there is no such file or directory; name a run or a model file",
                path.display()
            )));
        }
        match RunDirectory::of_checkpoint(path) {
            Some(run) => Self::open(&run.dir)?.at(path),
            None => Self::file(path),
        }
    }

    /// Whether it is a distribution given a condition.
    pub(crate) fn is_conditional(&self) -> bool {
        self.machine.with_role(Role::Condition).next().is_some()
    }

    /// The columns of rows to be evaluated: with those of the condition, where there is one.
    pub(crate) fn columns(&self) -> Result<Arc<Schema>> {
        match self.is_conditional() {
            true => Ok(given_schema(&self.machine)?),
            false => Ok(self.layout.schema.clone()),
        }
    }

    /// Rows to be evaluated. A category that its column does not have makes a row impossible, it is no error.
    pub(crate) fn rows(&self, read: &DataArgs, name: &str, seed: u64) -> Result<Table> {
        match self.is_conditional() {
            true => read.load_like(name, &self.columns()?, seed),
            false => read.load_rows(name, &self.layout.schema, seed),
        }
    }

    /// The same with the parameters of a checkpoint of its run.
    pub(crate) fn at(self, path: &Path) -> Result<Self> {
        let (update, machine) = self.checkpoint(path)?;
        Ok(Self { update: Some(update), machine, path: path.into(), ..self })
    }

    /// The machine with the parameters of a checkpoint of its run, and the update they stood at.
    pub(crate) fn checkpoint(&self, path: &Path) -> Result<(u64, Machine)> {
        let archive = Archive::load(path)?;
        let mut machine = self.machine.clone();
        let parameters = archive.parameters("machine", &machine.parameters()).context(path.display())?;
        machine.set_parameters(&parameters).context(path.display())?;
        // Models kept along the run have their update, checkpoints to go on from have counters.
        let update =
            archive.u64s("update").or_else(|_| archive.u64s("counters")).context(path.display())?;
        Ok((update.first().copied().unwrap_or(0), machine))
    }

    fn file(path: &Path) -> Result<Self> {
        if path.extension().is_none_or(|e| e != "safetensors") {
            return Self::foreign(path);
        }
        let machine: Machine = Machine::load(path).map_err(|e| match Archive::load(path) {
            Ok(_) => Failure::new(format!(
                "{}: this is a checkpoint, which does not describe its layers and columns; \
                 name the run directory that it belongs to",
                path.display()
            )),
            Err(_) => e.into(),
        })?;
        let provenance = harmonium::io::inspect(path)?.provenance;
        let layout = match provenance.details.get("schema") {
            Some(text) => {
                let schema = schema_from_json(text).context(path.display())?;
                Layout::new(Arc::new(schema), &machine).context(path.display())?
            }
            None => Layout::plain(&machine),
        };
        // A file of an older version has no floor; one that cannot be read does not make the model unusable.
        let floor = provenance.details.get("floor").and_then(|text| serde_json::from_str(text).ok());
        Ok(Self { path: path.into(), machine, layout, floor, provenance, run: None, update: None })
    }

    fn foreign(path: &Path) -> Result<Self> {
        let foreign = crate::convert::read(path)?;
        let machine = crate::convert::single(&foreign.machine).context(path.display())?;
        let layout = match foreign.schema {
            Some(schema) => Layout::new(Arc::new(schema), &machine).context(path.display())?,
            None => Layout::plain(&machine),
        };
        Ok(Self {
            path: path.into(),
            machine,
            layout,
            floor: None,
            provenance: Provenance::default(),
            run: None,
            update: None,
        })
    }
}
