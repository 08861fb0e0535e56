//! Soft bits: values between 0 and 1 as data of Binary layers.

use harmonium::estimate::{Averaging, Estimator, LabelsParams};
use harmonium::evaluate::{self, LogZParams};
use harmonium::train::{Data, Init, Optimiser, TrainParams, Trainer};
use harmonium::{Batch, Bits, Error, Key, Kind, Layer, Machine, Real, Role, States};
use ndarray::{Array2, arr2};

/// A number in [0, 1) for each i.
fn noise(i: usize) -> f64 {
    Key { seed: 4, purpose: 0, block: 0, sweep: i as u64 }.hash() as f64 / 2f64.powi(64)
}

/// Random parameters, but for lateral weights, which stay zero.
fn filled<T: Real>(mut machine: Machine<T>, size: f64) -> Machine<T> {
    let (mut parameters, mut i) = (machine.parameters(), 0);
    let lateral: Vec<bool> = machine.couplings().iter().map(|c| c.is_lateral()).collect();
    let couplings = parameters.couplings.iter_mut().zip(lateral).filter(|c| !c.1).map(|c| c.0);
    for array in parameters.layers.iter_mut().chain(couplings) {
        array.mapv_inplace(|_| {
            i += 1;
            T::of(size * (2.0 * noise(i) - 1.0))
        });
    }
    machine.set_parameters(&parameters).unwrap();
    machine
}

fn rbm<T: Real>(n: usize, m: usize) -> Machine<T> {
    filled(Machine::rbm(Layer::new(Kind::Binary, n), Layer::new(Kind::Binary, m)), 0.5)
}

fn grey<T: Real>(rows: usize, n: usize) -> Array2<T> {
    Array2::from_shape_fn((rows, n), |(r, j)| T::of(noise(100_000 + r * n + j).powi(2)))
}

