//! Nodes for walked units with infinitely many states: counts up to a tail, reals by Gauss–Legendre panels.
//!
//! Needed only when two layers of unbounded units are coupled, so that neither can be traced out first.
//! Every real unit multiplies the number of states by a few hundred: this serves tiny machines.

use super::plan::Nodes;
use crate::machine::Cholesky;
use crate::units::Tail;
use crate::{Error, Machine, Result};
use ndarray::Array2;

/// Weights below e^−45 ≈ 3e−20 of the largest do not reach the last digit of a double.
const TAIL: f64 = 45.0;
/// Nodes of a panel, and its width in standard deviations of the narrowest normal density it meets: the
/// error of the rule for such a density is below 1e−16.
const ORDER: usize = 20;
const PANEL: f64 = 4.0;

/// 0, 1, 2 … up to where the Poisson weights of unit after unit have died out.
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

/// Smallest and largest input of each unit of layer `l` from bounded or clamped units. Unbounded partners
/// are left out: a Poisson unit can only be pushed down by them, real units are in the joint precision.
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
/// density in $x_i$ with mean $e_i^\top A^{-1}b$ and variance $e_i^\top A^{-1}e_i$, which gives the window.
pub(super) fn reals(
    machine: &Machine<f64>,
    l: usize,
    beta: f64,
    fixed: &[Option<Vec<f64>>],
) -> Result<Vec<Nodes>> {
    let real = |&k: &usize| fixed[k].is_none() && machine.layer(k).kind().tail() == Tail::Quadratic;
    let layers: Vec<usize> = (0..machine.len()).filter(real).collect();
    let mut units = Vec::new();
    for &k in &layers {
        let (layer, reach) = (machine.layer(k), reach(machine, k, fixed));
        for (j, reach) in reach.into_iter().enumerate() {
            let p = layer.params().column(j);
            let most = reach.0.abs().max(reach.1.abs());
            let kind = layer.kind();
            let b = match kind.is_half_line() {
                // What pushes a unit down that is never negative only narrows it.
                true => (p[0] + reach.1).max(0.0),
                false => kind.linear_rows().map(|row| p[row].abs()).fold(0.0, f64::max) + most,
            };
            let gammas = kind.gamma_rows().map(|row| p[row]);
            let (least, largest) =
                (gammas.clone().fold(f64::INFINITY, f64::min), gammas.fold(0.0, f64::max));
            units.push((k, j, beta * b, beta * least, beta * largest));
        }
    }
    let is_relu = |u: &(usize, usize, f64, f64, f64)| machine.layer(u.0).kind().is_half_line();
    let relu: Vec<bool> = units.iter().map(is_relu).collect();
    let bound = without_repulsion(precision(machine, beta, &layers, &units), &relu);
    let factor = bound.and_then(|a| Cholesky::new(&a));
    let factor = factor.ok_or_else(|| Error::Undefined {
        what: "exact integration over coupled real units",
        why: "their joint precision is not positive definite".into(),
    })?;
    let c = factor.inverse();
    let n = units.len();
    let b: Vec<f64> = units.iter().map(|u| u.2).collect();
    let pull = |i: usize| (0..n).map(|j| c[[i, j]].abs() * b[j]).sum::<f64>();
    let peak = 0.5 * (0..n).map(|i| b[i] * pull(i)).sum::<f64>();
    let (x, w) = gauss_legendre(ORDER);
    let nodes = |i: usize| {
        let reach = pull(i) + (2.0 * c[[i, i]] * (peak + TAIL)).sqrt();
        let panels = (reach * units[i].4.sqrt() / PANEL).ceil();
        let half = 0.5 * reach / panels;
        let mut nodes = Nodes::new();
        for k in 0..panels as usize {
            for (x, w) in x.iter().zip(&w) {
                let y = half * (2.0 * k as f64 + 1.0 + x);
                nodes.push((y, (w * half).ln()));
            }
        }
        if !machine.layer(l).kind().is_half_line() {
            // The panels meet at zero, where a dReLU unit has its kink.
            nodes.extend(nodes.clone().into_iter().map(|(y, w)| (-y, w)));
        }
        nodes
    };
    Ok((0..n).filter(|&i| units[i].0 == l).map(nodes).collect())
}

/// A with the repulsion of ReLU units left out, for $x^\top Ax$ is then no larger as long as these are not negative: with all
/// other units where they are best for given ReLU units r it is $r^\top Sr$, S being the Schur complement, whose positive
/// elements off the diagonal can go. `None` when the other units alone are not held.
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

/// The joint precision: γ on the diagonal, −w off it.
fn precision(
    machine: &Machine<f64>,
    beta: f64,
    layers: &[usize],
    units: &[(usize, usize, f64, f64, f64)],
) -> Array2<f64> {
    let n = units.len();
    let mut a = Array2::zeros((n, n));
    let start = |l: usize| units.iter().position(|u| u.0 == l).unwrap_or(n);
    for (i, u) in units.iter().enumerate() {
        a[[i, i]] = u.3;
    }
    for c in machine.couplings() {
        let (p, q) = c.ends();
        if layers.contains(&p) && layers.contains(&q) {
            for ((i, j), &w) in c.w().indexed_iter() {
                let (i, j) = (start(p) + i, start(q) + j);
                if i != j {
                    (a[[i, j]], a[[j, i]]) = (-beta * w, -beta * w);
                }
            }
        }
    }
    a
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
