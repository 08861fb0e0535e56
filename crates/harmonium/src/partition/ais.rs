//! AIS, reverse AIS and RAISE with a given schedule.

use super::anneal::{self, RunSeed};
use super::path::Path;
use super::result::{ProgressFn, report_progress};
use super::{Base, LogZ, Schedule, weights};
use crate::{Clamps, Error, Machine, Real, Result, Role, States};

/// Annealed importance sampling from the base model to the machine.
///
/// $$\hat Z = Z_0 \frac1M\sum_{m=1}^M \prod_{k=1}^K \frac{f_{\beta_k}(x^m_k)}{f_{\beta_{k-1}}(x^m_k)}$$
///
/// is unbiased, so that its logarithm is too small on average; a mode that no chain finds is missing altogether.
/// [`reverse_ais`] errs in the opposite direction.
///
/// # Errors
/// A machine that cannot be normalised or needs a condition; fewer than two chains.
pub fn ais<T: Real>(
    machine: &Machine<T>,
    base: &Base<T>,
    schedule: &Schedule,
    chains: usize,
    seed: u64,
    observer: &mut ProgressFn<'_>,
) -> Result<LogZ> {
    let path = unconditional(machine, base)?;
    at_least_two("chains of AIS", chains)?;
    let total = schedule.steps();
    let each =
        |k: usize, _, _: &[f64], _: &States<T>| report_progress(observer, "annealing", k + 1, total);
    let (log_w, _) = anneal::forward(&path, schedule, chains, RunSeed { seed, number: 1 }, each)?;
    Ok(anneal::from_forward(&log_w, total))
}

/// Annealed importance sampling from samples of the machine to the base model.
///
/// The samples must come from the machine's equilibrium distribution (exact draws, or chains that mix): only then is
/// $1/\hat Z$ unbiased and the value an upper bound on average. `samples` must hold the layers that are not
/// traced out: the visible ones and, where hidden layers are coupled to each other, all.
///
/// # Errors
/// As for [`ais`]; samples that do not hold the layers needed.
pub fn reverse_ais<T: Real>(
    machine: &Machine<T>,
    base: &Base<T>,
    schedule: &Schedule,
    samples: &States<T>,
    seed: u64,
    observer: &mut ProgressFn<'_>,
) -> Result<LogZ> {
    let path = unconditional(machine, base)?;
    at_least_two("samples for reverse AIS", samples.rows())?;
    for &l in path.kept() {
        machine.layer(l).check_batch(samples.layer(l)?)?;
    }
    let log_w =
        anneal::reverse(&path, schedule, samples.clone(), RunSeed { seed, number: 2 }, observer)?;
    Ok(anneal::from_reverse(&log_w, 1, schedule.steps()))
}

/// The path with no units clamped.
pub(crate) fn unconditional<'m, T: Real>(
    machine: &'m Machine<T>,
    base: &Base<T>,
) -> Result<Path<'m, T>> {
    if let Some(l) = machine.with_role(Role::Condition).next() {
        let why = format!("layer {} conditions it and must be given", machine.members()[l].name);
        return Err(Error::Undefined { what: "Z without its condition", why });
    }
    Path::new(machine, base.clone(), &Clamps::none(machine))
}

pub(super) fn at_least_two(what: &str, n: usize) -> Result<()> {
    if n < 2 { Err(Error::value(what, "at least 2", n)) } else { Ok(()) }
}

/// Reverse annealed importance sampling estimate of $\ln p(v)$ of each row, by `copies` chains each.
///
/// The annealing chain is itself a distribution $p_{\text{ann}}(v)$ that approaches the machine's as the schedule
/// grows. Run backwards from a row v it gives the unbiased estimate
///
/// $$\hat p_{\text{ann}}(v) = \frac{f_1(v)}{Z_0} \frac1C\sum_{c=1}^C
/// \prod_{k} \frac{f_{\beta_{k-1}}(x^c_{k-1})}{f_{\beta_k}(x^c_{k-1})},$$
///
/// whose logarithm is a stochastic lower bound on $\ln p_{\text{ann}}(v)$. It needs neither ln Z nor equilibrium samples.
///
/// # Errors
/// [`Error::Undefined`] when the hidden layers are not independent given the visible ones.
pub fn raise<T: Real>(
    machine: &Machine<T>,
    base: &Base<T>,
    schedule: &Schedule,
    data: &States<T>,
    copies: usize,
    seed: u64,
    observer: &mut ProgressFn<'_>,
) -> Result<Vec<f64>> {
    let path = unconditional(machine, base)?;
    let free_energy = machine.free_energy(data)?;
    let copies = copies.max(1);
    let rows: Vec<usize> = (0..data.rows()).flat_map(|r| std::iter::repeat_n(r, copies)).collect();
    let mut states = path.keep(data.select(&rows));
    let run = RunSeed { seed, number: 3 };
    path.sweep(&mut states, 1.0, run.key(0))?;
    let log_w = anneal::reverse(&path, schedule, states, run, observer)?;
    let inverse: Vec<f64> = log_w.iter().map(|w| -w).collect();
    let per_row = inverse.chunks(copies).map(weights::log_mean_exp);
    Ok(per_row.zip(free_energy).map(|(inverse_z, f)| inverse_z - f).collect())
}
