//! Eigenvalues of symmetric matrices and singular values of weights.

use ndarray::{Array1, Array2, ArrayView2, Axis};

/// Singular values of a matrix, largest first: square roots of the eigenvalues of the smaller Gram matrix.
pub(crate) fn singular_values(w: ArrayView2<'_, f64>) -> Vec<f64> {
    let gram = if w.nrows() >= w.ncols() { w.t().dot(&w) } else { w.dot(&w.t()) };
    let mut out: Vec<f64> = eigenvalues(gram).into_iter().map(|x| x.max(0.0).sqrt()).collect();
    out.sort_by(|a, b| b.total_cmp(a));
    out
}

/// Eigenvalues of a symmetric matrix: Householder's reduction to three diagonals, then bisection with Sturm
/// counts, which cannot fail to converge.
pub(crate) fn eigenvalues(a: Array2<f64>) -> Vec<f64> {
    let (d, e) = tridiagonal(a);
    let n = d.len();
    let radius = |i: usize| e.get(i).map_or(0.0, |x| x.abs()) + if i > 0 { e[i - 1].abs() } else { 0.0 };
    let low = (0..n).map(|i| d[i] - radius(i)).fold(f64::INFINITY, f64::min);
    let high = (0..n).map(|i| d[i] + radius(i)).fold(f64::NEG_INFINITY, f64::max);
    let tiny = 1e-15 * high.abs().max(low.abs()).max(f64::MIN_POSITIVE);
    // Number of eigenvalues below x: negative pivots of the factorisation of T − x.
    let below = |x: f64| {
        let mut count = 0;
        let mut pivot = 1.0;
        for i in 0..n {
            let off = if i > 0 { e[i - 1] * e[i - 1] / pivot } else { 0.0 };
            pivot = d[i] - x - off;
            if pivot.abs() < f64::MIN_POSITIVE.sqrt() {
                pivot = -f64::MIN_POSITIVE.sqrt();
            }
            count += usize::from(pivot < 0.0);
        }
        count
    };
    let find = |k: usize| {
        let (mut a, mut b) = (low, high);
        while b - a > tiny.max(1e-13 * a.abs().max(b.abs())) {
            let m = 0.5 * (a + b);
            if m <= a || m >= b {
                break;
            }
            if below(m) > k { b = m } else { a = m }
        }
        0.5 * (a + b)
    };
    use rayon::prelude::*;
    (0..n).into_par_iter().map(find).collect()
}

/// Diagonal and off-diagonal of an orthogonally equivalent matrix of three diagonals.
fn tridiagonal(mut a: Array2<f64>) -> (Vec<f64>, Vec<f64>) {
    let n = a.nrows();
    let mut off = Vec::with_capacity(n.saturating_sub(1));
    for k in 0..n.saturating_sub(1) {
        let x: Array1<f64> = (k + 1..n).map(|i| a[[i, k]]).collect();
        let norm = x.dot(&x).sqrt();
        if k + 2 == n || norm == 0.0 {
            off.push(x[0]);
            continue;
        }
        let alpha = if x[0] > 0.0 { -norm } else { norm };
        let mut v = x;
        v[0] -= alpha;
        let vv = v.dot(&v);
        off.push(alpha);
        if vv == 0.0 {
            continue;
        }
        let (_, rest) = a.view_mut().split_at(Axis(0), k + 1);
        let (_, mut rest) = rest.split_at(Axis(1), k + 1);
        let p = rest.dot(&v) * (2.0 / vv);
        let q = &p - &(&v * (p.dot(&v) / vv));
        for (i, mut row) in rest.rows_mut().into_iter().enumerate() {
            for (j, x) in row.iter_mut().enumerate() {
                *x -= v[i] * q[j] + q[i] * v[j];
            }
        }
    }
    ((0..n).map(|i| a[[i, i]]).collect(), off)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spectra_keep_trace_and_norm() {
        let w = Array2::from_shape_fn((7, 5), |(i, j)| ((i * 5 + j) as f64 * 1.7).sin());
        let s = singular_values(w.view());
        let norm: f64 = w.iter().map(|x| x * x).sum();
        assert_eq!(s.len(), 5);
        assert!((s.iter().map(|x| x * x).sum::<f64>() - norm).abs() < 1e-9);
        // diag(3, 1) rotated by any angle has the eigenvalues 3 and 1.
        let (c, t) = (0.3f64.cos(), 0.3f64.sin());
        let a = ndarray::array![[3.0 * c * c + t * t, 2.0 * c * t], [2.0 * c * t, 3.0 * t * t + c * c]];
        let e = eigenvalues(a);
        assert!((e[0] - 1.0).abs() < 1e-10 && (e[1] - 3.0).abs() < 1e-10, "{e:?}");
    }
}
