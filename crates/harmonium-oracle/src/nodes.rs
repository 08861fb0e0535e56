//! The product space: a list of nodes per unit, and a visit to every combination of them.

use crate::layer::Kind;
use crate::machine::{Clamps, Machine, State};
use crate::quadrature::real_nodes;
use crate::window::{Window, windows};

/// Product spaces beyond this size are a mistake in the test, not a job for the oracle.
const MAX_STATES: f64 = 1e9;

/// One value of a unit with the logarithm of its weight: ln ν, or ln of the quadrature weight.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Dense columns of the unit: q of them for Potts, else one.
    pub(crate) values: Vec<f64>,
    pub(crate) log_weight: f64,
}

/// A unit that is summed over.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    pub(crate) layer: usize,
    /// First dense column of the unit within its layer.
    pub(crate) column: usize,
    /// The values to visit. Empty for an unbounded unit until its window is known.
    pub(crate) nodes: Vec<Node>,
}

/// All values of a bounded unit; empty for an unbounded one.
fn bounded_nodes(kind: Kind) -> Vec<Node> {
    let scalars: Vec<f64> = match kind {
        Kind::Binary => vec![0.0, 1.0],
        Kind::Spin => vec![-1.0, 1.0],
        Kind::Binomial { n } | Kind::NegativeBinomial { n, .. } | Kind::Ordinal { n } => {
            (0..=n).map(|x| x as f64).collect()
        }
        Kind::Potts { q } => return (0..q).map(|a| one_hot(q, a)).collect(),
        Kind::Gaussian | Kind::Relu | Kind::DRelu | Kind::Poisson => vec![],
    };
    scalars.into_iter().map(|x| counted(kind, x)).collect()
}

fn one_hot(q: usize, a: usize) -> Node {
    let values = (0..q).map(|b| if a == b { 1.0 } else { 0.0 }).collect();
    Node { values, log_weight: 0.0 }
}

/// A node that is summed, not integrated: its weight is ν.
pub(crate) fn counted(kind: Kind, x: f64) -> Node {
    Node { values: vec![x], log_weight: kind.log_nu(&[x]) }
}

/// The units that `clamps` leaves free, in order of layers; unbounded ones without nodes.
pub(crate) fn free_units(machine: &Machine, clamps: &Clamps) -> Vec<Unit> {
    let mut units = vec![];
    for (layer, l) in machine.layers.iter().enumerate() {
        if clamps[layer].is_none() {
            for i in 0..l.n_units() {
                let column = i * l.kind.columns_per_unit();
                let nodes = bounded_nodes(l.kind);
                units.push(Unit { layer, column, nodes });
            }
        }
    }
    units
}

/// A state with the clamped values in place and zeros elsewhere.
pub(crate) fn start_state(machine: &Machine, clamps: &Clamps) -> State {
    assert_eq!(clamps.len(), machine.layers.len(), "one clamp per layer");
    let fill = |(layer, clamp): (&crate::Layer, &Option<Vec<f64>>)| match clamp {
        Some(values) => {
            assert_eq!(values.len(), layer.width(), "a clamp is a dense row");
            values.clone()
        }
        None => vec![0.0; layer.width()],
    };
    machine.layers.iter().zip(clamps).map(fill).collect()
}

/// Visits the product of all node lists, the last unit fastest.
///
/// `f` receives the state, the index of every unit's node and the sum of the nodes' log weights.
pub(crate) fn visit<F>(units: &[Unit], x: &mut State, f: &mut F)
where
    F: FnMut(&State, &[usize], f64),
{
    descend(units, x, &mut vec![], 0.0, f);
}

