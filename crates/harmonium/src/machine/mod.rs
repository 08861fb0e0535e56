//! A Boltzmann machine: layers of units joined by couplings.

mod build;
mod cholesky;
mod coupling;
mod energy;
mod fixed;
mod gauge;
mod given;
mod linear;
mod mean_field;
mod moments;
mod names;
mod normalise;
mod parameters;
mod phase;
mod principal;
mod product;
mod rest;
mod size;
mod soft;
mod tempered;

pub(crate) use cholesky::Cholesky;
pub use coupling::Coupling;
pub(crate) use given::Given;
pub(crate) use linear::{Decoupled, Linear, precision};
pub(crate) use moments::clear_self;
#[cfg(test)]
pub(crate) use normalise::FACTORISATIONS;
pub use parameters::Parameters;
pub use phase::Phase;
pub(crate) use principal::{Iteration, principal};
pub(crate) use rest::{Known, Pattern, Rest, put};
pub use tempered::Tempered;

use crate::{Batch, Error, Layer, Real, Result, States};
use ndarray::ArrayView1;
use serde::{Deserialize, Serialize};

/// How the states of a layer are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Data clamp it in the positive phase; the machine is a distribution over its states.
    Visible,
    /// Never clamped by data: it is always sampled or traced out.
    Hidden,
    /// Always clamped, in both phases: the machine is a distribution *given* its states.
    Condition,
}

/// A named layer and its role.
#[derive(Clone, Debug, PartialEq)]
pub struct Member<T> {
    /// Name, unique in the machine: `v`, `h`, `h2`, `y` …
    pub name: String,
    /// Its role.
    pub role: Role,
    /// The units.
    pub layer: Layer<T>,
}

/// Layers of units joined by couplings, with the energy
///
/// $$E(x) = \sum_l E_l(x_l) - \sum_{a<b} x_a^\top W_{ab} x_b - \tfrac12\sum_a x_a^\top U_a x_a.$$
///
/// The constructors ([`rbm`](Self::rbm), [`deep`](Self::deep), …) make the usual machines;
/// [`new`](Self::new) makes any.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine<T = f32> {
    members: Vec<Member<T>>,
    couplings: Vec<Coupling<T>>,
}

impl<T: Real> Machine<T> {
    /// A machine of the given layers and couplings.
    ///
    /// # Errors
    /// No layer, a name used twice, a coupling whose layers do not exist or whose shape does not fit, two
    /// couplings of the same pair, parameters that are not finite.
    pub fn new(members: Vec<Member<T>>, couplings: Vec<Coupling<T>>) -> Result<Self> {
        if members.is_empty() {
            return Err(Error::shape("layers", "at least one", 0));
        }
        for (i, m) in members.iter().enumerate() {
            if members[..i].iter().any(|other| other.name == m.name) {
                return Err(Error::value("layer name", "a name used once", &m.name));
            }
            m.layer.check()?;
        }
        for (i, c) in couplings.iter().enumerate() {
            let (a, b) = c.ends();
            if b >= members.len() {
                return Err(Error::shape("layers of a coupling", members.len(), b + 1));
            }
            c.check(&members[a], &members[b])?;
            if couplings[..i].iter().any(|other| other.ends() == c.ends()) {
                let pair = format!("{}-{}", members[a].name, members[b].name);
                return Err(Error::value("coupling", "one coupling for each pair", pair));
            }
        }
        Ok(Self { members, couplings })
    }

