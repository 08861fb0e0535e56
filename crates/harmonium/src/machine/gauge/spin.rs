//! Binary units as spins and back.

use super::{add_field, rows_of};
use crate::machine::{Machine, Member};
use crate::{Error, Kind, Layer, Real, Result};

impl<T: Real> Machine<T> {
    /// Makes the binary units of layer `l` spins, $x = (1+s)/2$. Returns $E'-E$ as
    /// [`to_binary`](Self::to_binary) does.
    ///
    /// # Errors
    /// [`Error::Undefined`] when the layer is not binary; the machine is unchanged then.
    pub fn to_spin(&mut self, l: usize) -> Result<f64> {
        self.substitute(l, Kind::Binary, Kind::Spin, 0.5, 0.5)
    }

    /// Makes the spins of layer `l` binary units, $s = 2x-1$.
    ///
    /// With $x = o + k y$ for the old states x and the new ones y,
    ///
    /// $$\theta' = k(\theta + U o), \quad w' = k w, \quad U' = k^2 U, \quad \theta_b' = \theta_b + w^\top o.$$
    ///
    /// Bits stay what they are (1 is +1, 0 is −1), so that chains and data in bits stay valid. Returns $E'-E =
    /// \theta\cdot o + \frac12 o\cdot U o$, the same for every state, so that $\ln Z_\beta' = \ln Z_\beta -
    /// \beta(E'-E)$: the conversion commutes with β.
    ///
    /// # Errors
    /// [`Error::Undefined`] when the layer is not of spins; the machine is unchanged then.
    pub fn to_binary(&mut self, l: usize) -> Result<f64> {
        self.substitute(l, Kind::Spin, Kind::Binary, -1.0, 2.0)
    }

    /// Writes the energy in terms of y, where x = o + k y.
    fn substitute(&mut self, l: usize, from: Kind, to: Kind, o: f64, k: f64) -> Result<f64> {
        self.check_layer(l)?;
        if self.layer(l).kind() != from {
            let why = format!("layer {} has {} units", self.members()[l].name, self.layer(l).kind());
            return Err(Error::Undefined { what: "the exchange of {0,1} and ±1", why });
        }
        let mut p = self.parameters().cast::<f64>();
        let mut shift = o * p.layers[l].sum();
        for (c, w) in self.couplings().iter().zip(&mut p.couplings) {
            match c.other(l) {
                None => {}
                Some(other) if other == l => {
                    let field = o * w.sum_axis(ndarray::Axis(1));
                    shift += 0.5 * o * field.sum();
                    add_field(from, &mut p.layers[l], 1.0, &field);
                    *w *= k * k;
                }
                Some(other) => {
                    let field = o * rows_of(c, l, w).sum_axis(ndarray::Axis(0));
                    add_field(self.layer(other).kind(), &mut p.layers[other], 1.0, &field);
                    *w *= k;
                }
            }
        }
        p.layers[l] *= k;
        let mut members = self.members().to_vec();
        let layer = Layer::with_params(to, p.layers[l].mapv(T::of))?;
        members[l] = Member { layer, ..members[l].clone() };
        let mut next = Self::new(members, self.couplings().to_vec())?;
        next.set_parameters(&p.cast())?;
        *self = next;
        Ok(shift)
    }
}
