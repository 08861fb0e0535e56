//! The verdict on ln Z: agreement of both sides, replica exchange, probes.

use super::log_z::{Estimate, Ladder, LogZParams};
use crate::partition::{Bound, Cost, Interval, LogZ, Method, Verdict, survey::Probe};
use crate::{Error, Result};

/// All measurements of an estimate.
pub(super) struct Evidence {
    pub(super) forward: LogZ,
    /// Variance of the forward log-weights.
    pub(super) variance: f64,
    pub(super) reverse: LogZ,
    pub(super) bennett: LogZ,
    pub(super) integral: LogZ,
    pub(super) ladder: Ladder,
    pub(super) probes: Vec<Probe>,
    pub(super) wanted: f64,
    pub(super) shortened: bool,
}

/// Standard errors that count as agreement.
const SIGMAS: f64 = 3.0;
/// Difference in nats that counts as agreement whatever the standard errors.
const SLACK: f64 = 0.1;
/// Largest standard error of a converged value.
const STD_ERR_MOST: f64 = 0.5;
/// Half width of a 95 % interval in standard errors, slightly widened because standard errors are themselves estimated.
const Z95: f64 = 2.1;
/// R-hat of the whole ensemble of ladders between earlier and later rounds, for a converged value.
const DRIFT_MOST: f64 = 1.1;
/// R-hat of single ladders. They start from weighted states of the whole ensemble, so a ladder need not have forgotten
/// its own start, but it must have moved.
const R_HAT_MOST: f64 = 2.0;
/// R-hat of single ladders at which the replica exchange stops.
pub(super) const R_HAT_AIM: f64 = 1.1;
/// Number of probes allowed far above the estimate: one of a few dozen represents a region of a few per cent, which
/// does not matter for ln Z, and a row of data may have negligible probability under the machine.
const STRAY: usize = 1;
/// Nats above the estimate that not even one probe may exceed.
const FAR_ABOVE: f64 = 5.0;
const ACCEPTANCE_LEAST: f64 = 0.1;

pub(super) fn check(params: &LogZParams) -> Result<()> {
    let least =
        [("chains", params.chains, 16), ("ladders", params.ladders, 8), ("rounds", params.rounds, 16)];
    for (what, got, least) in least {
        if got < least {
            return Err(Error::value(what, format!("at least {least}"), got));
        }
    }
    if params.std_err.is_nan() || params.std_err <= 0.0 || params.temperatures < 2 {
        return Err(Error::value(
            "std_err and temperatures",
            "a positive number and at least 2",
            "less",
        ));
    }
    Ok(())
}

/// The estimate with its verdict; `sweeps` is all the work done.
pub(super) fn decide(e: Evidence, sweeps: f64) -> Estimate {
    let failed_checks = failed_checks(&e);
    let (f, r) = (&e.forward, &e.reverse);
    // The two sides are biased against each other; weighing them by their precision cancels most of it.
    let weight = |z: &LogZ| 1.0 / (z.std_err * z.std_err).max(1e-12);
    let (a, b) = (weight(f), weight(r));
    let value = (a * f.value + b * r.value) / (a + b);
    let cost = Cost { sweeps, ..f.cost };
    // The runs down start from descendants of the runs up, so their errors may be fully correlated and are added as
    // such. Where the sides are not known to agree, their distance counts as an error too.
    let std_err = (a * f.std_err + b * r.std_err) / (a + b);
    let std_err =
        if failed_checks.is_empty() { std_err } else { std_err.hypot(0.5 * (f.value - r.value)) };
    let log_z = LogZ {
        value,
        std_err,
        ess: f.ess + r.ess,
        bound: Bound::Central,
        method: Method::TwoSidedAis,
        cost,
    };
    let side = |z: &LogZ| Interval::around(z.value, Z95 * z.std_err + 1e-9);
    let interval = side(f).hull(side(r));
    let converged = failed_checks.is_empty();
    let mut reasons = if converged { passed_checks(&e) } else { failed_checks };
    if e.shortened {
        reasons.push("the time budget has shortened the schedule".into());
    }
    Estimate {
        log_z,
        interval,
        verdict: if converged { Verdict::Converged } else { Verdict::NotConverged },
        reasons,
        forward: Some(e.forward),
        reverse: Some(e.reverse),
        bennett: Some(e.bennett),
        integral: Some(e.integral),
        ladder: Some(e.ladder),
    }
}

