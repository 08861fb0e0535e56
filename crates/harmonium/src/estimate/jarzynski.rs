//! Jarzynski-weighted persistent chains: every parameter update multiplies a chain's weight.

use super::{Context, Info, NegativePhase, Setup, Verdict, averaged, chains_like};
use crate::machine::Parameters;
use crate::sample::{between, log_ratio, log_z_uncoupled, purpose, uncoupled};
use crate::units::uniform;
use crate::{Archive, Chains, Clamps, Error, Key, Machine, Real, Result};
use harmonium_kernels::Stream;
use serde::{Deserialize, Serialize};

/// Settings of [`Jarzynski`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JarzynskiParams {
    /// Number of chains; the size of a minibatch when left out.
    pub chains: Option<usize>,
    /// Sweeps for each update.
    pub sweeps: usize,
    /// Effective sample size, as a part of the chains, below which they are resampled.
    pub resample: f64,
    /// Effective sample size of the weights of one update alone below which the update is rejected.
    pub reject: f64,
}

impl JarzynskiParams {
    /// One sweep, resampling below 0.7, rejection below 0.1.
    pub const DEFAULT: Self = Self { chains: None, sweeps: 1, resample: 0.7, reject: 0.1 };
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
#[derive(Clone, Debug)]
pub struct Jarzynski<T: Real = f32> {
    params: JarzynskiParams,
    chains: Chains<T>,
    log_wts: Vec<f64>,
    /// ln Z without what the present log-weights say.
    log_z: f64,
    /// The machine that the weights are for.
    reference: Machine<T>,
    seed: u64,
    resamplings: u64,
}

impl<T: Real> Jarzynski<T> {
    /// Chains in exact equilibrium with the machine without its couplings.
    ///
    /// # Errors
    /// A machine it does not apply to, or whatever sampling may refuse.
    pub fn new(setup: &Setup<'_, T>, params: JarzynskiParams) -> Result<Self> {
        super::Estimator::Jarzynski(params.clone()).check(setup.machine)?;
        let n = params.chains.unwrap_or(setup.batch);
        let reference = uncoupled(setup.machine);
        let chains = Chains::independent(&reference, n, setup.seed, purpose::NEGATIVE)?;
        let log_z = log_z_uncoupled(&reference);
        let log_wts = vec![0.0; n];
        Ok(Self { params, chains, log_wts, log_z, reference, seed: setup.seed, resamplings: 0 })
    }

    /// ln Z of the machine of the last estimate: $\ln Z$ at the last resampling plus $\ln\langle e^A\rangle$.
    pub fn log_z(&self) -> f64 {
        self.log_z + log_mean_exp(&self.log_wts)
    }
    /// The chains.
    pub fn chains(&self) -> &Chains<T> {
        &self.chains
    }
    /// The log-weights of the chains since the last resampling.
    pub fn log_wts(&self) -> &[f64] {
        &self.log_wts
    }
    /// How often the chains were resampled.
    pub fn resamplings(&self) -> u64 {
        self.resamplings
    }

    /// Moves the weights, and only them, to another machine.
    fn weigh(&mut self, machine: &Machine<T>) -> Result<()> {
        let u = log_ratio(&self.reference.at(1.0), &machine.at(1.0), self.chains.states())?;
        self.log_wts.iter_mut().zip(u).for_each(|(a, u)| *a += u);
        self.reference = machine.clone();
        if ess(&self.log_wts) < self.params.resample {
            self.resample();
        }
        Ok(())
    }

    /// From the machine of the last update to this one; where that is too far for one step, over machines in
    /// between with a sweep at each, as annealed importance sampling does.
    fn follow(&mut self, target: &Machine<T>) -> Result<u64> {
        for step in 1.. {
            let (mut part, mut next) = (1.0, target.clone());
            let here = self.reference.at(1.0);
            while part > 1e-6 && ess(&log_ratio(&here, &next.at(1.0), self.chains.states())?) < 0.5 {
                part *= 0.5;
                next = between(&self.reference, target, part)?;
            }
            self.weigh(&next)?;
            if part == 1.0 {
                return Ok(step);
            }
            self.chains.sweep(&next.at(1.0), &Clamps::none(&next), 1)?;
        }
        unreachable!("every step halves at most to a fixed part of the way that is left")
    }

