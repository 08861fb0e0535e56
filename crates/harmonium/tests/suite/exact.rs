//! Exact enumeration beyond the oracle's reach: refusals, threads, the fast walk, likelihood and KL.

use crate::common::*;
use harmonium::{Error, Kind, Layer, Machine, Parameters};
use ndarray::Array2;

fn binary_rbm(m: usize, n: usize, scale: f64, seed: u64) -> Machine<f64> {
    let d = &mut Dice(seed);
    let mut machine = Machine::rbm(layer(Kind::Binary, m, d), layer(Kind::Binary, n, d));
    machine.coupling_mut(0).w_mut().mapv_inplace(|_| d.between(-scale, scale));
    machine
}

/// The walk over the smaller side must not depend on which side is the smaller: transposing the machine
/// leaves ln Z as it is. Weak weights take the walk by products, strong ones (beyond e^600) that by Γ.
#[test]
fn either_side() {
    for (scale, seed) in [(0.3, 1), (3.0, 2), (150.0, 3)] {
        let machine = binary_rbm(9, 12, scale, seed);
        let mut turned = Machine::rbm(machine.layer(1).clone(), machine.layer(0).clone());
        turned.coupling_mut(0).w_mut().assign(&machine.couplings()[0].w().t());
        let (a, b) = (machine.exact().log_z().unwrap(), turned.exact().log_z().unwrap());
        assert_close(a, b, 1e-12, "ln Z");
        // With moments the walk is always the general one.
        let c = machine.exact().moments().unwrap();
        assert_close(a, c.log_z, 1e-12, "ln Z with moments");
        // Σ over all v of p(v) is one.
        let values = Array2::from_shape_fn((1 << 9, 9), |(code, i)| (code >> i & 1) as f64);
        let v = machine.data(vec![machine.layer(0).batch(values.view()).unwrap()]).unwrap();
        let p: f64 = machine.exact().log_probability(&v).unwrap().into_iter().map(f64::exp).sum();
        assert_close(p, 1.0, 1e-11, "Σp(v)");
    }
}

#[test]
fn the_same_for_any_number_of_threads() {
    let machine = binary_rbm(13, 20, 1.0, 4);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| (machine.exact().log_z().unwrap(), machine.exact().second_moments().unwrap()))
    };
    let (z1, m1) = run(1);
    let (z2, m2) = run(3);
    assert_eq!(z1.to_bits(), z2.to_bits());
    assert_eq!(m1.stats, m2.stats);
    assert_eq!(m1.second, m2.second);
}

#[test]
fn too_much_is_refused_with_numbers() {
    let machine = Machine::<f32>::rbm(Layer::new(Kind::Binary, 784), Layer::new(Kind::Binary, 50));
    match machine.exact().log_z() {
        Err(Error::TooManyStates { states, seconds }) => {
            assert_eq!(states, (1u64 << 50) as f64);
            assert!(seconds > 1e6, "{seconds}");
        }
        other => panic!("{other:?}"),
    }
    let message = machine.exact().log_z().unwrap_err().to_string();
    assert!(message.contains("1.126e15 states") && message.contains("years"), "{message}");
    // The time limit decides, and `forced` overrides it.
    let small = binary_rbm(16, 20, 0.5, 5);
    assert!(matches!(small.exact().within(1e-6).log_z(), Err(Error::TooManyStates { .. })));
    assert!(small.exact().within(1e-6).forced().log_z().is_ok());
    let (states, seconds) = small.exact().cost().unwrap();
    assert!(states == 65536.0 && seconds > 0.0 && seconds < 10.0);
    // All four kinds of answers refuse alike, before they start.
    let v = small.zeros(3);
    let v = small.data(vec![v.layer(0).unwrap().clone()]).unwrap();
    assert!(small.exact().within(1e-6).gradient(&v, None).is_err());
    assert!(small.exact().within(1e-6).kl(&v, None).is_err());
}

