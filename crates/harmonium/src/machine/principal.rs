//! Principal components of weighted rows, by subspace iteration.

use ndarray::{Array1, Array2, Axis};

/// When subspace iteration ends.
#[derive(Clone, Copy)]
pub(crate) struct Iteration {
    /// Most rounds. The error falls by the ratio of neighbouring eigenvalues in each.
    pub(crate) rounds: usize,
    /// Change of the first `wanted` eigenvalues in one round, relative to the largest, below which it ends.
    pub(crate) tolerance: f64,
    pub(crate) wanted: usize,
    /// Length up to which a direction counts as zero: the data have no further components.
    pub(crate) vanishing: f64,
}

/// The weighted mean of the columns of `x` and orthonormal directions, as columns, in which its rows vary most, one for
/// each column of `start`: $U \leftarrow \mathrm{orth}(X^\top w X U)$ for centred rows X.
pub(crate) fn principal(
    x: &Array2<f64>,
    wts: &[f64],
    start: Array2<f64>,
    until: Iteration,
) -> (Array1<f64>, Array2<f64>) {
    let total: f64 = wts.iter().sum();
    let wts = Array1::from_iter(wts.iter().map(|w| w / total));
    let mean = wts.dot(x);
    let mut u = start;
    orthonormalise(&mut u, until.vanishing);
    let mut eigenvalues = vec![0.0; u.ncols()];
    for _ in 0..until.rounds {
        let mut y = x.dot(&u);
        y -= &mean.dot(&u);
        y *= &wts.view().insert_axis(Axis(1));
        u = x.t().dot(&y) - outer(&mean, &y.sum_axis(Axis(0)));
        let next = orthonormalise(&mut u, until.vanishing);
        let largest = next.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let changes = next.iter().zip(&eigenvalues).take(until.wanted).map(|(a, b)| (a - b).abs());
        let change = changes.fold(0.0, f64::max);
        eigenvalues = next;
        if change < until.tolerance * largest {
            break;
        }
    }
    (mean, u)
}

fn outer(a: &Array1<f64>, b: &Array1<f64>) -> Array2<f64> {
    Array2::from_shape_fn((a.len(), b.len()), |(i, j)| a[i] * b[j])
}

/// Gram–Schmidt on the columns, repeated because of rounding. Columns no longer than `vanishing` become zero. Returns the
/// lengths of the columns after the others were projected out.
fn orthonormalise(u: &mut Array2<f64>, vanishing: f64) -> Vec<f64> {
    let mut lengths = Vec::with_capacity(u.ncols());
    for k in 0..u.ncols() {
        for _ in 0..2 {
            for j in 0..k {
                let part = u.column(j).dot(&u.column(k));
                let other = u.column(j).to_owned();
                u.column_mut(k).scaled_add(-part, &other);
            }
        }
        let norm = u.column(k).dot(&u.column(k)).sqrt();
        let scale = if norm > vanishing { 1.0 / norm } else { 0.0 };
        u.column_mut(k).mapv_inplace(|x| scale * x);
        lengths.push(norm);
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_direction_of_two_clusters() {
        let sign = |r: usize| if r.is_multiple_of(3) { 1.0 } else { -1.0 };
        let x = Array2::from_shape_fn((30, 6), |(r, i)| if i < 4 { sign(r) } else { 1.0 });
        let start = Array2::from_shape_fn((6, 2), |(i, j)| ((3 * i + 5 * j) as f64).sin());
        let until = Iteration { rounds: 60, tolerance: 0.0, wanted: 2, vanishing: 1e-12 };
        let (mean, u) = principal(&x, &[1.0; 30], start, until);
        assert!((mean[0] + 1.0 / 3.0).abs() < 1e-12 && (mean[5] - 1.0).abs() < 1e-12);
        for i in 0..6 {
            let want = if i < 4 { 0.5 } else { 0.0 };
            assert!((u[[i, 0]].abs() - want).abs() < 1e-9, "{u}");
        }
        assert!(u.column(1).dot(&u.column(1)) < 1e-9, "there is no second direction");
    }
}
