//! Principal components of data, to plot data and samples in one plane.

use super::quality::visible;
use crate::machine::{Iteration, principal};
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
        Self::of_rows(&visible(machine, data)?, k)
    }

    /// The first `k` components of the rows of a matrix.
    ///
    /// # Errors
    /// Fewer than two rows, or more components than columns.
    pub fn of_rows(x: &Array2<f64>, k: usize) -> Result<Self> {
        let (rows, n) = x.dim();
        if rows < 2 || k > n || k == 0 {
            return Err(Error::shape("components", format!("1 to {n}, from at least 2 rows"), k));
        }
        let mean = x.mean_axis(Axis(0)).expect("rows");
        let x = x - &mean;
        // Additional directions speed up the convergence; a fixed start makes the result reproducible.
        let start = Array2::from_shape_fn((n, (k + 6).min(n)), |(i, j)| {
            let hash = Key { seed: 0x9ca, purpose: 0, block: j as u32, sweep: i as u64 }.hash();
            (hash >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        });
        let until = Iteration { rounds: 500, tolerance: 1e-13, wanted: k, vanishing: 0.0 };
        let (_, q) = principal(&x, &vec![1.0; rows], start, until);
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
        self.project_rows(&visible(machine, states)?)
    }

    /// Coordinates of the rows of a matrix: a column per component.
    ///
    /// # Errors
    /// Another number of columns.
    pub fn project_rows(&self, x: &Array2<f64>) -> Result<Array2<f64>> {
        if x.ncols() != self.mean.len() {
            return Err(Error::shape("columns", self.mean.len(), x.ncols()));
        }
        Ok((x - &ndarray::aview1(&self.mean)).dot(&self.components.t()))
    }
}
