//! Layered and unrestricted machines: stacks, deep machines, labels, lateral couplings, missing entries.

use harmonium::estimate::{Averaging, Estimator, LabelsParams, label_probabilities};
use harmonium::train::{Data, Init, Optimiser, Schedule, Stack, TrainParams, Trainer};
use harmonium::{Batch, Bits, Key, Kind, Layer, Machine};
use ndarray::Array2;

fn binary(n: usize) -> Layer<f64> {
    Layer::new(Kind::Binary, n)
}

fn uniform(i: u64) -> f64 {
    Key { seed: 4, purpose: 0, block: 0, sweep: i }.hash() as f64 / u64::MAX as f64
}

fn exact(updates: u64, rate: f64) -> TrainParams {
    TrainParams {
        estimator: Some(Estimator::Exact),
        optimiser: Some(Optimiser::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 }),
        rate: Some(rate),
        schedule: Some(Schedule::Cosine),
        updates: Some(updates),
        init: Some(Init::Data { std: 0.1 }),
        average: Some(0),
        evaluate_every: Some(0),
        ..TrainParams::default()
    }
}

/// The 14 images of 3×3 bars and stripes.
fn bars() -> Bits {
    let rows: Vec<(bool, usize)> = (0..8).map(|p| (true, p)).chain((1..7).map(|p| (false, p))).collect();
    Bits::from_fn(rows.len(), 9, |r, j| {
        let (by_row, pattern) = rows[r];
        pattern >> (if by_row { j / 3 } else { j % 3 }) & 1 == 1
    })
}

/// ln p(v) of the belief network, averaged: Σ_h p(v|h) p(h) with p(h) from the upper level.
fn belief_network(stack: &Stack<f64>, rows: &Bits) -> f64 {
    let [lower, upper] = stack.levels() else { panic!("two levels") };
    let n = lower.layer(1).len();
    let h = Bits::from_fn(1 << n, n, |r, j| r >> j & 1 == 1);
    let states = upper.data(vec![Batch::Bits(h.clone())]).unwrap();
    let prior = upper.exact().log_probability(&states).unwrap();
    let mut given = lower.zeros(1 << n);
    given.set(1, Batch::Bits(h));
    let mean = lower.at(1.0).mean(0, &given).unwrap();
    let p = |r: usize| -> f64 {
        (0..1 << n)
            .map(|k| {
                let bit = |j: usize| {
                    let p: f64 = mean[[k, j]];
                    if rows.get(r, j) { p } else { 1.0 - p }
                };
                prior[k].exp() * (0..9).map(bit).product::<f64>()
            })
            .sum()
    };
    (0..rows.rows()).map(|r| p(r).ln()).sum::<f64>() / rows.rows() as f64
}

#[test]
fn a_deep_machine_rises_over_the_stack_it_started_from() {
    let first = Machine::rbm(binary(9), binary(4));
    let data = Data::new(first.data(vec![Batch::Bits(bars())]).unwrap());
    let stack =
        Stack::train(binary(9), &[binary(4), binary(4)], &exact(600, 0.05), &data, &mut []).unwrap();
    let stacked = belief_network(&stack, &bars());
    let single = stack.levels()[0].exact().log_likelihood(data.states(), None).unwrap();
    let deep = stack.to_deep(&data, 1).unwrap();
    let deep_data = Data::new(deep.data(vec![Batch::Bits(bars())]).unwrap());
    let start = deep.exact().log_likelihood(deep_data.states(), None).unwrap();
    let params =
        TrainParams { positive: Some(Averaging::Exact), init: Some(Init::Keep), ..exact(600, 0.03) };
    let plan = params.plan(&deep, &deep_data).unwrap();
    let mut t = Trainer::new(deep, plan, &deep_data).unwrap();
    t.run(&mut []).unwrap();
    let joint = t.machine().exact().log_likelihood(deep_data.states(), None).unwrap();
    assert!(
        joint > stacked.max(single).max(start) + 0.02,
        "single {single:.4}, stack {stacked:.4}, deep at the start {start:.4}, joint {joint:.4}"
    );
}

#[test]
fn sampled_and_mean_field_positive_phases_train_a_deep_machine() {
    let deep = Machine::deep(binary(9), vec![binary(6), binary(4)]);
    let data = Data::new(deep.data(vec![Batch::Bits(bars())]).unwrap());
    let independent = {
        let plan = exact(1, 1e-6).plan(&deep, &data).unwrap();
        let t = Trainer::new(deep.clone(), plan, &data).unwrap();
        t.machine().exact().log_likelihood(data.states(), None).unwrap()
    };
    let averagings = [Averaging::Chain { sweeps: 5 }, Averaging::MeanField { rounds: 10 }];
    for positive in averagings {
        let params = TrainParams {
            positive: Some(positive),
            estimator: Some(Estimator::Pcd { sweeps: Some(5), chains: Some(200) }),
            ..exact(500, 0.02)
        };
        let plan = params.plan(&deep, &data).unwrap();
        let mut t = Trainer::new(deep.clone(), plan, &data).unwrap();
        t.run(&mut []).unwrap();
        let l = t.machine().exact().log_likelihood(data.states(), None).unwrap();
        assert!(l > independent + 0.5, "{positive:?}: {independent} → {l}");
    }
}