    /// The layers with their names and roles.
    pub fn members(&self) -> &[Member<T>] {
        &self.members
    }
    /// Number of layers.
    pub fn len(&self) -> usize {
        self.members.len()
    }
    /// Whether there are no layers (never: a machine has at least one).
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
    /// Layer `l`.
    pub fn layer(&self, l: usize) -> &Layer<T> {
        &self.members[l].layer
    }
    /// Layer `l`, mutable.
    pub fn layer_mut(&mut self, l: usize) -> &mut Layer<T> {
        &mut self.members[l].layer
    }
    /// The layer of this name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.members.iter().position(|m| m.name == name)
    }
    /// Role of layer `l`.
    pub fn role(&self, l: usize) -> Role {
        self.members[l].role
    }
    /// The couplings.
    pub fn couplings(&self) -> &[Coupling<T>] {
        &self.couplings
    }
    /// Coupling `c`, mutable.
    pub fn coupling_mut(&mut self, c: usize) -> &mut Coupling<T> {
        &mut self.couplings[c]
    }
    /// The coupling between two layers, in either order.
    pub fn coupling_between(&self, a: usize, b: usize) -> Option<usize> {
        self.couplings.iter().position(|c| c.ends() == (a.min(b), a.max(b)))
    }
    /// The weights between one column of layer `l` and the columns of layer `to`; `None` when these are not coupled.
    pub(crate) fn weights_of(&self, l: usize, column: usize, to: usize) -> Option<ArrayView1<'_, T>> {
        let c = &self.couplings[self.coupling_between(l, to)?];
        Some(if c.ends().0 == l { c.w().row(column) } else { c.w().column(column) })
    }

    /// The layers with this role, in order.
    pub fn with_role(&self, role: Role) -> impl Iterator<Item = usize> + '_ {
        (0..self.len()).filter(move |&l| self.role(l) == role)
    }
    /// Whether layer `l` has lateral couplings.
    pub fn has_lateral(&self, l: usize) -> bool {
        self.coupling_between(l, l).is_some()
    }
    /// Whether the given layers are independent of each other given all others: no coupling inside the set.
    pub fn independent(&self, set: &[usize]) -> bool {
        self.couplings.iter().all(|c| !(set.contains(&c.ends().0) && set.contains(&c.ends().1)))
    }

    /// States that hold the visible (and conditioning) layers, in the machine's order. Visible bits may be soft: see
    /// [`Layer::check_data`].
    ///
    /// # Errors
    /// A wrong number of batches, or one that does not fit its layer.
    pub fn data(&self, batches: Vec<Batch<T>>) -> Result<States<T>> {
        let given: Vec<_> = (0..self.len()).filter(|&l| self.role(l) != Role::Hidden).collect();
        if given.len() != batches.len() {
            return Err(Error::shape("batches of visible layers", given.len(), batches.len()));
        }
        let rows = batches.first().map_or(0, Batch::rows);
        let mut states = States::empty(self.len(), rows);
        for (l, batch) in given.into_iter().zip(batches) {
            self.check_given(l, &batch)?;
            if batch.rows() != rows {
                return Err(Error::shape(
                    format!("rows of {}", self.members[l].name),
                    rows,
                    batch.rows(),
                ));
            }
            states.set(l, batch);
        }
        Ok(states)
    }

    /// States with every layer held, all zero.
    pub fn zeros(&self, rows: usize) -> States<T> {
        let mut states = States::empty(self.len(), rows);
        for (l, m) in self.members.iter().enumerate() {
            states.set(l, m.layer.zeros(rows));
        }
        states
    }

    /// The same machine in the other precision.
    pub fn cast<S: Real>(&self) -> Machine<S> {
        let members = self.members.iter().map(|m| Member {
            name: m.name.clone(),
            role: m.role,
            layer: m.layer.cast(),
        });
        Machine {
            members: members.collect(),
            couplings: self.couplings.iter().map(Coupling::cast).collect(),
        }
    }

    /// The machine of $e^{-\beta E}$, as a view.
    pub fn at(&self, beta: f64) -> Tempered<'_, T> {
        Tempered::new(self, beta)
    }

    /// A point of the straight path from the layers `base` without couplings (β = 0) to this machine (β = 1):
    /// the parameters of the layers are (1−β) times those of `base` plus β times their own, the couplings
    /// are scaled by β.
    ///
    /// # Errors
    /// When `base` has other kinds or numbers of units than the machine.
    pub fn between(&self, base: &[Layer<T>], beta: f64) -> Result<Tempered<'_, T>> {
        if base.len() != self.len() {
            return Err(Error::shape("layers of the base", self.len(), base.len()));
        }
        for (m, b) in self.members.iter().zip(base) {
            if (m.layer.kind(), m.layer.len()) != (b.kind(), b.len()) {
                let expected = format!("{} {} units", m.layer.len(), m.layer.kind());
                let got = format!("{} {} units", b.len(), b.kind());
                return Err(Error::shape(format!("base of layer {}", m.name), expected, got));
            }
        }
        Ok(Tempered::between(self, base, beta))
    }
}
