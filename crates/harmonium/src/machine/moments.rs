//! Moments ⟨t(x)⟩ over a batch: the one computation that both phases of learning share.

use super::{Parameters, Tempered};
use crate::{Error, Kind, Real, Result, States};
use ndarray::{Array2, Axis};

impl<T: Real> Tempered<'_, T> {
    /// Weighted averages over the rows of the sufficient statistics of every layer and coupling,
    /// $\langle t_k(x)\rangle$ and $\langle x_a x_b^\top\rangle$.
    ///
    /// The states of the `averaged` layers are not read: their conditional expectation given the others
    /// takes their place, which has the same mean as a sample and less variance. With data in the visible
    /// layers and the hidden ones averaged this is the positive phase; with chains, the negative one.
    ///
    /// # Errors
    /// Averaged layers that are coupled to each other, states that are not held, weights of another length
    /// or without a positive sum.
    pub fn moments(
        &self,
        states: &States<T>,
        averaged: &[usize],
        wts: Option<&[f64]>,
    ) -> Result<Parameters<T>> {
        self.must_factorise("the average over these layers", averaged)?;
        let machine = self.machine();
        let total = total_weight(states.rows(), wts)?;
        let mut dense = Vec::with_capacity(machine.len());
        let mut layers = Vec::with_capacity(machine.len());
        for l in 0..machine.len() {
            let layer = self.layer(l);
            let (x, stats) = if averaged.contains(&l) {
                let mean = self.mean_for_moments(l, states)?;
                let stats = match layer.kind().params() {
                    // The mean is the only sufficient statistic.
                    ["theta"] => column_sums(&mean, wts),
                    _ => layer.mean_stats(&self.inputs(l, states)?, wts),
                };
                (mean, stats)
            } else {
                let x = states.layer(l)?;
                (layer.dense(x), layer.stats(x, wts))
            };
            dense.push(x);
            layers.push(stats.mapv(|t| T::of(t / total)));
        }
        let couplings = machine.couplings().iter().map(|c| {
            let (a, b) = c.ends();
            let mut left = dense[a].clone();
            for (r, mut row) in left.axis_iter_mut(Axis(0)).enumerate() {
                let wt = T::of(wts.map_or(1.0, |w| w[r]) / total);
                row.mapv_inplace(|x| wt * x);
            }
            let mut m = cross(&left, &dense[b]);
            if c.is_lateral() {
                clear_self(&mut m, machine.layer(a).kind());
            }
            if let Some(mask) = c.mask() {
                for ((i, j), x) in m.indexed_iter_mut() {
                    if !mask.get(i, j) {
                        *x = T::zero();
                    }
                }
            }
            m
        });
        let couplings = couplings.collect();
        Ok(Parameters { layers, couplings })
    }
}

/// Sum of the weights, or the number of rows.
fn total_weight(rows: usize, wts: Option<&[f64]>) -> Result<f64> {
    let total = match wts {
        None => rows as f64,
        Some(w) if w.len() != rows => return Err(Error::shape("weights", rows, w.len())),
        Some(w) => match w.iter().position(|w| !w.is_finite() || *w < 0.0) {
            Some(r) => {
                return Err(Error::value(format!("weight of row {r}"), "a number ≥ 0", w[r]));
            }
            None => w.iter().sum(),
        },
    };
    if total > 0.0 { Ok(total) } else { Err(Error::value("sum of the weights", "positive", total)) }
}

/// Weighted sums of the columns, as one row.
fn column_sums<T: Real>(x: &Array2<T>, wts: Option<&[f64]>) -> Array2<f64> {
    let mut sums = Array2::zeros((1, x.ncols()));
    for (r, row) in x.rows().into_iter().enumerate() {
        let wt = wts.map_or(1.0, |w| w[r]);
        sums.iter_mut().zip(row).for_each(|(s, x)| *s += wt * x.f64());
    }
    sums
}

/// $a^\top b$.
fn cross<T: Real>(a: &Array2<T>, b: &Array2<T>) -> Array2<T> {
    let (rows, m) = a.dim();
    let n = b.ncols();
    let mut out = Array2::zeros((m, n));
    let slice = "dense states are in standard layout";
    T::gemm(
        (m, n, rows),
        T::one(),
        (a.as_slice().expect(slice), 1, m),
        (b.as_slice().expect(slice), n, 1),
        T::zero(),
        (out.as_slice_mut().expect(slice), n, 1),
    );
    out
}

/// Zeroes what a unit has in common with itself.
pub(crate) fn clear_self<T: Real>(m: &mut Array2<T>, kind: Kind) {
    let c = kind.columns();
    for ((i, j), x) in m.indexed_iter_mut() {
        if i / c == j / c {
            *x = T::zero();
        }
    }
}
