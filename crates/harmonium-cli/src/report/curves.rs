//! Learning curves, from the metrics file and from the models along the run.

use super::{Material, Section};
use crate::commands::evaluate::{self, Effort};
use crate::error::{Failure, Result};
use crate::figure::{Chart, Scale};
use serde_json::Value;

type Series = Vec<(f64, f64)>;

/// The lines of the metrics file.
fn events(m: &Material<'_>) -> Result<Vec<Value>> {
    let path = m.run.metrics();
    let text = std::fs::read_to_string(&path).map_err(|e| Failure::io("read", &path, &e))?;
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

fn series(events: &[Value], kind: &str, key: &str) -> Series {
    let of_kind = events.iter().filter(|e| e["event"] == kind);
    of_kind.filter_map(|e| Some((e["update"].as_f64()?, e[key].as_f64()?))).collect()
}

pub(super) fn section(m: &Material<'_>) -> Result<Section> {
    let events = events(m)?;
    let mut figures = Vec::new();
    let (test, name) = match &m.set.test {
        Some(test) => (test, "held-out rows"),
        None => (&m.set.train, "training rows"),
    };
    // Both ends of the interval at each kept model: quick estimates, from the log-spaced updates.
    let mut points = Vec::new();
    for (update, machine) in &m.trajectory {
        let effort = Effort::quick();
        if let Ok(e) = evaluate::judge(
            machine,
            &m.model.layout,
            test,
            name,
            &effort,
            &m.common.silent(),
            &mut |_| {},
        ) {
            points.push((*update as f64, e));
        }
    }
    if !points.is_empty() {
        let at = |f: &dyn Fn(&evaluate::Evaluation) -> f64| {
            points.iter().map(|(u, e)| (*u, f(e))).collect::<Series>()
        };
        let band = points.iter().map(|(u, e)| (*u, e.ends().0, e.ends().1)).collect();
        let bars = points.iter().map(|(u, e)| (*u, e.mean(), e.ends().0, e.ends().1)).collect();
        let chart =
            Chart::new("update", "log-likelihood per row (nats)").scales(Scale::Log, Scale::Linear);
        let chart = chart.band(band, 0).line(at(&|e| e.mean()), 0, None).bars(bars, 0, Some(name));
        figures.push(("likelihood".into(), chart.svg()));
    }
    let mut chart = Chart::new("update", "pseudo-log-likelihood (nats)");
    let mut any = false;
    for (i, (key, name)) in
        [("train_pseudo_likelihood", "training"), ("valid_pseudo_likelihood", "validation")]
            .iter()
            .enumerate()
    {
        let line = series(&events, "evaluated", key);
        if !line.is_empty() {
            any = true;
            chart = chart.line(line, i, Some(name));
        }
    }
    if any {
        figures.push(("pseudo-likelihood".into(), chart.svg()));
    }
    let norm = series(&events, "updated", "gradient_norm");
    if !norm.is_empty() {
        let chart = Chart::new("update", "norm of the gradient").scales(Scale::Linear, Scale::Log);
        figures.push(("gradient".into(), chart.line(norm, 2, None).svg()));
    }
    let gap = series(&events, "evaluated", "free_energy_gap");
    let has_gap = !gap.is_empty();
    if has_gap {
        let chart = Chart::new("update", "free energy, validation − training (nats)");
        figures.push(("free-energy-gap".into(), chart.line(gap, 3, None).svg()));
    }
    let undone = events.iter().filter(|e| e["event"] == "undone").count();
    let mut words = format!(
        "The likelihood of {name}, with its 95 % interval, at the models kept along the run (the choice of \
         rows is most of the interval). "
    );
    if undone > 0 {
        words += &format!("{undone} updates were undone because they would have spoilt the model. ");
    }
    if has_gap {
        words += "A rising free-energy gap would be the first sign of learning rows by heart.";
    }
    Ok(Section { title: "Learning", words, figures })
}
