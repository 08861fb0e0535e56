//! Every pair of unit kinds and all eight machines against naive enumeration and quadrature, to 1e-10.

use crate::common::*;
use harmonium::{Kind, Layer, Machine, Role};

const TOL: f64 = 1e-10;
const BETA: f64 = 0.83;

/// F(v), ln Z, means, second moments and the gradient of ln Z, all against the oracle.
fn check(machine: &Machine<f64>, what: &str) {
    let twin = twin(machine, BETA);
    let want = twin.moments();
    let got = machine.exact().at(BETA).second_moments().unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_close(got.log_z, want.log_z, TOL, &format!("{what}: ln Z"));
    let log_z = machine.exact().at(BETA).log_z().unwrap();
    assert_close(log_z, want.log_z, TOL, &format!("{what}: ln Z alone"));
    for l in 0..machine.len() {
        for (j, m) in want.first[l].iter().enumerate() {
            assert_close(got.means[l][j], *m, TOL, &format!("{what}: mean {l},{j}"));
        }
    }
    let second = got.second.expect("asked for");
    for (i, row) in want.second.iter().enumerate() {
        for (j, x) in row.iter().enumerate() {
            assert_close(second[[i, j]], *x, TOL, &format!("{what}: second moment {i},{j}"));
        }
    }
    let gradient = twin.grad_log_z();
    for (l, stats) in got.stats.layers.iter().enumerate() {
        for ((k, j), t) in stats.indexed_iter() {
            assert_close(BETA * t, gradient.params[l][k][j], TOL, &format!("{what}: ∂ln Z {l},{k},{j}"));
        }
    }
    for (c, stats) in got.stats.couplings.iter().enumerate() {
        for ((i, j), t) in stats.indexed_iter() {
            let want = gradient.couplings[c][i][j];
            assert_close(BETA * t, want, TOL, &format!("{what}: ∂ln Z coupling {c},{i},{j}"));
        }
    }
    check_free_energy(machine, what);
}

fn check_free_energy(machine: &Machine<f64>, what: &str) {
    let twin = twin(machine, BETA);
    let given: Vec<usize> = (0..machine.len()).filter(|&l| machine.role(l) != Role::Hidden).collect();
    let hidden: Vec<usize> = machine.with_role(Role::Hidden).collect();
    let v = some_states(machine, &given, 3, 5);
    let model = machine.at(BETA);
    let exact = machine.exact().at(BETA).free_energy(&v).unwrap();
    for (r, exact) in exact.iter().enumerate() {
        let want = twin.free_energy(&clamps(machine, &v, r));
        assert_close(*exact, want, TOL, &format!("{what}: F(v) by enumeration"));
        if machine.independent(&hidden) {
            assert_close(model.free_energy(&v).unwrap()[r], want, TOL, &format!("{what}: F(v)"));
            let mean = twin.conditional_mean(&clamps(machine, &v, r));
            for &h in &hidden {
                let got = model.mean(h, &v).unwrap();
                for (j, m) in mean[h].iter().enumerate() {
                    assert_close(got[[r, j]], *m, TOL, &format!("{what}: ⟨h|v⟩"));
                }
            }
        } else {
            let error = model.free_energy(&v).unwrap_err();
            assert!(matches!(error, harmonium::Error::Undefined { .. }), "{what}: {error}");
        }
    }
    let x = some_states(machine, &(0..machine.len()).collect::<Vec<_>>(), 3, 6);
    for r in 0..3 {
        let dense: Vec<Vec<f64>> =
            clamps(machine, &x, r).into_iter().map(|x| x.expect("all held")).collect();
        assert_close(machine.energy(&x).unwrap()[r], twin.energy(&dense), TOL, &format!("{what}: E"));
        let log_weight = model.log_weight(&x).unwrap()[r];
        assert_close(log_weight, twin.log_weight(&dense), TOL, &format!("{what}: ln weight"));
    }
}

