//! Clamps: the units that keep their state during a sweep.

use crate::{Bits, Error, Machine, Real, Result, Role, States};

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

    /// Clamps the known entries of rows of data: conditioning layers entirely, visible layers where the bit in `known`
    /// is set (everywhere if `None`).
    pub fn known<T: Real>(machine: &Machine<T>, rows: usize, known: &[Option<Bits>]) -> Self {
        let mut clamps = Self::none(machine);
        for l in machine.with_role(Role::Visible) {
            let all = || Bits::from_fn(rows, machine.layer(l).len(), |_, _| true);
            let bits = known.get(l).cloned().flatten().unwrap_or_else(all);
            clamps = clamps.with(l, Clamp::Units(bits));
        }
        clamps
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

    /// The clamps of some rows.
    pub(super) fn select(&self, rows: &[usize]) -> Self {
        let of = |clamp: &Clamp| match clamp {
            Clamp::Units(bits) => Clamp::Units(bits.select(rows)),
            other => other.clone(),
        };
        Self { layers: self.layers.iter().map(of).collect() }
    }

    /// Copies the clamped units from `given` into `states`, which must hold the layers that are clamped in part.
    ///
    /// # Panics
    /// If they do not, or have another number of rows.
    pub fn put<T: Real>(&self, given: &States<T>, states: &mut States<T>) {
        for (l, clamp) in self.layers.iter().enumerate() {
            let Some(from) = given.get(l) else { continue };
            match clamp {
                Clamp::Free => {}
                Clamp::All => states.set(l, from.clone()),
                Clamp::Units(mask) => {
                    let mut x = states.take(l).expect("a layer that is held");
                    x.copy_masked(from, mask);
                    states.set(l, x);
                }
            }
        }
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
