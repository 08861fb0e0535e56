//! Soft bits: data of Binary units that are values between 0 and 1. They are refused where states are required.

use super::{Machine, Role};
use crate::{Batch, Error, Real, Result, States};

impl<T: Real> Machine<T> {
    /// Whether a batch can be clamped in layer `l`: soft bits are for visible layers.
    pub(crate) fn check_given(&self, l: usize, x: &Batch<T>) -> Result<()> {
        match self.role(l) {
            Role::Visible => self.layer(l).check_data(x),
            _ => self.layer(l).check_batch(x),
        }
    }

    /// The first layer that holds soft bits.
    pub(crate) fn soft_layer(&self, states: &States<T>) -> Option<usize> {
        (0..self.len()).find(|&l| states.get(l).is_some_and(|x| self.layer(l).is_soft(x)))
    }

    /// Refuses soft bits.
    ///
    /// # Errors
    /// [`Error::Undefined`], with the layer.
    pub(crate) fn must_be_states(&self, what: &'static str, states: &States<T>) -> Result<()> {
        match self.soft_layer(states) {
            None => Ok(()),
            Some(l) => {
                let name = &self.members()[l].name;
                let why =
                    format!("the rows of {name} are values between 0 and 1, not states of 0 and 1");
                Err(Error::Undefined { what, why })
            }
        }
    }
}
