//! Principal components of data, to plot data and samples in one plane.

use super::quality::visible;
use crate::{Error, Key, Machine, Real, Result, States};
use ndarray::{Array2, Axis};

/// Principal components of data.
#[derive(Clone, Debug, PartialEq)]
pub struct Pca {
    /// Mean of the data.
    pub mean: Vec<f64>,
    /// A row per component, of unit length, the largest variance first.
    pub components: Array2<f64>,
    /// Variance of the data along each.
    pub variances: Vec<f64>,
}

impl Pca {
    /// The first `k` components of the visible layers of `data`, by orthogonal iteration on the covariance.
    ///
    /// # Errors
    /// Fewer than two rows, or more components than columns.
    pub fn new<T: Real>(machine: &Machine<T>, data: &States<T>, k: usize) -> Result<Self> {
        let x = visible(machine, data)?;
        let (rows, n) = x.dim();
        if rows < 2 || k > n || k == 0 {
            return Err(Error::shape("components", format!("1 to {n}, from at least 2 rows"), k));
        }
        let mean = x.mean_axis(Axis(0)).expect("rows");
        let x = x - &mean;
        // Additional directions speed up the convergence; a fixed start makes the result reproducible.
        let width = (k + 6).min(n);
        let mut q = Array2::from_shape_fn((n, width), |(i, j)| {
            let hash = Key { seed: 0x9ca, purpose: 0, block: j as u32, sweep: i as u64 }.hash();
            (hash >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        });
        orthonormalise(&mut q);
        let mut variances = vec![0.0; width];
        for _ in 0..500 {
            let mut next = x.t().dot(&x.dot(&q)) / rows as f64;
            let lengths: Vec<f64> = next.columns().into_iter().map(|c| c.dot(&c).sqrt()).collect();
            orthonormalise(&mut next);
            q = next;
            let change = (0..k)
                .map(|j| (lengths[j] - variances[j]).abs() / lengths[0].max(1e-300))
                .fold(0.0, f64::max);
            variances = lengths;
            if change < 1e-13 {
                break;
            }
        }
        let mut components = q.t().select(Axis(0), &(0..k).collect::<Vec<_>>());
        for mut row in components.rows_mut() {
            // The sign is free: the largest entry is positive.
            let largest =
                row.iter().copied().fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a });
            row.mapv_inplace(|x| if largest < 0.0 { -x } else { x });
        }
        let projected = x.dot(&components.t());
        let variances = projected.columns().into_iter().map(|c| c.dot(&c) / rows as f64).collect();
        Ok(Self { mean: mean.to_vec(), components, variances })
    }

    /// Coordinates of the rows of `states`: a column per component.
    ///
    /// # Errors
    /// When the states are not of the machine the components came from.
    pub fn project<T: Real>(&self, machine: &Machine<T>, states: &States<T>) -> Result<Array2<f64>> {
        let x = visible(machine, states)?;
        if x.ncols() != self.mean.len() {
            return Err(Error::shape("columns", self.mean.len(), x.ncols()));
        }
        Ok((x - ndarray::aview1(&self.mean)).dot(&self.components.t()))
    }
}

/// Gram–Schmidt, repeated because of rounding.
fn orthonormalise(q: &mut Array2<f64>) {
    for j in 0..q.ncols() {
        for _ in 0..2 {
            for i in 0..j {
                let (a, b) = (q.column(i).to_owned(), q.column(j).to_owned());
                let overlap = a.dot(&b);
                q.column_mut(j).scaled_add(-overlap, &a);
            }
        }
        let norm = q.column(j).dot(&q.column(j)).sqrt();
        q.column_mut(j).mapv_inplace(|x| if norm > 0.0 { x / norm } else { 0.0 });
    }
}
