//! Weighted chains, an ensemble that represents a distribution it has not relaxed to.

use super::super::chains_like;
use crate::sample::weights::{log_mean_exp, normalised, systematic};
use crate::sample::{log_ratio, purpose};
use crate::units::uniform;
use crate::{Archive, Chains, Error, Key, Machine, Real, Result};
use harmonium_kernels::Stream;

/// Chains, their log-weights A and ln Z of the machine they represent.
#[derive(Clone, Debug)]
pub(super) struct Ensemble<T: Real> {
    pub(super) chains: Chains<T>,
    pub(super) log_wts: Vec<f64>,
    /// ln Z without the contribution of the present log-weights.
    log_z_at_resampling: f64,
    seed: u64,
    pub(super) resamplings: u64,
}

impl<T: Real> Ensemble<T> {
    /// Chains in equilibrium with an uncoupled machine whose ln Z is given.
    pub(super) fn new(chains: Chains<T>, seed: u64, log_z: f64) -> Self {
        let log_wts = vec![0.0; chains.states().rows()];
        Self { chains, log_wts, log_z_at_resampling: log_z, seed, resamplings: 0 }
    }

    /// ln Z at the last resampling plus $\ln\langle e^A\rangle$.
    pub(super) fn log_z(&self) -> f64 {
        self.log_z_at_resampling + log_mean_exp(&self.log_wts)
    }

    /// Effective sample size of the weights, as a part of the chains.
    pub(super) fn ess(&self) -> f64 {
        ess(&self.log_wts)
    }

    /// Weights that sum to one.
    pub(super) fn wts(&self) -> Vec<f64> {
        normalised(&self.log_wts)
    }

    /// Effective sample size of the weights that a change of the machine alone would give.
    pub(super) fn ess_of_change(&self, old: &Machine<T>, new: &Machine<T>) -> Result<f64> {
        Ok(ess(&log_ratio(&old.at(1.0), &new.at(1.0), self.chains.states())?))
    }

    /// Moves the ensemble from one machine to another by re-weighting; resamples when the weights have become uneven.
    pub(super) fn reweight(&mut self, old: &Machine<T>, new: &Machine<T>, resample: f64) -> Result<()> {
        let u = log_ratio(&old.at(1.0), &new.at(1.0), self.chains.states())?;
        self.log_wts.iter_mut().zip(u).for_each(|(a, u)| *a += u);
        if self.ess() < resample {
            self.resample();
        }
        Ok(())
    }

    /// Systematic resampling: one uniform number shifts an evenly spaced grid over the cumulative weights, so that a
    /// chain that should be kept w times is kept ⌊w⌋ or ⌈w⌉ times.
    fn resample(&mut self) {
        let n = self.log_wts.len();
        self.log_z_at_resampling = self.log_z();
        let key = Key { seed: self.seed, purpose: purpose::SWAP, block: 0, sweep: self.resamplings };
        let rows = systematic(&self.wts(), n, uniform(&mut Stream::new(key)));
        *self.chains.states_mut() = self.chains.states().select(&rows);
        self.log_wts = vec![0.0; n];
        self.resamplings += 1;
    }

    pub(super) fn save(&self, archive: &mut Archive, name: &str) {
        self.chains.save(archive, &format!("{name}/chains"));
        archive.put_f64s(format!("{name}/log_wts"), &self.log_wts);
        archive.put_f64s(format!("{name}/log_z"), &[self.log_z_at_resampling]);
        archive.put_u64s(format!("{name}/counters"), &[self.seed, self.resamplings]);
    }

    pub(super) fn load(&self, archive: &Archive, name: &str) -> Result<Self> {
        let chains = Chains::load(archive, &format!("{name}/chains"))?;
        let chains = chains_like(&self.chains, chains)?;
        let log_wts = archive.f64s(&format!("{name}/log_wts"))?;
        if log_wts.len() != chains.states().rows() {
            return Err(Error::shape("weights of chains", chains.states().rows(), log_wts.len()));
        }
        let log_z = archive.f64s(&format!("{name}/log_z"))?;
        let counters = archive.u64s(&format!("{name}/counters"))?;
        let (&[log_z_at_resampling], &[seed, resamplings]) = (log_z.as_slice(), counters.as_slice())
        else {
            return Err(Error::shape("counters of weighted chains", 2, counters.len()));
        };
        Ok(Self { chains, log_wts, log_z_at_resampling, seed, resamplings })
    }
}

/// Effective sample size $1/(n\sum_i w_i^2)$, between 1/n and 1.
fn ess(log_wts: &[f64]) -> f64 {
    let wts = normalised(log_wts);
    1.0 / (wts.len() as f64 * wts.iter().map(|w| w * w).sum::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effective_sample_sizes() {
        assert!((ess(&[7.0; 5]) - 1.0).abs() < 1e-12);
        assert!((ess(&[0.0, -800.0, -900.0, -1000.0]) - 0.25).abs() < 1e-12);
        assert!((log_mean_exp(&[1000.0, 1000.0]) - 1000.0).abs() < 1e-12);
    }
}
