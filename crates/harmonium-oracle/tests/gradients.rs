//! Gradients by averages against gradients by finite differences, for every pair of kinds.

mod common;

use common::{assert_close, coupling, layer, pair};
use harmonium_oracle::{Clamps, Gradient, Kind, Layer, Machine};

const KINDS: [Kind; 9] = [
    Kind::Binary,
    Kind::Spin,
    Kind::Potts { q: 3 },
    Kind::Gaussian,
    Kind::Relu,
    Kind::DRelu,
    Kind::Binomial { n: 3 },
    Kind::Poisson,
    Kind::NegativeBinomial { shape: 24, n: 3 },
];

/// One unit of the kind, with parameters that differ between the two sides.
fn one_unit(kind: Kind, side: f64) -> Layer {
    let theta = 0.4 - 0.9 * side;
    match kind {
        Kind::Potts { .. } => layer(kind, &[&[theta, 0.2, -0.3]]),
        Kind::Gaussian | Kind::Relu => layer(kind, &[&[theta], &[1.1 + side]]),
        Kind::DRelu => layer(kind, &[&[theta], &[0.3], &[1.2], &[0.9 + side]]),
        _ => layer(kind, &[&[theta]]),
    }
}

/// All numbers of a machine, in the order of [`flat`].
fn numbers(machine: &mut Machine) -> Vec<&mut f64> {
    let params = machine.layers.iter_mut().flat_map(|l| &mut l.params);
    let weights = machine.couplings.iter_mut().flat_map(|c| &mut c.w);
    params.chain(weights).flatten().collect()
}

fn flat(gradient: &Gradient) -> Vec<f64> {
    let params = gradient.params.iter().flatten().flatten();
    let weights = gradient.couplings.iter().flatten().flatten();
    params.chain(weights).copied().collect()
}

/// Central difference of fourth order along the i-th number.
fn difference(machine: &Machine, i: usize, f: &dyn Fn(&Machine) -> f64) -> f64 {
    let step = 2e-3;
    let at = |k: f64| {
        let mut moved = machine.clone();
        *numbers(&mut moved)[i] += k * step;
        f(&moved)
    };
    (8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))) / (12.0 * step)
}

fn check(machine: &Machine, gradient: &Gradient, f: &dyn Fn(&Machine) -> f64) {
    for (i, &g) in flat(gradient).iter().enumerate() {
        assert_close(g, difference(machine, i, f), 1e-9);
    }
}

#[test]
fn grad_log_z_of_every_pair_of_kinds() {
    for (k, &a) in KINDS.iter().enumerate() {
        for &b in &KINDS[k..] {
            let (a_layer, b_layer) = (one_unit(a, 0.0), one_unit(b, 1.0));
            // A Poisson unit only normalises with partners that cannot drive it without bound.
            let both_sides = |kind| matches!(kind, Kind::Gaussian | Kind::DRelu);
            if b == Kind::Poisson && both_sides(a) {
                continue;
            }
            let w = |i: usize, j: usize| -0.35 - 0.2 * i as f64 + 0.1 * j as f64;
            let row = |i| (0..b_layer.width()).map(|j| w(i, j)).collect::<Vec<f64>>();
            let rows: Vec<Vec<f64>> = (0..a_layer.width()).map(row).collect();
            let rows: Vec<&[f64]> = rows.iter().map(|r| r.as_slice()).collect();
            let machine = pair(a_layer, b_layer, &rows, 1.3);
            check(&machine, &machine.grad_log_z(), &Machine::log_z);
        }
    }
}

#[test]
fn grad_log_z_of_gaussians_and_a_relu() {
    let machine = pair(
        layer(Kind::Gaussian, &[&[0.2, -0.4], &[1.0, 1.3]]),
        layer(Kind::Relu, &[&[0.5], &[0.8]]),
        &[&[0.4], &[-0.3]],
        0.7,
    );
    check(&machine, &machine.grad_log_z(), &Machine::log_z);
}

#[test]
fn grad_of_the_likelihood_is_positive_minus_negative() {
    let machine = Machine {
        layers: vec![
            layer(Kind::Potts { q: 2 }, &[&[0.1, -0.2, 0.3, 0.0]]),
            layer(Kind::Gaussian, &[&[0.3], &[1.4]]),
            layer(Kind::Binary, &[&[0.2, -0.6]]),
        ],
        couplings: vec![
            coupling(0, 2, &[&[0.5, -0.2], &[0.1, 0.3], &[-0.4, 0.6], &[0.2, 0.1]]),
            coupling(2, 1, &[&[0.7], &[-0.5]]),
        ],
        beta: 1.2,
    };
    let row = |v: [f64; 4], y: f64| -> Clamps { vec![Some(v.to_vec()), Some(vec![y]), None] };
    let rows = [row([1.0, 0.0, 0.0, 1.0], 0.8), row([0.0, 1.0, 0.0, 1.0], -1.3)];
    let gradient = machine.grad_mean_log_likelihood(&rows);
    check(&machine, &gradient, &|m| m.mean_log_likelihood(&rows));
}

#[test]
fn lateral_gradient_is_by_the_shared_value_of_the_pair() {
    let with = |u: f64| {
        let mut machine = pair(
            layer(Kind::Spin, &[&[0.2, -0.1]]),
            layer(Kind::Gaussian, &[&[0.1], &[1.0]]),
            &[&[0.5], &[0.4]],
            0.8,
        );
        machine.couplings.push(coupling(0, 0, &[&[0.0, u], &[u, 0.0]]));
        machine
    };
    let h = 1e-4;
    let want = (with(0.3 + h).log_z() - with(0.3 - h).log_z()) / (2.0 * h);
    let gradient = with(0.3).grad_log_z().couplings;
    assert_close(gradient[1][0][1], want, 1e-8);
    assert_eq!(gradient[1][0][1], gradient[1][1][0]);
}

#[test]
fn any_average_can_be_taken() {
    let machine =
        pair(layer(Kind::Spin, &[&[0.2]]), layer(Kind::Relu, &[&[0.5], &[0.8]]), &[&[0.4]], 1.0);
    let (log_z, average) = machine.average(&machine.free(), 1, |x, f| f[0] = x[0][0] * x[1][0]);
    let m = machine.moments();
    assert_eq!(log_z, m.log_z);
    assert_close(average[0], m.second[0][1], 1e-15);
}