fn passed_checks(e: &Evidence) -> Vec<String> {
    vec![
        format!("AIS and reverse AIS differ by {:.3} nats", e.reverse.value - e.forward.value),
        format!(
            "effective samples: {:.0} of {} up, {:.0} of {} down",
            e.forward.ess, e.forward.cost.chains, e.reverse.ess, e.reverse.cost.chains
        ),
        format!(
            "replica exchange: R-hat {:.3} in time and {:.3} of single ladders, smallest acceptance {:.2}, {} round trips",
            e.ladder.drift,
            e.ladder.mixing.r_hat,
            least(&e.ladder.acceptance),
            e.ladder.round_trips
        ),
    ]
}

/// Whether `x` exceeds `most` or is NaN.
pub(super) fn above(x: f64, most: f64) -> bool {
    x.is_nan() || most.is_nan() || x > most
}

fn least(x: &[f64]) -> f64 {
    x.iter().copied().fold(f64::INFINITY, f64::min)
}

/// All failed checks of the estimate.
fn failed_checks(e: &Evidence) -> Vec<String> {
    let mut out = Vec::new();
    let (f, r) = (&e.forward, &e.reverse);
    for z in [f, r] {
        let few = (0.1 * z.cost.chains as f64).max(8.0);
        if above(few, z.ess) {
            out.push(format!("{}: only {:.1} effective samples of {}", z.method, z.ess, z.cost.chains));
        }
        if above(z.std_err, STD_ERR_MOST.max(2.0 * e.wanted)) {
            out.push(format!("{}: standard error {:.2} nats", z.method, z.std_err));
        }
    }
    let apart = |a: &LogZ, b: &LogZ| {
        let allowed = SIGMAS * a.std_err.hypot(b.std_err) + SLACK;
        above((a.value - b.value).abs(), allowed)
    };
    for (a, b) in [(f, r), (f, &e.bennett), (r, &e.bennett), (f, &e.integral)] {
        if apart(a, b) {
            out.push(format!(
                "{} and {} disagree: {:.3} ± {:.3} against {:.3} ± {:.3}",
                a.method, b.method, a.value, a.std_err, b.value, b.std_err
            ));
        }
    }
    if above(e.ladder.mixing.r_hat, R_HAT_MOST) {
        out.push(format!("the replica exchange does not mix: R-hat {:.2}", e.ladder.mixing.r_hat));
    }
    if above(e.ladder.drift, DRIFT_MOST) {
        let drift = e.ladder.drift;
        out.push(format!(
            "the replica exchange moves away from the states of AIS: R-hat {drift:.2} in time"
        ));
    }
    if least(&e.ladder.acceptance) < ACCEPTANCE_LEAST {
        let a = least(&e.ladder.acceptance);
        out.push(format!("neighbouring replicas hardly exchange: smallest acceptance {a:.3}"));
    }
    out.extend(e.probes.iter().filter_map(|p| missed_mode(p, f, e.variance)));
    out
}

