//! The named machines: which layers, which couplings.

use super::{Coupling, Machine, Member, Role};
use crate::{Layer, Real};
use ndarray::Array2;

impl<T: Real> Machine<T> {
    /// Name of the layer that holds the class in a class machine.
    pub const LABELS: &'static str = "y";

    /// The visible layer that holds the class of each row: a single Potts unit called [`LABELS`](Self::LABELS).
    pub fn class_layer(&self) -> Option<usize> {
        self.with_role(Role::Visible).find(|&l| {
            let m = &self.members[l];
            let potts = m.layer.kind().one_hot().is_some();
            m.name == Self::LABELS && m.layer.len() == 1 && potts
        })
    }

    /// Layers given as (name, role, layer), joined by zero weights between the given pairs (or inside a
    /// layer, for a pair of the same).
    fn joined(members: Vec<(&str, Role, Layer<T>)>, pairs: &[(usize, usize)]) -> Self {
        let couplings = pairs.iter().map(|&(a, b)| {
            let w = Array2::zeros((members[a].2.width(), members[b].2.width()));
            Coupling::new(a, b, w).expect("pairs are in order")
        });
        let couplings = couplings.collect();
        let members =
            members.into_iter().map(|(name, role, layer)| Member { name: name.into(), role, layer });
        Self::new(members.collect(), couplings).expect("names used once and sound layers")
    }

    /// Restricted Boltzmann machine: visible `v` and hidden `h`, weights between them only.
    ///
    /// Weights start at zero, as in every constructor here: set them with
    /// [`coupling_mut`](Self::coupling_mut) or start a training, which draws them.
    pub fn rbm(v: Layer<T>, h: Layer<T>) -> Self {
        Self::joined(vec![("v", Role::Visible, v), ("h", Role::Hidden, h)], &[(0, 1)])
    }

    /// Unrestricted Boltzmann machine: v–h, v–v and h–h.
    pub fn unrestricted(v: Layer<T>, h: Layer<T>) -> Self {
        Self::joined(vec![("v", Role::Visible, v), ("h", Role::Hidden, h)], &[(0, 1), (0, 0), (1, 1)])
    }

    /// Semi-restricted Boltzmann machine: v–h and v–v; the hidden units stay independent given v.
    pub fn semi_restricted(v: Layer<T>, h: Layer<T>) -> Self {
        Self::joined(vec![("v", Role::Visible, v), ("h", Role::Hidden, h)], &[(0, 1), (0, 0)])
    }

    /// Fully visible machine: v–v only (inverse Ising with spins, inverse Potts with Potts units).
    pub fn fully_visible(v: Layer<T>) -> Self {
        Self::joined(vec![("v", Role::Visible, v)], &[(0, 0)])
    }

    /// Deep Boltzmann machine: v–h1, h1–h2 and so on.
    pub fn deep(v: Layer<T>, hidden: Vec<Layer<T>>) -> Self {
        let pairs = (0..hidden.len()).map(|l| (l, l + 1)).collect::<Vec<_>>();
        let names: Vec<_> = (1..=hidden.len()).map(|l| format!("h{l}")).collect();
        let hidden = names.iter().zip(hidden).map(|(name, h)| (name.as_str(), Role::Hidden, h));
        let members = std::iter::once(("v", Role::Visible, v)).chain(hidden).collect();
        Self::joined(members, &pairs)
    }

    /// Class RBM: data `v` and one Potts unit `y` for the class, both visible, each joined to `h`.
    ///
    /// # Panics
    /// If there are no classes.
    pub fn class_rbm(v: Layer<T>, classes: u32, h: Layer<T>) -> Self {
        let y = Layer::new(crate::Kind::Potts { q: classes }, 1);
        let members = vec![("v", Role::Visible, v), ("y", Role::Visible, y), ("h", Role::Hidden, h)];
        Self::joined(members, &[(0, 2), (1, 2)])
    }

    /// Mixed data: several named visible layers of any kinds, each joined to `h`.
    ///
    /// # Panics
    /// If a name is used twice, or is `h`.
    pub fn mixed(visible: Vec<(&str, Layer<T>)>, h: Layer<T>) -> Self {
        let pairs = (0..visible.len()).map(|l| (l, visible.len())).collect::<Vec<_>>();
        let visible = visible.into_iter().map(|(name, v)| (name, Role::Visible, v));
        Self::joined(visible.chain([("h", Role::Hidden, h)]).collect(), &pairs)
    }

    /// Conditional (or temporal) RBM: `past` is always clamped and acts on both v and h.
    pub fn conditional(past: Layer<T>, v: Layer<T>, h: Layer<T>) -> Self {
        let members =
            vec![("past", Role::Condition, past), ("v", Role::Visible, v), ("h", Role::Hidden, h)];
        Self::joined(members, &[(0, 1), (0, 2), (1, 2)])
    }
}
