//! Learning curves, from the metrics file and from the models along the run.

use super::{Material, Section};
use crate::error::Result;
use crate::evaluation::{Effort, Records, evaluate};
use crate::figure::{Chart, Figure, Scale};
use harmonium::Machine;
use harmonium::partition::Verdict;
use harmonium_data::Table;
use serde_json::{Value, json};

type Series = Vec<(f64, f64)>;

fn series(events: &[Value], kind: &str, key: &str) -> Series {
    let of_kind = events.iter().filter(|e| e["event"] == kind);
    of_kind.filter_map(|e| Some((e["update"].as_f64()?, e[key].as_f64()?))).collect()
}

/// The likelihood at a model kept along the run.
struct Point {
    update: f64,
    mean: f64,
    ends: (f64, f64),
    /// The likelihood of independent columns on the same rows, where it is known.
    independent: Option<f64>,
    /// Whether the interval may be relied upon.
    firm: bool,
}

/// The results of `evaluate --along`, and quick estimates for models it has not evaluated.
fn points(m: &Material<'_>, table: &Table, data: &str) -> Vec<Point> {
    let records = Records::read(m.run);
    let recorded = |update: u64| -> Option<Point> {
        let r = records.get(data, update)?;
        let number = |key: &str| r["log_likelihood"][key].as_f64();
        Some(Point {
            update: update as f64,
            mean: number("mean")?,
            ends: (number("lower")?, number("upper")?),
            independent: r["independent"].as_f64(),
            firm: r["verdict"] != json!(Verdict::NotConverged),
        })
    };
    let quick = |update: u64, machine: &Machine| -> Option<Point> {
        let (effort, quiet) = (Effort::quick(), m.common.silent());
        let e = evaluate(machine, m.model, table, data, &effort, &quiet).ok()?;
        let firm = e.verdict() != Verdict::NotConverged;
        let independent = e.independent();
        Some(Point { update: update as f64, mean: e.mean(), ends: e.ends(), independent, firm })
    };
    m.trajectory.iter().filter_map(|(u, machine)| recorded(*u).or_else(|| quick(*u, machine))).collect()
}

/// The likelihood of independent columns: the same for all models of a run.
fn independent(points: &[Point]) -> Option<f64> {
    points.iter().find_map(|p| p.independent)
}

/// The curve of the likelihood with its intervals, above or below that of independent columns.
fn likelihood(points: &[Point], name: &str) -> Figure {
    let line = points.iter().map(|p| (p.update, p.mean)).collect();
    let band = points.iter().map(|p| (p.update, p.ends.0, p.ends.1)).collect();
    let some = |firm: bool| -> Vec<_> {
        let some = points.iter().filter(|p| p.firm == firm);
        some.map(|p| (p.update, p.mean, p.ends.0, p.ends.1)).collect()
    };
    let chart = Chart::new("update", "log-likelihood per row (nats)").scales(Scale::Log, Scale::Linear);
    let mut chart = chart.band(band, 0).line(line, 0, None).bars(some(true), 0, Some(name));
    if let ([first, .., last], Some(floor)) = (points, independent(points)) {
        let level = vec![(first.update, floor), (last.update, floor)];
        chart = chart.line(level, 1, Some("independent columns"));
    }
    if points.iter().any(|p| !p.firm) {
        chart = chart.doubtful(some(false), 0, Some("not converged"));
    }
    chart.svg()
}

pub(super) fn section(m: &Material<'_>) -> Result<Section> {
    let events = m.run.events()?;
    let mut figures = Vec::new();
    let (table, data, name) = match &m.set.test {
        Some(test) => (test, "test", "held-out rows"),
        None => (&m.set.train, "training", "training rows"),
    };
    let points = points(m, table, data);
    if !points.is_empty() {
        figures.push(("likelihood".into(), likelihood(&points, name)));
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
    if let Some(floor) = independent(&points) {
        let floor = format!("{floor:.3}").replace('-', "−");
        words += &format!(
            "Independent columns with the marginals of the training rows have {floor}: the difference is what the machine \
             has learned about dependencies between columns. "
        );
    }
    let doubtful = points.iter().filter(|p| !p.firm).count();
    if doubtful > 0 {
        words += &format!(
            "At {doubtful} of {} models (hollow) the estimate did not converge; `harmonium evaluate RUN --along` takes \
             more time for each. ",
            points.len()
        );
    }
    if undone > 0 {
        words += &format!("{undone} updates were undone because they would have damaged the model. ");
    }
    if has_gap {
        words += "A rising free-energy gap would be the first sign of overfitting.";
    }
    Ok(Section { title: "Learning", words, figures })
}
