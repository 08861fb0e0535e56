//! `gradient`: the gradient of the mean log-likelihood of rows, by enumeration.

use crate::args::Common;
use crate::data::DataArgs;
use crate::error::{Failure, Result};
use crate::model::Model;
use crate::output::{counted, put};
use crate::run;
use clap::Args;
use harmonium::{Archive, Tensor};
use harmonium_data::{NumberArray, npz_bytes};
use ndarray::Array2;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Flags of `gradient`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  harmonium gradient runs/bars bars-and-stripes:4x4                      the norm of every block
  harmonium gradient runs/bars bars-and-stripes:4x4 -o gradient.npz      one array per layer and per coupling
  harmonium gradient runs/bars rows.csv --within 1h -o g.safetensors     allow a longer enumeration

Averages of the sufficient statistics over the rows minus their averages under the model, in double precision: zero at the maximum of
the likelihood. Arrays are named after layers (`v`, `h`; a row per parameter of a unit) and couplings (`v-h`). Rows must
be complete.")]
pub(crate) struct GradientArgs {
    /// A run, or a model file
    #[arg(value_name = "RUN|MODEL")]
    model: PathBuf,
    /// The rows
    data: String,
    /// Longest enumeration, as in 90s, 10m or 1h; longer ones are refused [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = harmonium_data::seconds)]
    within: Option<f64>,
    /// The file to write: .npz or .safetensors
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    read: DataArgs,
}

impl GradientArgs {
    pub(crate) fn run(self, common: &Common) -> Result {
        let format = self.output.as_deref().map(|path| Format::of(path, common.force)).transpose()?;
        if let Some(path) = &self.output {
            run::may_write_beside(path, common.force, &[self.model.as_os_str(), self.data.as_ref()])?;
        }
        let model = Model::open(&self.model)?;
        let machine = &model.machine;
        let table = self.read.load_like(&self.data, &model.columns()?, common.seed.unwrap_or(0))?;
        let data = match model.is_conditional() {
            true => harmonium_table::given_data(machine, &table)?,
            false => model.layout.data(machine, &table)?,
        };
        let task = machine.gradient(&data);
        let gradient = match self.within {
            Some(seconds) => task.within(seconds).run()?,
            None => task.run()?,
        };
        let name = |l: usize| machine.members()[l].name.clone();
        let couplings = machine.couplings().iter().map(|c| c.ends());
        let names = (0..machine.len())
            .map(name)
            .chain(couplings.map(|(a, b)| format!("{}-{}", name(a), name(b))));
        let blocks: Vec<(String, &Array2<f64>)> = names.zip(gradient.arrays()).collect();
        if let (Some(path), Some(format)) = (&self.output, format) {
            format.write(path, common.force, &blocks)?;
        }
        let norm = |x: &Array2<f64>| x.iter().map(|g| g * g).sum::<f64>().sqrt();
        let total = gradient.dot(&gradient).sqrt();
        if common.json {
            let blocks: Vec<_> = blocks
                .iter()
                .map(|(name, x)| json!({"name": name, "shape": x.shape(), "norm": norm(x)}))
                .collect();
            return put!("{}", json!({"rows": data.rows(), "norm": total, "blocks": blocks}));
        }
        put!("gradient of the mean log-likelihood of {}", counted(data.rows(), "row", "rows"))?;
        for (name, x) in &blocks {
            put!("  {name:<12} {:>4} × {:<6} norm {:.6}", x.nrows(), x.ncols(), norm(x))?;
        }
        put!("  {:<12} {:>13} norm {total:.6}", "all", "")
    }
}

/// The formats of the file.
#[derive(Clone, Copy)]
enum Format {
    Npz,
    Safetensors,
}

impl Format {
    /// The format of a file that may be written.
    fn of(path: &Path, force: bool) -> Result<Self> {
        let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
        let format = match ending.as_str() {
            "npz" => Self::Npz,
            "safetensors" => Self::Safetensors,
            _ => {
                return Err(Failure::usage(format!(
                    "{}: unknown format; end the name in .npz or .safetensors",
                    path.display()
                )));
            }
        };
        run::may_write(path, force)?;
        Ok(format)
    }

    fn write(self, path: &Path, force: bool, blocks: &[(String, &Array2<f64>)]) -> Result {
        match self {
            Self::Npz => {
                let array = |x: &Array2<f64>| NumberArray {
                    shape: x.shape().to_vec(),
                    values: x.iter().copied().collect(),
                };
                let arrays: BTreeMap<_, _> =
                    blocks.iter().map(|(name, x)| (name.clone(), array(x))).collect();
                run::write(path, force, &npz_bytes(&arrays)?)
            }
            Self::Safetensors => {
                let mut archive = Archive::default();
                blocks.iter().for_each(|(name, x)| archive.put(name, Tensor::F64((*x).clone())));
                Ok(archive.save(path)?)
            }
        }
    }
}
