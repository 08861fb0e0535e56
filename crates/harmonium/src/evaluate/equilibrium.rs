//! Is plain Gibbs sampling of a trained machine in equilibrium? Chains started at data against independently initialised chains.

use super::chains::{Mixing, mixing, r_hat};
use super::verdict::above;
use crate::partition::{ProgressFn, Verdict};
use crate::sample::{log_density, purpose};
use crate::{Chains, Clamps, Error, Machine, Real, Result, Role, States};
use ndarray::{Array2, Axis, concatenate};
use serde::{Deserialize, Serialize};

/// Comparison of chains started at data with independently initialised chains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Equilibrium {
    /// Converged when both kinds of chains have forgotten their start.
    pub verdict: Verdict,
    /// The reasons, in words.
    pub reasons: Vec<String>,
    /// Diagnostics of the log-density over all chains.
    pub mixing: Mixing,
    /// Mean log-density of the second halves: chains started at data, independently initialised chains.
    pub means: [f64; 2],
}

/// R-hat above which chains are said to disagree: the usual bound is 1.01 for long chains of one start.
const R_HAT_MOST: f64 = 1.05;

/// Runs `chains` chains from rows of `data` and as many from independent units for `sweeps` sweeps each, and compares
/// the second halves of $\ln p^\ast(x)$ along them.
///
/// A machine can have a good likelihood although its chains do not reach equilibrium in any affordable number of
/// sweeps: then samples depend on where the chains start, and a negative phase that starts elsewhere is biased.
///
/// # Errors
/// Fewer than two chains or eight sweeps, data that do not fit, a conditional machine.
pub fn equilibrium<T: Real>(
    machine: &Machine<T>,
    data: &States<T>,
    chains: usize,
    sweeps: usize,
    seed: u64,
    observer: &mut ProgressFn<'_>,
) -> Result<Equilibrium> {
    if chains < 2 || sweeps < 8 || data.rows() == 0 {
        let got = format!("{chains} chains, {sweeps} sweeps, {} rows", data.rows());
        return Err(Error::value(
            "chains from data",
            "at least 2 chains, 8 sweeps and a row of data",
            got,
        ));
    }
    if machine.with_role(Role::Condition).next().is_some() {
        let why = "it is conditional: every condition has its own equilibrium".into();
        return Err(Error::Undefined { what: "one equilibrium", why });
    }
    let mut random = Chains::independent(machine, chains, seed, purpose::EVALUATE)?;
    let mut states = random.states().clone();
    let rows: Vec<usize> = (0..chains).map(|r| r * data.rows() / chains).collect();
    for l in machine.with_role(Role::Visible) {
        machine.layer(l).check_batch(data.layer(l)?)?;
        states.set(l, data.layer(l)?.select(&rows));
    }
    let mut settled = Chains::new(states, seed ^ 0x9e37_79b9, purpose::EVALUATE);
    // Coupled hidden layers equilibrate before the data are unclamped.
    settled.sweep(&machine.at(1.0), &Clamps::visible(machine), 10)?;
    let model = machine.at(1.0);
    let mut traces = [Array2::zeros((chains, sweeps)), Array2::zeros((chains, sweeps))];
    for k in 0..sweeps {
        for (chain, trace) in [&mut settled, &mut random].into_iter().zip(&mut traces) {
            chain.sweep(&model, &Clamps::none(machine), 1)?;
            let density = log_density(&model, chain.states())?;
            trace.column_mut(k).iter_mut().zip(density).for_each(|(t, d)| *t = d);
        }
        crate::partition::report_progress(
            observer,
            "sweeps of chains from data and of independent chains",
            k + 1,
            sweeps,
        )?;
    }
    compare(traces, sweeps)
}

fn compare(traces: [Array2<f64>; 2], sweeps: usize) -> Result<Equilibrium> {
    let late = traces.map(|t| t.view().split_at(Axis(1), sweeps / 2).1.to_owned());
    let all = concatenate(Axis(0), &[late[0].view(), late[1].view()]).expect("equally many sweeps");
    let mixing = mixing(all.view())?;
    // The two kinds as two long chains: insensitive to slow chains, sensitive to a difference between the kinds.
    let between = |t: &Array2<f64>| t.t().iter().copied().collect::<Vec<_>>();
    let n = late[0].len();
    let kinds: Vec<f64> = late.iter().flat_map(between).collect();
    let kinds = r_hat(Array2::from_shape_vec((2, n), kinds).expect("two kinds").view())?;
    let means = [0, 1].map(|k: usize| late[k].mean().expect("not empty"));
    let mut reasons = Vec::new();
    if above(kinds, R_HAT_MOST) {
        reasons.push(format!(
            "chains from data and independently initialised chains differ after {sweeps} sweeps: mean log-density {:.2} against {:.2}, R-hat {kinds:.2}",
            means[0], means[1]
        ));
    }
    if above(mixing.r_hat, R_HAT_MOST) {
        reasons.push(format!("single chains have not forgotten their start: R-hat {:.2}", mixing.r_hat));
    }
    let verdict = if reasons.is_empty() { Verdict::Converged } else { Verdict::NotConverged };
    if reasons.is_empty() {
        reasons.push(format!(
            "chains from data and independently initialised chains agree: R-hat {:.3}",
            mixing.r_hat
        ));
    }
    Ok(Equilibrium { verdict, reasons, mixing, means })
}
