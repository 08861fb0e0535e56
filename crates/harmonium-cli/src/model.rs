//! A model to work with: of a run, of a model file, or of another program's file.

use crate::error::{Context, Failure, Result};
use crate::layout::{Layout, schema_from_json};
use crate::run::Run;
use harmonium::Machine;
use harmonium::io::Provenance;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A machine with the columns it was trained on.
pub(crate) struct Model {
    pub(crate) path: PathBuf,
    pub(crate) machine: Machine,
    pub(crate) layout: Layout,
    pub(crate) provenance: Provenance,
    pub(crate) run: Option<Run>,
}

impl Model {
    /// Opens a run directory or a file.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        if path.is_dir() {
            let run = Run::new(path);
            if !run.exists() {
                return Err(Failure::new(format!(
                    "{}: this directory holds no run (no config.toml); make one with `harmonium train DATA -o {0}`",
                    path.display()
                )));
            }
            let file = run.model();
            if !file.is_file() {
                return Err(Failure::new(format!(
                    "{0}: this run has no model yet; continue it with `harmonium train {0}`",
                    path.display()
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
        Self::file(path)
    }

    fn file(path: &Path) -> Result<Self> {
        if path.extension().is_none_or(|e| e != "safetensors") {
            return Self::foreign(path);
        }
        let machine: Machine = Machine::load(path)?;
        let provenance = harmonium::io::inspect(path)?.provenance;
        let layout = match provenance.details.get("schema") {
            Some(text) => {
                let schema = schema_from_json(text).context(path.display())?;
                Layout::new(Arc::new(schema), &machine).context(path.display())?
            }
            None => Layout::plain(&machine),
        };
        Ok(Self { path: path.into(), machine, layout, provenance, run: None })
    }

    fn foreign(path: &Path) -> Result<Self> {
        let foreign = crate::convert::read(path)?;
        let machine: Machine = foreign.machine.cast();
        let layout = match foreign.schema {
            Some(schema) => Layout::new(Arc::new(schema), &machine).context(path.display())?,
            None => Layout::plain(&machine),
        };
        Ok(Self { path: path.into(), machine, layout, provenance: Provenance::default(), run: None })
    }
}
