//! Gauges and re-parameterisations: other parameters for the same distribution.
//!
//! Each states how the energy changes. Where it changes by a constant, $E' = E + \text{shift}$, the same holds at
//! every inverse temperature and $\ln Z_\beta' = \ln Z_\beta - \beta\text{shift}$: such a gauge commutes with β.

mod centre;
mod scale;
mod spin;
mod standardise;
mod zero_sum;

use super::{Coupling, Machine};
use crate::{Error, Kind, Real, Result};
use ndarray::{Array1, Array2};

/// Adds `field` to the coefficient of x in the energy $-\theta x$ of a layer. A dReLU unit has x = x₊ + x₋ and
/// so both of its θ change.
fn add_field<T: Real>(kind: Kind, params: &mut Array2<T>, scale: T, field: &Array1<T>) {
    for (mut row, name) in params.rows_mut().into_iter().zip(kind.params()) {
        if name.starts_with("theta") {
            row.scaled_add(scale, field);
        }
    }
}

/// The weights of a coupling as a matrix whose rows belong to layer `l`, one of its ends.
fn rows_of<'w, T: Real>(
    c: &Coupling<T>,
    l: usize,
    w: &'w mut Array2<f64>,
) -> ndarray::ArrayViewMut2<'w, f64> {
    match c.ends().0 == l {
        true => w.view_mut(),
        false => w.view_mut().reversed_axes(),
    }
}

impl<T: Real> Machine<T> {
    fn check_layer(&self, l: usize) -> Result<()> {
        if l < self.len() {
            Ok(())
        } else {
            Err(Error::value("layer", format!("a number below {}", self.len()), l))
        }
    }

    /// One finite number per column of every layer, positive if `positive`.
    fn check_columns(&self, what: &str, x: &[Array1<T>], positive: bool) -> Result<()> {
        if x.len() != self.len() {
            return Err(Error::shape(format!("layers of the {what}"), self.len(), x.len()));
        }
        for (m, x) in self.members().iter().zip(x) {
            let what = format!("{what} of {}", m.name);
            if x.len() != m.layer.width() {
                return Err(Error::shape(what, m.layer.width(), x.len()));
            }
            let bad = |x: &&T| !x.is_finite() || positive && **x <= T::zero();
            if let Some(x) = x.iter().find(bad) {
                let expected = if positive { "positive numbers" } else { "finite numbers" };
                return Err(Error::value(what, expected, x));
            }
        }
        Ok(())
    }
}
