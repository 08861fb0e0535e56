//! `inspect`: what is in a model file or a run.

use crate::args::Common;
use crate::error::Result;
use crate::linalg::singular_values;
use crate::model::Model;
use crate::output::{grouped, put};
use crate::progress::sparkline;
use clap::Args;
use harmonium::{Machine, Role};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Flags of `inspect`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  harmonium inspect runs/digits
  harmonium inspect model.safetensors --json
  harmonium inspect runs/digits/checkpoints/update-00000100.safetensors   a model kept along the run
  harmonium inspect other.npz             files of other programs, as `harmonium convert` reads them")]
pub(crate) struct InspectArgs {
    /// A run, or a model file
    #[arg(value_name = "RUN|MODEL")]
    model: PathBuf,
}

/// Mean, standard deviation, least and largest of some numbers.
fn summary(x: impl Iterator<Item = f32> + Clone) -> Value {
    let n = x.clone().count().max(1) as f64;
    let mean = x.clone().map(f64::from).sum::<f64>() / n;
    let var = x.clone().map(|x| (f64::from(x) - mean).powi(2)).sum::<f64>() / n;
    let (low, high) = x.fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(x.into()), b.max(x.into())));
    json!({"mean": mean, "std": var.sqrt(), "min": low, "max": high})
}

fn describe(machine: &Machine) -> (Vec<Value>, Vec<Value>) {
    let layers = machine.members().iter().map(|m| {
        let kind = m.layer.kind();
        let params = kind.params().iter().zip(m.layer.params().rows());
        let params = params.map(|(name, row)| ((*name).to_owned(), summary(row.iter().copied())));
        json!({
            "name": m.name,
            "role": m.role,
            "kind": kind.to_string(),
            "units": m.layer.len(),
            "parameters": params.collect::<serde_json::Map<_, _>>(),
        })
    });
    let couplings = machine.couplings().iter().map(|c| {
        let name = |l: usize| machine.members()[l].name.clone();
        let w = c.w().mapv(f64::from);
        json!({
            "between": [name(c.ends().0), name(c.ends().1)],
            "shape": [w.nrows(), w.ncols()],
            "weights": summary(c.w().iter().copied()),
            "masked": c.mask().is_some(),
            "singular_values": singular_values(w.view()),
        })
    });
    (layers.collect(), couplings.collect())
}

impl InspectArgs {
    pub(crate) fn run(self, common: &Common) -> Result {
        let model = Model::open(&self.model)?;
        let (layers, couplings) = describe(&model.machine);
        let parameters: usize = model.machine.parameters().arrays().map(|a| a.len()).sum();
        let details = &model.provenance.details;
        if common.json {
            return put!(
                "{}",
                json!({
                    "path": model.path,
                    "update": model.update,
                    "layers": layers,
                    "couplings": couplings,
                    "parameters": parameters,
                    "columns": model.layout.schema.columns.len(),
                    "shape": model.layout.schema.shape,
                    "library": model.provenance.library,
                    "seed": model.provenance.seed,
                    "data": details.get("data"),
                })
            );
        }
        let at = model.update.map(|u| format!(" at update {}", grouped(u))).unwrap_or_default();
        put!("{}: {} parameters{at}", model.path.display(), grouped(parameters as u64))?;
        if let Some(data) = details.get("data").filter(|d| !d.is_empty()) {
            put!("trained on {data} by {}", model.provenance.library)?;
        }
        let number = |v: &Value| v.as_f64().unwrap_or(f64::NAN);
        let line = |v: &Value| {
            let [mean, std, min, max] = ["mean", "std", "min", "max"].map(|k| number(&v[k]));
            format!("mean {mean:.3}, spread {std:.3}, from {min:.3} to {max:.3}")
        };
        put!("\nlayers")?;
        for (m, v) in model.machine.members().iter().zip(&layers) {
            let role = match m.role {
                Role::Visible => "visible",
                Role::Hidden => "hidden",
                Role::Condition => "condition",
            };
            let units = if m.layer.len() == 1 { "unit" } else { "units" };
            put!("  {:<8} {role:<9} {} {} {units}", m.name, m.layer.len(), m.layer.kind())?;
            for name in m.layer.kind().params() {
                put!("           {name}: {}", line(&v["parameters"][name]))?;
            }
        }
        put!("\ncouplings")?;
        for v in &couplings {
            let name = |i: usize| v["between"][i].as_str().unwrap_or("?").to_owned();
            put!(
                "  {}–{}: {} × {}, {}",
                name(0),
                name(1),
                v["shape"][0],
                v["shape"][1],
                line(&v["weights"])
            )?;
            let spectrum: Vec<f64> = v["singular_values"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_f64)
                .collect();
            let first: Vec<String> = spectrum.iter().take(6).map(|s| format!("{s:.2}")).collect();
            put!("           spectrum {} …  {}", first.join(", "), sparkline(&spectrum, 30))?;
        }
        put!("\ncolumns\n{}", indented(&model.layout.schema.to_string()))
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}
