//! Nodes for walked units with infinitely many states: counts up to a tail, reals by Gauss–Legendre panels.
//!
//! Needed only when two layers of unbounded units are coupled, so that neither can be traced out first. Every real unit
//! multiplies the number of states by a few hundred: this is for tiny machines.

use super::plan::Nodes;
use super::window::{self, RealUnit, Side};
use crate::machine::Cholesky;
use crate::{Error, Machine, Result};
use ndarray::Array2;
use std::sync::LazyLock;

/// Weights below e^−45 ≈ 3e−20 of the largest do not reach the last digit of a double.
const TAIL: f64 = 45.0;
/// Nodes of a panel, and its width in standard deviations of the narrowest normal density it meets: the
/// error of the rule for such a density is below 1e−16.
const ORDER: usize = 20;
const PANEL: f64 = 4.0;
/// Most by which the logarithm of an exponential density falls in the first panel: the error of the rule is below 1e−13.
const FOLDS: f64 = 26.0;
/// The nodes of a panel on [−1, 1] and their weights.
static RULE: LazyLock<(Vec<f64>, Vec<f64>)> = LazyLock::new(|| gauss_legendre(ORDER));
/// States of a layer from which on it pays to find the windows of the density itself.
const MANY: f64 = 1e4;

/// 0, 1, 2 … up to where the Poisson weights are negligible.
pub(super) fn counts(
    machine: &Machine<f64>,
    l: usize,
    beta: f64,
    fixed: &[Option<Vec<f64>>],
) -> Vec<Nodes> {
    let layer = machine.layer(l);
    let reach = reach(machine, l, fixed);
    (0..layer.len())
        .map(|j| {
            let rate = (beta * (layer.params()[[0, j]] + reach[j].1)).exp();
            let last = (rate + 10.0 * rate.sqrt() + 30.0).ceil() as u32;
            (0..=last).map(|x| (f64::from(x), layer.log_measure_row(&[f64::from(x)]))).collect()
        })
        .collect()
}

/// Smallest and largest input of each unit of layer `l` from bounded or clamped units. Unbounded neighbours are
/// excluded: they can only decrease a Poisson unit, and real units are part of the joint precision.
fn reach(machine: &Machine<f64>, l: usize, fixed: &[Option<Vec<f64>>]) -> Vec<(f64, f64)> {
    let mut reach = vec![(0.0, 0.0); machine.layer(l).len()];
    for c in machine.couplings() {
        let Some(o) = c.other(l) else { continue };
        let weight = |i: usize, j: usize| {
            if c.ends().0 == l { c.w()[[j, i]] } else { c.w()[[i, j]] }
        };
        let other = machine.layer(o);
        let columns = other.kind().columns();
        for (j, reach) in reach.iter_mut().enumerate() {
            for u in 0..other.len() {
                let inputs = |x: f64| match columns {
                    1 => x * weight(u, j),
                    _ => weight(u * columns + x as usize, j),
                };
                let values: Vec<f64> = match (&fixed[o], other.kind().states()) {
                    (Some(x), _) => vec![x[u]],
                    (None, Some(n)) => (0..n).map(|a| other.kind().value(a)).collect(),
                    (None, None) => continue,
                };
                let range = values
                    .into_iter()
                    .map(inputs)
                    .fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), x| (lo.min(x), hi.max(x)));
                *reach = (reach.0 + range.0, reach.1 + range.1);
            }
        }
    }
    reach
}

