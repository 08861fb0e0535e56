//! Whether chains mix, and whether samples resemble the data.

use crate::error::Result;
use crate::evaluation::TableStates;
use crate::model::Model;
use harmonium::Role;
use harmonium::evaluate::{self, compared_rows};
use harmonium::partition::Verdict;
use harmonium::tasks::Diagnosis;
use harmonium_data::Table;
use serde_json::{Value, json};

/// Whether chains mix, and whether samples resemble the data.
pub(super) struct Quality {
    diagnosis: Diagnosis,
    /// Mean pseudo-log-likelihood of the rows, where there is one.
    pseudo: Option<f64>,
    /// Mean free energy of the rows above that of as many training rows, with its standard error.
    gap: Option<(f64, f64)>,
    /// How well classes are predicted, where the machine has some.
    classes: Option<Classes>,
}

/// How well a class machine predicts the labels of rows.
#[derive(serde::Serialize)]
struct Classes {
    /// Fraction of the labels that are the most probable ones.
    accuracy: f64,
    /// Mean of ln p(y|v), which needs no ln Z.
    log_likelihood: f64,
    rows: usize,
}

impl Classes {
    fn new(model: &Model, table: &Table) -> Result<Option<Self>> {
        let (Some(_), Some(labels)) = (model.layout.labels, table.labels()) else { return Ok(None) };
        let p = crate::commands::classify::posterior(model, table, 0)?.probabilities;
        let told =
            p.rows().into_iter().enumerate().filter_map(|(r, p)| Some((p, labels.get(r)? as usize)));
        let told: Vec<(bool, f64)> =
            told.map(|(p, y)| (p.iter().all(|&q| q <= p[y]), p[y].max(1e-300).ln())).collect();
        let n = told.len() as f64;
        Ok((!told.is_empty()).then(|| Self {
            accuracy: told.iter().filter(|t| t.0).count() as f64 / n,
            log_likelihood: told.iter().map(|t| t.1).sum::<f64>() / n,
            rows: told.len(),
        }))
    }
}

impl Quality {
    /// `None` if fewer than two rows are complete: samples can be compared with complete rows only.
    pub(super) fn new(model: &Model, table: &Table, seed: u64) -> Result<Option<Self>> {
        let rows = TableStates::new(&model.machine, &model.layout, table, None)?;
        let Some(whole) = rows.complete().filter(|whole| whole.rows() > 1) else { return Ok(None) };
        let shown = compared_rows(whole.rows());
        let (machine, data) = (&rows.machine, whole.select(&shown));
        // The training rows, if the run has them: copies of these would show memorisation.
        let train = model.run.as_ref().and_then(|run| {
            let mut config = crate::config::Config::read(&run.config()).ok()?;
            let set = config.load().ok()?;
            let train = TableStates::new(&model.machine, &model.layout, &set.train, None).ok()?;
            let mut train = train.complete()?.into_owned();
            machine.with_role(Role::Hidden).for_each(|l| drop(train.take(l)));
            Some(train)
        });
        let task = machine.diagnose(&data).seed(seed);
        let diagnosis = match &train {
            Some(train) => task.training(train).run()?,
            None => task.run()?,
        };
        // Undefined where hidden layers are coupled.
        let pseudo = evaluate::pseudo_log_likelihood(machine, &data).ok();
        let mean = |p: Vec<f64>| p.iter().sum::<f64>() / p.len().max(1) as f64;
        // In the units of the table, as the likelihood is.
        let offset = mean(shown.iter().map(|&i| rows.offset(rows.whole[i])).collect());
        let pseudo = pseudo.map(|p| mean(p) + offset);
        let gap = train.and_then(|train| evaluate::free_energy_gap(machine, &train, &data).ok());
        Ok(Some(Self { diagnosis, pseudo, gap, classes: Classes::new(model, table)? }))
    }

    /// What it adds to the object of `evaluate --json`.
    pub(super) fn add_to(&self, object: &mut Value) {
        object["chains"] = json!(self.diagnosis.chains);
        object["samples"] = json!(self.diagnosis.samples);
        object["pseudo_log_likelihood"] = json!(self.pseudo);
        object["classes"] = json!(self.classes);
        object["free_energy_gap"] =
            self.gap.map_or(Value::Null, |(value, err)| json!({"value": value, "std_err": err}));
    }

    pub(super) fn words(&self) -> Vec<String> {
        let Diagnosis { chains, samples: s } = &self.diagnosis;
        let mut out = vec![format!(
            "chains: {}",
            if chains.verdict == Verdict::Converged {
                "become independent of their start"
            } else {
                "do not become independent of their start"
            }
        )];
        out.extend(chains.reasons.iter().map(|r| format!("  · {r}")));
        out.push("samples against these rows:".into());
        let [a, b, c] = &s.moments;
        // Undefined where nothing varies, as the means of balanced data.
        let number = |x: f64| if x.is_finite() { format!("{x:.3}") } else { "–".into() };
        out.push(format!(
            "  · means, covariances, third moments correlate {}, {}, {}",
            number(a.correlation),
            number(b.correlation),
            number(c.correlation)
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
        if let Some(c) = &self.classes {
            out.push(format!(
                "labels: {:.2} % of {} rows are predicted correctly; ln p(label | row) {:.3} on average",
                100.0 * c.accuracy,
                c.rows,
                c.log_likelihood
            ));
        }
        out.extend(self.pseudo.map(|p| format!("pseudo-log-likelihood {p:.3} nats per row")));
        // The gap of the training rows to themselves is zero.
        if let Some((gap, err)) = self.gap.filter(|gap| gap.0 != 0.0) {
            out.push(format!(
                "free energy of these rows above that of the training: {gap:.3} ± {:.3} nats",
                1.96 * err
            ));
        }
        out
    }
}
