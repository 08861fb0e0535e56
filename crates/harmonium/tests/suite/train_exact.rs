//! Training with the exact gradient on data whose distribution is known.

use harmonium::estimate::Estimator;
use harmonium::train::{Coordinates, Data, Init, Optimiser, Schedule, TrainParams, Trainer};
use harmonium::{Batch, Bits, Key, Kind, Layer, Machine};
use std::collections::BTreeSet;

/// All images with each row constant or each column constant.
fn bars_and_stripes(side: usize) -> Bits {
    let mut set = BTreeSet::new();
    for pattern in 0..1u64 << side {
        let bit = |k: usize| pattern >> k & 1;
        let image = |by_row: bool| {
            (0..side * side).fold(0u64, |x, p| x | bit(if by_row { p / side } else { p % side }) << p)
        };
        set.insert(image(true));
        set.insert(image(false));
    }
    let rows: Vec<u64> = set.into_iter().collect();
    Bits::from_words(rows.len(), side * side, rows).unwrap()
}

/// `width` neighbouring ones on a ring of `n`.
fn shifting_bars(n: usize, width: usize) -> Bits {
    Bits::from_fn(n, n, |r, j| (j + n - r) % n < width)
}

fn rbm(bits: Bits, hidden: usize) -> (Machine<f64>, Data<f64>) {
    let v = Layer::new(Kind::Binary, bits.cols());
    let machine = Machine::rbm(v, Layer::new(Kind::Binary, hidden));
    let data = Data::new(machine.data(vec![Batch::Bits(bits)]).unwrap());
    (machine, data)
}

fn exact(updates: u64) -> TrainParams {
    TrainParams {
        estimator: Some(Estimator::Exact),
        optimiser: Some(Optimiser::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 }),
        rate: Some(0.05),
        schedule: Some(Schedule::Cosine),
        updates: Some(updates),
        average: Some(0),
        evaluate_every: Some(0),
        ..TrainParams::default()
    }
}

fn kl(bits: Bits, hidden: usize, params: &TrainParams) -> f64 {
    let (machine, data) = rbm(bits, hidden);
    let plan = params.plan(&machine, &data).unwrap();
    let mut trainer = Trainer::new(machine, plan, &data).unwrap();
    trainer.run(&mut []).unwrap();
    trainer.machine().exact().kl(data.states(), data.wts()).unwrap()
}

#[test]
fn bars_and_stripes_are_learnt() {
    let small = kl(bars_and_stripes(3), 8, &exact(1500));
    assert!(small < 0.01, "3×3: KL {small}");
    let init = Some(Init::Data { std: 0.1 });
    let larger = TrainParams { rate: Some(0.1), init, ..exact(1000) };
    let large = kl(bars_and_stripes(4), 12, &larger);
    assert!(large < 0.01, "4×4: KL {large}");
}

#[test]
fn shifting_bars_are_learnt() {
    let d = kl(shifting_bars(9, 3), 9, &exact(1500));
    assert!(d < 0.01, "KL {d}");
}

#[test]
fn every_form_and_optimiser_learns() {
    let optimisers = [
        (Optimiser::Sgd, 0.5),
        (Optimiser::Momentum { mu: 0.9 }, 0.05),
        (Optimiser::Nesterov { mu: 0.9 }, 0.05),
        (Optimiser::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 }, 0.05),
        (Optimiser::Cosine { delta: 2e-3, max: 2.0 }, 0.5),
    ];
    for form in [Coordinates::Plain, Coordinates::Centred, Coordinates::Standardised] {
        for (optimiser, rate) in optimisers {
            let slow =
                if form == Coordinates::Standardised && !matches!(optimiser, Optimiser::Adam { .. }) {
                    0.1
                } else {
                    1.0
                };
            let params = TrainParams {
                form: Some(form),
                optimiser: Some(optimiser),
                rate: Some(slow * rate),
                schedule: Some(Schedule::Constant),
                init: Some(Init::Data { std: 0.3 }),
                ..exact(1000)
            };
            let d = kl(bars_and_stripes(2), 4, &params);
            assert!(d < 0.15, "{form:?} {optimiser:?}: KL {d}");
        }
    }
}

#[test]
fn a_student_learns_its_teacher() {
    let (mut teacher, _) = rbm(bars_and_stripes(2), 3);
    let noise = |i: u64| Key { seed: 2, purpose: 0, block: 0, sweep: i }.hash() as f64 / u64::MAX as f64;
    let mut p = teacher.parameters();
    let mut i = 0;
    for a in p.arrays_mut() {
        a.mapv_inplace(|_| {
            i += 1;
            6.0 * noise(i) - 3.0
        });
    }
    teacher.set_parameters(&p).unwrap();
    // All states, each with its probability under the teacher: the data are the teacher itself.
    let (student, all) = rbm(Bits::from_fn(16, 4, |r, j| r >> j & 1 == 1), 4);
    let wts = teacher.exact().log_probability(all.states()).unwrap();
    let data = all.with_weights(wts.into_iter().map(f64::exp).collect()).unwrap();
    let plan = exact(1500).plan(&student, &data).unwrap();
    let mut trainer = Trainer::new(student, plan, &data).unwrap();
    trainer.run(&mut []).unwrap();
    let kl = trainer.machine().exact().kl(data.states(), data.wts()).unwrap();
    assert!(kl < 0.01, "KL {kl}");
}
