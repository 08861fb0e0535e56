//! Whether chains forget their start, and whether samples resemble the data.

use super::judge::whole_rows;
use crate::error::Result;
use crate::model::Model;
use harmonium::States;
use harmonium::judge::{self, Adversarial, Duplicates, Equilibrium, MomentMatch};
use harmonium::partition::{self, Verdict};
use harmonium_data::Table;
use serde_json::{Value, json};

/// Rows and samples that are compared with each other.
const COMPARED: usize = 1000;

/// Whether chains forget their start, and whether samples resemble the data.
pub(super) struct Quality {
    chains: Equilibrium,
    samples: Samples,
    /// Mean pseudo-log-likelihood of the rows.
    pseudo: f64,
    /// Mean free energy of the rows above that of as many training rows, with its standard error.
    gap: Option<(f64, f64)>,
}

/// How samples compare with data.
#[derive(serde::Serialize)]
struct Samples {
    adversarial: Adversarial,
    moments: [MomentMatch; 3],
    duplicates: Duplicates,
    /// Whether copies were looked for among the rows of the training, or among those at hand.
    of_training: bool,
}

impl Quality {
    pub(super) fn new(model: &Model, table: &Table, seed: u64) -> Result<Self> {
        let machine = &model.machine;
        let data = some_rows(model, table, COMPARED)?;
        let drawn = crate::commands::sample::chains(
            machine,
            data.rows().max(100),
            crate::commands::sample::SWEEPS,
            seed,
        )?;
        let drawn = drawn.states();
        // The rows that the machine has seen, where the run knows them: copies of these are what memory would show.
        let train = model.run.as_ref().and_then(|run| {
            let mut config = crate::config::Config::read(&run.config()).ok()?;
            let set = crate::commands::train::load(&mut config).ok()?;
            some_rows(model, &set.train, usize::MAX).ok()
        });
        let chains = judge::equilibrium(machine, &data, 32, 500, seed, &mut partition::silent)?;
        let samples = Samples {
            adversarial: judge::adversarial(machine, &data, drawn)?,
            moments: judge::moments(machine, &data, drawn, 10_000)?,
            duplicates: judge::duplicates(machine, train.as_ref().unwrap_or(&data), drawn)?,
            of_training: train.is_some(),
        };
        let pseudo = judge::pseudo_log_likelihood(machine, &data)?;
        let pseudo = pseudo.iter().sum::<f64>() / pseudo.len().max(1) as f64;
        let gap = train.and_then(|train| judge::free_energy_gap(machine, &train, &data).ok());
        Ok(Self { chains, samples, pseudo, gap })
    }

    /// What it adds to the object of `evaluate --json`.
    pub(super) fn add_to(&self, object: &mut Value) {
        object["chains"] = json!(self.chains);
        object["samples"] = json!(self.samples);
        object["pseudo_log_likelihood"] = json!(self.pseudo);
        object["free_energy_gap"] =
            self.gap.map_or(Value::Null, |(value, err)| json!({"value": value, "std_err": err}));
    }

    pub(super) fn words(&self) -> Vec<String> {
        let mut out = vec![format!(
            "chains: {}",
            if self.chains.verdict == Verdict::Certified {
                "forget their start"
            } else {
                "do not forget their start"
            }
        )];
        out.extend(self.chains.reasons.iter().map(|r| format!("  · {r}")));
        let s = &self.samples;
        out.push("samples against these rows:".into());
        let [a, b, c] = &s.moments;
        out.push(format!(
            "  · means, covariances, third moments correlate {:.3}, {:.3}, {:.3}",
            a.correlation, b.correlation, c.correlation
        ));
        out.push(format!(
            "  · nearest-neighbour adversarial accuracy {:.3} (0.5 is ideal)",
            s.adversarial.accuracy()
        ));
        let copied = if s.of_training { "a row of the training" } else { "one of these rows" };
        out.push(format!(
            "  · {:.1} % of samples equal {copied}; {:.1} % of those rows repeat another",
            100.0 * s.duplicates.of_training,
            100.0 * s.duplicates.within_training
        ));
        out.push(format!("pseudo-log-likelihood {:.3} nats per row", self.pseudo));
        if let Some((gap, err)) = self.gap {
            out.push(format!(
                "free energy of these rows above that of the training: {gap:.3} ± {:.3} nats",
                1.96 * err
            ));
        }
        out
    }
}

/// At most about `most` rows without missing entries, evenly spread.
fn some_rows(model: &Model, table: &Table, most: usize) -> Result<States> {
    let (states, known) = model.layout.states(&model.machine, table)?;
    let whole = whole_rows(table.rows(), &known);
    let step = whole.len().div_ceil(most).max(1);
    Ok(states.select(&whole.into_iter().step_by(step).collect::<Vec<_>>()))
}
