//! Failures in a run, and the effect of settings, penalties and observers.

use harmonium::estimate::Estimator;
use harmonium::train::{
    Control, Coordinates, Data, Event, Init, Metrics, Optimiser, Regulariser, Schedule, Snapshots,
    StopReason, TrainParams, Trainer,
};
use harmonium::{Archive, Batch, Bits, Error, Kind, Layer, Machine};

fn stripes(rows: usize, n: usize) -> Bits {
    Bits::from_fn(rows, n, |r, j| (r + j) % 4 < 2)
}

fn rbm(n: usize, m: usize) -> (Machine<f32>, Data<f32>) {
    let machine = Machine::rbm(Layer::new(Kind::Binary, n), Layer::new(Kind::Binary, m));
    let data = Data::new(machine.data(vec![Batch::Bits(stripes(40, n))]).unwrap());
    (machine, data)
}

fn pcd(updates: u64) -> TrainParams {
    TrainParams {
        estimator: Some(Estimator::Pcd { sweeps: Some(1), chains: Some(50) }),
        updates: Some(updates),
        evaluate_every: Some(0),
        ..TrainParams::default()
    }
}

fn run(
    machine: &Machine<f32>,
    data: &Data<f32>,
    params: &TrainParams,
) -> (Machine<f32>, Vec<Event>, String) {
    let plan = params.plan(machine, data).unwrap();
    let mut t = Trainer::new(machine.clone(), plan, data).unwrap();
    let mut events = Vec::new();
    let mut listen = |e: &Event, _: &Trainer<'_, f32>| {
        events.push(e.clone());
        Ok(Control::Continue)
    };
    let outcome = t.run(&mut [&mut listen]).unwrap();
    (t.machine().clone(), events, outcome.reason.to_string())
}

#[test]
fn an_update_that_overflows_is_undone_and_the_rate_lowered() {
    let (machine, data) = rbm(8, 4);
    let params = TrainParams { rate: Some(1e39), ..pcd(400) };
    let (last, events, _) = run(&machine, &data, &params);
    let undone: Vec<_> = events
        .iter()
        .filter_map(|e| match e {
            Event::Undone { rate_factor, .. } => Some(*rate_factor),
            _ => None,
        })
        .collect();
    assert!(undone.len() > 1 && undone.is_sorted_by(|a, b| a > b), "{undone:?}");
    assert!(last.parameters().is_finite());
}

#[test]
fn a_collapse_goes_back_to_the_best_model() {
    let (machine, data) = rbm(8, 4);
    // A rate that grows without bound: the exponential schedule reversed.
    let params = TrainParams {
        rate: Some(0.05),
        schedule: Some(Schedule::Exponential { end: 1e6 }),
        evaluate_every: Some(5),
        ..pcd(400)
    };
    let (last, events, _) = run(&machine, &data, &params);
    let collapsed = |e: &&Event| matches!(e, Event::Undone { why, .. } if why.contains("best model"));
    assert!(events.iter().filter(collapsed).count() > 0);
    let l = last.exact().log_likelihood(data.states(), None).unwrap();
    assert!(l.is_finite());
}

