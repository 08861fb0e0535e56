//! The normal distribution of rows with gaps, by expectation maximisation (Dempster, Laird and Rubin, 1977).

use crate::machine::Cholesky;
use ndarray::{Array1, Array2, ArrayViewMut1, Axis};

/// Rounds at most, and the change of a correlation at which they end.
const ROUNDS: usize = 100;
const CLOSE: f64 = 1e-4;

/// Rows with gaps times squared columns up to which a round takes some hundredths of a second.
const CHEAP: usize = 10_000_000;

/// Shrinkage of correlations towards zero in each round: dependent columns have no inverse covariance.
const RIDGE: f64 = 1e-6;

/// Mean and covariance, in standard units, of rows `z` of weights `wts` with the entries known where `known` is true,
/// started from `correlation`. Each round replaces missing entries by their expectation given the known entries of the
/// row,
///
/// $\mathrm E[z_M\mid z_O] = \mu_M - P_{MM}^{-1}P_{MO}(z_O-\mu_O), \quad \mathrm{Cov}[z_M\mid z_O] = P_{MM}^{-1}$
///
/// with the inverse covariance P, and computes the moments. `None` where this would take too long, or where no
/// covariance is positive definite.
pub(super) fn moments_with_gaps(
    z: &Array2<f64>,
    wts: &[f64],
    known: impl Fn(usize, usize) -> bool,
    correlation: &Array2<f64>,
) -> Option<(Array1<f64>, Array2<f64>)> {
    let (rows, n) = z.dim();
    let missing: Vec<Vec<usize>> =
        (0..rows).map(|r| (0..n).filter(|&j| !known(r, j)).collect()).collect();
    let open: Vec<usize> = (0..rows).filter(|&r| !missing[r].is_empty()).collect();
    if open.len() * n * n > CHEAP {
        return None;
    }
    let total: f64 = wts.iter().sum();
    let roots = Array1::from_iter(wts.iter().map(|w| w.sqrt())).insert_axis(Axis(1));
    let mut z = z.clone();
    let (mut mean, mut covariance) = (Array1::zeros(n), positive_definite(correlation)?);
    for _ in 0..ROUNDS {
        let precision = Cholesky::new(&covariance)?.inverse();
        let mut uncertain = Array2::<f64>::zeros((n, n));
        for &r in &open {
            let spread = expect(&mut z.row_mut(r), &missing[r], &mean, &precision)?;
            for ((i, j), s) in spread.indexed_iter() {
                uncertain[[missing[r][i], missing[r][j]]] += wts[r] * s;
            }
        }
        mean = (&z * &roots * &roots).sum_axis(Axis(0)) / total;
        let centred = (&z - &mean.view().insert_axis(Axis(0))) * &roots;
        let mut next = (centred.t().dot(&centred) + uncertain) / total;
        next.indexed_iter_mut().filter(|((i, j), _)| i != j).for_each(|(_, c)| *c *= 1.0 - RIDGE);
        let change = (&next - &covariance).iter().fold(0.0, |most: f64, d| most.max(d.abs()));
        covariance = next;
        if change < CLOSE {
            break;
        }
    }
    Some((mean, covariance))
}

/// Writes the expectation of the missing entries into a row, and returns their covariance.
fn expect(
    z: &mut ArrayViewMut1<'_, f64>,
    missing: &[usize],
    mean: &Array1<f64>,
    precision: &Array2<f64>,
) -> Option<Array2<f64>> {
    // At the mean, missing entries add nothing to P(z − μ).
    missing.iter().for_each(|&j| z[j] = mean[j]);
    let gap = &*z - mean;
    let among = precision.select(Axis(0), missing).select(Axis(1), missing);
    let spread = Cholesky::new(&among)?.inverse();
    let pull = Array1::from_iter(missing.iter().map(|&j| precision.row(j).dot(&gap)));
    missing.iter().zip(&spread.dot(&pull)).for_each(|(&j, s)| z[j] -= s);
    Some(spread)
}

/// The correlations with the least shrinkage that makes them positive definite.
fn positive_definite(correlation: &Array2<f64>) -> Option<Array2<f64>> {
    [RIDGE, 0.01, 0.1, 0.3, 1.0].into_iter().find_map(|part| {
        let mut drawn = correlation * (1.0 - part);
        drawn.diag_mut().fill(1.0);
        Cholesky::new(&drawn).map(|_| drawn)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the second of two columns is missing the likelihood has a closed form: the first column's moments are those of all
    /// rows, the regression of the second on it is that of the whole rows.
    #[test]
    fn one_column_with_gaps_has_its_regression() {
        let n = 400;
        // A deterministic spread of points about a line.
        let x = |r: usize| 2.0 * ((r as f64 * 0.618).fract() - 0.5);
        let y = |r: usize| 0.8 * x(r) + 0.7 * ((r as f64 * 0.4142).fract() - 0.5);
        let z = Array2::from_shape_fn((n, 2), |(r, j)| if j == 0 { x(r) } else { y(r) });
        // The second is missing where the first is large, so that the mean of the known entries is biased.
        let known = |r: usize, j: usize| j == 0 || x(r) < 0.3;
        let wts: Vec<f64> = (0..n).map(|r| 1.0 + (r % 3) as f64).collect();
        let sum = |f: &dyn Fn(usize) -> f64, all: bool| -> f64 {
            (0..n).filter(|&r| all || known(r, 1)).map(|r| wts[r] * f(r)).sum()
        };
        let (total, whole) = (sum(&|_| 1.0, true), sum(&|_| 1.0, false));
        let (mx, my) = (sum(&x, false) / whole, sum(&y, false) / whole);
        let xx = sum(&|r| (x(r) - mx).powi(2), false);
        let slope = sum(&|r| (x(r) - mx) * (y(r) - my), false) / xx;
        let rest = sum(&|r| (y(r) - my - slope * (x(r) - mx)).powi(2), false) / whole;
        let mean = sum(&x, true) / total;
        let variance = sum(&|r| (x(r) - mean).powi(2), true) / total;
        let (found, covariance) = moments_with_gaps(&z, &wts, known, &Array2::eye(2)).unwrap();
        let expected = [mean, my + slope * (mean - mx)];
        for (a, b) in found.iter().zip(expected) {
            // Rounds end at changes of 1e-4, a third of the entries of a column are open.
            assert!((a - b).abs() < 2e-3, "{found} {expected:?}");
        }
        let expected = [variance, slope * variance, slope * variance, rest + slope * slope * variance];
        for (a, b) in covariance.iter().zip(expected) {
            assert!((a - b).abs() < 2e-3, "{covariance} {expected:?}");
        }
        // What is known of the column has another mean: the test would see its use.
        assert!((my - found[1]).abs() > 0.1);
    }

    #[test]
    fn columns_without_an_inverse_covariance_are_no_obstacle() {
        let z = Array2::from_shape_fn((30, 3), |(r, j)| if j == 2 { 0.0 } else { (r % 7) as f64 - 3.0 });
        let known = |r: usize, j: usize| r % 5 != j;
        let (mean, covariance) = moments_with_gaps(&z, &[1.0; 30], known, &Array2::eye(3)).unwrap();
        assert!(mean.iter().chain(&covariance).all(|x| x.is_finite()));
    }
}
