//! Which units keep their state during a sweep.

use crate::{Bits, Error, Machine, Real, Result, Role};

/// The clamp of one layer.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Clamp {
    /// Every unit is sampled.
    #[default]
    Free,
    /// No unit is sampled.
    All,
    /// Unit j of row r keeps its state when bit (r, j) is set.
    Units(Bits),
}

/// One [`Clamp`] per layer: positive and negative phase, in-painting and conditional sampling are the same
/// sweep with different clamps.
#[derive(Clone, Debug, PartialEq)]
pub struct Clamps {
    layers: Vec<Clamp>,
}

impl Clamps {
    /// Nothing clamped but the conditioning layers: the negative phase.
    pub fn none<T: Real>(machine: &Machine<T>) -> Self {
        Self::by_role(machine, |role| role == Role::Condition)
    }

    /// All layers but the hidden ones clamped: the positive phase.
    pub fn visible<T: Real>(machine: &Machine<T>) -> Self {
        Self::by_role(machine, |role| role != Role::Hidden)
    }

    fn by_role<T: Real>(machine: &Machine<T>, clamped: impl Fn(Role) -> bool) -> Self {
        let clamp = |m: &crate::Member<T>| {
            if clamped(m.role) { Clamp::All } else { Clamp::Free }
        };
        Self { layers: machine.members().iter().map(clamp).collect() }
    }

    /// The same with another clamp on layer `l`.
    #[must_use]
    pub fn with(mut self, l: usize, clamp: Clamp) -> Self {
        self.layers[l] = clamp;
        self
    }

    /// The clamp of layer `l`.
    pub fn layer(&self, l: usize) -> &Clamp {
        &self.layers[l]
    }

    pub(super) fn check<T: Real>(&self, machine: &Machine<T>, rows: usize) -> Result<()> {
        if self.layers.len() != machine.len() {
            return Err(Error::shape("clamps", machine.len(), self.layers.len()));
        }
        for (clamp, m) in self.layers.iter().zip(machine.members()) {
            match clamp {
                Clamp::Units(b) if (b.rows(), b.cols()) != (rows, m.layer.len()) => {
                    let what = format!("clamp of layer {}", m.name);
                    let expected = format!("{rows}×{}", m.layer.len());
                    return Err(Error::shape(what, expected, format!("{}×{}", b.rows(), b.cols())));
                }
                Clamp::Free | Clamp::Units(_) if m.role == Role::Condition => {
                    let what = format!("clamp of the conditioning layer {}", m.name);
                    return Err(Error::value(what, "all units clamped", "free units"));
                }
                _ => {}
            }
        }
        Ok(())
    }
}
