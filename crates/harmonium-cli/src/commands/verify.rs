//! `verify`: the sampler on the user's own model against exact enumeration.

use crate::args::Common;
use crate::error::{Failure, Result};
use crate::model::Model;
use crate::output::put;
use clap::Args;
use harmonium::evaluate::{VERIFY_CHAINS, VERIFY_SWEEPS};
use harmonium::partition::silent;
use serde_json::json;
use std::path::PathBuf;

/// Flags of `verify`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  harmonium verify runs/digits
  harmonium verify model.safetensors --chains 10000 --sweeps 1000

Means of all units and of all coupled pairs over many chains are compared with enumeration; a machine too big for
that is reduced to a random subset of its units with their weights. Slowly mixing chains fail the test as a wrong sampler would.
Exit code 1 if samples and enumeration do not agree.")]
pub(crate) struct VerifyArgs {
    /// A run, or a model file
    #[arg(value_name = "RUN|MODEL")]
    model: PathBuf,
    /// Number of chains
    #[arg(long, default_value_t = VERIFY_CHAINS, value_name = "N")]
    chains: usize,
    /// Sweeps of each
    #[arg(long, default_value_t = VERIFY_SWEEPS, value_name = "N")]
    sweeps: usize,
}

impl VerifyArgs {
    pub(crate) fn run(self, common: &Common) -> Result {
        let model = Model::open(&self.model)?;
        let seed = common.seed.unwrap_or(0);
        let v =
            harmonium::evaluate::verify(&model.machine, self.chains, self.sweeps, seed, &mut silent)?;
        let ok = v.agrees();
        if common.json {
            put!(
                "{}",
                json!({"ok": ok, "p_value": v.p_value, "partial": v.partial, "units": v.units, "checks": v.checks})
            )?;
        } else {
            let layers = model.machine.members().iter().zip(&v.units);
            let units: Vec<String> =
                layers.map(|(m, n)| format!("{n} of {} units of {}", m.layer.len(), m.name)).collect();
            put!(
                "{} moments of {} against enumeration{}",
                v.checks.len(),
                units.join(", "),
                if v.partial { " (a part of the machine)" } else { "" }
            )?;
            let mut worst: Vec<_> = v.checks.iter().collect();
            worst.sort_by(|a, b| a.p_value.total_cmp(&b.p_value));
            for c in worst.into_iter().take(3) {
                put!(
                    "  {:<14} exact {:>9.5}  sampled {:>9.5}  p = {:.3}",
                    c.what,
                    c.exact,
                    c.sampled,
                    c.p_value
                )?;
            }
            put!("p-value of the worst, for all of them together: {:.3}", v.p_value)?;
            put!(
                "{}",
                if ok {
                    "the samples agree with enumeration"
                } else {
                    "samples and enumeration do not agree"
                }
            )?;
        }
        match ok {
            true => Ok(()),
            false => Err(Failure::new(
                "the samples are not those of the machine; try more --sweeps if its chains mix slowly",
            )),
        }
    }
}
