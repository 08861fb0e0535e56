//! Parallel tempering: the chains at β = 1 of an adaptive ladder.

use super::{Context, Info, NegativePhase, Setup, averaged, chains_like};
use crate::machine::Phase;
use crate::sample::Tempering;
use crate::{Archive, Real, Result, States};
use serde::{Deserialize, Serialize};

/// Settings of [`Pt`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PtParams {
    /// Chains at each rung; the size of a minibatch when left out.
    pub chains: Option<usize>,
    /// Sweeps at every rung for each update, each followed by an exchange.
    pub sweeps: usize,
    /// Number of inverse temperatures.
    pub rungs: usize,
    /// Updates between two adaptations of the ladder; 0 keeps it evenly spaced.
    pub adapt_every: u64,
}

impl PtParams {
    /// Ten rungs, one sweep, adapted every 20 updates.
    pub const DEFAULT: Self = Self { chains: None, sweeps: 1, rungs: 10, adapt_every: 20 };
}

impl Default for PtParams {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Persistent chains at $\beta = 1$ that exchange configurations with tempered replicas.
#[derive(Clone, Debug)]
pub struct Pt<T: Real = f32> {
    params: PtParams,
    tempering: Tempering<T>,
    updates: u64,
}

impl<T: Real> Pt<T> {
    /// Replicas at an evenly spaced ladder; those at β = 1 start as [`Setup::chains`] starts them.
    ///
    /// # Errors
    /// A machine it does not apply to, fewer than two rungs, or an error of sampling.
    pub fn new(setup: &Setup<'_, T>, params: PtParams) -> Result<Self> {
        super::Estimator::Pt(params.clone()).check(setup.machine)?;
        let n = params.chains.unwrap_or(setup.batch);
        setup.machine.check_rows(n.saturating_mul(params.rungs))?;
        let betas = Tempering::even_ladder(setup.machine, params.rungs);
        let mut tempering = Tempering::new(setup.machine, &betas, n, setup.seed)?;
        *tempering.replica_mut(0).states_mut() = setup.chains(n, crate::sample::purpose::NEGATIVE)?;
        Ok(Self { params, tempering, updates: 0 })
    }

    /// The replicas.
    pub fn tempering(&self) -> &Tempering<T> {
        &self.tempering
    }
}

impl<T: Real> NegativePhase<T> for Pt<T> {
    fn name(&self) -> &'static str {
        "pt"
    }

    fn estimate(&mut self, context: &Context<'_, T>, out: &mut Phase<T>) -> Result<Info> {
        let machine = context.model.machine();
        self.updates += 1;
        if self.params.adapt_every > 0 && self.updates.is_multiple_of(self.params.adapt_every) {
            self.tempering.adapt();
        }
        for k in 0..self.params.sweeps as u64 {
            context.stop.check_before(k)?;
            self.tempering.exchange(machine)?;
            self.tempering.sweep(machine, 1)?;
        }
        context.model.moments_into(self.tempering.replica(0).states(), &averaged(machine), None, out)?;
        let tried = || self.tempering.acceptance().iter().copied().filter(|a| !a.is_nan());
        let mean = tried().sum::<f64>() / tried().count().max(1) as f64;
        Ok(Info {
            metrics: vec![
                ("acceptance", mean),
                ("acceptance_min", tried().fold(1.0, f64::min)),
                ("round_trips", self.tempering.round_trips() as f64),
            ],
        })
    }

    fn chains(&self) -> Option<&States<T>> {
        Some(self.tempering.replica(0).states())
    }

    fn save(&self, archive: &mut Archive) {
        self.tempering.save(archive, "tempering");
        archive.put_u64s("updates", &[self.updates]);
    }

    fn load(&mut self, archive: &Archive) -> Result<()> {
        let tempering: Tempering<T> = Tempering::load(archive, "tempering")?;
        chains_like(self.tempering.replica(0), tempering.replica(0).clone())?;
        if tempering.betas().len() != self.tempering.betas().len() {
            let (expected, got) = (self.tempering.betas().len(), tempering.betas().len());
            return Err(crate::Error::shape("rungs of the checkpoint", expected, got));
        }
        self.tempering = tempering;
        self.updates = archive.u64s("updates")?.first().copied().unwrap_or(0);
        Ok(())
    }
}
