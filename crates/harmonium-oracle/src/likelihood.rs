//! What follows from sums with some layers clamped: free energies, conditionals, likelihoods.

use crate::machine::{Clamps, Machine, State};
use crate::moments::Gradient;
use crate::nodes::for_each_state;

impl Machine {
    /// F(v) = −ln Σ_h ν(v) ν(h) e^{−βE(v,h)}: v the clamped layers, h the free ones.
    ///
    /// In nats, with β inside and ν(v) of the clamped units included, so that p(v) = e^{−F(v)} / Z.
    /// +∞ when v lies outside the support.
    pub fn free_energy(&self, clamps: &Clamps) -> f64 {
        -self.log_sum(clamps)
    }

    /// ⟨x⟩ given the clamped values, for every layer and dense column (clamped layers: their values).
    pub fn conditional_mean(&self, clamps: &Clamps) -> State {
        self.moments_given(clamps).first
    }

    /// Every state with its probability; the last unit varies fastest.
    ///
    /// Values ascend: 0, 1 for Binary, −1, +1 for Spin, state 0, 1, … for Potts. Panics when a unit
    /// has infinitely many values.
    pub fn probabilities(&self) -> Vec<(State, f64)> {
        self.probabilities_given(&self.free())
    }

    /// Every state that agrees with `clamps`, with its probability p(x | clamps).
    pub fn probabilities_given(&self, clamps: &Clamps) -> Vec<(State, f64)> {
        for (layer, clamp) in self.layers.iter().zip(clamps) {
            let finite = clamp.is_some() || !layer.kind.is_unbounded();
            assert!(finite, "{:?} has infinitely many values", layer.kind);
        }
        let log_z = self.log_sum(clamps);
        let mut table = vec![];
        for_each_state(self, clamps, |x, log_weight| {
            table.push((x.clone(), (log_weight - log_z).exp()));
        });
        table
    }

    /// Mean of ln p(row) = −F(row) − ln Z over the rows, each a set of clamped layers.
    pub fn mean_log_likelihood(&self, rows: &[Clamps]) -> f64 {
        let free_energies: f64 = rows.iter().map(|row| self.free_energy(row)).sum();
        -free_energies / rows.len() as f64 - self.log_z()
    }

    /// Gradient of [`mean_log_likelihood`](Machine::mean_log_likelihood), to be ascended:
    /// the mean over rows with the row clamped, minus the same with nothing clamped.
    pub fn grad_mean_log_likelihood(&self, rows: &[Clamps]) -> Gradient {
        let mut gradient = self.grad_log_z();
        gradient.scale(-1.0);
        for row in rows {
            let mut positive = self.moments_given(row).gradient(self);
            positive.scale(1.0 / rows.len() as f64);
            gradient.add(&positive);
        }
        gradient
    }
}

impl Gradient {
    fn numbers_mut(&mut self) -> impl Iterator<Item = &mut f64> {
        let params = self.params.iter_mut().flatten().flatten();
        params.chain(self.couplings.iter_mut().flatten().flatten())
    }

    fn scale(&mut self, factor: f64) {
        self.numbers_mut().for_each(|g| *g *= factor);
    }

    fn add(&mut self, other: &Gradient) {
        let params = other.params.iter().flatten().flatten();
        let others = params.chain(other.couplings.iter().flatten().flatten());
        for (g, o) in self.numbers_mut().zip(others) {
            *g += o;
        }
    }
}
