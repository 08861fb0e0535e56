//! The energy of configurations.

use super::{Machine, product};
use crate::{Real, Result, States};
use ndarray::Array2;

impl<T: Real> Machine<T> {
    /// $E(x)$ of each row, in nats; all layers must be held.
    ///
    /// The multiplicities of counts belong to the measure, not to the energy; see
    /// [`Tempered::log_weight`](super::Tempered::log_weight).
    ///
    /// # Errors
    /// When a layer is not held in `states`.
    pub fn energy(&self, states: &States<T>) -> Result<Vec<f64>> {
        let all: Vec<usize> = (0..self.len()).collect();
        let mut energy = self.coupling_energy(&all, states)?;
        for l in all {
            self.layer(l).add_energy(states.layer(l)?, &mut energy);
        }
        Ok(energy)
    }

    /// The energy of the couplings inside the given layers.
    pub(crate) fn coupling_energy(&self, set: &[usize], states: &States<T>) -> Result<Vec<f64>> {
        let mut energy = vec![0.0; states.rows()];
        for c in self.couplings() {
            let (a, b) = c.ends();
            if set.contains(&a) && set.contains(&b) {
                let half = if c.is_lateral() { 0.5 } else { 1.0 };
                let y = self.layer(b).dense(states.layer(b)?);
                let mut inputs = Array2::zeros(y.dim());
                product::add(a, self.layer(a), states.layer(a)?, c, T::one(), &mut inputs);
                for (e, (i, y)) in energy.iter_mut().zip(inputs.rows().into_iter().zip(y.rows())) {
                    *e -= half * i.iter().zip(y).map(|(i, y)| i.f64() * y.f64()).sum::<f64>();
                }
            }
        }
        Ok(energy)
    }

    /// $F(v)$ of each row at β = 1: see [`Tempered::free_energy`](super::Tempered::free_energy).
    ///
    /// # Errors
    /// When the hidden layers are not independent given the visible ones.
    pub fn free_energy(&self, states: &States<T>) -> Result<Vec<f64>> {
        self.at(1.0).free_energy(states)
    }
}