/// KL(data‖model) by its definition over all states, with weights, equals the library's.
#[test]
fn kl_by_definition() {
    let machine = binary_rbm(4, 3, 1.0, 6);
    let rows: Vec<Vec<f64>> = vec![vec![0., 1., 1., 0.], vec![1., 1., 0., 0.], vec![0., 1., 1., 0.]];
    let wts = [1.0, 2.0, 0.5];
    let flat: Vec<f64> = rows.concat();
    let values = Array2::from_shape_vec((3, 4), flat).unwrap();
    let v = machine.data(vec![machine.layer(0).batch(values.view()).unwrap()]).unwrap();
    let p = machine.exact().log_probability(&v).unwrap();
    let (a, b) = (1.5 / 3.5, 2.0 / 3.5);
    let want = a * (f64::ln(a) - p[0]) + b * (f64::ln(b) - p[1]);
    assert_close(machine.exact().kl(&v, Some(&wts)).unwrap(), want, 1e-12, "KL");
    let real = Machine::<f64>::rbm(Layer::new(Kind::Gaussian, 2), Layer::new(Kind::Binary, 2));
    let x = real.data(vec![real.layer(0).zeros(2)]).unwrap();
    assert!(matches!(real.exact().kl(&x, None), Err(Error::Undefined { .. })));
}

/// Following the exact gradient raises the exact likelihood.
#[test]
fn ascent_rises() {
    let mut machine = binary_rbm(5, 4, 0.1, 7);
    let values = Array2::from_shape_fn((6, 5), |(r, i)| f64::from((r * 7 + i * i) % 3 == 0));
    let v = machine.data(vec![machine.layer(0).batch(values.view()).unwrap()]).unwrap();
    let mut last = machine.exact().log_likelihood(&v, None).unwrap();
    for _ in 0..20 {
        let gradient: Parameters<f64> = machine.exact().gradient(&v, None).unwrap();
        let mut p = machine.parameters();
        p.add(0.1, &gradient);
        machine.set_parameters(&p).unwrap();
        let now = machine.exact().log_likelihood(&v, None).unwrap();
        assert!(now > last, "{now} after {last}");
        last = now;
    }
}

fn refused(machine: &Machine<f64>, needle: &str) {
    let errors = [
        machine.check_normalisable().unwrap_err(),
        machine.exact().log_z().unwrap_err(),
        harmonium::Chains::independent(machine, 2, 1, 1).unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, Error::NotNormalisable { .. }), "{error}");
        assert!(error.to_string().contains(needle), "{error}");
    }
}

/// A Gaussian unit between two ReLU units that it pulls in opposite directions: their joint precision is not positive
/// definite, yet units that are never negative cannot follow the direction in which the energy falls.
#[test]
fn rectified_units_on_either_side_of_a_gaussian_one() {
    let mut machine = Machine::<f64>::rbm(Layer::new(Kind::Gaussian, 1), Layer::new(Kind::Relu, 2));
    machine.coupling_mut(0).w_mut().assign(&ndarray::array![[0.9, -0.9]]);
    machine.check_normalisable().unwrap();
    // Without the Gaussian unit the energy is (a r₁² + a r₂² + 2c r₁r₂)/2, which in polar coordinates leaves
    // √(2π) ∫ dφ/(a + c sin 2φ) over a quarter of the circle; Simpson's rule in 10 000 steps.
    let (a, c) = (1.0 - 0.81, 0.81);
    let (steps, width) = (10_000, std::f64::consts::FRAC_PI_2);
    let sum: f64 = (0..=steps)
        .map(|i| {
            let part = f64::from(i) / f64::from(steps);
            let wt = if i == 0 || i == steps { 1.0 } else { 2.0 + 2.0 * f64::from(i % 2) };
            wt / (a + c * (2.0 * width * part).sin())
        })
        .sum();
    let expected = (sum * width / f64::from(3 * steps)).ln() + 0.5 * (2.0 * std::f64::consts::PI).ln();
    let log_z = machine.exact().log_z().unwrap();
    assert!((log_z - expected).abs() < 1e-10, "{log_z}, expected {expected}");
}

