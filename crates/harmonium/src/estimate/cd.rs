//! Contrastive divergence: a few sweeps from the data.

use super::{Context, Info, NegativePhase, averaged};
use crate::machine::Phase;
use crate::sample::{Order, purpose, sweep};
use crate::{Archive, Clamps, Key, Real, Result};

/// CD-k: chains start at the rows of the minibatch and make k sweeps.
///
/// Not the gradient of any function: its bias vanishes only as k grows, which
/// [`Exact`](super::Exact) lets one measure.
#[derive(Clone, Copy, Debug)]
pub struct Cd {
    sweeps: usize,
}

impl Cd {
    /// CD-k with k = `sweeps`.
    pub fn new(sweeps: usize) -> Self {
        Self { sweeps }
    }
}

impl<T: Real> NegativePhase<T> for Cd {
    fn name(&self) -> &'static str {
        "cd"
    }

    fn estimate(&mut self, context: &Context<'_, T>, out: &mut Phase<T>) -> Result<Info> {
        let machine = context.model.machine();
        let (order, clamps) = (Order::new(machine), Clamps::none(machine));
        let mut states = context.data.clone();
        for k in 0..self.sweeps as u64 {
            context.stop.check_before(k)?;
            let key = Key {
                seed: context.seed,
                purpose: purpose::NEGATIVE,
                block: 0,
                sweep: context.update.wrapping_mul(self.sweeps as u64).wrapping_add(k),
            };
            sweep(context.model, &order, &mut states, &clamps, key)?;
        }
        context.model.moments_into(&states, &averaged(machine), context.wts, out)?;
        Ok(Info::default())
    }

    fn save(&self, _archive: &mut Archive) {}

    fn load(&mut self, _archive: &Archive) -> Result<()> {
        Ok(())
    }
}
