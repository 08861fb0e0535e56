//! Maps of real columns: each column's own curve, kept where it makes left-out rows more probable together with the others.

use harmonium::train::normal_log_density;
use harmonium_data::{Curve, Transform};
use ndarray::{Array2, ArrayView2, Axis};

/// Parts that rows are cut into to compare curves with straight maps.
const FOLDS: usize = 5;
/// Fewest and most rows that such a comparison looks at, and most columns: its cost grows with their cube.
const FEWEST: usize = 4 * FOLDS;
const MOST: usize = 2000;
const WIDEST: usize = 60;

/// A transform for each column of real numbers, NaN where one is missing.
///
/// [`Transform::fit`] looks at one column. Curves that make columns more normal one by one may bend straight relations between
/// them, and of few rows may follow chance: where rows that were left out are not more probable under one normal distribution
/// of the curved columns than under one of the straight columns, by a standard error, all maps are straight.
pub fn fit_transforms(x: ArrayView2<'_, f64>) -> Vec<Transform> {
    let curved = curved_maps(x);
    let is_curved = |map: &Transform| map.curve != Curve::Linear;
    let complete: Vec<usize> =
        (0..x.nrows()).filter(|&r| x.row(r).iter().all(|x| x.is_finite())).collect();
    let comparable = x.ncols() <= WIDEST && complete.len() >= FEWEST.max(2 * x.ncols());
    if !curved.iter().any(is_curved) || x.ncols() < 2 || !comparable {
        return curved;
    }
    let step = complete.len().div_ceil(MOST);
    let rows: Vec<usize> = complete.into_iter().step_by(step).collect();
    match curves_help(&x.select(Axis(0), &rows)) {
        Some(false) => straight_maps(x),
        _ => curved,
    }
}

fn curved_maps(x: ArrayView2<'_, f64>) -> Vec<Transform> {
    x.columns().into_iter().map(|c| Transform::fit(c.iter().copied())).collect()
}

fn straight_maps(x: ArrayView2<'_, f64>) -> Vec<Transform> {
    x.columns().into_iter().map(|c| Transform::straight(c.iter().copied())).collect()
}

/// Whether left-out rows gain by curves, more than by chance; `None` where there is no normal distribution to compare.
fn curves_help(x: &Array2<f64>) -> Option<bool> {
    let mut gains = Vec::new();
    for fold in 0..FOLDS {
        let part = |held: bool| {
            let rows: Vec<usize> = (0..x.nrows()).filter(|r| (r % FOLDS == fold) == held).collect();
            x.select(Axis(0), &rows)
        };
        let (train, held) = (part(false), part(true));
        // Rows that straight maps miss by far count in full: with their ends, straight maps of skewed columns looked good.
        let endless = |maps: Vec<Transform>| -> Vec<Transform> {
            maps.into_iter().map(Transform::without_ends).collect()
        };
        let curved = log_density(&endless(curved_maps(train.view())), &train, &held)?;
        let straight = log_density(&endless(straight_maps(train.view())), &train, &held)?;
        gains.extend(curved.into_iter().zip(straight).map(|(c, s)| c - s));
    }
    let n = gains.len() as f64;
    let mean = gains.iter().sum::<f64>() / n;
    let variance = gains.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Some(mean > (variance / n).sqrt())
}

/// ln p of each held row, but for a constant, under the normal distribution of the mapped training rows.
fn log_density(maps: &[Transform], train: &Array2<f64>, held: &Array2<f64>) -> Option<Vec<f64>> {
    let mapped = |x: &Array2<f64>| Array2::from_shape_fn(x.dim(), |(r, j)| maps[j].forward(x[[r, j]]));
    let density = normal_log_density(&mapped(train), &mapped(held))?;
    let slope = |row: ndarray::ArrayView1<'_, f64>| -> f64 {
        row.iter().zip(maps).map(|(&x, map)| map.log_slope(x)).sum()
    };
    Some(density.into_iter().zip(held.rows()).map(|(d, row)| d + slope(row)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look normal: sums of twelve of a chaotic sequence.
    fn noise(n: usize, seed: f64) -> Vec<f64> {
        let mut x = seed;
        let mut next = || {
            x = 3.999 * x * (1.0 - x);
            x - 0.5
        };
        (0..n).map(|_| (0..12).map(|_| next()).sum()).collect()
    }

    /// Two skewed columns, one of which is a straight function of the other but for little noise: curves would bend it.
    #[test]
    fn curves_that_bend_a_straight_relation_are_not_taken() {
        let (a, b) = (noise(80, 0.3), noise(80, 0.7));
        let skewed = |r: usize| a[r].exp();
        let x = Array2::from_shape_fn((80, 2), |(r, j)| match j {
            0 => skewed(r),
            _ => 5.0 - skewed(r) + 0.01 * b[r],
        });
        let names = |maps: Vec<Transform>| maps.iter().map(Transform::name).collect::<Vec<_>>();
        assert!(names(curved_maps(x.view())).iter().all(Option::is_some));
        assert_eq!(names(fit_transforms(x.view())), [None, None]);
        // Without the relation the curves stay.
        let x = Array2::from_shape_fn((80, 2), |(r, j)| if j == 0 { skewed(r) } else { b[r].exp() });
        assert!(names(fit_transforms(x.view())).iter().all(Option::is_some));
    }

    #[test]
    fn gaps_few_rows_and_single_columns_have_maps() {
        let a = noise(40, 0.2);
        let x = Array2::from_shape_fn((40, 3), |(r, j)| {
            if (r + j) % 3 == 0 { f64::NAN } else { a[r] * (j + 1) as f64 }
        });
        assert_eq!(fit_transforms(x.view()).len(), 3);
        let few = x.select(Axis(0), &[0, 1, 2]).select(Axis(1), &[0]);
        assert_eq!(fit_transforms(few.view()).len(), 1);
    }
}