/// Machines whose Z is infinite are refused wherever Z is needed; just inside the bound they are accepted.
#[test]
fn machines_without_a_normalisation() {
    let pair = |a: Kind, b: Kind, w: f64| {
        let mut machine = Machine::<f64>::rbm(Layer::new(a, 2), Layer::new(b, 3));
        machine.coupling_mut(0).w_mut().fill(w);
        machine
    };
    use Kind::{Drelu, Gaussian, Poisson, Relu};
    // γ = 1: the precision has the eigenvalues 1 ± √(2·3)·|w|, so that the bound is at 1/√6 = 0.408.
    for (a, b) in
        [(Gaussian, Gaussian), (Gaussian, Relu), (Relu, Relu), (Drelu, Gaussian), (Drelu, Drelu)]
    {
        refused(&pair(a, b, 0.41), "outgrow");
        pair(a, b, 0.40).check_normalisable().unwrap();
    }
    // Repelling ReLU units never diverge; Gaussian ones do.
    pair(Relu, Relu, -5.0).check_normalisable().unwrap();
    refused(&pair(Gaussian, Gaussian, -0.41), "outgrow");
    for (a, b) in [(Poisson, Poisson), (Poisson, Relu), (Relu, Poisson)] {
        refused(&pair(a, b, 0.01), "Poisson");
        pair(a, b, -0.5).check_normalisable().unwrap();
    }
    refused(&pair(Poisson, Gaussian, -0.01), "Poisson");
    refused(&pair(Drelu, Poisson, 0.01), "Poisson");
    pair(Poisson, Kind::Binary, 3.0).check_normalisable().unwrap();
    let mut lateral = Machine::<f64>::fully_visible(Layer::new(Gaussian, 2));
    lateral.coupling_mut(0).w_mut().assign(&ndarray::array![[0.0, 1.01], [1.01, 0.0]]);
    refused(&lateral, "outgrow");
    // At β = 0 the distribution of a real unit is improper.
    let gaussian = pair(Gaussian, Kind::Binary, 1.0);
    assert!(matches!(gaussian.exact().at(0.0).log_z(), Err(Error::NotNormalisable { .. })));
    // A Poisson layer before it, which the measure 1/x! holds, does not hide it.
    let parts = vec![("counts", Layer::new(Poisson, 1)), ("reals", Layer::new(Gaussian, 1))];
    let mixed = Machine::<f64>::mixed(parts, Layer::new(Kind::Binary, 2));
    let refused = mixed.exact().at(0.0).log_z().unwrap_err().to_string();
    assert!(refused.contains("reals"), "{refused}");
    let binary = pair(Kind::Binary, Kind::Spin, 1.0);
    assert_close(binary.exact().at(0.0).log_z().unwrap(), 5.0 * 2f64.ln(), 1e-14, "ln Z at β = 0");
    assert!(matches!(binary.exact().at(f64::NAN).log_z(), Err(Error::Value { .. })));
}

/// The error of the free energy names the coupling that prevents it.
#[test]
fn typed_errors() {
    let deep = Machine::<f64>::deep(
        Layer::new(Kind::Binary, 2),
        vec![Layer::new(Kind::Binary, 2), Layer::new(Kind::Binary, 2)],
    );
    let v = deep.data(vec![deep.layer(0).zeros(1)]).unwrap();
    let error = deep.free_energy(&v).unwrap_err();
    assert!(matches!(error, Error::Undefined { .. }) && error.to_string().contains("h1-h2"), "{error}");
    let layer = Layer::<f64>::with_params(Kind::Gaussian, ndarray::array![[0.0], [-1.0]]).unwrap_err();
    assert!(layer.to_string().contains("gamma[0]"), "{layer}");
    let uneven = ndarray::array![[0.0, 1.0], [2.0, 0.0]];
    let member = deep.members()[0].clone();
    let error =
        Machine::new(vec![member], vec![harmonium::Coupling::new(0, 0, uneven).unwrap()]).unwrap_err();
    assert!(error.to_string().contains("symmetric"), "{error}");
    let clamps =
        harmonium::Clamps::none(&deep).with(0, harmonium::Clamp::Units(harmonium::Bits::zeros(7, 2)));
    let mut chains = harmonium::Chains::independent(&deep, 3, 1, 1).unwrap();
    let error = chains.sweep(&deep.at(1.0), &clamps, 1).unwrap_err();
    assert!(error.to_string().contains("clamp of layer v"), "{error}");
}
