//! Gaussian units that are coupled to each other: exact answers, draws and training against closed forms.

use crate::common::Dice;
use harmonium::estimate::Estimator;
use harmonium::train::{Data, Floor, Init, TrainParams, Trainer};
use harmonium::{Batch, Bits, Chains, Clamp, Clamps, Kind, Layer, Machine};
use ndarray::{Array2, arr2};

/// Three coupled Gaussian and two binary units.
fn machine() -> Machine<f64> {
    let mut m = Machine::semi_restricted(Layer::new(Kind::Gaussian, 3), Layer::new(Kind::Binary, 2));
    m.layer_mut(0).params_mut().assign(&arr2(&[[0.3, -0.7, 1.1], [2.0, 1.5, 3.0]]));
    m.layer_mut(1).params_mut().assign(&arr2(&[[0.2, -0.4]]));
    m.coupling_mut(0).w_mut().assign(&arr2(&[[0.5, -0.2], [0.1, 0.9], [-0.6, 0.3]]));
    m.coupling_mut(1).w_mut().assign(&arr2(&[[0.0, 0.8, -0.3], [0.8, 0.0, 0.5], [-0.3, 0.5, 0.0]]));
    m
}

/// The gradient of the exact likelihood against central differences of it, coupled weights included.
#[test]
fn exact_gradients_are_derivatives() {
    let m = machine();
    let x = m
        .data(vec![Batch::Reals(arr2(&[[0.4, -1.0, 2.0], [1.5, 0.3, -0.8], [0.1, 0.2, 0.9]]))])
        .unwrap();
    let gradient = m.exact().gradient(&x, None).unwrap();
    let step = 1e-5;
    let likelihood = |m: &Machine<f64>| m.exact().log_likelihood(&x, None).unwrap();
    for (i, j) in [(0, 1), (0, 2), (1, 2)] {
        let mut values = [0.0; 2];
        for (k, sign) in [1.0, -1.0].into_iter().enumerate() {
            let mut moved = m.clone();
            moved.coupling_mut(1).w_mut()[[i, j]] += sign * step;
            moved.coupling_mut(1).w_mut()[[j, i]] += sign * step;
            values[k] = likelihood(&moved);
        }
        let slope = (values[0] - values[1]) / (2.0 * step);
        assert!((slope - gradient.couplings[1][[i, j]]).abs() < 1e-7, "u{i}{j}");
    }
    for (row, j) in [(0, 0), (1, 1), (1, 2)] {
        let mut values = [0.0; 2];
        for (k, sign) in [1.0, -1.0].into_iter().enumerate() {
            let mut moved = m.clone();
            moved.layer_mut(0).params_mut()[[row, j]] += sign * step;
            values[k] = likelihood(&moved);
        }
        let slope = (values[0] - values[1]) / (2.0 * step);
        assert!((slope - gradient.layers[0][[row, j]]).abs() < 1e-7, "parameter {row} of unit {j}");
    }
}

/// Second moments of chains that draw jointly, freely and with one unit clamped, against enumeration.
#[test]
fn joint_draws_have_the_moments_of_the_machine() {
    let m = machine();
    let exact = m.exact().second_moments().unwrap();
    let mut chains = Chains::independent(&m, 20_000, 3, 50).unwrap();
    chains.sweep(&m.at(1.0), &Clamps::none(&m), 20).unwrap();
    let Batch::Reals(x) = chains.states().layer(0).unwrap() else { panic!("reals") };
    let second = x.t().dot(x) / 20_000.0;
    let expected = exact.second.unwrap();
    for ((i, j), got) in second.indexed_iter() {
        // Products of normal numbers of variance about one: a standard error of 0.01 or so, and five of them.
        assert!((got - expected[[i, j]]).abs() < 0.06, "{i}{j}: {got} against {}", expected[[i, j]]);
    }
    // With unit 0 at 2 the others follow the conditional distribution: x₁ and x₂ given x₀, hidden units summed out by
    // the chain itself; the machine with the fields that the clamped unit gives is the oracle.
    let clamp = Bits::from_fn(20_000, 3, |_, j| j == 0);
    let mut states = m.zeros(20_000);
    states.set(
        0,
        Batch::Reals(Array2::from_shape_fn((20_000, 3), |(_, j)| if j == 0 { 2.0 } else { 0.0 })),
    );
    let clamps = Clamps::none(&m).with(0, Clamp::Units(clamp));
    let mut chains = Chains::new(states, 4, 51);
    chains.sweep(&m.at(1.0), &clamps, 20).unwrap();
    let Batch::Reals(x) = chains.states().layer(0).unwrap() else { panic!("reals") };
    let mut rest = Machine::semi_restricted(Layer::new(Kind::Gaussian, 2), Layer::new(Kind::Binary, 2));
    rest.layer_mut(0).params_mut().assign(&arr2(&[[-0.7 + 2.0 * 0.8, 1.1 - 2.0 * 0.3], [1.5, 3.0]]));
    rest.layer_mut(1).params_mut().assign(&arr2(&[[0.2 + 2.0 * 0.5, -0.4 - 2.0 * 0.2]]));
    rest.coupling_mut(0).w_mut().assign(&arr2(&[[0.1, 0.9], [-0.6, 0.3]]));
    rest.coupling_mut(1).w_mut().assign(&arr2(&[[0.0, 0.5], [0.5, 0.0]]));
    let means = &rest.exact().moments().unwrap().means[0];
    for j in 0..2 {
        let got = x.column(j + 1).mean().unwrap();
        assert!((got - means[j]).abs() < 0.04, "{got} against {}", means[j]);
    }
    assert!(x.column(0).iter().all(|&x| x == 2.0));
}

