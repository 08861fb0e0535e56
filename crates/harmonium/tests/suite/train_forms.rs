//! Coordinates of the gradient: the model does not depend on them, and weights count as repetitions.

use harmonium::estimate::Estimator;
use harmonium::train::{
    Coordinates, Data, Init, Optimiser, Regulariser, Schedule, TrainParams, Trainer,
};
use harmonium::{Batch, Bits, Key, Kind, Layer, Machine, Parameters};

const N: usize = 5;
const M: usize = 4;

fn noise(i: u64) -> f64 {
    let key = Key { seed: 9, purpose: 0, block: 0, sweep: i };
    key.hash() as f64 / u64::MAX as f64 - 0.5
}

fn machine() -> Machine<f64> {
    let v = Layer::new(Kind::Binary, N);
    let mut m = Machine::rbm(v, Layer::new(Kind::Binary, M));
    let mut i = 0;
    let mut next = || {
        i += 1;
        noise(i)
    };
    let mut p = m.parameters();
    p.arrays_mut().for_each(|a| a.mapv_inplace(|_| next()));
    m.set_parameters(&p).unwrap();
    m
}

fn bits(rows: usize) -> Bits {
    Bits::from_fn(rows, N, |r, j| noise((1000 + 7 * r + j) as u64) > 0.3 * (j as f64) - 0.4)
}

fn data(m: &Machine<f64>, bits: Bits) -> Data<f64> {
    Data::new(m.data(vec![Batch::Bits(bits)]).unwrap())
}

fn params(form: Coordinates, optimiser: Optimiser) -> TrainParams {
    TrainParams {
        estimator: Some(Estimator::Exact),
        init: Some(Init::Keep),
        form: Some(form),
        optimiser: Some(optimiser),
        rate: Some(0.05),
        updates: Some(50),
        average: Some(0),
        evaluate_every: Some(0),
        ..TrainParams::default()
    }
}

fn trained(m: Machine<f64>, d: &Data<f64>, params: &TrainParams) -> Machine<f64> {
    let plan = params.plan(&m, d).unwrap();
    let mut t = Trainer::new(m, plan, d).unwrap();
    t.run(&mut []).unwrap();
    t.machine().clone()
}

/// ln p(v) of all rows straight from the energy in the coordinates, normalised by brute force.
fn log_likelihood(p: &Parameters<f64>, t: &Trainer<'_, f64>, rows: &Bits) -> f64 {
    let c = t.coordinates();
    let bit = |x: usize, j: usize| (x >> j & 1) as f64;
    let scaled = |l: usize, j: usize, x: f64| (x - c.centre(l)[j]) / c.scale(l)[j];
    let weight = |v: usize| -> f64 {
        (0..1 << M)
            .map(|h| {
                let mut e = 0.0;
                for i in 0..N {
                    e += p.layers[0][[0, i]] * bit(v, i);
                    for j in 0..M {
                        let (x, y) = (scaled(0, i, bit(v, i)), scaled(1, j, bit(h, j)));
                        e += p.couplings[0][[i, j]] * x * y;
                    }
                }
                e += (0..M).map(|j| p.layers[1][[0, j]] * bit(h, j)).sum::<f64>();
                e.exp()
            })
            .sum()
    };
    let z: f64 = (0..1 << N).map(weight).sum();
    let row = |r: usize| (0..N).fold(0, |v, j| v | usize::from(rows.get(r, j)) << j);
    (0..rows.rows()).map(|r| (weight(row(r)) / z).ln()).sum::<f64>() / rows.rows() as f64
}

#[test]
fn the_likelihood_is_the_same_in_all_coordinates() {
    let d = data(&machine(), bits(40));
    for form in [Coordinates::Plain, Coordinates::Centred, Coordinates::Standardised] {
        let plan = params(form, Optimiser::Sgd).plan(&machine(), &d).unwrap();
        let mut t = Trainer::new(machine(), plan, &d).unwrap();
        t.run(&mut []).unwrap();
        let exact = t.machine().exact().log_likelihood(d.states(), None).unwrap();
        let expressed = t.coordinates().express(&t.machine());
        let naive = log_likelihood(&expressed, &t, &bits(40));
        assert!((exact - naive).abs() < 1e-9, "{form:?}: {exact} {naive}");
        let mut restored = t.coordinates().restore(&t.machine(), &expressed);
        restored.add(-1.0, &t.machine().parameters());
        assert!(restored.norm() < 1e-12, "{form:?}");
        if form != Coordinates::Plain {
            assert!(t.coordinates().centre(1).iter().all(|&x| x > 0.1));
        }
    }
}

