//! The identities of a Boltzmann machine on which the methods rely, one test each.

use crate::common::{Dice, assert_close, fill_weights, layer};
use harmonium::sample::{Order, purpose, sweep};
use harmonium::{Clamps, Key, Kind, Machine, Parameters, States};
use ndarray::Array2;

const V: usize = 0;
const H: usize = 1;
const KEY: Key = Key { seed: 11, purpose: purpose::USER, block: 0, sweep: 1 };

/// A binary RBM, 4 × 3, with generic parameters.
fn rbm() -> Machine<f64> {
    let mut dice = Dice(5);
    let (v, h) = (layer(Kind::Binary, 4, &mut dice), layer(Kind::Binary, 3, &mut dice));
    let mut machine = Machine::rbm(v, h);
    fill_weights(&mut machine, &mut dice);
    machine
}

/// Row r has the binary digits of r.
fn digits(n: usize) -> Array2<f64> {
    Array2::from_shape_fn((1 << n, n), |(r, i)| f64::from(u8::from(r >> i & 1 == 1)))
}

/// All visible states, or those of all layers: row v · 2^n_h + h.
fn all_v(machine: &Machine<f64>) -> States<f64> {
    let v = machine.layer(V).batch(digits(machine.layer(V).len()).view()).unwrap();
    machine.data(vec![v]).unwrap()
}

fn all_states(machine: &Machine<f64>) -> States<f64> {
    let (n, m) = (machine.layer(V).len(), machine.layer(H).len());
    let rows = digits(n + m);
    let mut states = States::empty(2, rows.nrows());
    states.set(H, machine.layer(H).batch(rows.slice_axis(ndarray::Axis(1), (0..m).into())).unwrap());
    states.set(V, machine.layer(V).batch(rows.slice_axis(ndarray::Axis(1), (m..m + n).into())).unwrap());
    states
}

/// p(h|v) as a table, from nothing but the energies of all joint states.
fn hidden_given_visible(machine: &Machine<f64>) -> Vec<Vec<f64>> {
    let energy = machine.energy(&all_states(machine)).unwrap();
    let given_v = energy.chunks(1 << machine.layer(H).len()).map(|row| {
        let weights: Vec<f64> = row.iter().map(|e| (-e).exp()).collect();
        let sum: f64 = weights.iter().sum();
        weights.into_iter().map(|w| w / sum).collect()
    });
    given_v.collect()
}

/// p(h_j = 1 | v) from such a row.
fn marginal(row: &[f64], j: usize) -> f64 {
    row.iter().enumerate().filter(|(h, _)| h >> j & 1 == 1).map(|(_, p)| p).sum()
}

/// Largest |p(h|v) − Π_j p(h_j|v)|.
fn distance_from_product(machine: &Machine<f64>) -> f64 {
    let m = machine.layer(H).len();
    let mut worst = 0.0f64;
    for row in hidden_given_visible(machine) {
        let on: Vec<f64> = (0..m).map(|j| marginal(&row, j)).collect();
        for (h, p) in row.iter().enumerate() {
            let product: f64 =
                (0..m).map(|j| if h >> j & 1 == 1 { on[j] } else { 1.0 - on[j] }).product();
            worst = worst.max((p - product).abs());
        }
    }
    worst
}

#[test]
fn conditionals_factorise() {
    assert!(distance_from_product(&rbm()) < 1e-14);
    // Not so with couplings among the hidden units, and the library refuses to compute it.
    let mut dice = Dice(6);
    let (v, h) = (layer(Kind::Binary, 4, &mut dice), layer(Kind::Binary, 3, &mut dice));
    let mut machine = Machine::unrestricted(v, h);
    fill_weights(&mut machine, &mut dice);
    assert!(distance_from_product(&machine) > 1e-3);
    assert!(machine.at(1.0).mean(H, &all_v(&machine)).is_err());
}

#[test]
fn hidden_probability_is_the_sigmoid_of_bias_plus_input() {
    let machine = rbm();
    let mean = machine.at(1.0).mean(H, &all_v(&machine)).unwrap();
    let (c, w) = (machine.layer(H).params(), machine.couplings()[0].w());
    for (r, v) in digits(4).rows().into_iter().enumerate() {
        for j in 0..3 {
            let sigmoid = 1.0 / (1.0 + (-(c[[0, j]] + v.dot(&w.column(j)))).exp());
            assert_close(mean[[r, j]], sigmoid, 1e-14, "σ(c_j + (vW)_j)");
            assert_close(
                marginal(&hidden_given_visible(&machine)[r], j),
                sigmoid,
                1e-13,
                "from the energies",
            );
        }
    }
}

#[test]
fn free_energy_is_minus_log_of_the_sum_over_h() {
    let machine = rbm();
    let free_energy = machine.free_energy(&all_v(&machine)).unwrap();
    let energy = machine.energy(&all_states(&machine)).unwrap();
    let (b, c, w) = (machine.layer(V).params(), machine.layer(H).params(), machine.couplings()[0].w());
    for (r, v) in digits(4).rows().into_iter().enumerate() {
        let sum: f64 = energy[8 * r..8 * (r + 1)].iter().map(|e| (-e).exp()).sum();
        assert_close(free_energy[r], -sum.ln(), 1e-14, "the sum over h");
        let softplus = |j: usize| (c[[0, j]] + v.dot(&w.column(j))).exp().ln_1p();
        let closed = -v.dot(&b.row(0)) - (0..3).map(softplus).sum::<f64>();
        assert_close(free_energy[r], closed, 1e-14, "−bᵀv − Σ softplus");
    }
    // Normalised, it is the distribution of v.
    let z: f64 = free_energy.iter().map(|f| (-f).exp()).sum();
    assert_close(z.ln(), machine.exact().log_z().unwrap(), 1e-14, "ln Z");
}

