//! Weights: as images, logos or a heat map; their spectrum; what the hidden units do.

use super::{Material, Section};
use crate::error::Result;
use crate::figure::{Chart, Scale, diverging, heat_map, image_grid, logo, named_heat_map};
use crate::linalg::singular_values;
use crate::picture::Picture;
use harmonium::evaluate::features;
use harmonium::{Coupling, Kind, Machine, Role};
use ndarray::Array2;

/// Hidden units shown as images, and as logos.
const IMAGES: usize = 100;
const LOGOS: usize = 6;
/// Rows of a heat map up to which they have names.
const NAMED: usize = 60;

/// The coupling of the first visible layer with a hidden one, else the first coupling.
fn main_coupling(machine: &Machine) -> Option<&Coupling> {
    let hidden = |c: &&Coupling| {
        machine.role(c.ends().1) == Role::Hidden && machine.role(c.ends().0) == Role::Visible
    };
    machine.couplings().iter().find(hidden).or(machine.couplings().first())
}

/// The weights of all visible layers to the hidden layer of the main coupling, one below the other.
fn main_weights(machine: &Machine) -> Option<Array2<f64>> {
    let main = main_coupling(machine)?;
    let same = |c: &&Coupling| c.ends().1 == main.ends().1 && c.is_lateral() == main.is_lateral();
    let of_visible = |c: &&Coupling| machine.role(c.ends().0) == machine.role(main.ends().0);
    let parts: Vec<_> =
        machine.couplings().iter().filter(same).filter(of_visible).map(|c| c.w().view()).collect();
    Some(ndarray::concatenate(ndarray::Axis(0), &parts).ok()?.mapv(f64::from))
}

pub(super) fn section(m: &Material<'_>) -> Result<Section> {
    let machine = &m.model.machine;
    let Some(c) = main_coupling(machine) else {
        return Ok(Section { title: "Weights", words: String::new(), figures: Vec::new() });
    };
    let w = c.w().mapv(f64::from);
    let (a, b) = c.ends();
    let names = [a, b].map(|l| machine.members()[l].name.clone());
    let mut figures = Vec::new();
    let norm = |j: usize| w.column(j).iter().map(|x| x * x).sum::<f64>();
    let mut order: Vec<usize> = (0..w.ncols()).collect();
    order.sort_by(|&i, &j| norm(j).total_cmp(&norm(i)));
    let words = match (m.model.layout.shape(), machine.layer(a).kind()) {
        (Some([h, wd]), _) if h * wd == w.nrows() && !c.is_lateral() => {
            let top = w.iter().fold(1e-12f64, |a, x| a.max(x.abs()));
            let image = |&j: &usize| Picture {
                width: wd,
                height: h,
                pixels: w.column(j).iter().map(|x| (x / top) as f32).collect(),
            };
            let images: Vec<Picture> = order.iter().take(IMAGES).map(image).collect();
            let across = ((images.len() as f64).sqrt() * 1.4).ceil() as usize;
            figures.push(("weights".into(), image_grid(&images, across, 720, Some(diverging))));
            format!(
                "What each hidden unit looks for, the strongest {} of {} first: red pixels activate it, blue ones inhibit it.",
                images.len(),
                w.ncols()
            )
        }
        (_, Kind::Potts { q }) if !c.is_lateral() => {
            let letters =
                &m.model.layout.schema.columns[m.model.layout.schema.groups()[0].columns[0]].categories;
            for (rank, &j) in order.iter().take(LOGOS).enumerate() {
                let q = q as usize;
                let site = Array2::from_shape_fn((w.nrows() / q, q), |(i, a)| w[[i * q + a, j]]);
                figures.push((format!("logo-{}", rank + 1), logo(site.view(), letters, 40)));
            }
            "The strongest hidden units as logos: letters above the line activate the unit, those below inhibit it; \
             positions with weak weights are left out."
                .into()
        }
        _ if !c.is_lateral()
            && machine.with_role(Role::Visible).map(|l| machine.layer(l).width()).sum::<usize>()
                <= NAMED =>
        {
            let (w, names) = all_weights(m, b);
            figures.push(("weights".into(), named_heat_map(w.view(), &names, 900.0)));
            "Weights between the columns (rows here) and the hidden units: red activates a unit, blue inhibits it.".into()
        }
        _ => {
            figures.push(("weights".into(), heat_map(w.view(), 720)));
            format!(
                "Weights between {} (rows) and {} (columns): red positive, blue negative.",
                names[0], names[1]
            )
        }
    };
    Ok(Section { title: "Weights", words, figures })
}