/// Rows of three correlated columns with different units of measurement.
fn rows(n: usize) -> Array2<f64> {
    let mut dice = Dice(11);
    let mut out = Array2::zeros((n, 3));
    for mut row in out.rows_mut() {
        let z: Vec<f64> =
            (0..3).map(|_| (0..12).map(|_| dice.between(0.0, 1.0)).sum::<f64>() - 6.0).collect();
        row[0] = 5.0 + z[0];
        row[1] = 100.0 * (0.95 * z[0] + 0.3 * z[1]);
        row[2] = 0.1 * (z[1] - z[2]);
    }
    out
}

/// A fully visible machine starts at the normal distribution of its rows, and exact training keeps it there: the likelihood
/// is that of the closed form.
#[test]
fn the_fully_visible_machine_is_the_normal_distribution() {
    let x = rows(400);
    let machine = Machine::fully_visible(Layer::<f64>::new(Kind::Gaussian, 3));
    let data = Data::new(machine.data(vec![Batch::Reals(x.clone())]).unwrap());
    let centred = &x - &x.mean_axis(ndarray::Axis(0)).unwrap();
    let s = centred.t().dot(&centred) / 400.0;
    let det = s[[0, 0]] * (s[[1, 1]] * s[[2, 2]] - s[[1, 2]] * s[[2, 1]])
        - s[[0, 1]] * (s[[1, 0]] * s[[2, 2]] - s[[1, 2]] * s[[2, 0]])
        + s[[0, 2]] * (s[[1, 0]] * s[[2, 1]] - s[[1, 1]] * s[[2, 0]]);
    let best = -0.5 * det.ln() - 1.5 * (1.0 + std::f64::consts::TAU.ln());
    for updates in [1, 300] {
        let params = TrainParams { updates: Some(updates), ..TrainParams::default() };
        let plan = params.plan(&machine, &data).unwrap();
        assert_eq!(*plan.estimator(), Estimator::Exact);
        let mut trainer = Trainer::new(machine.clone(), plan, &data).unwrap();
        trainer.run(&mut []).unwrap();
        let got = trainer.result().exact().log_likelihood(data.states(), None).unwrap();
        assert!(got <= best + 1e-9 && got > best - 0.01, "{updates} updates: {got} against {best}");
        let floor = Floor::new(&machine, &data).unwrap().log_likelihood(&data).unwrap();
        assert!(got > floor + 1.0, "{got} against independent columns {floor}");
    }
}

/// However large the rate, coupled real units stay normalisable and no update is undone for it.
#[test]
fn no_update_is_undone_for_normalisation() {
    let x = rows(200).mapv(|x| x as f32);
    let kinds = [Kind::Gaussian, Kind::Relu, Kind::Drelu];
    for hidden in kinds {
        let machine = Machine::unrestricted(Layer::<f32>::new(Kind::Gaussian, 3), Layer::new(hidden, 2));
        let data = Data::new(machine.data(vec![Batch::Reals(x.clone())]).unwrap());
        let params = TrainParams {
            updates: Some(60),
            rate: Some(0.3),
            init: Some(Init::Data { std: 0.05 }),
            estimator: Some(Estimator::Pcd { sweeps: Some(1), chains: Some(50) }),
            evaluate_every: Some(0),
            ..TrainParams::default()
        };
        let plan = params.plan(&machine, &data).unwrap();
        let mut trainer = Trainer::new(machine, plan, &data).unwrap();
        for _ in 0..60 {
            let event = trainer.update().unwrap();
            let undone =
                matches!(&event, harmonium::train::Event::Undone { why, .. } if why.contains("outgrow"));
            assert!(!undone, "{hidden}: {event:?}");
            trainer.machine().check_normalisable().unwrap();
        }
    }
}
