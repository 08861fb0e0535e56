//! Samples and data: side by side, in principal components, in their moments.

use super::{Material, Section};
use crate::error::Result;
use crate::figure::{Chart, Figure, image_grid, rows};
use crate::picture;
use harmonium::evaluate::Pca;
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
        words: "First, rows that the machine has learned from; then its own samples, drawn \
                independently of the data."
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

/// 1 where an entry of the dense form is known, 0 where it is missing.
fn weights(m: &Material<'_>) -> Array2<f64> {
    let machine = &m.model.machine;
    let part = |l: usize| {
        let layer = machine.layer(l);
        let each = layer.width() / layer.len().max(1);
        let known = |r: usize, c: usize| m.known[l].as_ref().is_none_or(|k| k.get(r, c / each));
        Array2::from_shape_fn((m.data.rows(), layer.width()), |(r, c)| f64::from(u8::from(known(r, c))))
    };
    let parts: Vec<_> = machine.with_role(Role::Visible).map(part).collect();
    let views: Vec<_> = parts.iter().map(|p| p.view()).collect();
    concatenate(Axis(1), &views).expect("layers have equally many rows")
}

pub(super) fn section(m: &Material<'_>) -> Result<Section> {
    let machine = &m.model.machine;
    let (mut x, mut y) = (dense(machine, &m.data)?, dense(machine, &m.sampled)?);
    // Moments of the data are of the known entries alone: entries filled in by the machine would favour it.
    let known = weights(m);
    let a = means(&x, &known);
    at_mean(&mut x, &known, &a);
    let measured = machine.with_role(Role::Visible).any(|l| machine.layer(l).kind() == Kind::Gaussian);
    if measured {
        // Columns in different units in one figure: each in units of its own spread.
        for j in 0..x.ncols() {
            let share = known.column(j).mean().unwrap_or(1.0).max(f64::MIN_POSITIVE);
            let spread = x.column(j).std(0.0) / share.sqrt();
            let unit = if spread > 0.0 { spread } else { 1.0 };
            x.column_mut(j).mapv_inplace(|x| x / unit);
            y.column_mut(j).mapv_inplace(|y| y / unit);
        }
    }
    let mut figures = Vec::new();
    if x.nrows() >= 2 && x.ncols() >= 2 {
        let pca = Pca::of_rows(&x, 2)?;
        let project = |x: &Array2<f64>| -> Result<Vec<(f64, f64)>> {
            Ok(pca.project_rows(x)?.rows().into_iter().map(|r| (r[0], r[1])).collect())
        };
        let chart = Chart::new("component 1", "component 2").square();
        let chart = chart.points(project(&x)?, 1.7, 0, Some("data"));
        let chart = chart.points(project(&y)?, 1.7, 1, Some("samples"));
        figures.push(("pca".into(), chart.svg()));
    }
    let all = Array2::ones(y.raw_dim());
    let (a, b) = (means(&x, &known), means(&y, &all));
    let first: Vec<(f64, f64)> = a.iter().copied().zip(b.iter().copied()).collect();
    let r1 = correlation(&first);
    let chart = Chart::new("mean in data", "mean in samples").square().diagonal();
    figures.push(("first-moments".into(), chart.points(first, 2.2, 0, None).svg()));
    let second = covariances((&x, &known, &a), (&y, &all, &b));
    let r2 = correlation(&second);
    let chart = Chart::new("covariance in data", "covariance in samples").square().diagonal();
    figures.push(("second-moments".into(), chart.points(second, 1.3, 2, None).svg()));
    let gaps = known.rows().into_iter().filter(|row| row.iter().any(|&k| k == 0.0)).count();
    let words = format!(
        "Principal components of the data with the samples laid over them: a cloud without samples is a mode that is \
         missing. Means agree with correlation {r1:.3}, covariances with {r2:.3} ({} rows against {} samples{}).{}",
        x.nrows(),
        y.nrows(),
        if measured { "; every column in units of its standard deviation" } else { "" },
        match gaps {
            0 => String::new(),
            n => format!(
                " {n} of the rows have missing entries: their known ones count, and in the components the missing ones lie at \
                 the mean of their column."
            ),
        }
    );
    Ok(Section { title: "Do the samples resemble the data?", words, figures })
}

/// Means of the known entries of every column.
fn means(x: &Array2<f64>, known: &Array2<f64>) -> Vec<f64> {
    let mean = |j: usize| x.column(j).dot(&known.column(j)) / known.column(j).sum().max(1.0);
    (0..x.ncols()).map(mean).collect()
}

/// Puts the missing entries of every column at its mean.
fn at_mean(x: &mut Array2<f64>, known: &Array2<f64>, mean: &[f64]) {
    for ((_, j), x) in x.indexed_iter_mut().filter(|(at, _)| known[*at] == 0.0) {
        *x = mean[j];
    }
}

/// Columns with what is known of them and their means.
type Columns<'a> = (&'a Array2<f64>, &'a Array2<f64>, &'a [f64]);

/// Covariances of pairs of columns in both, evenly chosen, each over the rows where both entries are known.
fn covariances(data: Columns<'_>, samples: Columns<'_>) -> Vec<(f64, f64)> {
    let n = data.0.ncols();
    let total = n * n.saturating_sub(1) / 2;
    let step = total.div_ceil(PAIRS).max(1);
    let pairs = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j))).step_by(step);
    let cov = |(x, known, mean): Columns<'_>, i: usize, j: usize| {
        let rows = (0..x.nrows()).filter(|&r| known[[r, i]] * known[[r, j]] > 0.0);
        let products = rows.map(|r| (x[[r, i]] - mean[i]) * (x[[r, j]] - mean[j]));
        let (count, sum) = products.fold((0.0f64, 0.0), |(n, sum), p| (n + 1.0, sum + p));
        sum / count.max(1.0)
    };
    pairs.map(|(i, j)| (cov(data, i, j), cov(samples, i, j))).collect()
}

/// Pearson's correlation.
fn correlation(p: &[(f64, f64)]) -> f64 {
    let n = p.len().max(1) as f64;
    let (mx, my) = (p.iter().map(|q| q.0).sum::<f64>() / n, p.iter().map(|q| q.1).sum::<f64>() / n);
    let sum = |f: &dyn Fn(&(f64, f64)) -> f64| p.iter().map(f).sum::<f64>();
    let (xx, yy) = (sum(&|q| (q.0 - mx).powi(2)), sum(&|q| (q.1 - my).powi(2)));
    sum(&|q| (q.0 - mx) * (q.1 - my)) / (xx * yy).sqrt().max(1e-300)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    /// Missing entries, whatever stands there, change no moment: three rows of which one lacks an entry in each column.
    #[test]
    fn moments_are_of_the_known_entries() {
        let mut x = array![[1.0, 2.0], [3.0, 6.0], [99.0, 4.0], [2.0, 77.0]];
        let known = array![[1.0, 1.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]];
        let mean = means(&x, &known);
        assert_eq!(mean, [2.0, 4.0]);
        at_mean(&mut x, &known, &mean);
        assert_eq!((x[[2, 0]], x[[3, 1]], x[[2, 1]]), (2.0, 4.0, 4.0));
        let cov = covariances((&x, &known, &mean), (&x, &Array2::ones((4, 2)), &mean));
        // Of two rows with both entries, and of four with those at the mean.
        assert_eq!(cov, [(2.0, 1.0)]);
    }
}