/// Gauss–Legendre panels over the window of each unit.
///
/// With A a bound on the joint precision of all real units and b their linear terms, the density is at most
/// $e^{-x^\top Ax/2 + b^\top x}$, and it is 1 at x = 0. Maximised over the other units the bound is a normal
/// density in $x_i$ with mean $e_i^\top A^{-1}b$ and variance $e_i^\top A^{-1}e_i$, which gives the window. Where that
/// makes many states, the windows are those of the density itself.
///
/// With all other units held, a unit has a normal density of precision γ that may be cut off at zero. If a rule integrates each
/// of these, the product of the rules integrates them all, for every weight is positive. Cut far below its mean the density
/// is an exponential one, so that the first panels follow the steepest descent from zero.
pub(super) fn reals(
    machine: &Machine<f64>,
    l: usize,
    beta: f64,
    fixed: &[Option<Vec<f64>>],
) -> Result<Vec<Nodes>> {
    let units = real_units(machine, beta, fixed);
    let weights = weights(machine, beta, &units);
    let bound = Bound::new(&units, &weights).ok_or_else(|| Error::Undefined {
        what: "exact integration over coupled real units",
        why: "their joint precision is not positive definite".into(),
    })?;
    let wanted = || (0..units.len()).filter(|&i| units[i].layer == l);
    let steepest: Vec<f64> = (0..units.len()).map(|i| bound.steepest(i, &units, &weights)).collect();
    let (x, w) = &*RULE;
    let nodes = |i: usize, ends: [f64; 2], steepest: f64| {
        let mut nodes = Nodes::new();
        for ((side, end), sign) in units[i].sides.iter().zip(ends).zip([1.0, -1.0]) {
            for panel in edges(end, PANEL / side.gamma.sqrt(), FOLDS / steepest).windows(2) {
                let half = 0.5 * (panel[1] - panel[0]);
                let node =
                    |(x, w): (&f64, &f64)| (sign * (panel[0] + half * (1.0 + x)), (w * half).ln());
                nodes.extend(x.iter().zip(w).map(node));
            }
        }
        nodes
    };
    let reach = |i: usize| [bound.reach(i); 2];
    let loose: Vec<Nodes> = wanted().map(|i| nodes(i, reach(i), steepest[i])).collect();
    let states: f64 = loose.iter().map(|nodes| nodes.len() as f64).product();
    let Some(ends) = (states > MANY).then(|| window::ends(&units, &weights, TAIL)).flatten() else {
        return Ok(loose);
    };
    let ends: Vec<[f64; 2]> =
        (0..units.len()).map(|i| ends[i].map(|end| end.min(bound.reach(i)))).collect();
    let least = |i: usize| {
        let farthest = |j: usize| ends[j][0].max(ends[j][1]);
        let others: f64 = (0..units.len()).map(|j| weights[[i, j]].abs() * farthest(j)).sum();
        steepest[i].min(units[i].descent() + others)
    };
    Ok(wanted().map(|i| nodes(i, ends[i], least(i))).collect())
}

/// The edges of panels from 0 to `end`, none wider than `widest`: as many as needed of one width, but where `first` is less than
/// that they begin with it and double.
fn edges(end: f64, widest: f64, first: f64) -> Vec<f64> {
    let mut edges = vec![0.0];
    let mut next = first;
    while next < widest.min(end) {
        edges.push(next);
        next *= 2.0;
    }
    let from = edges[edges.len() - 1];
    let panels = ((end - from) / widest).ceil();
    edges.extend((1..=panels as usize).map(|k| from + (end - from) * (k as f64 / panels)));
    edges
}

/// All real units that are not held, with the bounds that bounded units set to their linear terms.
fn real_units(machine: &Machine<f64>, beta: f64, fixed: &[Option<Vec<f64>>]) -> Vec<RealUnit> {
    let real = |&k: &usize| fixed[k].is_none() && machine.layer(k).kind().tail().has_gamma();
    let mut units = Vec::new();
    for k in (0..machine.len()).filter(real) {
        let (layer, reach) = (machine.layer(k), reach(machine, k, fixed));
        let kind = layer.kind();
        let (linear, gamma) = (kind.linear_rows(), kind.gamma_rows());
        for (j, (least, most)) in reach.into_iter().enumerate() {
            let p = layer.params().column(j);
            let (theta, gamma) = (linear.clone().map(|row| p[row]), gamma.clone().map(|row| p[row]));
            let mut above = theta.clone().zip(gamma.clone());
            let (tp, gp) = above.next().expect("a real unit has a field and a γ");
            let (tm, gm) = above.next().unwrap_or((tp, gp));
            let mut sides =
                vec![Side { gamma: beta * gp, low: beta * (tp + least), high: beta * (tp + most) }];
            if !kind.is_half_line() {
                sides.push(Side {
                    gamma: beta * gm,
                    low: -beta * (tm + most),
                    high: -beta * (tm + least),
                });
            }
            units.push(RealUnit { layer: k, unit: j, sides });
        }
    }
    units
}

/// β times the weights among real units.
fn weights(machine: &Machine<f64>, beta: f64, units: &[RealUnit]) -> Array2<f64> {
    let mut out = Array2::zeros((units.len(), units.len()));
    for c in machine.couplings() {
        let (p, q) = c.ends();
        for (i, a) in units.iter().enumerate().filter(|(_, u)| u.layer == p) {
            for (j, b) in units.iter().enumerate().filter(|&(j, u)| u.layer == q && j != i) {
                let w = beta * c.w()[[a.unit, b.unit]];
                (out[[i, j]], out[[j, i]]) = (w, w);
            }
        }
    }
    out
}

/// A normal density above that of the real units, but for a constant.
struct Bound {
    /// A⁻¹.
    c: Array2<f64>,
    b: Vec<f64>,
    /// The logarithm of the bound at its maximum.
    peak: f64,
}

