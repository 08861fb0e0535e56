//! The logarithm of the unnormalised density that a chain follows.

use crate::{Machine, Real, Result, Role, States, Tempered};

/// Whether the hidden layers are independent given the others, so that they can be traced out.
pub fn hidden_traced<T: Real>(machine: &Machine<T>) -> bool {
    machine.independent(&machine.with_role(Role::Hidden).collect::<Vec<_>>())
}

/// $-F_\beta(v)$ of each row where the hidden layers are independent given the others, else
/// $\ln\nu(x) - \beta E(x)$ of the whole configuration.
///
/// Its ratios give the acceptance of swaps and the weights of chains. Either form leaves the distribution it belongs to
/// unchanged, and the marginal fluctuates less. It is the marginal *at* β, never β times the free energy at β = 1.
///
/// # Errors
/// When a layer that is read is not held.
pub fn log_density<T: Real>(model: &Tempered<'_, T>, states: &States<T>) -> Result<Vec<f64>> {
    if hidden_traced(model.machine()) {
        let f = model.free_energy(states)?;
        Ok(f.into_iter().map(|f| -f).collect())
    } else {
        model.log_weight(states)
    }
}