/// The weights of all visible layers to the hidden layer `h`, with the names of their columns and states.
fn all_weights(m: &Material<'_>, h: usize) -> (Array2<f64>, Vec<String>) {
    let machine = &m.model.machine;
    let schema = &m.model.layout.schema;
    let mut rows: Vec<(String, Vec<f64>)> = Vec::new();
    for (place, column) in schema.columns.iter().enumerate() {
        let Some((l, unit)) = m.model.layout.unit(place) else { continue };
        let Some(c) = machine.couplings().iter().find(|c| c.ends() == (l, h)) else { continue };
        let q = machine.layer(l).kind().columns();
        for a in 0..q {
            let name = match column.categories.get(a).filter(|_| q > 1) {
                Some(state) => format!("{} = {state}", column.name),
                None => column.name.clone(),
            };
            let w = c.w().row(unit * q + a).iter().map(|&x| f64::from(x)).collect();
            rows.push((name, w));
        }
    }
    let n = machine.layer(h).width();
    let w = Array2::from_shape_fn((rows.len(), n), |(i, j)| rows[i].1[j]);
    (w, rows.into_iter().map(|r| r.0).collect())
}

/// The spectrum of the weights over training.
pub(super) fn spectrum(m: &Material<'_>) -> Section {
    let mut lines: Vec<Vec<(f64, f64)>> = Vec::new();
    for (update, machine) in &m.trajectory {
        let Some(w) = main_weights(machine) else { continue };
        let s = singular_values(w.view());
        for (k, s) in s.into_iter().take(12).enumerate() {
            if lines.len() <= k {
                lines.push(Vec::new());
            }
            lines[k].push((*update as f64, s));
        }
    }
    let mut figures = Vec::new();
    if lines.first().is_some_and(|l| l.len() > 1) {
        let mut chart = Chart::new("update", "singular values of W").scales(Scale::Log, Scale::Log);
        for (k, line) in lines.into_iter().enumerate() {
            chart = chart.line(line, k, None);
        }
        figures.push(("spectrum-over-training".into(), chart.svg()));
    }
    if let Some(w) = main_weights(&m.model.machine) {
        let s = singular_values(w.view());
        let points = s.iter().enumerate().map(|(k, s)| (k as f64 + 1.0, *s)).collect();
        let chart = Chart::new("rank", "singular value");
        figures.push(("spectrum".into(), chart.points(points, 2.4, 0, Some("trained")).svg()));
    }
    let words = "Directions of the data are learned one after the other: a singular value that rises above the rest \
                 is a direction that the machine has found."
        .into();
    Section { title: "Spectrum of the weights", words, figures }
}

/// How active the hidden units are on data and on samples.
pub(super) fn activity(m: &Material<'_>) -> Result<Section> {
    let machine = &m.model.machine;
    let mut figures = Vec::new();
    let hidden: Vec<usize> = machine.with_role(Role::Hidden).collect();
    let Some(&l) = hidden.first().filter(|_| machine.independent(&hidden)) else {
        return Ok(Section { title: "Hidden units", words: String::new(), figures });
    };
    // Rows with gaps count with the mean over all ways to complete them.
    let features = features(machine, &m.data, &m.known, false, 0, &mut || true)?;
    let on_data = features[0].mapv(f64::from);
    let on_samples = machine.at(1.0).mean(l, &m.sampled)?.mapv(f64::from);
    let mean = |x: &Array2<f64>| x.mean_axis(ndarray::Axis(0)).map(|x| x.to_vec()).unwrap_or_default();
    let (a, b) = (mean(&on_data), mean(&on_samples));
    let chart = Chart::new("mean activity", "hidden units");
    let (low, high) = a.iter().chain(&b).fold((f64::MAX, f64::MIN), |(p, q), &x| (p.min(x), q.max(x)));
    let hist = |x: &[f64]| histogram(x, low, high.max(low + 1e-9), 24);
    figures.push((
        "hidden-activity".into(),
        chart.steps(hist(&a), 0, Some("on data")).steps(hist(&b), 1, Some("on samples")).svg(),
    ));
    let points = a.iter().copied().zip(b.iter().copied()).collect();
    let chart = Chart::new("on data", "on samples").square().diagonal();
    figures.push((
        "hidden-activity-scatter".into(),
        chart.points(points, 2.4, 0, Some("hidden units")).svg(),
    ));
    let entropy = |x: &Array2<f64>, j: usize| {
        let m = x.column(j).mean().unwrap_or(0.0);
        x.column(j).iter().map(|v| (v - m).powi(2)).sum::<f64>() / x.nrows() as f64
    };
    let dead = (0..on_data.ncols()).filter(|&j| entropy(&on_data, j) < 1e-4).count();
    let n = on_data.ncols();
    let words = match dead {
        0 => format!("All {n} hidden units react to the data."),
        _ => format!(
            "{dead} of {n} hidden units do not react to the data: their activity hardly varies from row to row."
        ),
    };
    Ok(Section { title: "Hidden units", words, figures })
}

/// Counts of numbers in equal bins.
pub(super) fn histogram(x: &[f64], low: f64, high: f64, bins: usize) -> Vec<(f64, f64, f64)> {
    let width = (high - low) / bins as f64;
    let mut counts = vec![0.0; bins];
    for x in x {
        counts[(((x - low) / width) as usize).min(bins - 1)] += 1.0;
    }
    counts
        .into_iter()
        .enumerate()
        .map(|(i, n)| (low + i as f64 * width, low + (i + 1) as f64 * width, n))
        .collect()
}
