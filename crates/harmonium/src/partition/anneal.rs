//! Annealed importance sampling in either direction.

use super::path::Path;
use super::result::{ProgressFn, report_progress};
use super::{Bound, Cost, LogZ, Method, Schedule, weights};
use crate::sample::purpose;
use crate::{Key, Real, Result, States};

/// The random streams of a run; no two runs of an estimate share any.
#[derive(Clone, Copy)]
pub(crate) struct RunSeed {
    pub(crate) seed: u64,
    /// Number of the run within an estimate.
    pub(crate) number: u64,
}

impl RunSeed {
    pub(crate) fn key(self, sweep: usize) -> Key {
        let sweep = self.number << 40 | sweep as u64;
        Key { seed: self.seed, purpose: purpose::PARTITION, block: 0, sweep }
    }
}

/// Carries `states` along `betas` and adds up, for each chain,
/// $\ln w = \sum_k \ln f_{\beta_k}(x_k) - \ln f_{\beta_{k-1}}(x_k)$, where $x_{k+1}$ follows from $x_k$ by one sweep at
/// $\beta_k$.
///
/// If the chains start in equilibrium at the first β, then $\mathbb{E}[w] = Z_{\text{last}}/Z_{\text{first}}$ for any
/// schedule. `each(k, β_k, increments, states)` is called after step k, with the states after its sweep; the increment
/// was measured before it.
pub(crate) fn anneal<T: Real>(
    path: &Path<'_, T>,
    betas: &[f64],
    states: &mut States<T>,
    run: RunSeed,
    mut each: impl FnMut(usize, f64, &[f64], &States<T>) -> Result<()>,
) -> Result<Vec<f64>> {
    let mut log_w = vec![0.0; states.rows()];
    for (k, b) in betas.windows(2).enumerate() {
        let fields = path.observe(states)?;
        let increments = path.log_ratio(&fields, b[0], b[1]);
        log_w.iter_mut().zip(&increments).for_each(|(w, x)| *w += x);
        // Samples of the base model at the end of a reverse run are not needed.
        if b[1] > 0.0 {
            path.transition(states, &fields, b[1], run.key(k + 1))?;
        }
        each(k, b[1], &increments, states)?;
    }
    Ok(log_w)
}

/// A forward run from the base model, whose log-weights are estimates of ln Z.
pub(crate) fn forward<T: Real>(
    path: &Path<'_, T>,
    schedule: &Schedule,
    chains: usize,
    run: RunSeed,
    mut each: impl FnMut(usize, f64, &[f64], &States<T>) -> Result<()>,
) -> Result<(Vec<f64>, States<T>)> {
    let mut states = States::empty(path.machine().len(), chains);
    path.start(&mut states, run.key(0));
    let mut log_w = anneal(path, schedule.betas(), &mut states, run, &mut each)?;
    let log_z0 = path.log_z0();
    log_w.iter_mut().for_each(|w| *w += log_z0);
    Ok((log_w, states))
}

/// A reverse run from samples of the machine: minus the log-weight of the way down is an estimate of ln Z.
pub(crate) fn reverse<T: Real>(
    path: &Path<'_, T>,
    schedule: &Schedule,
    samples: States<T>,
    run: RunSeed,
    observer: &mut ProgressFn<'_>,
) -> Result<Vec<f64>> {
    let mut states = path.keep(samples);
    let betas: Vec<f64> = schedule.betas().iter().rev().copied().collect();
    let total = schedule.steps();
    let each = |k: usize, _, _: &[f64], _: &States<T>| {
        report_progress(observer, "reverse annealing", k + 1, total)
    };
    let log_w = anneal(path, &betas, &mut states, run, each)?;
    let log_z0 = path.log_z0();
    Ok(log_w.into_iter().map(|w| log_z0 - w).collect())
}

/// The estimate that forward log-weights give: $\ln\frac1n\sum w$, on average too small.
pub(crate) fn from_forward(log_w: &[f64], temperatures: usize) -> LogZ {
    LogZ {
        value: weights::log_mean_exp(log_w),
        std_err: weights::std_err(log_w, 1),
        ess: weights::effective_size(log_w),
        bound: Bound::Lower,
        method: Method::Ais,
        cost: cost(log_w.len(), temperatures),
    }
}

/// The estimate that reverse log-weights give: $-\ln\frac1n\sum w^{-1}$, on average too large. Consecutive runs of
/// `group` samples come from one chain.
pub(crate) fn from_reverse(log_w: &[f64], group: usize, temperatures: usize) -> LogZ {
    let inverse: Vec<f64> = log_w.iter().map(|w| -w).collect();
    LogZ {
        value: -weights::log_mean_exp(&inverse),
        std_err: weights::std_err(&inverse, group),
        ess: weights::effective_size(&inverse),
        bound: Bound::Upper,
        method: Method::ReverseAis,
        cost: cost(log_w.len(), temperatures),
    }
}

fn cost(chains: usize, temperatures: usize) -> Cost {
    Cost { chains, temperatures, sweeps: chains as f64 * temperatures as f64 }
}
