//! Centring: the couplings' part of the energy written in terms of x − λ.

use super::add_field;
use crate::machine::{Machine, Parameters};
use crate::{Real, Result};
use ndarray::Array1;

impl<T: Real> Machine<T> {
    /// The parameters with which the energy of centred couplings,
    ///
    /// $$E_\lambda(x) = \sum_l E_l(x_l;\theta') - \sum_{a<b} y_a^\top W_{ab} y_b - \tfrac12\sum_a y_a^\top U_a y_a, \quad y = x - \lambda,$$
    ///
    /// is the plain energy of `plain` up to a constant: the weights are the same and
    ///
    /// $$\theta_a' = \theta_a + \sum_b W_{ab}\lambda_b + U_a\lambda_a .$$
    ///
    /// The constant is
    ///
    /// $$E_\lambda - E = -\sum_{a<b}\lambda_a^\top W_{ab}\lambda_b - \tfrac12\sum_a\lambda_a^\top U_a\lambda_a,$$
    ///
    /// so ln Z at β differs by −β times it: centring commutes with β. Masks are not touched. The map is linear: it
    /// takes updates as well as parameters. λ has a vector for each layer, with a number for each column.
    ///
    /// # Errors
    /// When the offsets do not fit the layers or are not finite.
    ///
    /// # Panics
    /// If the parameters are those of another machine.
    pub fn centred(&self, plain: &Parameters<T>, offsets: &[Array1<T>]) -> Result<Parameters<T>> {
        self.add_offset_fields(plain, offsets, T::one())
    }

    /// The plain parameters of centred ones: the inverse of [`centred`](Self::centred).
    ///
    /// # Errors
    /// When the offsets do not fit the layers or are not finite.
    ///
    /// # Panics
    /// If the parameters are those of another machine.
    pub fn uncentred(&self, centred: &Parameters<T>, offsets: &[Array1<T>]) -> Result<Parameters<T>> {
        self.add_offset_fields(centred, offsets, -T::one())
    }

    /// Adds `sign` times the fields that the offsets of all layers cause through the couplings.
    fn add_offset_fields(
        &self,
        from: &Parameters<T>,
        offsets: &[Array1<T>],
        sign: T,
    ) -> Result<Parameters<T>> {
        self.check_columns("offsets", offsets, false)?;
        let mut to = from.clone();
        for (c, w) in self.couplings().iter().zip(&from.couplings) {
            let (a, b) = c.ends();
            add_field(self.layer(a).kind(), &mut to.layers[a], sign, &w.dot(&offsets[b]));
            if a != b {
                add_field(self.layer(b).kind(), &mut to.layers[b], sign, &w.t().dot(&offsets[a]));
            }
        }
        Ok(to)
    }
}
