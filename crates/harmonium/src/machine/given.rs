//! Rows of the given (visible and conditioning) layers in double precision, and the inputs that they cause in every
//! layer.

use super::Machine;
use crate::{Real, Result, Role, States};
use ndarray::Array2;

/// Values and inputs from which the conditionals of single units are computed.
pub(crate) struct Given {
    /// Values and dense forms of the given layers.
    pub(crate) values: Vec<Option<Array2<f64>>>,
    pub(crate) dense: Vec<Option<Array2<f64>>>,
    /// The input of each layer from the given ones, lateral couplings included.
    pub(crate) inputs: Vec<Array2<f64>>,
}

impl Given {
    /// # Errors
    /// When a given layer is not held.
    pub(crate) fn new<T: Real>(machine: &Machine<f64>, data: &States<T>) -> Result<Self> {
        let (mut values, mut dense) = (Vec::new(), Vec::new());
        for l in 0..machine.len() {
            let layer = machine.layer(l).cast::<T>();
            let x = (machine.role(l) != Role::Hidden).then(|| data.layer(l)).transpose()?;
            values.push(x.map(|x| layer.values(x)));
            dense.push(x.map(|x| layer.dense(x).mapv(Real::f64)));
        }
        let receive = |l: usize| {
            let mut inputs = Array2::zeros((data.rows(), machine.layer(l).width()));
            for c in machine.couplings() {
                if let Some(x) = c.other(l).and_then(|o| dense[o].as_ref()) {
                    inputs += &if c.ends().1 == l { x.dot(c.w()) } else { x.dot(&c.w().t()) };
                }
            }
            inputs
        };
        let inputs = (0..machine.len()).map(receive).collect();
        Ok(Self { values, dense, inputs })
    }
}
