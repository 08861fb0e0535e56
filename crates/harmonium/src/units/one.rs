//! Single units of a layer.

use super::Layer;
use crate::Real;
use ndarray::{Array2, Axis};

impl<T: Real> Layer<T> {
    /// Unit `j` as a layer of one.
    pub(crate) fn unit(&self, j: usize) -> Self {
        let c = self.kind().columns();
        let columns: Vec<usize> = (j * c..(j + 1) * c).collect();
        let params: Array2<T> = self.params().select(Axis(1), &columns);
        Self::with_params(self.kind(), params).expect("parameters of a layer are allowed")
    }

    /// Γ of one row, with its own scratch memory.
    pub(crate) fn cgf_of(&self, inputs: &[T]) -> f64 {
        self.cgf_row(inputs, &mut vec![T::zero(); inputs.len()])
    }

    /// $\ln p(x\mid I) = \sum_k\eta_k t_k(x) + Ix + \ln\nu(x) - \Gamma(I)$ of a layer of one unit.
    pub(crate) fn log_density(&self, input: &[T], x: f64) -> f64 {
        self.log_factor(input, x) - self.cgf_of(input)
    }

    /// The same without the normalisation.
    pub(crate) fn log_factor(&self, input: &[T], x: f64) -> f64 {
        let mut t = vec![0.0; self.params().len()];
        self.stats_row(&[x], 1.0, &mut t);
        let mut dense = vec![T::zero(); self.width()];
        self.dense_row(&[x], &mut dense);
        let own: f64 = t.iter().zip(self.params()).map(|(t, p)| t * p.f64()).sum();
        let received: f64 = dense.iter().zip(input).map(|(x, i)| x.f64() * i.f64()).sum();
        own + received + self.log_measure_row(&[x])
    }
}