/// Exact samples of an open Ising chain with these couplings: each spin follows its left neighbour.
fn ising_chain(j: &[f64], rows: usize) -> Bits {
    let mut bits = Bits::zeros(rows, j.len() + 1);
    for r in 0..rows {
        let draw = |i: usize| uniform((r * (j.len() + 1) + i) as u64);
        let mut up = draw(0) < 0.5;
        bits.set(r, 0, up);
        for (i, j) in j.iter().enumerate() {
            let same = 1.0 / (1.0 + (-2.0 * j).exp());
            up = if draw(i + 1) < same { up } else { !up };
            bits.set(r, i + 1, up);
        }
    }
    bits
}

#[test]
fn couplings_of_an_ising_chain_are_recovered() {
    let j = [0.5, -0.8, 0.3, 0.9, -0.4];
    let rows = 4000;
    let m = Machine::fully_visible(Layer::<f64>::new(Kind::Spin, 6));
    let data = Data::new(m.data(vec![Batch::Bits(ising_chain(&j, rows))]).unwrap());
    // The correlation of a bond is tanh J with variance 1 − tanh²J, so J has 1/√(N(1−tanh²J)); the other
    // 10 couplings and 6 fields are zero with at least 1/√N. 21 numbers within 4 standard errors, chains
    // add at most their own noise.
    let estimators =
        [(Estimator::Exact, 4.0), (Estimator::Pcd { sweeps: Some(2), chains: Some(2000) }, 6.0)];
    for (estimator, errors) in estimators {
        let params = TrainParams {
            estimator: Some(estimator),
            optimiser: Some(Optimiser::Sgd),
            batch: Some(rows),
            init: Some(Init::Data { std: 0.01 }),
            average: Some(100),
            ..exact(400, 0.2)
        };
        let plan = params.plan(&m, &data).unwrap();
        let mut t = Trainer::new(m.clone(), plan, &data).unwrap();
        t.run(&mut []).unwrap();
        let learnt = t.averaged();
        let u = learnt.couplings()[0].w();
        for a in 0..6 {
            for b in 0..a {
                let truth = if a == b + 1 { j[b] } else { 0.0 };
                let error = 1.0 / (rows as f64 * (1.0 - f64::tanh(truth).powi(2))).sqrt();
                assert!((u[[a, b]] - truth).abs() < errors * error, "{a}-{b}: {} {truth}", u[[a, b]]);
            }
        }
    }
}

#[test]
fn an_unrestricted_machine_fits_an_ising_chain() {
    let v = Layer::<f64>::new(Kind::Spin, 5);
    let m = Machine::unrestricted(v, Layer::new(Kind::Spin, 2));
    let data = Data::new(m.data(vec![Batch::Bits(ising_chain(&[0.5, -0.8, 0.3, 0.9], 3000))]).unwrap());
    let params = TrainParams {
        estimator: Some(Estimator::Pcd { sweeps: Some(2), chains: Some(1000) }),
        batch: Some(1000),
        optimiser: Some(Optimiser::Sgd),
        average: Some(50),
        ..exact(200, 0.2)
    };
    let plan = params.plan(&m, &data).unwrap();
    let mut t = Trainer::new(m, plan, &data).unwrap();
    t.run(&mut []).unwrap();
    // KL of the empirical distribution: (2⁵ − 1)/2N = 0.005 even for the true model.
    let kl = t.averaged().exact().kl(data.states(), None).unwrap();
    assert!(kl < 0.012, "KL {kl}");
}

/// Three classes of noisy patterns.
fn classes(rows: usize) -> (Bits, Array2<u32>) {
    let y = Array2::from_shape_fn((rows, 1), |(r, _)| (r % 3) as u32);
    let noisy = |r: usize, j: usize| uniform((1 << 20 | r << 5 | j) as u64) < 0.15;
    (Bits::from_fn(rows, 12, |r, j| (j / 4 == r % 3) != noisy(r, j)), y)
}