#[test]
fn centred_training_does_not_see_flipped_bits() {
    let flipped = [true, false, true, true, false];
    let m = machine();
    let mut mirror = m.clone();
    // v → 1 − v: the row of W changes sign and its weights move into c.
    let w = m.couplings()[0].w().clone();
    for i in (0..N).filter(|&i| flipped[i]) {
        mirror.layer_mut(0).params_mut()[[0, i]] *= -1.0;
        for j in 0..M {
            mirror.coupling_mut(0).w_mut()[[i, j]] *= -1.0;
            mirror.layer_mut(1).params_mut()[[0, j]] += w[[i, j]];
        }
    }
    let rows = bits(40);
    let d = data(&m, rows.clone());
    let e = data(&m, Bits::from_fn(40, N, |r, j| rows.get(r, j) != flipped[j]));
    let optimisers = [
        Optimiser::Sgd,
        Optimiser::Nesterov { mu: 0.9 },
        Optimiser::Adam { beta1: 0.9, beta2: 0.99, epsilon: 1e-8 },
    ];
    for optimiser in optimisers {
        let differ = |form: Coordinates| {
            let params = params(form, optimiser);
            let (a, b) = (trained(m.clone(), &d, &params), trained(mirror.clone(), &e, &params));
            let a = a.exact().log_likelihood(d.states(), None).unwrap();
            let b = b.exact().log_likelihood(e.states(), None).unwrap();
            (a - b).abs()
        };
        assert!(differ(Coordinates::Centred) < 1e-9, "{optimiser:?}");
        assert!(differ(Coordinates::Standardised) < 1e-9, "{optimiser:?}");
        assert!(differ(Coordinates::Plain) > 1e-6, "{optimiser:?}: the test would see a difference");
    }
}

#[test]
fn a_weight_is_a_repetition() {
    let rows = bits(12);
    let wts: Vec<f64> = (0..12).map(|r| [1.0, 3.0, 0.0, 2.0][r % 4]).collect();
    let repeated: Vec<usize> = (0..12).flat_map(|r| std::iter::repeat_n(r, wts[r] as usize)).collect();
    let m = machine();
    let all = data(&m, rows);
    let (long, short) = (all.select(&repeated), all.clone().with_weights(wts).unwrap());
    for form in [Coordinates::Plain, Coordinates::Centred, Coordinates::Standardised] {
        let params = params(form, Optimiser::Momentum { mu: 0.5 });
        let a = trained(m.clone(), &long, &params).parameters();
        let mut b = trained(m.clone(), &short, &params).parameters();
        b.add(-1.0, &a);
        assert!(b.norm() < 1e-11, "{form:?}: {}", b.norm());
    }
}

#[test]
fn weighted_minibatches_add_up_to_the_gradient() {
    let wts: Vec<f64> = (0..12).map(|r| 0.25 + (r % 5) as f64).collect();
    let m = machine();
    let d = data(&m, bits(12)).with_weights(wts).unwrap();
    let params = TrainParams {
        batch: Some(3),
        updates: Some(4),
        rate: Some(1e-7),
        schedule: Some(Schedule::Constant),
        ..params(Coordinates::Plain, Optimiser::Sgd)
    };
    let mut change = trained(m.clone(), &d, &params).parameters();
    change.add(-1.0, &m.parameters());
    change.scale(1.0 / 4e-7);
    let gradient = m.exact().gradient(d.states(), d.wts()).unwrap();
    let norm = gradient.norm();
    change.add(-1.0, &gradient);
    assert!(change.norm() < 1e-6 * norm, "{} of {norm}", change.norm());
}

