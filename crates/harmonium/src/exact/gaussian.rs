//! Gaussian layers integrated out of a machine in closed form.

use crate::machine::{Cholesky, precision};
use crate::units::Square;
use crate::{Coupling, Machine, Member, Result};
use ndarray::{Array1, Array2};

/// The machine without the Gaussian layers that enumeration could not trace out (they have lateral couplings, or are
/// coupled to other units without bound), and the logarithm of the constant factor; `None` when nothing is left.
///
/// With the precision $A = \operatorname{diag}\gamma - U$ of such a layer, and what it receives as $b = \theta + \sum_o Wx_o$,
///
/// $$\int e^{-\beta(x^\top Ax/2 - b^\top x)} dx = (2\pi/\beta)^{n/2} |A|^{-1/2} e^{\beta b^\top A^{-1}b/2},$$
///
/// which is quadratic in the other layers: fields and couplings among them. A layer next to counts stays, since these
/// have no parameter for the square of a unit.
pub(super) fn integrated(mut machine: Machine<f64>, beta: f64) -> Result<(Option<Machine<f64>>, f64)> {
    let mut constant = 0.0;
    while let Some(l) = (0..machine.len()).find(|&l| can_be_integrated(&machine, l)) {
        let Some((rest, part)) = without(&machine, l, beta)? else { break };
        constant += part;
        match rest {
            Some(rest) => machine = rest,
            None => return Ok((None, constant)),
        }
    }
    Ok((Some(machine), constant))
}

fn neighbours(machine: &Machine<f64>, l: usize) -> Vec<usize> {
    machine.couplings().iter().filter_map(|c| c.other(l)).filter(|&o| o != l).collect()
}

fn can_be_integrated(machine: &Machine<f64>, l: usize) -> bool {
    let kind = |l: usize| machine.layer(l).kind();
    let near = neighbours(machine, l);
    kind(l).is_normal()
        && (machine.has_lateral(l) || near.iter().any(|&o| kind(o).states().is_none()))
        && near.iter().all(|&o| kind(o).square() != Square::Absent)
}

/// The machine without layer `l`; `None` unless every real unit is known to keep a positive γ.
#[allow(clippy::type_complexity)]
fn without(machine: &Machine<f64>, l: usize, beta: f64) -> Result<Option<(Option<Machine<f64>>, f64)>> {
    let layer = machine.layer(l);
    let n = layer.len();
    let Some(factor) = Cholesky::new(&precision(machine, l)) else { return Ok(None) };
    let inverse = factor.inverse();
    let theta: Array1<f64> = layer.params().row(0).to_owned();
    let pull = inverse.dot(&theta);
    let mut constant = 0.5 * n as f64 * (2.0 * std::f64::consts::PI / beta).ln() - factor.log_det()
        + 0.5 * beta * theta.dot(&pull);
    let mut members: Vec<Member<f64>> = machine.members().to_vec();
    let near = neighbours(machine, l);
    let weights = |o: usize| {
        let c = &machine.couplings()[machine.coupling_between(l, o).expect("a neighbour")];
        if c.ends().0 == l { c.w().clone() } else { c.w().t().to_owned() }
    };
    let mut added: Vec<(usize, usize, Array2<f64>)> = Vec::new();
    for (k, &o) in near.iter().enumerate() {
        let w = weights(o);
        let field = w.t().dot(&pull);
        let mut own = w.t().dot(&inverse).dot(&w);
        let square: Vec<f64> = own.diag().to_vec();
        let Some(more) = absorb(&mut members[o].layer, &field, &square, beta) else { return Ok(None) };
        constant += more;
        crate::machine::clear_self(&mut own, machine.layer(o).kind());
        // Rounding must not leave the two triangles different.
        let own = (&own + &own.t()) * 0.5;
        added.push((o, o, own));
        for &p in &near[k + 1..] {
            let (first, second) = (o.min(p), o.max(p));
            added.push((first, second, weights(first).t().dot(&inverse).dot(&weights(second))));
        }
    }
    members.remove(l);
    if members.is_empty() {
        return Ok(Some((None, constant)));
    }
    let place = |o: usize| if o > l { o - 1 } else { o };
    let mut sums = std::collections::BTreeMap::<(usize, usize), Array2<f64>>::new();
    let old = machine.couplings().iter().filter(|c| c.other(l).is_none());
    for (a, b, w) in old.map(|c| (c.ends().0, c.ends().1, c.w().clone())).chain(added) {
        let sum = sums.entry((place(a), place(b))).or_insert_with(|| Array2::zeros(w.dim()));
        *sum += &w;
    }
    let kept = sums.into_iter().filter(|(_, w)| w.iter().any(|&w| w != 0.0));
    let couplings = kept.map(|((a, b), w)| Coupling::new(a, b, w)).collect::<Result<_>>()?;
    Ok(Some((Some(Machine::new(members, couplings)?), constant)))
}

/// Adds a field and half the square of every column to the parameters of a layer; what is constant is returned.
fn absorb(layer: &mut crate::Layer<f64>, field: &Array1<f64>, square: &[f64], beta: f64) -> Option<f64> {
    let (kind, mut constant) = (layer.kind(), 0.0);
    let params = layer.params_mut();
    for (k, name) in kind.params().iter().enumerate() {
        for (j, &s) in square.iter().enumerate() {
            match (kind.square(), name.starts_with("theta")) {
                (Square::Value, true) => params[[k, j]] += field[j] + 0.5 * s,
                (_, true) => params[[k, j]] += field[j],
                (_, false) => params[[k, j]] -= s,
            }
        }
    }
    if kind.square() == Square::One {
        constant = 0.5 * beta * square.iter().sum::<f64>();
    }
    layer.check().ok().map(|()| constant)
}