#[test]
fn class_machines_learn_their_labels() {
    let m = Machine::class_rbm(binary(12), 3, binary(5));
    let (x, y) = classes(600);
    let data = Data::new(m.data(vec![Batch::Bits(x), Batch::Codes(y)]).unwrap());
    let labels = |part| Estimator::Labels(LabelsParams { part, ..LabelsParams::default() });
    let pcd = Estimator::Pcd { sweeps: Some(2), chains: Some(200) };
    for (name, estimator) in
        [("generative", pcd), ("discriminative", labels(1.0)), ("hybrid", labels(0.5))]
    {
        let params = TrainParams { estimator: Some(estimator), batch: Some(200), ..exact(300, 0.03) };
        let plan = params.plan(&m, &data).unwrap();
        let mut t = Trainer::new(m.clone(), plan, &data).unwrap();
        t.run(&mut []).unwrap();
        let (x, y) = {
            let (x, y) = classes(900);
            (x, y)
        };
        let all = t.machine().data(vec![Batch::Bits(x), Batch::Codes(y.clone())]).unwrap();
        let test = all.select(&(600..900).collect::<Vec<_>>());
        let p = label_probabilities(&t.machine().at(1.0), 1, &test).unwrap();
        let right = (0..300).filter(|&r| {
            let best = (0..3).max_by(|&a, &b| p[[r, a]].total_cmp(&p[[r, b]])).unwrap();
            best as u32 == y[[600 + r, 0]]
        });
        let right = right.count();
        // The noise confuses 2 % of the rows at most (it takes three of the eight telling bits).
        assert!(right > 285, "{name}: {right} of 300");
    }
}

#[test]
fn the_discriminative_gradient_is_that_of_the_conditional_likelihood() {
    let mut m = Machine::class_rbm(binary(4), 3, binary(3));
    let mut p = m.parameters();
    let mut i = 0;
    p.arrays_mut().for_each(|a| {
        a.mapv_inplace(|_| {
            i += 1;
            2.0 * uniform(77 + i) - 1.0
        });
    });
    m.set_parameters(&p).unwrap();
    let x = Bits::from_fn(7, 4, |r, j| uniform((500 + 4 * r + j) as u64) < 0.5);
    let y = Array2::from_shape_fn((7, 1), |(r, _)| (r % 3) as u32);
    let wts: Vec<f64> = (0..7).map(|r| 0.5 + r as f64).collect();
    let states = m.data(vec![Batch::Bits(x), Batch::Codes(y.clone())]).unwrap();
    let data = Data::new(states).with_weights(wts.clone()).unwrap();
    let score = |m: &Machine<f64>| -> f64 {
        let p = label_probabilities(&m.at(1.0), 1, data.states()).unwrap();
        let sum: f64 = (0..7).map(|r| wts[r] * p[[r, y[[r, 0]] as usize]].ln()).sum();
        sum / wts.iter().sum::<f64>()
    };
    let params = TrainParams {
        estimator: Some(Estimator::Labels(LabelsParams::default())),
        optimiser: Some(Optimiser::Sgd),
        form: Some(harmonium::train::Coordinates::Plain),
        init: Some(Init::Keep),
        ..exact(1, 1e-3)
    };
    let plan = params.plan(&m, &data).unwrap();
    let mut t = Trainer::new(m.clone(), plan, &data).unwrap();
    t.run(&mut []).unwrap();
    let mut gradient = t.machine().parameters();
    gradient.add(-1.0, &p);
    gradient.scale(1e3);
    let shifted = |h: f64| {
        let mut q = p.clone();
        q.add(h, &gradient);
        let mut m = m.clone();
        m.set_parameters(&q).unwrap();
        score(&m)
    };
    let slope = (shifted(1e-4) - shifted(-1e-4)) / 2e-4;
    let square = gradient.dot(&gradient);
    assert!(square > 1e-4 && (slope / square - 1.0).abs() < 1e-5, "{slope} {square}");
}

#[test]
fn missing_entries_are_drawn_under_the_clamp() {
    let rows = 1200;
    let chain = ising_chain(&[1.2, 1.2, 1.2, 1.2], rows);
    let m = Machine::rbm(binary(5), binary(4));
    let complete = Data::new(m.data(vec![Batch::Bits(chain.clone())]).unwrap());
    let known = Bits::from_fn(rows, 5, |r, j| uniform((1 << 30 | r << 4 | j) as u64) > 0.3);
    // Values of missing entries must not matter: they are set to ones.
    let holes = Bits::from_fn(rows, 5, |r, j| chain.get(r, j) || !known.get(r, j));
    let data = Data::new(m.data(vec![Batch::Bits(holes)]).unwrap()).with_known(0, known).unwrap();
    let params = TrainParams { batch: Some(300), ..exact(1200, 0.03) };
    let plan = params.plan(&m, &data).unwrap();
    let mut t = Trainer::new(m.clone(), plan, &data).unwrap();
    t.run(&mut []).unwrap();
    let kl = t.machine().exact().kl(complete.states(), None).unwrap();
    // Independent spins would have 4·(ln 2 − H(same)) = 1.2 nats.
    assert!(kl < 0.1, "KL {kl}");
}
