//! ln Z with a verdict: AIS from both sides, replica exchange between them, and probes for missed modes.

use super::chains::{Mixing, mixing};
use super::verdict::{self, Evidence};
use crate::partition::{
    Base, Cost, Interval, LogZ, ProgressFn, Verdict,
    survey::{Forward, Survey},
};
use crate::{Machine, Real, Result, States};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

/// Settings of an estimate of ln Z.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogZParams {
    /// Initial number of chains of an annealing run; more are added where a finer schedule does not help.
    pub chains: usize,
    /// Standard error to aim at, in nats: the schedule grows until it is reached.
    pub std_err: f64,
    /// Most steps of a schedule.
    pub temperatures: usize,
    /// Ladders of the replica exchange.
    pub ladders: usize,
    /// Most rounds of the replica exchange, which ends when it has mixed.
    pub rounds: usize,
    /// Enumerate when that is estimated to take no longer than this many seconds.
    pub exact_seconds: f64,
    /// Seed of all random numbers.
    pub seed: u64,
}

impl Default for LogZParams {
    fn default() -> Self {
        Self {
            chains: 112,
            std_err: 0.1,
            temperatures: 20_000,
            ladders: 32,
            rounds: 400,
            exact_seconds: 2.0,
            seed: 0,
        }
    }
}

/// A time budget with a clock from the caller; the library never reads the system clock itself.
///
/// Under a budget the length of the schedule, and with it the result, depends on the measured speed of the first runs;
/// [`Estimate::reasons`] say when the budget shortened anything.
#[derive(Clone, Copy)]
pub struct Budget<'a> {
    /// Seconds for the whole estimate.
    pub seconds: f64,
    /// Seconds since some fixed moment.
    pub clock: &'a dyn Fn() -> f64,
}

/// Diagnostics of the replica exchange along the path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ladder {
    /// Inverse temperatures.
    pub betas: Vec<f64>,
    /// Acceptance between each rung and the next.
    pub acceptance: Vec<f64>,
    /// Finished round trips of all ladders together.
    pub round_trips: u64,
    /// Diagnostics of the energy at β = 1, each ladder being a chain.
    pub mixing: Mixing,
    /// R-hat of the energy at β = 1 between earlier and later rounds of all ladders together: whether the ensemble
    /// drifts away from the weighted states of AIS that it starts from.
    pub drift: f64,
}

/// An estimate of ln Z with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The best single value.
    pub log_z: LogZ,
    /// An interval that contains ln Z with at least 95 % probability, if converged.
    pub interval: Interval,
    /// Whether it is reliable.
    pub verdict: Verdict,
    /// The reasons, in words.
    pub reasons: Vec<String>,
    /// AIS.
    pub forward: Option<LogZ>,
    /// Reverse AIS.
    pub reverse: Option<LogZ>,
    /// Bennett's ratio along the ladder.
    pub bennett: Option<LogZ>,
    /// Thermodynamic integration along the ladder.
    pub integral: Option<LogZ>,
    /// The replica exchange.
    pub ladder: Option<Ladder>,
}

impl Estimate {
    /// The same estimate of a number that is larger by `by`.
    fn shifted(mut self, by: f64) -> Self {
        self.log_z.value += by;
        self.interval = Interval { lower: self.interval.lower + by, upper: self.interval.upper + by };
        let others = [&mut self.forward, &mut self.reverse, &mut self.bennett, &mut self.integral];
        others.into_iter().flatten().for_each(|z| z.value += by);
        self
    }
}

/// The cost of [`log_z`] in advance: an upper bound on its sampling, and its time in seconds.
///
/// # Errors
/// A machine that cannot be normalised.
pub fn log_z_cost<T: Real>(machine: &Machine<T>, params: &LogZParams) -> Result<(Cost, f64)> {
    if let Some(seconds) = enumerable(machine, params)? {
        return Ok((Cost::default(), seconds));
    }
    // Ever finer runs up, more chains for the last one, as many down and the probes. A ladder has a few dozen rungs.
    let annealing = 6.0 * params.chains as f64 * params.temperatures as f64;
    let ladder = 20.0 * 2.0 * params.ladders as f64 * params.rounds as f64;
    let cost =
        Cost { chains: params.chains, temperatures: params.temperatures, sweeps: annealing + ladder };
    // A multiply-add by table takes about 0.06 ns; the other half of the time goes to Γ and random numbers.
    let weights: usize = machine.couplings().iter().map(|c| c.w().len()).sum();
    let units: usize = machine.members().iter().map(|m| m.layer.width()).sum();
    let seconds = cost.sweeps * (2.0 * 6e-11 * weights as f64 + 1e-8 * units as f64);
    Ok((cost, seconds / rayon::current_num_threads() as f64))
}

