//! Mean field: the product distribution over the hidden layers given the visible ones.

use super::moments::total_weight;
use super::{Parameters, Tempered, product};
use crate::{Real, Result, Role, States};
use ndarray::Array2;

impl<T: Real> Tempered<'_, T> {
    /// Moments under $q(h) = \prod_j q_j(h_j)$ with each mean the conditional mean given the other means, $m_l =
    /// \nabla\Gamma_l(\beta\sum_a m_a W_{al} + \beta m_l U_l)$, after so many rounds over the hidden layers. Within a
    /// layer with lateral couplings, half of the old mean is kept, because all its units change at once.
    ///
    /// # Errors
    /// Visible layers that are not held, weights without a positive sum.
    pub fn mean_field(
        &self,
        states: &States<T>,
        rounds: usize,
        wts: Option<&[f64]>,
    ) -> Result<Parameters<T>> {
        let machine = self.machine();
        let total = total_weight(states.rows(), wts)?;
        let hidden: Vec<_> = machine.with_role(Role::Hidden).collect();
        let mut dense = Vec::with_capacity(machine.len());
        for l in 0..machine.len() {
            dense.push(match machine.role(l) {
                Role::Hidden => Array2::zeros((states.rows(), self.layer(l).width())),
                _ => self.layer(l).dense(states.layer(l)?),
            });
        }
        // The first round goes up from the data; layers not yet reached contribute nothing.
        for round in 0..rounds.max(1) {
            for &l in &hidden {
                let inputs = self.dense_inputs(l, &dense);
                let mut mean = Array2::zeros(inputs.dim());
                self.layer(l).mean_into(&inputs, &mut mean);
                if round > 0 && machine.has_lateral(l) {
                    mean.zip_mut_with(&dense[l], |m, &old| *m = T::of(0.5) * (*m + old));
                }
                dense[l] = mean;
            }
        }
        let mut layers = Vec::with_capacity(machine.len());
        for l in 0..machine.len() {
            let stats = match machine.role(l) {
                Role::Hidden => self.layer(l).mean_stats(&self.dense_inputs(l, &dense), wts),
                _ => self.layer(l).stats(states.layer(l)?, wts),
            };
            layers.push(stats.mapv(|t| T::of(t / total)));
        }
        let couplings = self.coupling_moments(&dense, wts, total);
        Ok(Parameters { layers, couplings })
    }

    /// What layer `l` receives, lateral couplings included, when every layer is at the given means.
    fn dense_inputs(&self, l: usize, dense: &[Array2<T>]) -> Array2<T> {
        let mut inputs = Array2::zeros(dense[l].dim());
        for c in self.machine().couplings() {
            if let Some(from) = c.other(l) {
                let (beta, n) = (T::of(self.beta()), inputs.ncols());
                let out = product::slice_mut(&mut inputs);
                product::add_dense(from, &dense[from], c, beta, n, out);
            }
        }
        inputs
    }
}
