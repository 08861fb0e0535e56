//! `convert`: models from and to the files of other programs.

use crate::args::Common;
use crate::convert::{self, Foreign, ModelFormat};
use crate::error::{Context, Failure, Result};
use crate::model::Model;
use crate::output::say;
use crate::run::{self, RunDirectory};
use clap::Args;
use harmonium::Machine;
use harmonium::io::Provenance;
use harmonium_table::{Layout, schema_from_json, schema_to_json};
use std::path::{Path, PathBuf};

/// Flags of `convert`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  harmonium convert runs/digits digits.npz                  arrays with scikit-learn's names
  harmonium convert runs/digits digits.npz --to wbc         arrays w, b, c
  harmonium convert bernoulli_rbm.npz model.safetensors     the other way round
  harmonium convert runs/family params.dat                  adabmDCA's text, fully visible Potts machines
  harmonium convert runs/digits rbm.h5 --to rbms            needs the feature hdf5
  harmonium convert julia.h5 model.safetensors              RestrictedBoltzmannMachines.jl")]
pub(crate) struct ConvertArgs {
    /// A run, a model file, or the file of another program
    #[arg(value_name = "FROM")]
    from: PathBuf,
    /// The file to write
    #[arg(value_name = "TO")]
    to: PathBuf,
    /// The format to write [default: .safetensors ours, .npz sklearn, .dat adabmdca, .h5 rbms]
    #[arg(long = "to", value_enum, value_name = "FORMAT")]
    format: Option<ModelFormat>,
}

impl ConvertArgs {
    pub(crate) fn run(self, common: &Common) -> Result {
        let format = self.format.or(ModelFormat::of_ending(&self.to)).ok_or_else(|| {
            Failure::usage(format!(
                "{}: unknown format; end the name in .safetensors, .npz, .dat or .h5, or give --to FORMAT",
                self.to.display()
            ))
        })?;
        run::may_write_beside(&self.to, common.force, &[self.from.as_os_str()])?;
        let (foreign, mut provenance) = read(&self.from)?;
        let machine = &foreign.machine;
        if format == ModelFormat::Harmonium {
            if let Some(schema) = &foreign.schema {
                provenance.details.insert("schema".into(), schema_to_json(schema));
            }
            machine.save(&self.to, &provenance)?;
        } else {
            let schema = match foreign.schema {
                Some(schema) => schema,
                None => (*Layout::plain(&machine.cast()).schema).clone(),
            };
            let bytes = convert::bytes(machine, &schema, format, &self.to)?;
            run::write(&self.to, common.force, &bytes)?;
        }
        if !common.quiet {
            say!("{} → {}", self.from.display(), self.to.display());
        }
        Ok(())
    }
}

/// Reads a model from any supported file in double precision, so that nothing is rounded.
fn read(path: &Path) -> Result<(Foreign, Provenance)> {
    if path.is_dir() || RunDirectory::of_checkpoint(path).is_some() {
        // Runs are in single precision.
        let model = Model::open(path)?;
        let schema = Some((*model.layout.schema).clone());
        return Ok((Foreign { machine: model.machine.cast(), schema }, model.provenance));
    }
    if !path.exists() {
        return Err(Failure::new(format!("{}: there is no such model", path.display())));
    }
    if ModelFormat::of_ending(path) != Some(ModelFormat::Harmonium) {
        let foreign = convert::read(path)?;
        // Every command works in single precision: a file that none of them could read is of no use.
        convert::single(&foreign.machine).context(path.display())?;
        return Ok((foreign, Provenance::default()));
    }
    let machine: Machine<f64> = Machine::load(path)?;
    let provenance = harmonium::io::inspect(path)?.provenance;
    let schema = provenance.details.get("schema").map(|text| schema_from_json(text)).transpose()?;
    Ok((Foreign { machine, schema }, provenance))
}