#[test]
fn wrong_settings_are_named() {
    let (machine, data) = rbm(8, 4);
    let bad = |f: &dyn Fn(&mut TrainParams)| {
        let mut params = TrainParams::default();
        f(&mut params);
        params.plan(&machine, &data).unwrap_err().to_string()
    };
    assert!(bad(&|p| p.rate = Some(-1.0)).contains("rate"));
    assert!(bad(&|p| p.batch = Some(0)).contains("batch"));
    assert!(bad(&|p| p.offset_rate = Some(2.0)).contains("offset_rate"));
    assert!(bad(&|p| p.optimiser = Some(Optimiser::Momentum { mu: 1.0 })).contains("optimiser.mu"));
    assert!(bad(&|p| p.regulariser.get_or_insert_default().l1 = f64::NAN).contains("regulariser.l1"));
    assert!(bad(&|p| (p.updates, p.epochs) = (Some(1), Some(1.0))).contains("epochs"));
    let unknown = serde_json::from_str::<TrainParams>(r#"{"learning_rate": 1}"#).unwrap_err();
    assert!(unknown.to_string().contains("learning_rate"));
}

#[test]
fn an_estimator_that_does_not_apply_lists_those_that_do() {
    let (machine, data) = rbm(40, 40);
    let params = TrainParams { estimator: Some(Estimator::Exact), ..TrainParams::default() };
    match params.plan(&machine, &data).unwrap_err() {
        Error::Inapplicable { instead, .. } => {
            assert!(instead.contains(&"pcd".into()) && !instead.contains(&"exact".into()));
        }
        e => panic!("{e}"),
    }
}

#[test]
fn resolved_settings_leave_nothing_open_and_mean_the_same() {
    let (machine, data) = rbm(40, 40);
    let plan = TrainParams::default().plan(&machine, &data).unwrap();
    let json = serde_json::to_string(&plan.params()).unwrap();
    for field in ["seed", "estimator", "batch", "updates", "rate", "schedule", "average", "init"] {
        assert!(json.contains(&format!("\"{field}\"")), "{field} in {json}");
    }
    let again: TrainParams = serde_json::from_str(&json).unwrap();
    assert_eq!(again.plan(&machine, &data).unwrap(), plan);
}

#[test]
fn an_observer_stops_the_run_and_says_why() {
    let (machine, data) = rbm(8, 4);
    let plan = pcd(100).plan(&machine, &data).unwrap();
    let mut t = Trainer::new(machine, plan, &data).unwrap();
    let mut stop = |e: &Event, _: &Trainer<'_, f32>| {
        Ok(match e {
            Event::Updated(u) if u.update == 7 => {
                Control::Stop(StopReason::Requested("seven is enough".into()))
            }
            _ => Control::Continue,
        })
    };
    let outcome = t.run(&mut [&mut stop]).unwrap();
    assert_eq!((outcome.updates, outcome.reason.to_string()), (7, "seven is enough".to_owned()));
}

#[test]
fn held_out_data_stop_a_run_that_overfits() {
    let (machine, data) = rbm(8, 8);
    let few = data.select(&[0, 1]);
    let params = TrainParams {
        estimator: Some(Estimator::Exact),
        rate: Some(0.2),
        schedule: Some(Schedule::Constant),
        evaluate_every: Some(5),
        patience: Some(4),
        updates: Some(5000),
        ..TrainParams::default()
    };
    let plan = params.plan(&machine, &few).unwrap();
    let mut t = Trainer::new(machine, plan, &few).unwrap().with_valid(&data).unwrap();
    let outcome = t.run(&mut []).unwrap();
    assert!(
        outcome.updates < 5000 && matches!(outcome.reason, StopReason::PatienceExhausted { .. }),
        "{}",
        outcome.reason
    );
    let score = |m: Machine<f32>| m.exact().log_likelihood(data.states(), None).unwrap();
    assert!(score(t.result()) > score(t.averaged()));
}

#[test]
fn penalties_do_what_they_say() {
    let (machine, data) = rbm(8, 6);
    let weights = |regulariser: Regulariser| {
        let params = TrainParams {
            estimator: Some(Estimator::Exact),
            rate: Some(0.1),
            init: Some(Init::Data { std: 0.1 }),
            schedule: Some(Schedule::Constant),
            regulariser: Some(regulariser),
            ..pcd(300)
        };
        let m = run(&machine, &data, &params).0;
        let w = m.couplings()[0].w().clone();
        let mean_h = m.exact().moments().unwrap().means[1].mean().unwrap();
        (w, mean_h)
    };
    let size = |w: &ndarray::Array2<f32>| w.iter().map(|w| f64::from(w.abs())).sum::<f64>();
    let none = Regulariser::default();
    let (free, mean_h) = weights(none);
    assert!(size(&weights(Regulariser { l2: 0.05, ..none }).0) < 0.8 * size(&free));
    assert!(size(&weights(Regulariser { l1: 0.02, ..none }).0) < 0.8 * size(&free));
    assert!(size(&weights(Regulariser { l1b: 0.01, ..none }).0) < 0.8 * size(&free));
    let bounded = weights(Regulariser { max_norm: 1.0, ..none }).0;
    let norm = |c: ndarray::ArrayView1<'_, f32>| c.dot(&c).sqrt();
    assert!(bounded.columns().into_iter().all(|c| norm(c) < 1.0001));
    assert!(free.columns().into_iter().any(|c| norm(c) > 1.1));
    let pulled = weights(Regulariser { target: Some(0.1), target_strength: 1.0, ..none }).1;
    assert!((pulled - 0.1).abs() < 0.5 * (mean_h - 0.1).abs(), "{mean_h} → {pulled}");
}