/// Estimated seconds of enumeration, when that is allowed.
fn enumerable<T: Real>(machine: &Machine<T>, params: &LogZParams) -> Result<Option<f64>> {
    let (_, seconds) = machine.exact().cost()?;
    Ok((seconds <= params.exact_seconds).then_some(seconds))
}

/// ln Z of a machine, with a verdict.
///
/// Enumerated where that is quick. Otherwise AIS with a schedule that adapts itself, replica exchange started from its
/// weighted states, reverse AIS from the samples of the replica exchange at β = 1, Bennett's ratio and thermodynamic
/// integration along the replicas, and probes: reverse runs from data and from quenched random states, which find modes
/// that AIS missed. `data`, where given, are rows of the visible layers: their marginals make the base model. Coupled
/// Gaussian units are annealed in coordinates that decouple them.
///
/// # Errors
/// A machine that cannot be normalised or needs a condition, data that do not fit, an observer that stops.
pub fn log_z<T: Real>(
    machine: &Machine<T>,
    data: Option<&States<T>>,
    params: &LogZParams,
    budget: Option<Budget<'_>>,
    observer: &mut ProgressFn<'_>,
) -> Result<Estimate> {
    verdict::check(params)?;
    if enumerable(machine, params)?.is_some() {
        return Ok(enumerated(machine.exact().forced().log_z()?));
    }
    if let Some(d) = machine.decoupled(|_| true) {
        let data = data.map(|data| d.states(data));
        let estimate = log_z(&d.machine, data.as_ref(), params, budget, observer)?;
        return Ok(estimate.shifted(d.log_z_shift()));
    }
    let base = match data {
        Some(data) => Base::of_data(machine, data)?,
        None => Base::own(machine),
    };
    let mut survey =
        Survey::new(machine, &base, params.seed, budget.map(|b| (b.seconds, b.clock)), observer)?;
    let forward = survey.forward(params.chains, params.std_err, params.temperatures)?;
    let mixed =
        |trace: &Array2<f64>| mixing_or_constant(trace).is_ok_and(|m| m.r_hat <= verdict::R_HAT_AIM);
    let climb = survey.ladder(&forward, params.ladders, params.rounds, mixed)?;
    let (reverse, probes) = survey.down(&forward.schedule, &climb, data)?;
    let ladder = Ladder {
        betas: climb.betas.clone(),
        acceptance: climb.acceptance.clone(),
        round_trips: climb.round_trips,
        mixing: mixing_or_constant(&climb.trace)?,
        drift: mixing_or_constant(&halves_in_time(&climb.trace))?.r_hat,
    };
    let Forward { z: forward, variance, .. } = forward;
    let evidence = Evidence {
        forward,
        variance,
        reverse,
        bennett: climb.bennett,
        integral: climb.integral,
        ladder,
        probes,
        wanted: params.std_err,
        shortened: survey.shortened(),
    };
    Ok(verdict::decide(evidence, survey.sweeps()))
}

/// Diagnostics of a trace. A constant one, as when a single state has all probability, counts as converged, although
/// R-hat is then 0/0.
fn mixing_or_constant(trace: &Array2<f64>) -> Result<Mixing> {
    let mixing = mixing(trace.view())?;
    let constant = trace.iter().all(|x| *x == trace[[0, 0]]);
    Ok(if constant { Mixing { r_hat: 1.0, ..mixing } } else { mixing })
}

/// The first and the second half of all chains as two long chains, in the order of time.
fn halves_in_time(trace: &Array2<f64>) -> Array2<f64> {
    let half = trace.ncols() / 2;
    let chains = trace.nrows();
    Array2::from_shape_fn((2, half * chains), |(h, k)| trace[[k % chains, h * half + k / chains]])
}

pub(super) fn enumerated(value: f64) -> Estimate {
    Estimate {
        log_z: LogZ::exact(value),
        interval: Interval::around(value, 0.0),
        verdict: Verdict::Exact,
        reasons: vec!["ln Z was enumerated".into()],
        forward: None,
        reverse: None,
        bennett: None,
        integral: None,
        ladder: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two ladders that stay apart agree in time; two that drift together do not.
    #[test]
    fn drift_is_seen_over_all_ladders() {
        let wave = |k: usize| (k as f64 * 0.7).sin();
        let apart = Array2::from_shape_fn((2, 200), |(r, k)| 5.0 * r as f64 + wave(k + 3 * r));
        let drifting = Array2::from_shape_fn((2, 200), |(r, k)| wave(k + 3 * r) + k as f64 / 50.0);
        let drift = |t: &Array2<f64>| mixing_or_constant(&halves_in_time(t)).unwrap().r_hat;
        assert!(
            mixing_or_constant(&apart).unwrap().r_hat > 1.5 && drift(&apart) < 1.02,
            "{}",
            drift(&apart)
        );
        assert!(drift(&drifting) > 1.3, "{}", drift(&drifting));
        assert_eq!(mixing_or_constant(&Array2::ones((2, 20))).unwrap().r_hat, 1.0);
    }
}