fn soft<T: Real>(machine: &Machine<T>, rows: usize) -> States<T> {
    machine.data(vec![Batch::Reals(grey(rows, machine.layer(0).len()))]).unwrap()
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// −∂F/∂parameters at soft v, averaged with weights, by loops in f64.
fn check_positive<T: Real>(n: usize, m: usize, rows: usize, weighted: bool, tolerance: f64) {
    let machine = rbm::<T>(n, m);
    let v = grey::<T>(rows, n).mapv(|x| x.f64());
    let wts: Option<Vec<f64>> = weighted.then(|| (0..rows).map(|r| 0.1 + noise(r)).collect());
    let total = wts.as_ref().map_or(rows as f64, |w| w.iter().sum());
    let (w, c) = (machine.couplings()[0].w(), machine.layer(1).params());
    let mut pairs = Array2::<f64>::zeros((n, m));
    let (mut visible, mut hidden) = (vec![0.0; n], vec![0.0; m]);
    for r in 0..rows {
        let wt = wts.as_ref().map_or(1.0, |w| w[r]) / total;
        (0..n).for_each(|i| visible[i] += wt * v[[r, i]]);
        for j in 0..m {
            let input: f64 = (0..n).map(|i| v[[r, i]] * w[[i, j]].f64()).sum();
            let h = sigmoid(c[[0, j]].f64() + input);
            hidden[j] += wt * h;
            (0..n).for_each(|i| pairs[[i, j]] += wt * v[[r, i]] * h);
        }
    }
    let got = machine.at(1.0).moments(&soft(&machine, rows), &[1], wts.as_deref()).unwrap();
    let close = |a: f64, b: f64| assert!((a - b).abs() < tolerance, "{n}×{m}: {a} and {b}");
    got.couplings[0].indexed_iter().for_each(|((i, j), g)| close(g.f64(), pairs[[i, j]]));
    got.layers[0].iter().zip(&visible).for_each(|(g, x)| close(g.f64(), *x));
    got.layers[1].iter().zip(&hidden).for_each(|(g, x)| close(g.f64(), *x));
}

#[test]
fn the_positive_phase_is_what_loops_give() {
    for weighted in [false, true] {
        check_positive::<f64>(7, 5, 90, weighted, 1e-12);
        // Large enough for tables, which soft rows do not use; averages of numbers below 1 in single precision.
        check_positive::<f32>(90, 70, 130, weighted, 2e-6);
    }
}

/// The moments are minus the gradient of the free energy at the soft values, by central differences.
#[test]
fn the_positive_phase_is_the_gradient_of_the_free_energy() {
    let machine = rbm::<f64>(6, 4);
    let data = soft(&machine, 20);
    let moments = machine.at(1.0).moments(&data, &[1], None).unwrap();
    let mean = |w: f64, i: usize, j: usize| {
        let mut moved = machine.clone();
        moved.coupling_mut(0).w_mut()[[i, j]] += w;
        moved.free_energy(&data).unwrap().iter().sum::<f64>() / 20.0
    };
    for (i, j) in [(0, 0), (3, 2), (5, 3)] {
        let slope = (mean(1e-5, i, j) - mean(-1e-5, i, j)) / 2e-5;
        assert!((moments.couplings[0][[i, j]] + slope).abs() < 1e-8, "({i},{j})");
    }
}

#[test]
fn values_of_0_and_1_are_bits() {
    fn check<T: Real>(tolerance: f64) {
        let machine = rbm::<T>(12, 9);
        let bits = Bits::from_fn(70, 12, |r, j| noise(r * 12 + j) < 0.4);
        let reals = Array2::from_shape_fn((70, 12), |(r, j)| T::of(f64::from(u8::from(bits.get(r, j)))));
        let [a, b] = [Batch::Bits(bits), Batch::Reals(reals)].map(|x| machine.data(vec![x]).unwrap());
        let [p, q] = [&a, &b].map(|x| machine.at(1.0).moments(x, &[1], None).unwrap());
        for (p, q) in p.arrays().flatten().zip(q.arrays().flatten()) {
            assert!((p.f64() - q.f64()).abs() < tolerance, "{p} and {q}");
        }
        let [f, g] = [&a, &b].map(|x| machine.free_energy(x).unwrap());
        assert!(f.iter().zip(&g).all(|(f, g)| (f - g).abs() < 20.0 * tolerance));
        let params = params(Estimator::Exact, 30);
        let [m, n] = [a, b].map(|x| trained(&machine, &Data::new(x), &params).parameters());
        for (p, q) in m.arrays().flatten().zip(n.arrays().flatten()) {
            assert!((p.f64() - q.f64()).abs() < 20.0 * tolerance, "{p} and {q}");
        }
    }
    check::<f64>(1e-12);
    check::<f32>(1e-6);
}

fn params(estimator: Estimator, updates: u64) -> TrainParams {
    TrainParams {
        estimator: Some(estimator),
        init: Some(Init::Keep),
        optimiser: Some(Optimiser::Sgd),
        updates: Some(updates),
        average: Some(0),
        rate: Some(0.2),
        batch: Some(1000),
        evaluate_every: Some(0),
        ..TrainParams::default()
    }
}

fn trained<T: Real>(machine: &Machine<T>, data: &Data<T>, params: &TrainParams) -> Machine<T> {
    let mut trainer = Trainer::new(machine.clone(), params.plan(machine, data).unwrap(), data).unwrap();
    trainer.run(&mut []).unwrap();
    trainer.machine().clone()
}

/// At the end of training the two phases agree: the machine, whose states are bits, has the means of the soft data.
#[test]
fn a_trained_machine_has_the_means_of_the_soft_data() {
    let machine = rbm::<f64>(4, 2);
    let data = Data::new(soft(&machine, 25));
    let machine = trained(&machine, &data, &params(Estimator::Exact, 4000));
    let model = machine.exact().moments().unwrap();
    let rows = grey::<f64>(25, 4);
    for i in 0..4 {
        let mean = rows.column(i).sum() / 25.0;
        assert!((model.means[0][i] - mean).abs() < 1e-3, "unit {i}");
    }
}

/// Soft bits in every machine that accepts them, with every estimator that accepts them.
#[test]
fn all_estimators_but_pseudo_likelihood_take_them() {
    let b = |n| Layer::<f32>::new(Kind::Binary, n);
    let machines = [
        Machine::rbm(b(5), b(3)),
        Machine::semi_restricted(b(5), b(3)),
        Machine::deep(b(5), vec![b(3), b(2)]),
        Machine::fully_visible(b(5)),
    ];
    for machine in machines {
        let machine = filled(machine, 0.2);
        let data = Data::new(soft(&machine, 40));
        for estimator in Estimator::ALL.iter().filter(|e| e.obstacle(&machine).is_none()) {
            let plan =
                TrainParams { batch: Some(16), evaluate_every: Some(3), ..params(estimator.clone(), 6) }
                    .plan(&machine, &data);
            if *estimator == Estimator::Pl {
                let Err(Error::Inapplicable { instead, .. }) = plan else {
                    panic!("pl takes soft bits")
                };
                assert!(instead.contains(&"pcd".into()) && !instead.contains(&"pl".into()));
                continue;
            }
            let mut trainer = Trainer::new(machine.clone(), plan.unwrap(), &data).unwrap();
            let outcome = trainer.run(&mut []).unwrap();
            assert_eq!(outcome.updates, 6, "{}", estimator.name());
            let chains = trainer.checkpoint().below("estimator").states::<f32>("chains");
            if let Ok(Some(x)) = chains.as_ref().map(|chains| chains.get(0)) {
                assert!(matches!(x, Batch::Bits(_)), "{}: chains are bits", estimator.name());
            }
        }
    }
}

#[test]
fn missing_entries_between_soft_ones_are_drawn() {
    let machine = rbm::<f32>(6, 4);
    let known = Bits::from_fn(30, 6, |r, j| (r + j) % 3 != 0);
    let data = Data::new(soft(&machine, 30)).with_known(0, known.clone()).unwrap();
    let params =
        TrainParams { batch: Some(30), ..params(Estimator::Pcd { sweeps: Some(1), chains: None }, 5) };
    let mut trainer =
        Trainer::new(machine.clone(), params.plan(&machine, &data).unwrap(), &data).unwrap();
    trainer.run(&mut []).unwrap();
    let particles: States<f32> = trainer.checkpoint().below("positive").states("particles").unwrap();
    let Batch::Reals(x) = particles.get(0).unwrap() else { panic!("known values stay soft") };
    for ((r, j), &x) in x.indexed_iter() {
        let given = grey::<f32>(30, 6)[[r, j]];
        assert!(if known.get(r, j) { x == given } else { x == 0.0 || x == 1.0 }, "({r},{j}): {x}");
    }
}

/// Classes are told apart by soft rows, and the discriminative part is learnt from them.
#[test]
fn labels_are_learnt_from_soft_rows() {
    let layers = vec![("v", Layer::new(Kind::Binary, 3)), ("y", Layer::new(Kind::Potts { q: 2 }, 1))];
    let machine = filled(Machine::<f64>::mixed(layers, Layer::new(Kind::Binary, 4)), 0.5);
    let (v, y) = (machine.find("v").unwrap(), machine.find("y").unwrap());
    let rows =
        Array2::from_shape_fn((60, 3), |(r, j)| if j == 0 { 0.2 + 0.6 * (r % 2) as f64 } else { 0.5 });
    let mut states = States::empty(machine.len(), 60);
    states.set(v, Batch::Reals(rows));
    states.set(y, Batch::Codes(Array2::from_shape_fn((60, 1), |(r, _)| (r % 2) as u32)));
    let data = Data::new(states);
    let machine = trained(&machine, &data, &params(Estimator::Labels(LabelsParams::default()), 5000));
    let p = harmonium::estimate::label_probabilities(&machine.at(1.0), y, data.states()).unwrap();
    assert!((0..60).all(|r| p[[r, r % 2]] > 0.8), "{}", p.row(0));
}

#[test]
fn evaluations_and_pseudo_likelihoods_flip_soft_bits() {
    let machine = rbm::<f64>(3, 2);
    let rows = arr2(&[[0.25, 0.9, 0.0], [0.5, 0.1, 1.0]]);
    let free = |rows: Array2<f64>| {
        machine.free_energy(&machine.data(vec![Batch::Reals(rows)]).unwrap()).unwrap()
    };
    let at = free(rows.clone());
    let mut expected = vec![0.0; 2];
    for i in 0..3 {
        let mut flipped = rows.clone();
        flipped.column_mut(i).mapv_inplace(|x| 1.0 - x);
        for (r, f) in free(flipped).into_iter().enumerate() {
            expected[r] -= (1.0 + (at[r] - f).exp()).ln();
        }
    }
    let data = machine.data(vec![Batch::Reals(rows)]).unwrap();
    let got = evaluate::pseudo_log_likelihood(&machine, &data).unwrap();
    assert!(got.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12), "{got:?}, {expected:?}");
    let data = Data::new(data);
    let plan = params(Estimator::Exact, 1).plan(&machine, &data).unwrap();
    let metrics = Trainer::new(machine.clone(), plan, &data).unwrap().evaluate().unwrap().metrics;
    let has = |name: &str| metrics.iter().any(|m| m.0 == name);
    assert!(has("train_pseudo_likelihood") && has("train_free_energy") && !has("train_log_likelihood"));
}

