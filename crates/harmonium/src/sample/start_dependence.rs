//! Tests whether chains forget their start, with pairs of chains from different starts.

use super::{Chains, Clamps, log_density, purpose};
use crate::{Machine, Real, Result, Role, States};
use ndarray::{Array1, Array2, Axis, concatenate};

/// Fewest sweeps for a meaningful test.
pub(super) const SWEEPS: usize = 64;
/// States that are averaged, early and late.
const AVERAGED: usize = 8;
/// Fewest and most pairs of chains.
const PAIRS: (usize, usize) = (16, 128);
/// Bound of the statistics below, which are at most normal (Rademacher sums) where chains forget.
const FORGOTTEN: f64 = 3.0;

/// How much chains still depend on their start, measured on pairs of chains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StartDependence {
    /// Correlation of the visible states at the end with those in the middle, in standard errors.
    pub units: f64,
    /// The same for the log-density.
    pub density: f64,
    /// Drift of the mean log-density of all chains, in standard errors.
    pub drift: f64,
}

impl StartDependence {
    /// Whether no dependence on the start was detected.
    pub fn is_negligible(&self) -> bool {
        // Chains without any freedom give 0, not NaN.
        self.units < FORGOTTEN && self.density < FORGOTTEN && self.drift < FORGOTTEN + 1.0
    }
}

/// Follows pairs of chains under the clamps of rows of `states` for `sweeps` sweeps: one of each pair starts from
/// independent units, the other at high temperature and is cooled during the first half. With the states $x, y$ of a
/// pair in the middle and $x', y'$ at the end, $(x-y)\cdot(x'-y')$ has the mean 0 if and only if the end does not
/// depend on the middle, however different the distributions of the rows are; its sign is then that of a fair coin, so
/// that
///
/// $$\frac{\sum_r d_r}{\sqrt{\sum_r d_r^2}}$$
///
/// over the pairs r is no larger than a normal number. Chains that stay in the mode they fell into make it $\sqrt n$ for n
/// pairs that fell into different ones.
///
/// `None` for too few sweeps, or when `go_on` returns false.
///
/// # Errors
/// Errors of sampling.
pub(super) fn start_dependence<T: Real>(
    machine: &Machine<T>,
    clamps: &Clamps,
    states: &States<T>,
    sweeps: usize,
    seed: u64,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Option<StartDependence>> {
    if sweeps < SWEEPS {
        return Ok(None);
    }
    let pairs = (states.rows() / 4).clamp(PAIRS.0, PAIRS.1);
    let rows: Vec<usize> = (0..pairs).map(|r| r * states.rows() / pairs).collect();
    let (clamps, given) = (clamps.select(&rows), states.select(&rows));
    let mut both = Vec::new();
    for k in 0..2 {
        let key = crate::Key { seed, purpose: purpose::EVALUATE, block: k, sweep: 1 };
        let mut chains = Chains::independent(machine, pairs, key.hash(), purpose::EVALUATE)?;
        clamps.put(&given, chains.states_mut());
        both.push(chains);
    }
    let half = sweeps / 2;
    let stride = (sweeps / 8 / AVERAGED).max(1);
    let mut averages = [Averages::default(), Averages::default()];
    for k in 0..sweeps {
        if !go_on() {
            return Ok(None);
        }
        let cooling = ((k + 1) as f64 / half as f64).min(1.0);
        both[0].sweep(&machine.at(1.0), &clamps, 1)?;
        both[1].sweep(&machine.at(cooling), &clamps, 1)?;
        let early = k >= half && k - half < AVERAGED * stride && (k - half).is_multiple_of(stride);
        let left = sweeps - 1 - k;
        let late = left < AVERAGED * stride && left.is_multiple_of(stride);
        for (averages, wanted) in averages.iter_mut().zip([early, late]) {
            if wanted {
                averages.add(machine, &both)?;
            }
        }
    }
    Ok(Some(statistics(&averages)))
}

/// Sums of dense visible states and of log-densities, the chains of both kinds one below the other.
#[derive(Default)]
struct Averages {
    units: Option<Array2<f64>>,
    density: Vec<f64>,
}

impl Averages {
    fn add<T: Real>(&mut self, machine: &Machine<T>, both: &[Chains<T>]) -> Result<()> {
        let dense = |chains: &Chains<T>| {
            let of = |l: usize| Ok(machine.layer(l).dense(chains.states().layer(l)?).mapv(Real::f64));
            let parts: Vec<Array2<f64>> =
                machine.with_role(Role::Visible).map(of).collect::<Result<_>>()?;
            Ok(side_by_side(&parts, Axis(1)))
        };
        let units = both.iter().map(dense).collect::<Result<Vec<_>>>()?;
        let units = side_by_side(&units, Axis(0));
        let mut density = Vec::new();
        for chains in both {
            density.extend(log_density(&machine.at(1.0), chains.states())?);
        }
        match &mut self.units {
            Some(sum) => {
                *sum += &units;
                self.density.iter_mut().zip(density).for_each(|(s, d)| *s += d);
            }
            None => (self.units, self.density) = (Some(units), density),
        }
        Ok(())
    }
}

fn side_by_side(parts: &[Array2<f64>], axis: Axis) -> Array2<f64> {
    let views: Vec<_> = parts.iter().map(|p| p.view()).collect();
    concatenate(axis, &views).expect("parts that fit")
}

fn statistics([early, late]: &[Averages; 2]) -> StartDependence {
    let (x, y) = (early.units.as_ref().expect("looked at"), late.units.as_ref().expect("looked at"));
    let n = x.nrows() / 2;
    // Columns are normalised by their variance.
    let spread: Array1<f64> = x.var_axis(Axis(0), 0.0) + y.var_axis(Axis(0), 0.0);
    let scale = spread.mapv(|v| if v > 0.0 { 1.0 / v } else { 0.0 });
    let of_units = |r: usize| {
        let (a, b) = (&x.row(r) - &x.row(n + r), &y.row(r) - &y.row(n + r));
        (a * b * &scale).sum()
    };
    let (e, f) = (&early.density, &late.density);
    let of_density = |r: usize| (e[r] - e[n + r]) * (f[r] - f[n + r]);
    let moved: Vec<f64> = e.iter().zip(f).map(|(e, f)| f - e).collect();
    StartDependence {
        units: studentised((0..n).map(of_units)),
        density: studentised((0..n).map(of_density)),
        drift: studentised(moved.into_iter()).abs(),
    }
}

/// The sum of numbers in units of the root of the sum of their squares.
fn studentised(x: impl Iterator<Item = f64>) -> f64 {
    let (sum, squares) = x.fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
    if squares > 0.0 { sum / f64::sqrt(squares) } else { 0.0 }
}
