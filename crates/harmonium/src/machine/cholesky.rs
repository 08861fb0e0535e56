//! Cholesky factors of the precision matrices of coupled Gaussian units.

use ndarray::Array2;

/// The lower triangle L of $P = LL^\top$.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cholesky {
    l: Array2<f64>,
}

impl Cholesky {
    /// The factor of a symmetric matrix, or `None` when it is not positive definite.
    pub(crate) fn new(p: &Array2<f64>) -> Option<Self> {
        let n = p.nrows();
        let mut l = Array2::<f64>::zeros((n, n));
        for i in 0..n {
            for j in 0..=i {
                let (row, other) = (l.row(i), l.row(j));
                let dot: f64 = row.iter().zip(other).take(j).map(|(a, b)| a * b).sum();
                let rest = p[[i, j]] - dot;
                l[[i, j]] = match i == j {
                    true if rest > 0.0 => rest.sqrt(),
                    true => return None,
                    false => rest / l[[j, j]],
                };
            }
        }
        l.iter().all(|x| x.is_finite()).then_some(Self { l })
    }

    /// L.
    pub(crate) fn lower(&self) -> &Array2<f64> {
        &self.l
    }

    /// $\ln\det L = \tfrac12\ln\det P$.
    pub(crate) fn log_det(&self) -> f64 {
        self.l.diag().iter().map(|x| x.ln()).sum()
    }

    /// $x \leftarrow L^{-1}x$.
    pub(crate) fn solve_lower(&self, x: &mut [f64]) {
        for i in 0..x.len() {
            let row = self.l.row(i);
            let dot: f64 = row.iter().zip(&x[..i]).map(|(a, b)| a * b).sum();
            x[i] = (x[i] - dot) / row[i];
        }
    }

    /// $x \leftarrow L^{-\top}x$.
    pub(crate) fn solve_upper(&self, x: &mut [f64]) {
        for i in (0..x.len()).rev() {
            x[i] /= self.l[[i, i]];
            let (xi, row) = (x[i], self.l.row(i));
            x[..i].iter_mut().zip(row).for_each(|(x, a)| *x -= a * xi);
        }
    }

    /// $x \leftarrow P^{-1}x$.
    pub(crate) fn solve(&self, x: &mut [f64]) {
        self.solve_lower(x);
        self.solve_upper(x);
    }

    /// $P^{-1}$.
    pub(crate) fn inverse(&self) -> Array2<f64> {
        let n = self.l.nrows();
        let mut out = Array2::eye(n);
        for mut row in out.rows_mut() {
            self.solve(row.as_slice_mut().expect("rows are contiguous"));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factor_solves_and_inverts() {
        let a = Array2::from_shape_fn((5, 5), |(i, j)| ((3 * i + 7 * j) as f64).sin());
        let p = a.dot(&a.t()) + Array2::<f64>::eye(5);
        let c = Cholesky::new(&p).unwrap();
        let close = |x: &Array2<f64>, y: &Array2<f64>| (x - y).iter().all(|d| d.abs() < 1e-12);
        assert!(close(&c.lower().dot(&c.lower().t()), &p));
        assert!(close(&c.inverse().dot(&p), &Array2::eye(5)));
        assert!(Cholesky::new(&(-&p)).is_none());
        // det P = (det L)², and the determinant of diag(4, 9) is known.
        let d = Cholesky::new(&Array2::from_diag(&ndarray::arr1(&[4.0, 9.0]))).unwrap();
        assert!((d.log_det() - 6f64.ln()).abs() < 1e-14);
    }
}