#[test]
fn what_asks_for_states_refuses_them() {
    let machine = rbm::<f64>(3, 2);
    let data = soft(&machine, 4);
    let refused = |e: Error| assert!(e.to_string().contains("values between 0 and 1"), "{e}");
    refused(machine.exact().log_likelihood(&data, None).unwrap_err());
    let silent = &mut |_| std::ops::ControlFlow::Continue(());
    refused(
        evaluate::evaluate(&machine, None, &data, &LogZParams::default(), None, silent).unwrap_err(),
    );
    let positive = Some(Averaging::Exact);
    let params = TrainParams { positive, ..params(Estimator::Exact, 1) };
    refused(params.plan(&machine, &Data::new(data)).unwrap_err());
}

#[test]
fn values_outside_are_named() {
    let machine = rbm::<f32>(3, 2);
    for bad in [-0.1, 1.5, f32::NAN] {
        let mut rows = grey::<f32>(5, 3);
        rows[[3, 1]] = bad;
        let e = machine.data(vec![Batch::Reals(rows)]).unwrap_err().to_string();
        assert!(e.contains("row 3, unit 1") && e.contains("from 0 to 1"), "{e}");
    }
    // Soft values are for Binary units of visible layers.
    let spins = Machine::<f32>::rbm(Layer::new(Kind::Spin, 3), Layer::new(Kind::Binary, 2));
    assert!(spins.data(vec![Batch::Reals(grey(5, 3))]).is_err());
    let b = |n| Layer::<f32>::new(Kind::Binary, n);
    let conditional = Machine::conditional(b(2), b(3), b(2));
    let batch = |l: usize| match conditional.role(l) {
        Role::Condition => Batch::Reals(grey(5, conditional.layer(l).len())),
        _ => conditional.layer(l).zeros(5),
    };
    let given = (0..conditional.len()).filter(|&l| conditional.role(l) != Role::Hidden);
    assert!(conditional.data(given.map(batch).collect()).is_err());
}