/// Rows of two correlated real columns with missing entries, in units given by `scale` and `offset`.
fn measured(scale: [f64; 2], offset: [f64; 2]) -> (Machine<f64>, Data<f64>) {
    let rows = 300;
    let machine = Machine::rbm(Layer::new(Kind::Gaussian, 2), Layer::new(Kind::Binary, 3));
    let x = ndarray::Array2::from_shape_fn((rows, 2), |(r, j)| {
        let group = if r % 3 == 0 { 1.5 } else { -0.75 };
        let z = group + (0..6).map(|k| noise((5000 + 20 * r + 10 * j + k) as u64)).sum::<f64>();
        offset[j] + scale[j] * z
    });
    let states = machine.data(vec![machine.layer(0).batch(x.view()).unwrap()]).unwrap();
    let known = Bits::from_fn(rows, 2, |r, j| (r + 3 * j) % 11 != 0);
    (machine, Data::new(states).with_known(0, known).unwrap())
}

/// Ages in years and lengths in metres are learned like standardised numbers: the likelihood differs only by the units.
#[test]
fn measured_columns_are_learned_in_any_unit() {
    let params = TrainParams {
        form: Some(Coordinates::Standardised),
        estimator: Some(Estimator::Exact),
        batch: Some(100),
        updates: Some(600),
        rate: Some(0.05),
        ..TrainParams::default()
    };
    let likelihood = |scale: [f64; 2], offset: [f64; 2]| {
        let (machine, data) = measured(scale, offset);
        let trained = trained(machine, &data, &params);
        let whole: Vec<usize> = (0..data.rows()).filter(|r| r % 11 != 0 && (r + 3) % 11 != 0).collect();
        let ln_p = trained.exact().log_likelihood(&data.states().select(&whole), None).unwrap();
        ln_p + scale.iter().map(|s| s.ln()).sum::<f64>()
    };
    let standard = likelihood([1.0, 1.0], [0.0, 0.0]);
    let other = likelihood([14.0, 0.05], [47.0, 0.2]);
    // Two groups: −2.78 at best; one Gaussian for each column would have −3.32.
    assert!(standard > -3.2, "{standard}");
    assert!((standard - other).abs() < 0.05, "{standard} against {other}");
}

/// Real columns of any kind learn alike in millimetres and in metres, with penalties too: likelihoods differ by the logarithm
/// of the unit.
#[test]
fn the_unit_of_a_column_does_not_matter() {
    for kind in [Kind::Gaussian, Kind::Relu, Kind::Drelu] {
        let machine = Machine::<f64>::rbm(Layer::new(kind, 3), Layer::new(Kind::Binary, 2));
        let likelihood = |unit: f64, updates: u64, l2: f64| {
            // Two groups of rows: spread 2 around ±4, or that around 6 and 14 for units without negative values.
            let middle = if kind == Kind::Relu { 10.0 } else { 0.0 };
            let values = ndarray::Array2::from_shape_fn((300, 3), |(r, j)| {
                let group = if r % 3 == 0 { 4.0 } else { -4.0 };
                unit * (middle + group + 7.0 * noise((3 * r + j) as u64)).max(if middle > 0.0 {
                    0.1
                } else {
                    -99.0
                })
            });
            let rows = machine.data(vec![Batch::Reals(values)]).unwrap();
            let data = Data::new(rows);
            let regulariser =
                Some(Regulariser { l1: 0.1 * l2, l1b: 0.1 * l2, l2, ..Regulariser::default() });
            let params = TrainParams { updates: Some(updates), regulariser, ..TrainParams::default() };
            let params =
                TrainParams { estimator: Some(Estimator::Exact), evaluate_every: Some(0), ..params };
            let learned = trained(machine.clone(), &data, &params);
            learned.exact().log_likelihood(data.states(), None).unwrap() + 3.0 * unit.ln()
        };
        let (start, metres, millimetres) =
            (likelihood(1.0, 1, 0.0), likelihood(1.0, 300, 0.0), likelihood(1000.0, 300, 0.0));
        // Three columns that share a group have 2 ln 2 · 0.9 nats in common if groups are told apart.
        assert!(metres > start + 0.8, "{kind}: {start} → {metres}");
        assert!((metres - millimetres).abs() < 0.02, "{kind}: {metres} and {millimetres}");
        let (held, held_millimetres) = (likelihood(1.0, 300, 0.1), likelihood(1000.0, 300, 0.1));
        assert!(held < metres - 0.02, "{kind}: {held} with penalties");
        assert!((held - held_millimetres).abs() < 0.02, "{kind}: {held} and {held_millimetres}");
    }
}
