//! How far an unbounded unit must be followed: found by growing a coarse lattice, not assumed.

use crate::layer::{Kind, Layer, Support};
use crate::machine::{Machine, State};
use crate::nodes::{Node, Unit, counted, visit};

/// Outside the window every state weighs less than e^{−TAIL} ≈ 6e−19 of the heaviest one.
const TAIL: f64 = 42.0;

/// A lattice that grows beyond this size belongs to a density without a finite integral.
const MAX_LATTICE: f64 = 1e7;

/// An interval of lattice indices; see [`Window::position`] for where they lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) lo: i64,
    pub(crate) hi: i64,
}

/// Conditional standard deviation 1/√(βγ) of a real unit on the positive and the negative side.
///
/// Along one real unit, the others held, ln p is exactly quadratic on each side of 0, with this
/// curvature: couplings shift a unit but never sharpen it.
pub(crate) fn sigmas(layer: &Layer, column: usize, beta: f64) -> (f64, f64) {
    let p = &layer.params;
    let (gamma_plus, gamma_minus) = match layer.kind {
        Kind::DRelu => (p[2][column], p[3][column]),
        _ => (p[1][column], p[1][column]),
    };
    let sigma = |gamma: f64| 1.0 / (beta * gamma).sqrt();
    (sigma(gamma_plus), sigma(gamma_minus))
}

impl Window {
    /// Value at lattice index k: k itself for a count, 2σk for a real unit.
    pub(crate) fn position(layer: &Layer, column: usize, beta: f64, k: i64) -> f64 {
        if layer.kind.support() == Support::Counts {
            return k as f64;
        }
        let (plus, minus) = sigmas(layer, column, beta);
        2.0 * if k < 0 { minus } else { plus } * k as f64
    }

    /// The lattice points in the window. Those of a real unit carry no weight: they only probe.
    pub(crate) fn lattice(&self, layer: &Layer, column: usize, beta: f64) -> Vec<Node> {
        let node = |k| {
            let x = Window::position(layer, column, beta, k);
            counted(layer.kind, x)
        };
        (self.lo..=self.hi).map(node).collect()
    }

    fn union(self, other: Window) -> Window {
        Window { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }
}

/// A window for every unbounded unit (`None` for the bounded ones): the union, over all states of
/// the bounded units, of the windows found with these held.
///
/// One state at a time, because the far mode of one would hide below the near mode of another.
pub(crate) fn windows(machine: &Machine, x: &State, units: &[Unit]) -> Vec<Option<Window>> {
    let is_unbounded = |unit: &&Unit| machine.layers[unit.layer].kind.is_unbounded();
    let unbounded: Vec<Unit> = units.iter().filter(is_unbounded).cloned().collect();
    let bounded: Vec<Unit> = units.iter().filter(|u| !is_unbounded(u)).cloned().collect();
    let mut found: Vec<Window> = vec![];
    if !unbounded.is_empty() {
        visit(&bounded, &mut x.clone(), &mut |x, _, _| {
            let here = grow(machine, x, &unbounded);
            if found.is_empty() {
                found = here;
            } else {
                let both = found.iter().zip(&here);
                found = both.map(|(a, b)| a.union(*b)).collect();
            }
        });
    }
    let mut found = found.into_iter();
    let window = |unit: &Unit| is_unbounded(&unit).then(|| found.next()).flatten();
    units.iter().map(window).collect()
}

/// Windows of the unbounded units with all others held at `x`: doubled wherever the density has not
/// died out at the edge, then trimmed.
fn grow(machine: &Machine, x: &State, unbounded: &[Unit]) -> Vec<Window> {
    let start = |unit: &Unit| {
        let half = machine.layers[unit.layer].kind.is_half_line();
        let lo = if half { 0 } else { -2 };
        Window { lo, hi: 2 }
    };
    let mut found: Vec<Window> = unbounded.iter().map(start).collect();
    loop {
        let profiles = profiles(machine, x, unbounded, &found);
        let max = profiles[0].iter().copied().fold(f64::MIN, f64::max);
        // Alive at an edge: not negligible there, or still rising towards something beyond it.
        let alive = |edge: f64, inner: f64| edge > max - TAIL || edge >= inner;
        let mut grown = found.clone();
        for ((unit, window), p) in unbounded.iter().zip(&mut grown).zip(&profiles) {
            let (length, last) = (window.hi - window.lo, p.len() - 1);
            let half = machine.layers[unit.layer].kind.is_half_line();
            let closed_below = half && window.lo == 0;
            if !closed_below && alive(p[0], p[1]) {
                window.lo -= length;
            }
            if alive(p[last], p[last - 1]) {
                window.hi += length;
            }
        }
        if grown == found {
            let half = |unit: &Unit| machine.layers[unit.layer].kind.is_half_line();
            let all = unbounded.iter().zip(&found).zip(&profiles);
            return all.map(|((unit, window), p)| trim(*window, p, max - TAIL, half(unit))).collect();
        }
        found = grown;
    }
}

/// The part of the window where the profile exceeds `floor`, and one lattice point more each side.
fn trim(window: Window, profile: &[f64], floor: f64, half_line: bool) -> Window {
    let mut heavy = (window.lo..).zip(profile).filter(|(_, p)| **p > floor);
    // The maximum itself exceeds the floor, so neither search comes back empty.
    let first = heavy.next().map_or(window.lo, |(k, _)| k);
    let last = heavy.last().map_or(first, |(k, _)| k);
    let lo = if half_line { 0.max(first - 1) } else { first - 1 };
    Window { lo, hi: last + 1 }
}

/// For each unbounded unit and each of its lattice points, the largest ln ν − βE over the lattice
/// of the other unbounded units.
///
/// A lattice of step 2σ passes within σ of any maximum in every direction, so it sees a maximum
/// over two other real units at most a few nats too low; TAIL has room for that.
fn profiles(machine: &Machine, x: &State, units: &[Unit], found: &[Window]) -> Vec<Vec<f64>> {
    let mut probes = units.to_vec();
    for (probe, window) in probes.iter_mut().zip(found) {
        let layer = &machine.layers[probe.layer];
        probe.nodes = window.lattice(layer, probe.column, machine.beta);
    }
    let states: f64 = probes.iter().map(|u| u.nodes.len() as f64).product();
    assert!(
        states <= MAX_LATTICE,
        "no window holds the density: Z diverges, or the machine is too large for the oracle"
    );
    let empty = |probe: &Unit| vec![f64::NEG_INFINITY; probe.nodes.len()];
    let mut profiles: Vec<Vec<f64>> = probes.iter().map(empty).collect();
    visit(&probes, &mut x.clone(), &mut |x, path, log_nu| {
        let log_weight = log_nu - machine.beta * machine.energy(x);
        for (profile, &k) in profiles.iter_mut().zip(path) {
            profile[k] = profile[k].max(log_weight);
        }
    });
    profiles
}
