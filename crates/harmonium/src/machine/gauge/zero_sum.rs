//! Zero-sum gauge of Potts layers: parameters and weights sum to zero over the states of a unit.

use super::{add_field, rows_of};
use crate::machine::{Coupling, Machine};
use crate::{Error, Real, Result};
use ndarray::{Array1, Array2, ArrayViewMut2, Axis};

impl<T: Real> Machine<T> {
    /// Brings the Potts layer `l` into its zero-sum gauge, in which the θ of each unit and the weights of each
    /// unit on each column of another layer sum to zero over the unit's states, lateral weights over both.
    ///
    /// A unit is always in exactly one of its states, so a term common to all its states can be moved elsewhere: with
    /// $\omega_{ij} = \frac1q\sum_a w_{ia,j}$
    ///
    /// $$w_{ia,j} \leftarrow w_{ia,j} - \omega_{ij}, \qquad \theta_j \leftarrow \theta_j + \sum_i \omega_{ij},$$
    ///
    /// likewise for lateral weights, with a bar for means over states,
    ///
    /// $$J_{ij}(a,b) \leftarrow J_{ij}(a,b) - \bar J_{ij}(a,\cdot) - \bar J_{ij}(\cdot,b) + \bar J_{ij}, \qquad \theta_{ia} \leftarrow \theta_{ia} + \sum_j\bar J_{ij}(a,\cdot),$$
    ///
    /// and at last $\theta_{ia} \leftarrow \theta_{ia} - \bar\theta_i$.
    ///
    /// Returns $E' - E = \sum_i\bar\theta_i - \sum_{i<j}\bar J_{ij}$, the same for every state, so that
    /// $\ln Z_\beta' = \ln Z_\beta - \beta(E'-E)$: the gauge commutes with β. Several Potts layers are brought
    /// into the gauge one after the other; none leaves it again.
    ///
    /// # Errors
    /// [`Error::Undefined`] when the layer is not of Potts units, or a mask forbids some but not all states of a
    /// unit: the gauge would then need weights that the mask forbids. The machine is unchanged then.
    pub fn zero_sum(&mut self, l: usize) -> Result<f64> {
        self.check_layer(l)?;
        let q = self.check_zero_sum(l)?;
        let mut p = self.parameters().cast::<f64>();
        let mut shift = 0.0;
        for (c, w) in self.couplings().iter().zip(&mut p.couplings) {
            match c.other(l) {
                None => {}
                Some(o) if o == l => shift -= centre_lateral(w, &mut p.layers[l], q),
                Some(o) => {
                    let field = remove_means(rows_of(c, l, w), q);
                    add_field(self.layer(o).kind(), &mut p.layers[o], 1.0, &field);
                }
            }
        }
        let mut theta = p.layers[l].row_mut(0);
        for mut unit in theta.axis_chunks_iter_mut(Axis(0), q) {
            let mean = unit.sum() / q as f64;
            unit -= mean;
            shift += mean;
        }
        self.set_parameters(&p.cast())?;
        Ok(shift)
    }

    /// The number of states, if the layer has a zero-sum gauge.
    fn check_zero_sum(&self, l: usize) -> Result<usize> {
        let refuse = |why: String| Err(Error::Undefined { what: "the zero-sum gauge", why });
        let name = |l: usize| &self.members()[l].name;
        let Some(q) = self.layer(l).kind().one_hot() else {
            return refuse(format!("layer {} has {} units", name(l), self.layer(l).kind()));
        };
        let q = q as usize;
        match self.couplings().iter().find(|c| c.other(l).is_some() && splits_units(c, l, q)) {
            None => Ok(q),
            Some(c) => refuse(format!(
                "the mask of {}-{} forbids some states of a unit and allows others",
                name(c.ends().0),
                name(c.ends().1)
            )),
        }
    }
}

/// Whether the mask treats the states of a unit of layer `l` differently.
fn splits_units<T: Real>(c: &Coupling<T>, l: usize, q: usize) -> bool {
    let Some(mask) = c.mask() else { return false };
    let (rows, cols) = c.w().dim();
    let differs = |i: usize, j: usize| match c.ends().0 == l {
        true => mask.get(i, j) != mask.get(i - i % q, j),
        false => mask.get(i, j) != mask.get(i, j - j % q),
    };
    (0..rows).any(|i| (0..cols).any(|j| differs(i, j)))
}

/// Subtracts the mean over the q rows of each unit and returns the sum of what was subtracted.
fn remove_means(mut w: ArrayViewMut2<'_, f64>, q: usize) -> Array1<f64> {
    let mut removed = Array1::zeros(w.ncols());
    for mut unit in w.axis_chunks_iter_mut(Axis(0), q) {
        let mean = unit.sum_axis(Axis(0)) / q as f64;
        unit -= &mean;
        removed += &mean;
    }
    removed
}

/// Centres every block of lateral weights over both units' states, moves the means to θ and returns the sum of
/// the blocks' overall means, each pair once.
fn centre_lateral(w: &mut Array2<f64>, theta: &mut Array2<f64>, q: usize) -> f64 {
    let units = w.nrows() / q;
    let mut total = 0.0;
    let mut theta = theta.row_mut(0);
    for i in 0..units {
        for j in i + 1..units {
            let block = Array2::from_shape_fn((q, q), |(a, b)| w[[i * q + a, j * q + b]]);
            let over_j = block.sum_axis(Axis(1)) / q as f64;
            let over_i = block.sum_axis(Axis(0)) / q as f64;
            let mean = over_i.sum() / q as f64;
            for ((a, b), x) in block.indexed_iter() {
                let x = x - over_j[a] - over_i[b] + mean;
                w[[i * q + a, j * q + b]] = x;
                w[[j * q + b, i * q + a]] = x;
            }
            for a in 0..q {
                theta[i * q + a] += over_j[a];
                theta[j * q + a] += over_i[a];
            }
            total += mean;
        }
    }
    total
}
