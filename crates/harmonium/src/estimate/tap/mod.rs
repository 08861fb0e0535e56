//! Mean field with Plefka's corrections (TAP, EMF): moments at fixed points of a free energy.

mod expansion;

use super::{Context, Info, NegativePhase, Setup};
use crate::machine::Phase;
use crate::sample::purpose;
use crate::{Archive, Error, Machine, Real, Result};
pub use expansion::Expansion;
use ndarray::Array2;
use serde::{Deserialize, Serialize};

/// Settings of [`Tap`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TapParams {
    /// Order in the weights: 1 (naive mean field), 2 (TAP) or 3.
    pub order: u8,
    /// Number of persistent magnetisations; the size of a minibatch when left out.
    pub chains: Option<usize>,
    /// Iterations for each update, at most.
    pub iterations: usize,
    /// Weight of the new magnetisation in one iteration.
    pub damping: f64,
    /// The largest change of a magnetisation that counts as converged.
    pub tolerance: f64,
}

impl TapParams {
    /// Second order, 50 iterations damped by ½, tolerance 1e-6.
    pub const DEFAULT: Self =
        Self { order: 2, chains: None, iterations: 50, damping: 0.5, tolerance: 1e-6 };
}

impl Default for TapParams {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Magnetisations that persist from update to update, like chains, and stay near the fixed points of the [`Expansion`];
/// the moments are its derivatives by the parameters, averaged over them.
#[derive(Clone, Debug)]
pub struct Tap {
    params: TapParams,
    /// For each layer, a row for each magnetisation.
    means: Vec<Array2<f64>>,
}

impl Tap {
    /// Magnetisations that start at states as [`Setup::chains`] makes them.
    ///
    /// # Errors
    /// A machine it does not apply to at this order, a damping outside (0, 1], or whatever sampling may
    /// refuse.
    pub fn new<T: Real>(setup: &Setup<'_, T>, params: TapParams) -> Result<Self> {
        super::Estimator::Tap(params.clone()).check(setup.machine)?;
        if !(1..=3).contains(&params.order) {
            return Err(Error::value("order of tap", "1, 2 or 3", params.order));
        }
        if !(params.damping > 0.0 && params.damping <= 1.0) {
            return Err(Error::value("damping of tap", "in (0, 1]", params.damping));
        }
        let states = setup.chains(params.chains.unwrap_or(setup.batch), purpose::NEGATIVE)?;
        let dense = |l: usize| Ok(setup.machine.layer(l).dense(states.layer(l)?).mapv(Real::f64));
        let means = (0..setup.machine.len()).map(dense).collect::<Result<_>>()?;
        Ok(Self { params, means })
    }

    /// The magnetisations of each layer.
    pub fn means(&self) -> &[Array2<f64>] {
        &self.means
    }
}

impl<T: Real> NegativePhase<T> for Tap {
    fn name(&self) -> &'static str {
        "tap"
    }

    fn estimate(&mut self, context: &Context<'_, T>, out: &mut Phase<T>) -> Result<Info> {
        let machine: Machine<f64> = context.model.machine().cast();
        let expansion = Expansion::new(&machine, self.params.order);
        let mut change = f64::INFINITY;
        let mut iterations = 0;
        while iterations < self.params.iterations && change > self.params.tolerance {
            context.stop.check_before(iterations as u64)?;
            change = expansion.iterate(&mut self.means, self.params.damping);
            iterations += 1;
        }
        *out.parameters_mut() = expansion.moments(&self.means).cast();
        let free_energy = expansion.free_energy(&self.means);
        let lowest = free_energy.into_iter().fold(f64::INFINITY, f64::min);
        Ok(Info {
            metrics: vec![
                ("change", change),
                ("iterations", iterations as f64),
                ("log_z_mean_field", -lowest),
            ],
        })
    }

    fn save(&self, archive: &mut Archive) {
        for (l, m) in self.means.iter().enumerate() {
            archive.put_reals(format!("means/{l}"), m);
        }
    }

    fn load(&mut self, archive: &Archive) -> Result<()> {
        let mut means = Vec::new();
        for (l, old) in self.means.iter().enumerate() {
            let new = archive.reals::<f64>(&format!("means/{l}"))?;
            if new.dim() != old.dim() {
                let (expected, got) = (format!("{:?}", old.dim()), format!("{:?}", new.dim()));
                return Err(Error::shape("magnetisations of a checkpoint", expected, got));
            }
            means.push(new);
        }
        self.means = means;
        Ok(())
    }
}
