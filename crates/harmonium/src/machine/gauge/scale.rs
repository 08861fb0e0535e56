//! Scale gauge of hidden real units: their scale is free.

use super::rows_of;
use crate::machine::{Machine, Role};
use crate::units::Form;
use crate::{Error, Real, Result};
use ndarray::Array1;

impl<T: Real> Machine<T> {
    /// Rescales the real units of the hidden layer `l`, $y_j = s_j x_j$:
    ///
    /// $$\theta_j' = \theta_j/s_j, \quad \gamma_j' = \gamma_j/s_j^2, \quad w_{ij}' = w_{ij}/s_j, \quad U_{jk}' = U_{jk}/(s_j s_k).$$
    ///
    /// The energy of a configuration does not change, $E'(v,y) = E(v,x)$, nor does p(v) or any moment of the other
    /// layers; moments of this layer scale with s. The volume element does, $dy = \prod_j s_j dx$. Hence
    /// $\ln Z_\beta' = \ln Z_\beta + \sum_j\ln s_j$ and $F_\beta'(v) = F_\beta(v) - \sum_j\ln s_j$, whatever β: the
    /// gauge commutes with β, and unlike a shift of the energy its constant is not multiplied by β. Returns
    /// $\sum_j \ln s_j$.
    ///
    /// # Errors
    /// [`Error::Undefined`] when the units are not Gaussian, ReLU or dReLU, or the layer is not hidden (the scale
    /// of data is not free); other errors when there is not one positive factor for each unit, or the new
    /// parameters are out of range. The machine is unchanged then.
    pub fn rescale(&mut self, l: usize, s: &Array1<f64>) -> Result<f64> {
        self.check_layer(l)?;
        self.check_rescale(l, s)?;
        let mut p = self.parameters().cast::<f64>();
        for (mut row, name) in p.layers[l].rows_mut().into_iter().zip(self.layer(l).kind().params()) {
            let gamma = name.starts_with("gamma");
            row.zip_mut_with(s, |x, s| *x /= if gamma { s * s } else { *s });
        }
        for (c, w) in self.couplings().iter().zip(&mut p.couplings) {
            match c.other(l) {
                None => {}
                Some(o) if o == l => {
                    // The product of the factors is the same for a weight and its mirror image.
                    w.indexed_iter_mut().for_each(|((j, k), w)| *w /= s[j] * s[k]);
                }
                Some(_) => {
                    let mut w = rows_of(c, l, w);
                    w.rows_mut().into_iter().zip(s).for_each(|(mut row, &s)| row /= s);
                }
            }
        }
        self.set_parameters(&p.cast())?;
        Ok(s.iter().map(|s| s.ln()).sum())
    }

    fn check_rescale(&self, l: usize, s: &Array1<f64>) -> Result<()> {
        let (m, kind) = (&self.members()[l], self.layer(l).kind());
        let why = match (kind.form(), m.role) {
            (Form::Reals, Role::Hidden) => None,
            (_, Role::Hidden) => Some(format!("layer {} has {kind} units", m.name)),
            _ => Some(format!("layer {} is not hidden", m.name)),
        };
        if let Some(why) = why {
            return Err(Error::Undefined { what: "the scale gauge", why });
        }
        if s.len() != m.layer.len() {
            return Err(Error::shape(format!("scales of {}", m.name), m.layer.len(), s.len()));
        }
        match s.iter().find(|s| !s.is_finite() || **s <= 0.0) {
            None => Ok(()),
            Some(s) => Err(Error::value(format!("scales of {}", m.name), "positive numbers", s)),
        }
    }

    /// $\lVert w_j\rVert$ of each unit of layer `l` over its weights from all other layers: used as the scales of
    /// [`rescale`](Self::rescale) they make every unit's weights a vector of length one.
    ///
    /// # Panics
    /// If there is no such layer.
    pub fn weight_norms(&self, l: usize) -> Array1<f64> {
        let mut squares = Array1::<f64>::zeros(self.layer(l).width());
        for c in self.couplings().iter().filter(|c| !c.is_lateral() && c.other(l).is_some()) {
            for ((i, j), w) in c.w().indexed_iter() {
                squares[if c.ends().0 == l { i } else { j }] += w.f64() * w.f64();
            }
        }
        squares.mapv(f64::sqrt)
    }
}