impl Bound {
    /// `None` where the joint precision is not positive definite.
    fn new(units: &[RealUnit], weights: &Array2<f64>) -> Option<Self> {
        let mut a = -weights;
        for (i, u) in units.iter().enumerate() {
            a[[i, i]] = u.sides.iter().map(|s| s.gamma).fold(f64::INFINITY, f64::min);
        }
        let relu: Vec<bool> = units.iter().map(|u| u.sides.len() == 1).collect();
        let c = Cholesky::new(&without_repulsion(a, &relu)?)?.inverse();
        // Negative inputs to a non-negative unit only narrow its window.
        let b: Vec<f64> = units.iter().map(RealUnit::pull).collect();
        let mut bound = Self { c, b, peak: 0.0 };
        bound.peak = 0.5 * (0..units.len()).map(|i| bound.b[i] * bound.mean(i)).sum::<f64>();
        Some(bound)
    }

    fn mean(&self, i: usize) -> f64 {
        self.c.row(i).iter().zip(&self.b).map(|(c, b)| c.abs() * b).sum()
    }

    /// The largest |x| of unit `i` that counts.
    fn reach(&self, i: usize) -> f64 {
        self.mean(i) + (2.0 * self.c[[i, i]] * (self.peak + TAIL)).sqrt()
    }

    /// How steeply the logarithm of the density of unit `i` can fall from zero, the others being where the density counts while
    /// it is at zero: there their bound has the covariance $C - c_ic_i^\top/C_{ii}$.
    fn steepest(&self, i: usize, units: &[RealUnit], weights: &Array2<f64>) -> f64 {
        let both = |j: usize| units[i].sides.len() + units[j].sides.len() > 2;
        let slope = |j: usize| if both(j) { weights[[i, j]].abs() } else { (-weights[[i, j]]).max(0.0) };
        let (mut mean, mut variance) = (0.0, 0.0);
        for j in (0..units.len()).filter(|&j| slope(j) > 0.0) {
            for k in 0..units.len() {
                let c = (self.c[[j, k]] - self.c[[j, i]] * self.c[[i, k]] / self.c[[i, i]]).abs();
                mean += slope(j) * c * self.b[k];
                variance += slope(j) * c * slope(k);
            }
        }
        units[i].descent() + mean + (2.0 * variance * (self.peak + TAIL)).sqrt()
    }
}

/// A with the repulsion of ReLU units left out, for $x^\top Ax$ is then no larger as long as these are not negative:
/// with all other units where they are best for given ReLU units r it is $r^\top Sr$, S being the Schur complement,
/// whose positive elements off the diagonal can go. `None` when the precision of the other units is not positive
/// definite.
fn without_repulsion(mut a: Array2<f64>, relu: &[bool]) -> Option<Array2<f64>> {
    let (rectified, others): (Vec<usize>, Vec<usize>) = (0..relu.len()).partition(|&i| relu[i]);
    let part = |rows: &[usize], columns: &[usize]| {
        Array2::from_shape_fn((rows.len(), columns.len()), |(i, j)| a[[rows[i], columns[j]]])
    };
    let mut s = part(&rectified, &rectified);
    if !others.is_empty() {
        let across = part(&rectified, &others);
        let inverse = Cholesky::new(&part(&others, &others))?.inverse();
        s -= &across.dot(&inverse).dot(&across.t());
    }
    for ((i, j), s) in s.indexed_iter().filter(|((i, j), _)| i != j) {
        a[[rectified[i], rectified[j]]] -= s.max(0.0);
    }
    Some(a)
}

/// Nodes and weights on [−1, 1]: the roots of the Legendre polynomial by Newton's method.
fn gauss_legendre(n: usize) -> (Vec<f64>, Vec<f64>) {
    let root = |i: usize| {
        let mut x = (std::f64::consts::PI * (i as f64 + 0.75) / (n as f64 + 0.5)).cos();
        let mut slope = 0.0;
        // Newton's method doubles the digits of Chebyshev's guess: six rounds are more than enough.
        for _ in 0..6 {
            let (mut p0, mut p1) = (1.0, x);
            for k in 2..=n {
                let k = k as f64;
                (p0, p1) = (p1, ((2.0 * k - 1.0) * x * p1 - (k - 1.0) * p0) / k);
            }
            slope = n as f64 * (x * p1 - p0) / (x * x - 1.0);
            x -= p1 / slope;
        }
        (x, 2.0 / ((1.0 - x * x) * slope * slope))
    };
    (0..n).map(root).unzip()
}