    /// Systematic resampling: one uniform number places an even comb over the cumulative weights, so that a
    /// chain of weight w is kept ⌊w⌋ or ⌈w⌉ times.
    fn resample(&mut self) {
        let n = self.log_wts.len();
        self.log_z = self.log_z();
        let wts = softmax(&self.log_wts);
        let key = Key { seed: self.seed, purpose: purpose::SWAP, block: 0, sweep: self.resamplings };
        let start = uniform(&mut Stream::new(key));
        let (mut rows, mut sum) = (Vec::with_capacity(n), 0.0);
        for (r, wt) in wts.iter().enumerate() {
            sum += wt * n as f64;
            while rows.len() < n && start + (rows.len() as f64) < sum {
                rows.push(r);
            }
        }
        // Rounding may leave the last tooth of the comb beyond the sum.
        while rows.len() < n {
            rows.push(*rows.last().unwrap_or(&0));
        }
        *self.chains.states_mut() = self.chains.states().select(&rows);
        self.log_wts.fill(0.0);
        self.resamplings += 1;
    }
}

impl<T: Real> NegativePhase<T> for Jarzynski<T> {
    fn name(&self) -> &'static str {
        "jarzynski"
    }

    fn estimate(&mut self, context: &Context<'_, T>, out: &mut Parameters<T>) -> Result<Info> {
        let machine = context.model.machine();
        let steps = self.follow(machine)?;
        self.chains.sweep(context.model, &Clamps::none(machine), self.params.sweeps)?;
        let wts = softmax(&self.log_wts);
        *out = context.model.moments(self.chains.states(), &averaged(machine), Some(&wts))?;
        Ok(Info {
            metrics: vec![
                ("ess", ess(&self.log_wts)),
                ("log_z", self.log_z()),
                ("resamplings", self.resamplings as f64),
                ("steps", steps as f64),
            ],
        })
    }

    fn updated(&mut self, old: &Machine<T>, new: &Machine<T>) -> Result<Verdict> {
        let alone = log_ratio(&old.at(1.0), &new.at(1.0), self.chains.states())?;
        let follows = ess(&alone) >= self.params.reject;
        Ok(if follows { Verdict::Accept } else { Verdict::Reject })
    }

    fn save(&self, archive: &mut Archive) {
        self.chains.save(archive, "chains");
        archive.put_f64s("log_wts", &self.log_wts);
        archive.put_f64s("log_z", &[self.log_z]);
        archive.put_parameters("reference", &self.reference.parameters());
        archive.put_u64s("counters", &[self.seed, self.resamplings]);
    }

    fn load(&mut self, archive: &Archive) -> Result<()> {
        let chains = chains_like(&self.chains, Chains::load(archive, "chains")?)?;
        let log_wts = archive.f64s("log_wts")?;
        if log_wts.len() != chains.states().rows() {
            return Err(Error::shape("weights of chains", chains.states().rows(), log_wts.len()));
        }
        let (log_z, counters) = (archive.f64s("log_z")?, archive.u64s("counters")?);
        let (&[log_z], &[seed, resamplings]) = (log_z.as_slice(), counters.as_slice()) else {
            return Err(Error::shape("counters of jarzynski", 2, counters.len()));
        };
        let parameters = archive.parameters("reference", &self.reference.parameters())?;
        self.reference.set_parameters(&parameters)?;
        (self.chains, self.log_wts, self.log_z) = (chains, log_wts, log_z);
        (self.seed, self.resamplings) = (seed, resamplings);
        Ok(())
    }
}

/// $\ln\frac1n\sum_i e^{a_i}$.
fn log_mean_exp(a: &[f64]) -> f64 {
    let max = a.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    max + (a.iter().map(|a| (a - max).exp()).sum::<f64>() / a.len() as f64).ln()
}

/// Weights that sum to one.
fn softmax(a: &[f64]) -> Vec<f64> {
    let log_sum = log_mean_exp(a) + (a.len() as f64).ln();
    a.iter().map(|a| (a - log_sum).exp()).collect()
}

/// Effective sample size $1/(n\sum_i w_i^2)$, between 1/n and 1.
fn ess(log_wts: &[f64]) -> f64 {
    let wts = softmax(log_wts);
    1.0 / (wts.len() as f64 * wts.iter().map(|w| w * w).sum::<f64>())
}
