//! Jarzynski-weighted persistent chains: every parameter update multiplies a chain's weight.

mod ensemble;

use super::{Context, Decision, Info, NegativePhase, Setup, averaged};
use crate::machine::Phase;
use crate::sample::{Stop, between, log_z_uncoupled, purpose, uncoupled};
use crate::{Archive, Chains, Clamps, Key, Machine, Real, Result};
use ensemble::Ensemble;
use serde::{Deserialize, Serialize};

/// Settings of [`Jarzynski`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JarzynskiParams {
    /// Number of chains; the size of a minibatch when left out.
    pub chains: Option<usize>,
    /// Number of witness chains, used for ln Z only; half as many as chains when left out.
    pub witnesses: Option<usize>,
    /// Sweeps for each update.
    pub sweeps: usize,
    /// Effective sample size, as a part of the chains, below which they are resampled.
    pub resample: f64,
    /// Effective sample size of the weights of one update alone below which the update is rejected.
    pub reject: f64,
}

impl JarzynskiParams {
    /// One sweep, resampling below 0.7, rejection below 0.1.
    pub const DEFAULT: Self =
        Self { chains: None, witnesses: None, sweeps: 1, resample: 0.7, reject: 0.1 };
}

impl Default for JarzynskiParams {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Persistent chains whose log-weight grows by $\ln p^\ast_{\theta'}(x) - \ln p^\ast_\theta(x)$ at every update
/// θ → θ′.
///
/// Weighted averages are then those of the present machine although the chains lag behind, and
///
/// $$\ln\frac{Z_\theta}{Z_0} = \ln\langle e^{A}\rangle$$
///
/// over the log-weights A since the start, where $Z_0$ is that of the machine without couplings, known
/// exactly (Jarzynski 1997; Neal 2001). When the effective sample size falls, the mean weight is folded
/// into ln Z and the chains are resampled by their weights.
///
/// The identity holds for updates that are independent of the chains, but a gradient is not: it moves θ away from the
/// states it was averaged over, so that re-weighting them loses about $\eta \mathrm{tr} \mathrm{Cov}(t)/n$ of ln Z at
/// every update, always downwards. ln Z is therefore estimated from *witness* chains, which are re-weighted like the
/// others and never enter a gradient. The weights of the others all lose about the same, which cancels in averages; a
/// sweep between gradient and re-weighting reduces the loss.
#[derive(Clone, Debug)]
pub struct Jarzynski<T: Real = f32> {
    params: JarzynskiParams,
    chains: Ensemble<T>,
    witnesses: Ensemble<T>,
    /// The machine that the weights refer to.
    reference: Machine<T>,
}

impl<T: Real> Jarzynski<T> {
    /// Chains in exact equilibrium with the machine without its couplings.
    ///
    /// # Errors
    /// A machine it does not apply to, or an error of sampling.
    pub fn new(setup: &Setup<'_, T>, params: JarzynskiParams) -> Result<Self> {
        super::Estimator::Jarzynski(params.clone()).check(setup.machine)?;
        let n = params.chains.unwrap_or(setup.batch).max(1);
        let reference = uncoupled(setup.machine);
        let log_z = log_z_uncoupled(&reference);
        let ensemble = |rows: usize, block: u32| -> Result<Ensemble<T>> {
            // The two ensembles use separate streams.
            let key = Key { seed: setup.seed, purpose: purpose::NEGATIVE, block, sweep: 0 };
            let chains = setup.independent(&reference, rows, key.hash(), purpose::NEGATIVE)?;
            Ok(Ensemble::new(chains, key.hash(), log_z))
        };
        let witnesses = ensemble(params.witnesses.unwrap_or(n.div_ceil(2)).max(1), 1)?;
        Ok(Self { params, chains: ensemble(n, 0)?, witnesses, reference })
    }

    /// ln Z of the machine of the last estimate, from the witnesses.
    pub fn log_z(&self) -> f64 {
        self.witnesses.log_z()
    }
    /// The chains that gradients are averaged over.
    pub fn chains(&self) -> &Chains<T> {
        &self.chains.chains
    }
    /// Their log-weights since they were last resampled.
    pub fn log_wts(&self) -> &[f64] {
        &self.chains.log_wts
    }

    fn sweep(&mut self, n: usize, stop: Stop<'_>) -> Result<()> {
        let clamps = Clamps::none(&self.reference);
        for ensemble in [&mut self.chains, &mut self.witnesses] {
            ensemble.chains.sweep_until(&self.reference.at(1.0), &clamps, n, stop)?;
        }
        Ok(())
    }

    /// From the machine of the last update to this one; if that is too far for one step, through machines in between
    /// with a sweep at each, as in annealed importance sampling. Returns the number of steps, which does not depend on
    /// the witnesses.
    fn follow(&mut self, target: &Machine<T>, stop: Stop<'_>) -> Result<u64> {
        let mut steps = 0;
        loop {
            let (mut part, mut next) = (1.0, target.clone());
            while part > 1e-6 && self.chains.ess_of_change(&self.reference, &next)? < 0.5 {
                part *= 0.5;
                next = between(&self.reference, target, part)?;
            }
            for ensemble in [&mut self.chains, &mut self.witnesses] {
                ensemble.reweight(&self.reference, &next, self.params.resample)?;
            }
            self.reference = next;
            steps += 1;
            if part == 1.0 {
                return Ok(steps);
            }
            stop.check()?;
            self.sweep(1, stop)?;
        }
    }
}

impl<T: Real> NegativePhase<T> for Jarzynski<T> {
    fn name(&self) -> &'static str {
        "jarzynski"
    }

    fn estimate(&mut self, context: &Context<'_, T>, out: &mut Phase<T>) -> Result<Info> {
        let machine = context.model.machine();
        self.sweep(self.params.sweeps, context.stop)?;
        let steps = self.follow(machine, context.stop)?;
        let wts = self.chains.wts();
        context.model.moments_into(self.chains.chains.states(), &averaged(machine), Some(&wts), out)?;
        Ok(Info {
            metrics: vec![
                ("ess", self.chains.ess()),
                ("log_z", self.log_z()),
                ("resamplings", self.chains.resamplings as f64),
                ("steps", steps as f64),
            ],
        })
    }

    fn updated(&mut self, old: &Machine<T>, new: &Machine<T>) -> Result<Decision> {
        let follows = self.chains.ess_of_change(old, new)? >= self.params.reject;
        Ok(if follows { Decision::Accept } else { Decision::Reject })
    }

    fn save(&self, archive: &mut Archive) {
        self.chains.save(archive, "chains");
        self.witnesses.save(archive, "witnesses");
        archive.put_parameters("reference", &self.reference.parameters());
    }

    fn load(&mut self, archive: &Archive) -> Result<()> {
        let chains = self.chains.load(archive, "chains")?;
        let witnesses = self.witnesses.load(archive, "witnesses")?;
        let parameters = archive.parameters("reference", &self.reference.parameters())?;
        self.reference.set_parameters(&parameters)?;
        (self.chains, self.witnesses) = (chains, witnesses);
        Ok(())
    }
}
