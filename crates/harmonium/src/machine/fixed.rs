//! Weights in the fixed point of the kernels: made when a layer is first sampled, kept until they change.

use super::{Coupling, Machine, product};
use crate::{Batch, Kind, Layer, Real, States};
use harmonium_kernels::bits::Rows;
use harmonium_kernels::{Codes, fixed};
use std::sync::{Mutex, OnceLock};

/// Fewest weights for which tables pay. Below, sampling is quick anyway, and small machines are the ones
/// whose samples are held against exact enumeration: they get their weights unrounded.
const MIN_WEIGHTS: usize = 4096;

/// The couplings that have a fixed-point form: single precision, bits or codes at both ends.
#[derive(Debug)]
struct Fixed {
    couplings: Vec<Option<fixed::Coupling>>,
}

impl Fixed {
    fn new<T: Real>(machine: &Machine<T>) -> Self {
        let one = |c: &Coupling<T>| {
            let large = c.w().len() >= MIN_WEIGHTS;
            let (a, b) = c.ends();
            let ends = (side(machine.layer(a))?, side(machine.layer(b))?);
            (large && !c.is_lateral() && T::NAME == "F32").then(|| fixed::Coupling::new(ends.0, ends.1))
        };
        let mut fixed = Self { couplings: machine.couplings().iter().map(one).collect() };
        fixed.refresh(machine);
        fixed
    }

    fn refresh<T: Real>(&mut self, machine: &Machine<T>) {
        for (fixed, c) in self.couplings.iter_mut().zip(machine.couplings()) {
            if let (Some(fixed), Some(w)) = (fixed, T::as_f32(product::slice(c.w()))) {
                fixed.refresh(w);
            }
        }
    }
}

fn side<T: Real>(layer: &Layer<T>) -> Option<fixed::Side> {
    match layer.kind() {
        Kind::Binary => Some(fixed::Side::Binary(layer.len())),
        Kind::Spin => Some(fixed::Side::Spin(layer.len())),
        Kind::Potts { q } => Some(fixed::Side::Potts { sites: layer.len(), q: q as usize }),
        _ => None,
    }
}

/// The place of the prepared weights in a machine. It is no part of the machine's value: copies start
/// empty and all caches are equal.
#[derive(Debug, Default)]
pub(super) struct Cache {
    ready: OnceLock<Fixed>,
    /// Tables of weights that have changed, kept for their memory.
    stale: Mutex<Option<Fixed>>,
}

impl Clone for Cache {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Cache {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Cache {
    /// To be called when a weight may change.
    pub(super) fn invalidate(&mut self) {
        if let Some(fixed) = self.ready.take() {
            *self.stale.get_mut().expect("no thread panics with the lock") = Some(fixed);
        }
    }

    fn get<T: Real>(&self, machine: &Machine<T>) -> &Fixed {
        self.ready.get_or_init(|| {
            let mut stale = self.stale.lock().expect("no thread panics with the lock");
            match stale.take() {
                Some(mut fixed) => {
                    fixed.refresh(machine);
                    fixed
                }
                None => Fixed::new(machine),
            }
        })
    }
}

impl<T: Real> Machine<T> {
    /// Calls `f` with the fixed-point field β(θ+I) of layer `l`, unless the layer, its precision or one of its
    /// inputs has no fixed-point form or the weights are too large for it; says whether `f` was called.
    ///
    /// `layer` is the layer with β in its parameters.
    pub(super) fn with_fixed_field(
        &self,
        l: usize,
        layer: &Layer<T>,
        beta: f64,
        states: &States<T>,
        f: impl FnOnce(fixed::Field<'_>),
    ) -> bool {
        let target = match side(layer) {
            Some(side @ (fixed::Side::Binary(_) | fixed::Side::Spin(_))) => side,
            _ => return false,
        };
        let Some(theta) = T::as_f32(product::slice(layer.params())) else { return false };
        // A β this small is the hot end of a ladder: dividing θ by it would lose digits.
        if beta < 1e-3 || states.rows() == 0 {
            return false;
        }
        let fixed = self.cache.get(self);
        let mut inputs = Vec::new();
        for (c, fixed) in self.couplings().iter().zip(&fixed.couplings) {
            let Some(from) = c.other(l).filter(|&from| from != l) else { continue };
            let (Some(fixed), Some(x)) = (fixed, states.get(from)) else { return false };
            if !fixed.is_trusted() {
                return false;
            }
            let direction = if from == c.ends().0 { fixed.forward() } else { fixed.backward() };
            let states = match (x, self.layer(from).kind()) {
                (Batch::Bits(b), _) => fixed::States::Bits(Rows::new(b.words(), b.rows(), b.cols())),
                (Batch::Codes(x), Kind::Potts { q }) => {
                    let codes = x.as_slice().expect("codes are in standard layout");
                    fixed::States::Codes(Codes::new(codes, x.ncols(), q as usize))
                }
                _ => return false,
            };
            inputs.push(fixed::Input { direction, states });
        }
        if inputs.is_empty() {
            return false;
        }
        let theta: Vec<f32> = theta.iter().map(|t| t / beta as f32).collect();
        f(fixed::Field::new(target, states.rows(), &theta, beta as f32, &inputs));
        true
    }
}
