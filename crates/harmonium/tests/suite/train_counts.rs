//! Over-dispersed counts: a student trained on exact samples of a teacher reaches it up to the error from finite data.

use crate::common::{Dice, is_unbounded};
use harmonium::estimate::Estimator;
use harmonium::train::{Data, Optimiser, Schedule, TrainParams, Trainer};
use harmonium::{Chains, Clamps, Kind, Layer, Machine};

const ROWS: usize = 4000;

/// Six counts with r = 2 and means around 3, coupled to three binary units.
fn teacher(kind: Kind) -> Machine<f64> {
    let mut machine = Machine::rbm(Layer::new(kind, 6), Layer::new(Kind::Binary, 3));
    let dice = &mut Dice(1);
    // Means are 2e^y/(1 − e^y) with y = θ + I: inputs of either sign move them between 1.5 and 6.
    machine.layer_mut(0).params_mut().mapv_inplace(|_| dice.between(-0.65, -0.5));
    machine.coupling_mut(0).w_mut().mapv_inplace(|_| dice.between(-0.35, 0.12));
    machine.layer_mut(1).params_mut().mapv_inplace(|_| dice.between(0.3, 1.2));
    machine
}

/// With the exact gradient, by chains, and under Poisson units, which cannot hold the spread.
#[test]
fn students_find_the_teacher() {
    let kind = Kind::NegativeBinomial { shape: 32, n: 256 };
    let teacher = teacher(kind);
    let mut chains = Chains::independent(&teacher, 2 * ROWS, 3, 1).unwrap();
    chains.sweep(&teacher.at(1.0), &Clamps::none(&teacher), 100).unwrap();
    let rows = |first: usize, kind: Kind| {
        let picked: Vec<usize> = (first..first + ROWS).collect();
        let values = teacher.layer(0).values(chains.states().layer(0).unwrap());
        let values = values.select(ndarray::Axis(0), &picked);
        let blank = Machine::<f64>::rbm(Layer::new(kind, 6), Layer::new(Kind::Binary, 3));
        let data = blank.data(vec![blank.layer(0).batch(values.view()).unwrap()]).unwrap();
        (blank, data)
    };
    let (_, held_out) = rows(ROWS, kind);
    let means = teacher.layer(0).values(held_out.layer(0).unwrap()).mean_axis(ndarray::Axis(0)).unwrap();
    assert!(means.iter().all(|m| (1.5..6.0).contains(m)), "{means}");
    let of_teacher = teacher.exact().log_likelihood(&held_out, None).unwrap();
    let student = |kind: Kind, estimator: Estimator| {
        let (machine, data) = rows(0, kind);
        let params = TrainParams {
            estimator: Some(estimator),
            optimiser: Some(Optimiser::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 }),
            rate: Some(0.02),
            schedule: Some(Schedule::Cosine),
            updates: Some(600),
            batch: Some(500),
            evaluate_every: Some(0),
            seed: Some(5),
            ..TrainParams::default()
        };
        let data = Data::new(data);
        let plan = params.plan(&machine, &data).unwrap();
        let mut trainer = Trainer::new(machine, plan, &data).unwrap();
        trainer.run(&mut []).unwrap();
        let (_, test) = rows(ROWS, kind);
        trainer.machine().exact().log_likelihood(&test, None).unwrap() - of_teacher
    };
    // 27 parameters fitted to 4000 rows lose 27/8000 = 0.003 nats on new ones; the rest is for the optimiser.
    let pcd = Estimator::Pcd { sweeps: Some(2), chains: None };
    let [exact, chains] = [Estimator::Exact, pcd].map(|e| student(kind, e));
    let poisson = student(Kind::Poisson, Estimator::Exact);
    assert!(exact.abs() < 0.05, "exact: {exact}");
    assert!(chains.abs() < 0.05, "chains: {chains}");
    // At a mean of 3 the variance is 7.5: each count loses about 0.3 nats, of which hidden units recover a part.
    assert!(poisson < -0.3, "Poisson: {poisson}");
}

/// Bounded counts may be coupled to anything: to real units, and to each other with weights of either sign.
#[test]
fn nothing_makes_them_run_away() {
    let counts = |n| Layer::<f64>::new(Kind::NegativeBinomial { shape: 8, n: 6 }, n);
    for partner in Kind::ALL.into_iter().filter(|&kind| is_unbounded(kind)) {
        let mut machine = Machine::rbm(counts(2), Layer::new(partner, 1));
        machine.coupling_mut(0).w_mut().fill(0.7);
        machine.check_normalisable().unwrap();
        assert!(machine.exact().log_z().unwrap().is_finite(), "{partner}");
    }
    let mut machine = Machine::fully_visible(counts(3));
    machine
        .coupling_mut(0)
        .w_mut()
        .indexed_iter_mut()
        .filter(|((i, j), _)| i != j)
        .for_each(|(_, w)| *w = 2.0);
    machine.check_normalisable().unwrap();
    // At weights this strong all units are at their end: E = −3·2·36, and the measure of 6 is the same for all.
    let log_nu = log_rising(0.5, 6);
    let log_z = machine.exact().log_z().unwrap();
    assert!((log_z - (216.0 + 3.0 * log_nu)).abs() < 1e-8, "{log_z}");
}

/// ln of r(r+1)…(r+x−1)/x!.
fn log_rising(r: f64, x: u32) -> f64 {
    (0..x).map(|k| ((r + f64::from(k)) / f64::from(k + 1)).ln()).sum()
}

/// Coupled hidden units over counts have neither a quick likelihood nor a pseudo-likelihood. Rows that are left out are scored all
/// the same, else a run on few rows would be cut to nothing.
#[test]
fn machines_without_a_quick_score_learn() {
    let rows = 600;
    let machine =
        Machine::<f64>::unrestricted(Layer::new(Kind::Poisson, 3), Layer::new(Kind::Binary, 4));
    let mut dice = Dice(9);
    // Two kinds of rows with other rates: by inversion of the Poisson distribution.
    let mut poisson = |rate: f64| {
        let (mut x, mut p, mut left) = (0u32, (-rate).exp(), dice.between(0.0, 1.0));
        while left > p && x < 50 {
            left -= p;
            x += 1;
            p *= rate / f64::from(x);
        }
        f64::from(x)
    };
    let counts = ndarray::Array2::from_shape_fn((2 * rows, 3), |(r, j)| {
        poisson(if (r + j) % 2 == 0 { 4.0 } else { 0.5 })
    });
    let part = |first: usize| {
        let x = counts.slice(ndarray::s![first..first + rows, ..]);
        Data::new(machine.data(vec![machine.layer(0).batch(x).unwrap()]).unwrap())
    };
    let (train, test) = (part(0), part(rows));
    let params = TrainParams { seed: Some(1), ..TrainParams::default() };
    let (plan, _) = harmonium::train::settings(params, &machine, &train, None, &|| false).unwrap();
    assert!(plan.params().stop_after != Some(0), "{plan:?}");
    let mut trainer = Trainer::new(machine.clone(), plan, &train).unwrap();
    trainer.run(&mut []).unwrap();
    let learnt = trainer.result().exact().log_likelihood(test.states(), None).unwrap();
    let floor = harmonium::train::Floor::new(&machine, &train).unwrap().log_likelihood(&test).unwrap();
    // Columns of one Poisson distribution each, at a rate of 2.25, do not know that the first and third are large where the
    // second is small; that is worth ln 2 for the kind of a row, and what its spread beyond Poisson costs them.
    assert!(learnt - floor > 0.5, "{learnt} against {floor}");
}
