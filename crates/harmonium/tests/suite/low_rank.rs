//! The low-rank start: its ln Z, its samples and its likelihood against enumeration.

use crate::common::sampling::batch;
use crate::common::*;
use harmonium::estimate::{RcmParams, low_rank_start};
use harmonium::{Error, Kind, Layer, Machine};

/// Rows of two or four noisy patterns.
fn clusters(kind: Kind, n: usize, patterns: usize, rows: usize) -> Vec<Vec<f64>> {
    let dice = &mut Dice(7);
    (0..rows)
        .map(|r| {
            let which = (r % (patterns + 1)).min(patterns - 1);
            (0..n)
                .map(|i| {
                    let on = (i * (which + 1) / 3 + which).is_multiple_of(2);
                    let flip = dice.between(0.0, 1.0) < 0.1;
                    if on != flip { 1.0 } else { kind.value(0) }
                })
                .collect()
        })
        .collect()
}

#[test]
fn ln_z_and_likelihood() {
    for (kind_v, kind_h, directions, patterns) in [
        (Kind::Binary, Kind::Binary, 1, 2),
        (Kind::Spin, Kind::Binary, 2, 3),
        (Kind::Binary, Kind::Spin, 3, 4),
        (Kind::Spin, Kind::Spin, 2, 4),
    ] {
        let what = format!("{kind_v}-{kind_h}, {directions} directions");
        let n = 14;
        let machine = Machine::rbm(Layer::<f64>::new(kind_v, n), Layer::new(kind_h, 10));
        let rows = clusters(kind_v, n, patterns, 400);
        let v = machine.data(vec![batch(machine.layer(0), &rows)]).unwrap();
        let params = RcmParams { directions, mesh: Some([200, 30, 12][directions - 1]) };
        let start = low_rank_start(&machine, &v, None, &params, 1).unwrap();
        assert!(start.used >= 1 && start.used <= 10, "{what}: {} hidden units", start.used);
        let exact = start.machine.exact();
        let log_z = exact.log_z().unwrap();
        // Importance sampling: unbiased, with an error estimated from the weights.
        let off = (start.log_z - log_z).abs();
        assert!(off < 4.0 * start.std_err + 1e-6 && start.std_err < 0.05, "{what}: ln Z {off:.4} off");
        assert!(start.ess > 0.3, "{what}: effective sample size {:.3}", start.ess);
        // The samples have the machine's means, to 4.5 standard errors.
        let samples = start.machine.layer(0).values(start.samples.layer(0).unwrap());
        let means = exact.moments().unwrap().means[0].clone();
        for i in 0..n {
            let column = samples.column(i);
            let error = column.std(1.0) / (column.len() as f64 * start.ess).sqrt();
            let z = (column.mean().unwrap() - means[i]) / error;
            assert!(z.abs() < 4.5, "{what}: mean {i} is {z:.1} standard errors off");
        }
        // Far better than independent units with the right means.
        let mut alone = start.machine.clone();
        alone.coupling_mut(0).w_mut().fill(0.0);
        for i in 0..n {
            let mean = rows.iter().map(|r| r[i]).sum::<f64>() / rows.len() as f64;
            let p = if kind_v == Kind::Spin { 0.5 * (1.0 + mean) } else { mean };
            let logit = (p / (1.0 - p)).ln();
            alone.layer_mut(0).params_mut()[[0, i]] =
                if kind_v == Kind::Spin { 0.5 * logit } else { logit };
        }
        let gain =
            exact.log_likelihood(&v, None).unwrap() - alone.exact().log_likelihood(&v, None).unwrap();
        assert!(gain > 1.0, "{what}: gains {gain:.3} nat");
    }
}

#[test]
fn refusals() {
    let d = &mut Dice(1);
    let params = RcmParams::default();
    let deep = Machine::deep(
        layer(Kind::Binary, 4, d),
        vec![layer(Kind::Binary, 2, d), layer(Kind::Binary, 2, d)],
    );
    let potts = Machine::rbm(layer(Kind::Potts { q: 3 }, 4, d), layer(Kind::Binary, 2, d));
    let lateral = Machine::semi_restricted(layer(Kind::Binary, 4, d), layer(Kind::Binary, 2, d));
    for machine in [deep, potts, lateral] {
        let v = some_states(&machine, &[0], 5, 1);
        let refused = low_rank_start(&machine, &v, None, &params, 1);
        assert!(matches!(refused, Err(Error::Undefined { .. })));
    }
    let machine = Machine::rbm(layer(Kind::Binary, 4, d), layer(Kind::Binary, 2, d));
    let v = some_states(&machine, &[0], 5, 1);
    let too_many = RcmParams { directions: 4, mesh: None };
    assert!(matches!(low_rank_start(&machine, &v, None, &too_many, 1), Err(Error::Value { .. })));
}

/// A run from the low-rank start begins near its likelihood, with weights for every hidden unit.
#[test]
fn training_starts_from_it() {
    use harmonium::train::{Data, Init, TrainParams, Trainer};
    let n = 14;
    let machine = Machine::rbm(Layer::<f64>::new(Kind::Binary, n), Layer::new(Kind::Binary, 12));
    let rows = clusters(Kind::Binary, n, 3, 400);
    let v = machine.data(vec![batch(machine.layer(0), &rows)]).unwrap();
    let data = Data::new(v.clone());
    let likelihood = |init| {
        let params =
            TrainParams { seed: Some(1), updates: Some(1), init: Some(init), ..Default::default() };
        let plan = params.plan(&machine, &data).unwrap();
        let trainer = Trainer::new(machine.clone(), plan, &data).unwrap();
        let w = trainer.machine().couplings()[0].w().clone();
        assert!(
            w.columns().into_iter().all(|c| c.iter().any(|w| *w != 0.0)),
            "a hidden unit without weights"
        );
        let exact = trainer.machine().exact();
        let log_p = exact.log_probability(&v).unwrap();
        log_p.iter().sum::<f64>() / log_p.len() as f64
    };
    let (plain, low) =
        (likelihood(Init::Data { std: 0.01 }), likelihood(Init::LowRank { directions: 2, std: 0.01 }));
    assert!(low > plain + 0.5, "low-rank start {low:.3}, marginals {plain:.3}");
}
