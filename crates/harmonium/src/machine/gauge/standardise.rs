//! Standardisation: the couplings' part of the energy written in terms of (x − o)/s.

use crate::machine::{Machine, Parameters};
use crate::{Real, Result};
use ndarray::{Array1, Axis};

impl<T: Real> Machine<T> {
    /// The parameters with which the energy whose couplings act on $y = (x-o)/s$,
    ///
    /// $$E_{o,s}(x) = \sum_l E_l(x_l;\theta') - \sum_{a<b} y_a^\top W_{ab}' y_b - \tfrac12\sum_a y_a^\top U_a' y_a,$$
    ///
    /// is the plain energy of `plain` up to a constant: $W_{ab}' = \mathrm{diag}(s_a) W_{ab} \mathrm{diag}(s_b)$,
    /// likewise U, and θ' as in [`centred`](Self::centred) with λ = o, where the constant is given too. The units'
    /// own energies stay functions of x. Masks are not touched. The map is linear: it takes updates as well as
    /// parameters.
    ///
    /// # Errors
    /// When offsets or scales do not fit the layers, are not finite, or a scale is not positive.
    ///
    /// # Panics
    /// If the parameters are those of another machine.
    pub fn standardised(
        &self,
        plain: &Parameters<T>,
        offsets: &[Array1<T>],
        scales: &[Array1<T>],
    ) -> Result<Parameters<T>> {
        self.check_columns("scales", scales, true)?;
        let mut to = self.centred(plain, offsets)?;
        self.scale_weights(&mut to, scales, |w, s| w * s);
        Ok(to)
    }

    /// The plain parameters of standardised ones: the inverse of [`standardised`](Self::standardised).
    ///
    /// # Errors
    /// When offsets or scales do not fit the layers, are not finite, or a scale is not positive.
    ///
    /// # Panics
    /// If the parameters are those of another machine.
    pub fn unstandardised(
        &self,
        standardised: &Parameters<T>,
        offsets: &[Array1<T>],
        scales: &[Array1<T>],
    ) -> Result<Parameters<T>> {
        self.check_columns("scales", scales, true)?;
        let mut to = standardised.clone();
        self.scale_weights(&mut to, scales, |w, s| w / s);
        self.uncentred(&to, offsets)
    }

    /// Each weight with the product of its ends' scales, which is the same for a weight and its mirror image.
    fn scale_weights(&self, p: &mut Parameters<T>, scales: &[Array1<T>], f: impl Fn(T, T) -> T) {
        for (c, w) in self.couplings().iter().zip(&mut p.couplings) {
            let (a, b) = c.ends();
            for (mut row, &sa) in w.axis_iter_mut(Axis(0)).zip(&scales[a]) {
                row.zip_mut_with(&scales[b], |w, &sb| *w = f(*w, sa * sb));
            }
        }
    }
}