/// One update of plain SGD with and without penalties differs by the rate times their derivative, in small machines (moments
/// by rows) and large ones (strip by strip).
#[test]
fn penalties_have_their_derivatives() {
    for (n, m, estimator) in
        [(8, 6, Estimator::Exact), (72, 70, Estimator::Pcd { sweeps: Some(1), chains: Some(40) })]
    {
        let (mut machine, data) = rbm(n, m);
        let weight = |(i, j): (usize, usize)| {
            if (i + j) % 5 == 0 { 0.0 } else { (i * j % 7) as f32 * 0.05 - 0.15 }
        };
        machine.coupling_mut(0).w_mut().indexed_iter_mut().for_each(|(at, w)| *w = weight(at));
        let after = |regulariser: Regulariser| {
            let params = TrainParams {
                estimator: Some(estimator.clone()),
                optimiser: Some(Optimiser::Sgd),
                form: Some(Coordinates::Plain),
                rate: Some(0.5),
                init: Some(Init::Keep),
                schedule: Some(Schedule::Constant),
                average: Some(0),
                regulariser: Some(regulariser),
                ..pcd(1)
            };
            run(&machine, &data, &params).0.couplings()[0].w().clone()
        };
        let none = Regulariser::default();
        let free = after(none);
        let old = machine.couplings()[0].w();
        let sum = |j: usize| old.column(j).iter().map(|w| w.abs()).sum::<f32>();
        for (l1, l2, l1b) in [(0.03, 0.0, 0.0), (0.0, 0.2, 0.0), (0.0, 0.0, 0.02), (0.03, 0.2, 0.02)] {
            let penalised = after(Regulariser { l1, l2, l1b, ..none });
            for ((i, j), w) in penalised.indexed_iter() {
                let x = old[[i, j]];
                let sign = if x == 0.0 { 0.0 } else { x.signum() };
                let want =
                    free[[i, j]] - 0.5 * (l1 as f32 * sign + l2 as f32 * x + l1b as f32 * sum(j) * sign);
                assert!((w - want).abs() < 1e-6, "{l1}, {l2}, {l1b} at ({i},{j}): {w}, not {want}");
            }
        }
    }
}

#[test]
fn metrics_and_trajectory_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let (machine, data) = rbm(8, 4);
    let params = TrainParams { evaluate_every: Some(10), ..pcd(40) };
    let plan = params.plan(&machine, &data).unwrap();
    let mut t = Trainer::new(machine, plan, &data).unwrap();
    let path = folder.path().join("metrics.jsonl");
    let mut metrics = Metrics::new(&path, 0, 5).unwrap();
    let mut trajectory = Snapshots::new(folder.path(), 2.0);
    t.run(&mut [&mut metrics, &mut trajectory]).unwrap();
    let lines: Vec<serde_json::Value> = std::fs::read_to_string(&path)
        .unwrap()
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let count = |e: &str| lines.iter().filter(|l| l["event"] == e).count();
    assert_eq!((count("started"), count("updated"), count("evaluated"), count("stopped")), (1, 8, 5, 1));
    let last = lines.iter().rfind(|l| l["event"] == "evaluated").unwrap();
    assert!(last["train_log_likelihood"].as_f64().unwrap() < 0.0);
    assert!(last["train_pseudo_likelihood"].as_f64().unwrap() < 0.0);
    for update in [1, 2, 4, 8, 16, 32] {
        let file = folder.path().join(format!("update-{update:08}.safetensors"));
        assert_eq!(Archive::load(file).unwrap().u64s("update").unwrap(), [update]);
    }
    assert!(!folder.path().join("update-00000003.safetensors").exists());
}

#[test]
fn the_pseudo_likelihood_of_independent_units_is_their_likelihood() {
    let (machine, data) = rbm(8, 4);
    let params = TrainParams { init: Some(Init::Data { std: 0.0 }), ..pcd(1) };
    let plan = params.plan(&machine, &data).unwrap();
    let t = Trainer::new(machine, plan, &data).unwrap();
    let e = t.evaluate().unwrap();
    let get = |name: &str| e.metrics.iter().find(|m| m.0 == name).unwrap().1;
    // Every column has mean one half: each unit contributes ln 2 whatever its state.
    let expected = -8.0 * std::f64::consts::LN_2;
    assert!((get("train_pseudo_likelihood") - expected).abs() < 1e-6);
    assert!((get("train_log_likelihood") - expected).abs() < 1e-6);
}