/// Whether a probe found a mode that AIS missed.
///
/// From equilibrium the log-weight of a run down is about normal around ln Z + V/2 with variance V, V being that of
/// the runs up. A chain from a region that holds p of the probability but was entered by a share q of the
/// runs up stands ln(p/q) above: far above when the region was missed.
fn missed_mode(probe: &Probe, forward: &LogZ, variance: f64) -> Option<String> {
    let allowed = 0.5 * variance + 4.0 * variance.sqrt() + 1.0 + SIGMAS * forward.std_err;
    let above = probe.log_w.iter().filter(|w| **w - forward.value > allowed).count();
    let most = probe.log_w.iter().copied().fold(f64::NEG_INFINITY, f64::max) - forward.value;
    let known = above > STRAY || most > allowed + FAR_ABOVE;
    known.then(|| {
        format!(
            "{above} of {} runs down from {} stand up to {most:.1} nats above forward AIS, which missed a mode",
            probe.log_w.len(),
            probe.what
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::Mixing;

    fn made(value: f64, method: Method) -> LogZ {
        let cost = Cost { chains: 100, temperatures: 1000, sweeps: 1e5 };
        LogZ { value, std_err: 0.05, ess: 60.0, bound: Bound::Central, method, cost }
    }

    /// Evidence without faults, around ln Z = 10.
    fn good() -> Evidence {
        let mixing = Mixing { r_hat: 1.02, ess_bulk: 500.0, ess_tail: 500.0, autocorrelation: 3.0 };
        Evidence {
            forward: made(10.0, Method::Ais),
            variance: 0.5,
            reverse: made(10.1, Method::ReverseAis),
            bennett: made(10.05, Method::Bennett),
            integral: made(9.95, Method::Integration),
            ladder: Ladder {
                betas: vec![0.0, 1.0],
                acceptance: vec![0.4],
                round_trips: 9,
                mixing,
                drift: 1.01,
            },
            probes: vec![Probe { what: "data", log_w: vec![10.5; 32] }],
            wanted: 0.1,
            shortened: false,
        }
    }

    #[test]
    fn good_evidence_converges() {
        let e = decide(good(), 1e6);
        assert_eq!(e.verdict, Verdict::Converged, "{:?}", e.reasons);
        // Equal errors: the value in the middle, fully correlated errors, the hull of both intervals.
        assert!((e.log_z.value - 10.05).abs() < 1e-9 && (e.log_z.std_err - 0.05).abs() < 1e-9);
        let Interval { lower, upper } = e.interval;
        assert!(
            (lower - (10.0 - Z95 * 0.05)).abs() < 1e-6 && (upper - (10.1 + Z95 * 0.05)).abs() < 1e-6
        );
        // One stray probe does not matter, one far above or two do.
        let mut stray = good();
        stray.probes[0].log_w[3] = 15.0;
        assert_eq!(decide(stray, 1e6).verdict, Verdict::Converged);
    }

    #[test]
    fn every_fault_is_seen() {
        type Spoil = fn(&mut Evidence);
        let failed_checks: [(&str, Spoil); 12] = [
            ("disagree", |e| e.reverse.value = 10.5),
            ("Bennett", |e| e.bennett.value = 9.4),
            ("integration", |e| e.integral.value = 11.0),
            ("effective samples", |e| e.forward.ess = 4.0),
            ("effective samples", |e| e.reverse.ess = f64::NAN),
            ("standard error", |e| e.reverse.std_err = 0.6),
            ("does not mix", |e| e.ladder.mixing.r_hat = 2.5),
            ("does not mix", |e| e.ladder.mixing.r_hat = f64::NAN),
            ("moves away", |e| e.ladder.drift = 1.2),
            ("hardly exchange", |e| e.ladder.acceptance[0] = 0.01),
            ("missed", |e| e.probes[0].log_w[..2].fill(15.0)),
            ("missed", |e| e.probes[0].log_w[0] = 40.0),
        ];
        for (word, spoil) in failed_checks {
            let mut e = good();
            spoil(&mut e);
            let e = decide(e, 1e6);
            assert_eq!(e.verdict, Verdict::NotConverged, "{word}");
            assert!(e.reasons.iter().any(|r| r.contains(word)), "{word}: {:?}", e.reasons);
        }
    }
}
