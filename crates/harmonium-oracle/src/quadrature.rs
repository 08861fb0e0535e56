//! Gauss–Legendre panels for real units.

use std::f64::consts::PI;

use crate::layer::{Kind, Layer};
use crate::nodes::Node;
use crate::window::{Window, sigmas};

/// Nodes per panel.
const ORDER: usize = 32;

/// Widest panel in units of the conditional standard deviation: 32 nodes integrate a Gaussian over
/// 12σ to rounding error. Since the other units only shift it, this holds in every dimension.
const PANEL: f64 = 12.0;

/// Most e-foldings across a panel that starts at a kink, where an exponential decay may set in.
const FOLDS: f64 = 20.0;

/// Quadrature nodes of a real unit over its window.
///
/// ReLU and dReLU have a kink at 0: the window is cut there, and since `slope` bounds |∂(βE)/∂x|
/// at 0, panels next to it are made narrow enough to resolve e^{−slope·x}.
pub(crate) fn real_nodes(
    layer: &Layer,
    column: usize,
    beta: f64,
    window: &Window,
    slope: f64,
) -> Vec<Node> {
    let lo = Window::position(layer, column, beta, window.lo);
    let hi = Window::position(layer, column, beta, window.hi);
    let (sigma_plus, sigma_minus) = sigmas(layer, column, beta);
    if layer.kind == Kind::Gaussian {
        return panel_nodes(&panel_edges(lo, hi, PANEL * sigma_plus, f64::INFINITY), 1.0);
    }
    // Each side is laid out outwards from 0, in |x|; a side outside the window has no panels.
    let first = FOLDS / slope;
    let minus = panel_edges((-hi).max(0.0), -lo, PANEL * sigma_minus, first);
    let plus = panel_edges(lo.max(0.0), hi, PANEL * sigma_plus, first);
    let mut nodes = panel_nodes(&minus, -1.0);
    nodes.extend(panel_nodes(&plus, 1.0));
    nodes
}

/// The Gauss–Legendre nodes of all panels between successive edges, with `sign` put on them.
fn panel_nodes(edges: &[f64], sign: f64) -> Vec<Node> {
    let rule = gauss_legendre(ORDER);
    let mut nodes = vec![];
    for edge in edges.windows(2) {
        let (middle, half) = ((edge[0] + edge[1]) / 2.0, (edge[1] - edge[0]) / 2.0);
        nodes.extend(rule.iter().map(|(t, weight)| Node {
            values: vec![sign * (middle + half * t)],
            log_weight: (half * weight).ln(),
        }));
    }
    nodes
}

/// Cuts near < far into panels no wider than `widest`; empty when far ≤ near.
///
/// Panels that start at 0 begin with width `first` (if smaller) and double from there.
fn panel_edges(near: f64, far: f64, widest: f64, first: f64) -> Vec<f64> {
    if far <= near {
        return vec![];
    }
    let mut edges = vec![near];
    let mut edge = near;
    if near == 0.0 {
        edge = first;
        while edge < widest.min(far) {
            edges.push(edge);
            edge *= 2.0;
        }
        edge = edges[edges.len() - 1];
    }
    let panels = ((far - edge) / widest).ceil();
    let width = (far - edge) / panels;
    edges.extend((1..=panels as usize).map(|k| edge + k as f64 * width));
    edges
}

/// Nodes and weights of the n-point Gauss–Legendre rule on [−1, 1].
///
/// The nodes are the roots of P_n, by Newton's method; the weights are 2 / ((1 − t²) P_n′(t)²).
fn gauss_legendre(n: usize) -> Vec<(f64, f64)> {
    let root = |k: usize| {
        let mut t = (PI * (k as f64 + 0.75) / (n as f64 + 0.5)).cos();
        // Newton doubles the correct digits each time; from this start 10 rounds are ample.
        for _ in 0..10 {
            let (p, slope) = legendre(n, t);
            t -= p / slope;
        }
        let (_, slope) = legendre(n, t);
        (t, 2.0 / ((1.0 - t * t) * slope * slope))
    };
    (0..n).map(root).collect()
}

/// P_n(t) and P_n′(t) by the three-term recurrence, for n ≥ 1 and |t| < 1.
fn legendre(n: usize, t: f64) -> (f64, f64) {
    let (mut before, mut p) = (1.0, t);
    for k in 2..=n {
        let k = k as f64;
        (before, p) = (p, ((2.0 * k - 1.0) * t * p - (k - 1.0) * before) / k);
    }
    (p, n as f64 * (before - t * p) / (1.0 - t * t))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gauss_legendre_is_exact_for_polynomials() {
        for n in [1, 2, 5, ORDER] {
            let rule = gauss_legendre(n);
            for power in 0..2 * n as i32 {
                let sum: f64 = rule.iter().map(|(t, w)| w * t.powi(power)).sum();
                let exact = if power % 2 == 0 { 2.0 / (f64::from(power) + 1.0) } else { 0.0 };
                assert!((sum - exact).abs() < 2e-14, "n {n}, t^{power}: {sum}");
            }
        }
    }

    #[test]
    fn panels_tile_the_window() {
        for (near, far, first) in [(0.0, 7.0, 0.1), (0.0, 7.0, 1e9), (2.0, 2.5, 0.1), (0.0, 0.05, 0.1)] {
            let edges = panel_edges(near, far, 3.0, first);
            assert_eq!(edges[0], near);
            assert!((edges[edges.len() - 1] - far).abs() < 1e-12);
            assert!(edges.windows(2).all(|e| e[0] < e[1] && e[1] - e[0] < 3.0 + 1e-12));
        }
        assert!(panel_edges(1.0, 1.0, 3.0, 1.0).is_empty());
    }
}
