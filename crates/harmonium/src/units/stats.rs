//! Energies and sufficient moments of a layer's states.

use super::batch::{block_sum, row_blocks};
use super::{Layer, ordinal, per_kind, potts, row};
use crate::{Batch, Bits, Real};
use ndarray::Array2;

impl<T: Real> Layer<T> {
    /// Adds the base energy of each row, $-\sum_k \eta_k t_k(x)$, to `out`.
    pub fn add_energy(&self, x: &Batch<T>, out: &mut [f64]) {
        assert_eq!((x.rows(), x.cols()), (out.len(), self.len()));
        if let Batch::Bits(x) = x {
            return self.add_energy_of_bits(x, out);
        }
        row_blocks(out, 1, |_, first, out| {
            let mut values = vec![0.0; self.len()];
            let mut t = vec![0.0; self.flat().len()];
            for (r, out) in out.iter_mut().enumerate() {
                self.read_row(x, first + r, &mut values);
                t.fill(0.0);
                self.stats_row(&values, 1.0, &mut t);
                *out -= t.iter().zip(self.flat()).map(|(t, p)| t * p.f64()).sum::<f64>();
            }
        });
    }

    /// A sum over the units that are on, plus the energy of the row in which all are off.
    fn add_energy_of_bits(&self, x: &Bits, out: &mut [f64]) {
        let (off, on) = (self.kind().value(0), self.kind().value(1));
        let theta = self.flat();
        let base = off * theta.iter().map(|t| t.f64()).sum::<f64>();
        row_blocks(out, 1, |_, first, out| {
            for (r, out) in out.iter_mut().enumerate() {
                let mut sum = 0.0;
                for (k, &word) in x.row(first + r).iter().enumerate() {
                    let mut left = word;
                    while left != 0 {
                        sum += theta[64 * k + left.trailing_zeros() as usize].f64();
                        left &= left - 1;
                    }
                }
                *out -= base + (on - off) * sum;
            }
        });
    }

    /// Adds $\ln\nu(x)$ of each row to `out`: zero except for counts.
    pub fn add_log_measure(&self, x: &Batch<T>, out: &mut [f64]) {
        if !self.kind().has_measure() {
            return;
        }
        row_blocks(out, 1, |_, first, out| {
            let mut values = vec![0.0; self.len()];
            for (r, out) in out.iter_mut().enumerate() {
                self.read_row(x, first + r, &mut values);
                *out += self.log_measure_row(&values);
            }
        });
    }

    pub(crate) fn log_measure_row(&self, values: &[f64]) -> f64 {
        per_kind!(self, scalar::log_measure(values), |_q| 0.0, |_n| 0.0)
    }

    pub(crate) fn stats_row(&self, values: &[f64], wt: f64, out: &mut [f64]) {
        per_kind!(self, scalar::stats(values, wt, out), |q| potts::stats(q, values, wt, out), |_n| {
            ordinal::stats(values, wt, out)
        });
    }

    pub(crate) fn mean_stats_row(&self, inputs: &[T], wt: f64, out: &mut [f64]) {
        let params = self.flat();
        per_kind!(
            self,
            scalar::mean_stats(params, inputs, wt, out),
            |q| potts::mean_stats(q, params, inputs, wt, out),
            |n| ordinal::mean_stats(n, params, inputs, wt, out)
        );
    }

    /// Sufficient moments $\sum_r w_r t_k(x_r)$ of sampled or observed states, shaped like the parameters.
    pub fn stats(&self, x: &Batch<T>, wts: Option<&[f64]>) -> Array2<f64> {
        let sum = block_sum(x.rows(), self.flat().len(), |rows, part| {
            let mut values = vec![0.0; self.len()];
            for r in rows {
                self.read_row(x, r, &mut values);
                self.stats_row(&values, wts.map_or(1.0, |w| w[r]), part);
            }
        });
        Array2::from_shape_vec(self.params().dim(), sum).expect("one number per parameter")
    }

    /// Expected sufficient moments $\sum_r w_r \langle t_k\rangle$ given the inputs, shaped like the
    /// parameters: what a sampled state would give on average, with less variance.
    pub fn mean_stats(&self, inputs: &Array2<T>, wts: Option<&[f64]>) -> Array2<f64> {
        self.check_inputs(inputs);
        let sum = block_sum(inputs.nrows(), self.flat().len(), |rows, part| {
            for r in rows {
                self.mean_stats_row(row(inputs, r), wts.map_or(1.0, |w| w[r]), part);
            }
        });
        Array2::from_shape_vec(self.params().dim(), sum).expect("one number per parameter")
    }
}