#[test]
fn likelihood_and_divergence_have_one_gradient() {
    let machine = rbm();
    // Unequal rows with unequal weights: a data distribution with an entropy of its own.
    let data = all_v(&machine).select(&[3, 9, 9, 0, 14]);
    let wts = [1.0, 0.5, 0.25, 2.0, 0.75];
    let entropy: f64 = [1.0f64, 0.75, 2.0, 0.75].map(|w| -w / 4.5 * (w / 4.5).ln()).iter().sum();
    let nll = |m: &Machine<f64>| -m.exact().log_likelihood(&data, Some(&wts)).unwrap();
    let kl = |m: &Machine<f64>| m.exact().kl(&data, Some(&wts)).unwrap();
    assert_close(nll(&machine) - kl(&machine), entropy, 1e-13, "they differ by the entropy of the data");

    let gradient = machine.exact().gradient(&data, Some(&wts)).unwrap();
    let step = 1e-4;
    for (a, array) in gradient.arrays().enumerate() {
        for (k, g) in array.iter().enumerate() {
            let moved = |by: f64| {
                let mut p = machine.parameters();
                *p.arrays_mut().nth(a).unwrap().iter_mut().nth(k).unwrap() += by;
                let mut m = machine.clone();
                m.set_parameters(&p).unwrap();
                m
            };
            let (up, down) = (moved(step), moved(-step));
            let by_nll = (nll(&up) - nll(&down)) / (2.0 * step);
            let by_kl = (kl(&up) - kl(&down)) / (2.0 * step);
            assert_close(by_nll, by_kl, 1e-10, "∂NLL and ∂KL");
            assert_close(by_nll, -g, 1e-7, "minus the ascent direction of the likelihood");
        }
    }
}

#[test]
fn both_phases_are_one_program_with_different_clamps() {
    let machine = rbm();
    let model = machine.at(1.0);
    // Feed the model's own distribution in as data: the positive phase becomes the negative one.
    let v = all_v(&machine);
    let p: Vec<f64> = machine.exact().log_probability(&v).unwrap().into_iter().map(f64::exp).collect();
    let positive = model.moments(&v, &[H], Some(&p)).unwrap();
    let negative = machine.exact().moments().unwrap().stats;
    assert_same(&positive, &negative, 1e-13);
    assert_same(&machine.exact().positive(&v, Some(&p)).unwrap(), &negative, 1e-13);
    assert!(machine.exact().gradient(&v, Some(&p)).unwrap().norm() < 1e-13);

    // And a sweep draws the same hidden states whether or not the visible ones are free afterwards.
    let sweep_with = |clamps: Clamps| {
        let mut states = v.clone();
        sweep(&model, &Order::new(&machine), &mut states, &clamps, KEY).unwrap();
        states
    };
    let (clamped, free) = (sweep_with(Clamps::visible(&machine)), sweep_with(Clamps::none(&machine)));
    assert_eq!(clamped.get(H), free.get(H));
    assert_eq!(clamped.get(V), v.get(V));
    assert_ne!(free.get(V), v.get(V));
}

#[test]
fn the_analytic_hidden_mean_has_the_sampled_expectation_and_less_variance() {
    let machine = rbm();
    let model = machine.at(1.0);
    // Minibatches of 16 visible states from the machine's own equilibrium.
    let mut chains = harmonium::Chains::independent(&machine, 16, 3, purpose::USER).unwrap();
    let batches = 4000;
    let (mut analytic, mut sampled) = (Vec::new(), Vec::new());
    for sweep in 0..batches {
        chains.sweep(&model, &Clamps::none(&machine), 3).unwrap();
        let mut states = chains.states().clone();
        analytic.push(flat(&model.moments(&states, &[H], None).unwrap()));
        let h = model.sample(H, &states, Key { sweep, purpose: purpose::EVALUATE, ..KEY }).unwrap();
        states.set(H, h);
        sampled.push(flat(&model.moments(&states, &[], None).unwrap()));
    }
    let n = batches as f64;
    for k in 0..analytic[0].len() {
        let column = |x: &[Vec<f64>]| -> Vec<f64> { x.iter().map(|x| x[k]).collect() };
        let (a, s) = (column(&analytic), column(&sampled));
        // The two share their v, so their difference is independent from batch to batch.
        let difference: Vec<f64> = a.iter().zip(&s).map(|(a, s)| a - s).collect();
        let (mean, var) = mean_and_variance(&difference);
        assert!(mean.abs() <= 5.0 * (var / n).sqrt(), "moment {k}: bias {mean}");
        let (va, vs) = (mean_and_variance(&a).1, mean_and_variance(&s).1);
        if k < machine.layer(V).len() {
            assert_eq!(va, vs, "⟨v⟩ has no hidden units in it");
        } else {
            assert!(va < 0.9 * vs, "moment {k}: variance {va} against {vs}");
        }
    }
}

fn flat(p: &Parameters<f64>) -> Vec<f64> {
    p.arrays().flatten().copied().collect()
}

fn mean_and_variance(x: &[f64]) -> (f64, f64) {
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    (mean, x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (x.len() - 1) as f64)
}

fn assert_same(a: &Parameters<f64>, b: &Parameters<f64>, tol: f64) {
    for (a, b) in flat(a).into_iter().zip(flat(b)) {
        assert_close(a, b, tol, "moment");
    }
}