/// Units per side: the oracle sums over all of them at once, so units with many states must be few.
fn sizes(a: Kind, b: Kind) -> (usize, usize) {
    let many = |k: Kind| k.states().is_none_or(|n| n > 4);
    match (many(a), many(b)) {
        (true, true) => (2, 1),
        (true, false) => (2, 3),
        _ => (3, 2),
    }
}

fn pairs_with(a: Kind) {
    let mut checked = 0;
    for (i, b) in Kind::ALL.into_iter().enumerate() {
        if !integrable(a, b) {
            continue;
        }
        let mut dice = Dice(1000 + i as u64);
        let (m, n) = sizes(a, b);
        let mut machine = Machine::rbm(layer(a, m, &mut dice), layer(b, n, &mut dice));
        fill_weights(&mut machine, &mut dice);
        check(&machine, &format!("{a}-{b}"));
        checked += 1;
    }
    assert!(checked >= 6, "{a}: only {checked} partners");
}

macro_rules! pairs {
    ($($name:ident: $kind:expr;)*) => {
        $(#[test] fn $name() { pairs_with($kind); })*

        #[test]
        fn every_kind_has_its_pairs() {
            for kind in Kind::ALL {
                assert!([$($kind),*].contains(&kind), "{kind} needs a line in `pairs!`");
            }
        }
    };
}
pairs! {
    pairs_binary: Kind::Binary;
    pairs_spin: Kind::Spin;
    pairs_potts: Kind::Potts { q: 3 };
    pairs_gaussian: Kind::Gaussian;
    pairs_relu: Kind::Relu;
    pairs_drelu: Kind::Drelu;
    pairs_binomial: Kind::Binomial { n: 3 };
    pairs_poisson: Kind::Poisson;
    pairs_negative_binomial: Kind::NegativeBinomial { shape: 24, n: 5 };
    pairs_ordinal: Kind::Ordinal { n: 3 };
    pairs_negative_binomial_broad: Kind::NegativeBinomial { shape: 5, n: 7 };
}

fn generic(mut machine: Machine<f64>, seed: u64) -> Machine<f64> {
    fill_weights(&mut machine, &mut Dice(seed));
    machine
}

#[test]
fn the_eight_machines() {
    let d = &mut Dice(7);
    let binary = |n, d: &mut Dice| layer(Kind::Binary, n, d);
    let potts = Kind::Potts { q: 3 };
    let machines: Vec<(&str, Machine<f64>)> = vec![
        ("RBM", Machine::rbm(binary(4, d), layer(Kind::Spin, 3, d))),
        ("unrestricted", Machine::unrestricted(binary(4, d), binary(3, d))),
        ("unrestricted Potts-spin", Machine::unrestricted(layer(potts, 2, d), layer(Kind::Spin, 3, d))),
        (
            "semi-restricted",
            Machine::semi_restricted(layer(Kind::Spin, 4, d), layer(Kind::Gaussian, 2, d)),
        ),
        ("inverse Ising", Machine::fully_visible(layer(Kind::Spin, 6, d))),
        ("inverse Potts", Machine::fully_visible(layer(potts, 4, d))),
        ("lateral Gaussian", Machine::fully_visible(layer(Kind::Gaussian, 2, d))),
        ("deep", Machine::deep(binary(4, d), vec![binary(3, d), layer(Kind::Spin, 2, d), binary(2, d)])),
        (
            "deep with reals",
            Machine::deep(layer(Kind::Gaussian, 1, d), vec![binary(3, d), layer(Kind::Relu, 1, d)]),
        ),
        ("class RBM", Machine::class_rbm(binary(4, d), 3, binary(3, d))),
        (
            "mixed",
            Machine::mixed(
                vec![
                    ("bits", binary(2, d)),
                    ("reals", layer(Kind::Gaussian, 1, d)),
                    ("letters", layer(potts, 1, d)),
                    ("counts", layer(Kind::Poisson, 1, d)),
                ],
                binary(3, d),
            ),
        ),
    ];
    for (i, (name, machine)) in machines.into_iter().enumerate() {
        check(&generic(machine, 40 + i as u64), name);
    }
}

#[test]
fn the_conditional_machine() {
    let d = &mut Dice(17);
    let machine = Machine::conditional(
        layer(Kind::Binary, 2, d),
        layer(Kind::Spin, 3, d),
        layer(Kind::Gaussian, 2, d),
    );
    let machine = generic(machine, 71);
    check_free_energy(&machine, "conditional");
    assert!(matches!(machine.exact().log_z(), Err(harmonium::Error::Undefined { .. })));
    let v = some_states(&machine, &[0, 1], 4, 8);
    let got = machine.exact().at(BETA).log_probability(&v).unwrap();
    let gradient = machine.exact().at(BETA).gradient(&v, None).unwrap();
    let twin = twin(&machine, BETA);
    let mut want_gradient = machine.zero_parameters::<f64>();
    for (r, got) in got.into_iter().enumerate() {
        let clamps = clamps(&machine, &v, r);
        let mut past = clamps.clone();
        past[1] = None;
        assert_close(got, twin.log_sum(&clamps) - twin.log_sum(&past), TOL, "ln p(v|past)");
        let (p, n) = (twin.moments_given(&clamps), twin.moments_given(&past));
        for (c, coupling) in machine.couplings().iter().enumerate() {
            let (a, b) = coupling.ends();
            let (p, n) = (p.second_block(a, b), n.second_block(a, b));
            for ((i, j), g) in want_gradient.couplings[c].indexed_iter_mut() {
                *g += 0.25 * BETA * (p[i][j] - n[i][j]);
            }
        }
    }
    for (got, want) in gradient.couplings.iter().zip(&want_gradient.couplings) {
        for (g, w) in got.iter().zip(want) {
            assert_close(*g, *w, TOL, "∂ln p(v|past)");
        }
    }
}

#[test]
fn a_masked_machine() {
    let d = &mut Dice(23);
    let mut machine = Machine::rbm(layer(Kind::Binary, 5, d), layer(Kind::Binary, 4, d));
    let mask = harmonium::Bits::from_fn(5, 4, |i, j| (i + 2 * j) % 3 != 0);
    let w = machine.couplings()[0].w().clone();
    let coupling = harmonium::Coupling::new(0, 1, w).unwrap().with_mask(mask.clone()).unwrap();
    machine = Machine::new(machine.members().to_vec(), vec![coupling]).unwrap();
    fill_weights(&mut machine, d);
    assert!(machine.couplings()[0].w().indexed_iter().all(|((i, j), w)| mask.get(i, j) == (*w != 0.0)));
    let got = machine.exact().at(BETA).moments().unwrap();
    let want = twin(&machine, BETA).grad_log_z();
    for ((i, j), t) in got.stats.couplings[0].indexed_iter() {
        let want = if mask.get(i, j) { want.couplings[0][i][j] } else { 0.0 };
        assert_close(BETA * t, want, TOL, "masked moment");
    }
}

/// The exact gradient of the mean log-likelihood against central differences, to 1e-7, with row weights.
#[test]
fn gradients_against_central_differences() {
    let d = &mut Dice(31);
    let potts = Kind::Potts { q: 3 };
    let machines = vec![
        Machine::rbm(layer(Kind::Binary, 4, d), layer(Kind::Drelu, 2, d)),
        Machine::unrestricted(layer(Kind::Binary, 3, d), layer(Kind::Spin, 3, d)),
        Machine::deep(layer(potts, 2, d), vec![layer(Kind::Binary, 3, d), layer(Kind::Gaussian, 2, d)]),
        Machine::fully_visible(layer(potts, 3, d)),
    ];
    for (i, machine) in machines.into_iter().enumerate() {
        let mut machine = generic(machine, 50 + i as u64);
        let visible: Vec<_> = machine.with_role(Role::Visible).collect();
        let v = some_states(&machine, &visible, 5, 9);
        let wts = [0.5, 1.0, 2.0, 0.25, 1.5];
        let gradient = machine.exact().at(BETA).gradient(&v, Some(&wts)).unwrap();
        let start = machine.parameters();
        let step = 1e-5;
        let n_arrays = start.arrays().count();
        for k in 0..n_arrays {
            let lateral = k >= machine.len() && machine.couplings()[k - machine.len()].is_lateral();
            let shape = start.arrays().nth(k).unwrap().dim();
            for i in 0..shape.0 {
                for j in 0..shape.1 {
                    let analytic = gradient.arrays().nth(k).unwrap()[[i, j]];
                    let columns = machine.layer(0).kind().columns();
                    if lateral && i / columns == j / columns {
                        assert_eq!(analytic, 0.0);
                        continue;
                    }
                    let mut at = |x: f64| {
                        let mut p = start.clone();
                        let a = p.arrays_mut().nth(k).unwrap();
                        a[[i, j]] += x;
                        if lateral {
                            a[[j, i]] += x;
                        }
                        machine.set_parameters(&p).unwrap();
                        machine.exact().at(BETA).log_likelihood(&v, Some(&wts)).unwrap()
                    };
                    let numeric = (at(step) - at(-step)) / (2.0 * step);
                    assert!(
                        (analytic - numeric).abs() < 1e-7,
                        "array {k} ({i},{j}): {analytic} against {numeric}"
                    );
                }
            }
        }
    }
}

/// Two units that repel each other: where one is on, the density of the other falls from zero by e in a thousandth of
/// its own width.
#[test]
fn strongly_repelling_units() {
    for (second, w) in [(30.0, -10.0), (124.0, -22.0), (124.0, -44.0)] {
        for kind in [Kind::Relu, Kind::Drelu] {
            let mut machine = Machine::<f64>::fully_visible(Layer::new(kind, 2));
            let params = machine.layer_mut(0).params_mut();
            for (mut row, name) in params.rows_mut().into_iter().zip(kind.params()) {
                let [a, b] = match *name {
                    "theta_minus" => [3.0, -2.0],
                    name if name.starts_with("theta") => [20.0, second],
                    // What is not held by repulsion alone.
                    _ if kind == Kind::Drelu => [60.0, 70.0],
                    _ => [6.0, 31.0],
                };
                (row[0], row[1]) = (a, b);
            }
            let lateral = machine.coupling_mut(0).w_mut();
            (lateral[[0, 1]], lateral[[1, 0]]) = (w, w);
            check(&machine, &format!("{kind} at {w}"));
        }
    }
}

/// So many states that the windows are those of the density: units near the limit of normalisation, and units with two wells.
#[test]
fn windows_of_the_density() {
    let coupled = |kind: Kind, params: ndarray::Array2<f64>, w: f64| {
        let mut machine = Machine::<f64>::fully_visible(Layer::new(kind, 2));
        machine.layer_mut(0).params_mut().assign(&params);
        let lateral = machine.coupling_mut(0).w_mut();
        (lateral[[0, 1]], lateral[[1, 0]]) = (w, w);
        machine
    };
    // The weight is 0.96 of what γ holds.
    let relu = coupled(Kind::Relu, ndarray::array![[0.5, 1.5], [1.0, 1.2]], 1.05);
    let wells = ndarray::array![[1.5, -0.5], [-2.0, 0.4], [1.3, 0.9], [0.8, 1.4]];
    for (machine, what) in [(relu, "ReLU"), (coupled(Kind::Drelu, wells, 0.6), "dReLU")] {
        let (states, _) = machine.exact().at(BETA).cost().unwrap();
        assert!(states > 1e4, "{what}: {states}");
        check(&machine, what);
    }
}
