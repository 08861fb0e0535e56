//! Samples and data: side by side, in principal components, in their moments.

use super::{Material, Section};
use crate::error::Result;
use crate::figure::{Chart, Figure, image_grid, rows};
use crate::linalg::principal;
use crate::picture;
use harmonium::{Kind, Machine, Role, States};
use harmonium_data::Table;
use ndarray::{Array2, Axis, concatenate};

/// Pairs of columns whose correlation is compared.
const PAIRS: usize = 4000;
/// Rows, columns and letters that are shown as text.
const TEXT_ROWS: usize = 16;
const TEXT_COLUMNS: usize = 10;
const WIDE: usize = 120;

pub(super) fn side_by_side(m: &Material<'_>) -> Section {
    let mut figures = Vec::new();
    let images = |table: &Table| {
        let step = (table.rows() / 64).max(1);
        picture::images(table, (0..table.rows()).step_by(step).take(64))
    };
    match (images(&m.rows), images(&m.samples)) {
        (Some(data), Some(samples)) => {
            figures.push(("data".into(), image_grid(&data, 8, 340, None)));
            figures.push(("samples".into(), image_grid(&samples, 8, 340, None)));
        }
        _ => {
            figures.push(("data".into(), text(&m.rows)));
            figures.push(("samples".into(), text(&m.samples)));
        }
    }
    Section {
        title: "Data and samples",
        words: "First, rows that the machine has learned from; then its own samples, each from a chain of its own that \
                has never seen the data."
            .into(),
        figures,
    }
}

/// Some rows as text: sequences in one piece, other tables in columns below their names.
fn text(table: &Table) -> Figure {
    let step = (table.rows() / TEXT_ROWS).max(1);
    let shown = (0..table.rows()).step_by(step).take(TEXT_ROWS);
    let mut columns: Vec<(usize, usize, usize)> = Vec::new();
    for (b, block) in table.blocks().iter().enumerate() {
        columns.extend(block.columns.iter().enumerate().map(|(j, &place)| (place, b, j)));
    }
    columns.sort_unstable();
    let word = |r: usize, &(_, b, j): &(usize, usize, usize)| {
        let entry = table.entry(&table.blocks()[b], r, j);
        // Measured numbers have more digits than anybody wants to read here.
        match entry.parse::<f64>() {
            Ok(x) if x.fract() != 0.0 => format!("{x:.3}"),
            _ => entry.into_owned(),
        }
    };
    let schema = &table.schema().columns;
    let letters = |&(place, ..): &(usize, usize, usize)| {
        let names = &schema[place].categories;
        !names.is_empty() && names.iter().all(|n| n.chars().count() == 1)
    };
    if columns.iter().all(letters) {
        let sequence = |r| vec![columns.iter().take(WIDE).map(|c| word(r, c)).collect::<String>()];
        return rows(&shown.map(sequence).collect::<Vec<_>>(), false);
    }
    columns.truncate(TEXT_COLUMNS);
    let head = columns.iter().map(|c| schema[c.0].name.clone()).collect();
    let lines = shown.map(|r| columns.iter().map(|c| word(r, c)).collect());
    rows(&std::iter::once(head).chain(lines).collect::<Vec<_>>(), true)
}

/// All visible layers as numbers, states one-hot.
fn dense(machine: &Machine, states: &States) -> Result<Array2<f64>> {
    let parts: Vec<Array2<f64>> = machine
        .with_role(Role::Visible)
        .map(|l| Ok(machine.layer(l).dense(states.layer(l)?).mapv(f64::from)))
        .collect::<Result<_>>()?;
    let views: Vec<_> = parts.iter().map(|p| p.view()).collect();
    Ok(concatenate(Axis(1), &views).expect("layers have equally many rows"))
}

pub(super) fn section(m: &Material<'_>) -> Result<Section> {
    let machine = &m.model.machine;
    let (mut x, mut y) = (dense(machine, &m.data)?, dense(machine, &m.sampled)?);
    let measured = machine.with_role(Role::Visible).any(|l| machine.layer(l).kind() == Kind::Gaussian);
    if measured {
        // Columns in different units in one figure: each in units of its own spread.
        for j in 0..x.ncols() {
            let spread = x.column(j).std(0.0);
            let unit = if spread > 0.0 { spread } else { 1.0 };
            x.column_mut(j).mapv_inplace(|x| x / unit);
            y.column_mut(j).mapv_inplace(|y| y / unit);
        }
    }
    let mut figures = Vec::new();
    let (mean, axes) = principal(x.view(), 4);
    let project = |x: &Array2<f64>, i: usize, j: usize| -> Vec<(f64, f64)> {
        let p = (x - &mean).dot(&axes.t());
        p.rows().into_iter().map(|r| (r[i], r[j])).collect()
    };
    if axes.nrows() >= 2 {
        let chart = Chart::new("component 1", "component 2").square();
        let chart = chart.points(project(&x, 0, 1), 1.7, 0, Some("data")).points(
            project(&y, 0, 1),
            1.7,
            1,
            Some("samples"),
        );
        figures.push(("pca".into(), chart.svg()));
    }
    let means = |x: &Array2<f64>| x.mean_axis(Axis(0)).map(|m| m.to_vec()).unwrap_or_default();
    let (a, b) = (means(&x), means(&y));
    let first: Vec<(f64, f64)> = a.iter().copied().zip(b.iter().copied()).collect();
    let r1 = correlation(&first);
    let chart = Chart::new("mean in data", "mean in samples").square().diagonal();
    figures.push(("first-moments".into(), chart.points(first, 2.2, 0, None).svg()));
    let second = covariances(&x, &y, &a, &b);
    let r2 = correlation(&second);
    let chart = Chart::new("covariance in data", "covariance in samples").square().diagonal();
    figures.push(("second-moments".into(), chart.points(second, 1.3, 2, None).svg()));
    let words = format!(
        "Principal components of the data with the samples laid over them: a cloud without samples is a mode that is \
         missing. Means agree with correlation {r1:.3}, covariances with {r2:.3} ({} rows against {} samples{}).",
        x.nrows(),
        y.nrows(),
        if measured { "; every column in units of its standard deviation" } else { "" }
    );
    Ok(Section { title: "Do the samples resemble the data?", words, figures })
}

/// Covariances of pairs of columns in both, evenly chosen.
fn covariances(x: &Array2<f64>, y: &Array2<f64>, a: &[f64], b: &[f64]) -> Vec<(f64, f64)> {
    let n = x.ncols();
    let total = n * n.saturating_sub(1) / 2;
    let step = total.div_ceil(PAIRS).max(1);
    let pairs = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j))).step_by(step);
    let cov = |x: &Array2<f64>, m: &[f64], i: usize, j: usize| {
        x.column(i).dot(&x.column(j)) / x.nrows() as f64 - m[i] * m[j]
    };
    pairs.map(|(i, j)| (cov(x, a, i, j), cov(y, b, i, j))).collect()
}

/// Pearson's correlation.
fn correlation(p: &[(f64, f64)]) -> f64 {
    let n = p.len().max(1) as f64;
    let (mx, my) = (p.iter().map(|q| q.0).sum::<f64>() / n, p.iter().map(|q| q.1).sum::<f64>() / n);
    let sum = |f: &dyn Fn(&(f64, f64)) -> f64| p.iter().map(f).sum::<f64>();
    let (xx, yy) = (sum(&|q| (q.0 - mx).powi(2)), sum(&|q| (q.1 - my).powi(2)));
    sum(&|q| (q.0 - mx) * (q.1 - my)) / (xx * yy).sqrt().max(1e-300)
}