fn descend<F>(units: &[Unit], x: &mut State, path: &mut Vec<usize>, log_weight: f64, f: &mut F)
where
    F: FnMut(&State, &[usize], f64),
{
    let Some(unit) = units.get(path.len()) else {
        return f(x, path, log_weight);
    };
    for (k, node) in unit.nodes.iter().enumerate() {
        let end = unit.column + node.values.len();
        x[unit.layer][unit.column..end].copy_from_slice(&node.values);
        path.push(k);
        descend(units, x, path, log_weight + node.log_weight, f);
        path.pop();
    }
}

/// Visits every state that agrees with `clamps`: `f` receives the state and the logarithm of its
/// contribution ν(x) e^{−βE(x)} to the sum (for real units: times the quadrature weight).
pub(crate) fn for_each_state(machine: &Machine, clamps: &Clamps, mut f: impl FnMut(&State, f64)) {
    machine.check();
    let mut x = start_state(machine, clamps);
    let mut units = free_units(machine, clamps);
    let found = windows(machine, &x, &units);
    fill_unbounded(machine, &x, &mut units, &found);

    let states: f64 = units.iter().map(|u| u.nodes.len() as f64).product();
    assert!(states <= MAX_STATES, "{states:.0e} states are too many");

    let clamped = machine.layers.iter().zip(clamps);
    let clamped_log_nu = |(layer, clamp): (&crate::Layer, &Option<Vec<f64>>)| {
        clamp.as_ref().map_or(0.0, |values| layer.log_nu(values))
    };
    let fixed: f64 = clamped.map(clamped_log_nu).sum();
    visit(&units, &mut x, &mut |x, _, log_weight| {
        f(x, fixed + log_weight - machine.beta * machine.energy(x));
    });
}

/// Gives every unbounded unit the nodes of its window.
fn fill_unbounded(machine: &Machine, x: &State, units: &mut [Unit], found: &[Option<Window>]) {
    let reach = reach(machine, x, units, found);
    for (unit, window) in units.iter_mut().zip(found) {
        if let Some(window) = window {
            let layer = &machine.layers[unit.layer];
            unit.nodes = if layer.kind.is_real() {
                let slope = slope_at_zero(machine, unit, &reach);
                real_nodes(layer, unit.column, machine.beta, window, slope)
            } else {
                window.lattice(layer, unit.column, machine.beta)
            };
        }
    }
}

/// Largest |x| that each dense column takes.
fn reach(machine: &Machine, x: &State, units: &[Unit], found: &[Option<Window>]) -> State {
    let mut reach = x.clone();
    reach.iter_mut().flatten().for_each(|x| *x = x.abs());
    for (unit, window) in units.iter().zip(found) {
        let layer = &machine.layers[unit.layer];
        let nodes = match window {
            Some(window) => window.lattice(layer, unit.column, machine.beta),
            None => unit.nodes.clone(),
        };
        for node in nodes {
            for (k, value) in node.values.iter().enumerate() {
                let slot = &mut reach[unit.layer][unit.column + k];
                *slot = slot.max(value.abs());
            }
        }
    }
    reach
}

/// A bound on |∂(βE)/∂x| of a real unit at x = 0, whatever the others do: β(|θ| + Σ |w| max|x|).
fn slope_at_zero(machine: &Machine, unit: &Unit, reach: &State) -> f64 {
    let (l, i) = (unit.layer, unit.column);
    let layer = &machine.layers[l];
    let mut slope = match layer.kind {
        Kind::DRelu => layer.params[0][i].abs().max(layer.params[1][i].abs()),
        _ => layer.params[0][i].abs(),
    };
    for c in &machine.couplings {
        if c.a == l {
            let row = c.w[i].iter().zip(&reach[c.b]);
            slope += row.map(|(w, x)| w.abs() * x).sum::<f64>();
        }
        // A lateral matrix is symmetric: its rows, counted above, already hold every pair.
        if c.b == l && c.a != l {
            let column = c.w.iter().map(|row| row[i]).zip(&reach[c.a]);
            slope += column.map(|(w, x)| w.abs() * x).sum::<f64>();
        }
    }
    machine.beta * slope
}
