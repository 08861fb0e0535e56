//! Custom components of a run against the built-in ones that they imitate: step rule, rate, estimator, penalty,
//! processes.

use harmonium::estimate::{Context, Estimator, Info};
use harmonium::train::{
    Coordinates, Data, Gradient, Hooks, Init, Optimiser, Regulariser, Schedule, Share, StepRule,
    TrainParams, Trainer,
};
use harmonium::{Archive, Batch, Bits, Kind, Layer, Machine, Parameters, Phase, Real, Result};
use std::sync::{Barrier, Mutex};

fn machine<T: Real>(v: usize, h: usize) -> Machine<T> {
    let mut machine = Machine::rbm(Layer::new(Kind::Binary, v), Layer::new(Kind::Binary, h));
    let w = |i: usize, j: usize| 0.1 * ((3 * i + 5 * j) as f64).sin();
    machine.coupling_mut(0).w_mut().indexed_iter_mut().for_each(|((i, j), x)| *x = T::of(w(i, j)));
    machine
}

fn bits(rows: std::ops::Range<usize>, v: usize) -> Bits {
    Bits::from_fn(rows.len(), v, |r, j| {
        (7 * (rows.start + r) + 13 * j).is_multiple_of(2 + (rows.start + r) % 5)
    })
}

fn data<T: Real>(machine: &Machine<T>, rows: std::ops::Range<usize>) -> Data<T> {
    let bits = bits(rows, machine.layer(0).len());
    Data::new(machine.data(vec![Batch::Bits(bits)]).unwrap())
}

fn params(estimator: Estimator, form: Coordinates, optimiser: Optimiser) -> TrainParams {
    TrainParams {
        seed: Some(1),
        estimator: Some(estimator),
        form: Some(form),
        optimiser: Some(optimiser),
        init: Some(Init::Keep),
        schedule: Some(Schedule::Linear),
        updates: Some(30),
        rate: Some(0.05),
        batch: Some(20),
        evaluate_every: Some(0),
        ..TrainParams::default()
    }
}

fn run<'d, T: Real>(
    machine: &Machine<T>,
    data: &'d Data<T>,
    params: &TrainParams,
    hooks: Hooks<'d, T>,
) -> (Machine<T>, Archive) {
    let plan = params.plan(machine, data).unwrap();
    let mut trainer = Trainer::with_hooks(machine.clone(), plan, data, hooks).unwrap();
    trainer.run(&mut []).unwrap();
    (trainer.averaged(), trainer.checkpoint())
}

fn ascend<T: Real>(gradient: &mut Parameters<T>, rate: f64) {
    gradient.scale(T::of(rate));
}

fn momentum<T: Real>() -> Momentum<T> {
    Momentum { m: None }
}

/// Momentum 0.9, written by hand.
struct Momentum<T> {
    m: Option<Parameters<T>>,
}

impl<T: Real> StepRule<T> for Momentum<T> {
    fn step(&mut self, gradient: &mut Parameters<T>, rate: f64) -> Result<()> {
        if let Some(m) = &mut self.m {
            m.scale(T::of(0.9));
            m.add(T::one(), gradient);
            gradient.clone_from(m);
        }
        self.m = Some(gradient.clone());
        gradient.scale(T::of(rate));
        Ok(())
    }

    fn save(&self, archive: &mut Archive) {
        archive.put_parameters("m", self.m.as_ref().unwrap());
    }

    fn load(&mut self, archive: &Archive) -> Result<()> {
        self.m = Some(archive.parameters("m", &machine::<T>(70, 80).parameters())?);
        Ok(())
    }
}

fn rules_agree<T: Real>() {
    // From 4096 weights on, moments stay factored and weights have tables.
    for (v, h) in [(6, 5), (70, 80)] {
        let machine = machine::<T>(v, h);
        let data = data(&machine, 0..50);
        let penalties = Regulariser { l1: 1e-3, l2: 1e-2, ..Regulariser::default() };
        for (form, regulariser) in [
            (Coordinates::Plain, Regulariser::default()),
            (Coordinates::Centred, penalties),
            (Coordinates::Standardised, Regulariser::default()),
        ] {
            let with = |optimiser, hooks| {
                let pcd = Estimator::Pcd { sweeps: Some(1), chains: Some(30) };
                let params =
                    TrainParams { regulariser: Some(regulariser), ..params(pcd, form, optimiser) };
                run(&machine, &data, &params, hooks).0
            };
            let built_in = with(Optimiser::Sgd, Hooks::default());
            assert_ne!(built_in, machine);
            // The optimiser of the plan is replaced, whatever its state.
            for optimiser in [Optimiser::Sgd, Optimiser::ADAM] {
                assert_eq!(with(optimiser, Hooks::default().step_rule(ascend::<T>)), built_in);
            }
            let built_in = with(Optimiser::Momentum { mu: 0.9 }, Hooks::default());
            assert_eq!(with(Optimiser::Sgd, Hooks::default().step_rule(momentum())), built_in);
        }
    }
}

/// To the last bit, averages included, in all coordinates.
#[test]
fn custom_step_rules_match_the_built_in_ones() {
    rules_agree::<f32>();
    rules_agree::<f64>();
}

#[test]
fn a_custom_rate_acts_as_a_schedule() {
    let machine = machine::<f32>(6, 5);
    let data = data(&machine, 0..50);
    let params = params(Estimator::Exact, Coordinates::Centred, Optimiser::Sgd);
    let linear = |update: u64| 0.05 * (1.0 - (update - 1) as f64 / 30.0);
    let built_in = run(&machine, &data, &params, Hooks::default()).0;
    let constant = TrainParams { schedule: Some(Schedule::Constant), rate: Some(7.0), ..params };
    assert_eq!(run(&machine, &data, &constant, Hooks::default().rate(linear)).0, built_in);
    let mut task = machine.clone();
    let refused = task.train(&bits(0..50, 6)).updates(5).rate_with(|_| f64::NAN).run().unwrap_err();
    assert!(refused.to_string().contains("learning rate of update 1"), "{refused}");
    assert_eq!(task, machine);
}

fn enumerate(context: &Context<'_, f64>, out: &mut Phase<f64>) -> Result<Info> {
    *out.parameters_mut() = context.model.machine().exact().moments()?.stats;
    Ok(Info::default())
}

#[test]
fn a_custom_estimator_with_exact_moments_matches_the_exact_one() {
    let machine = machine::<f64>(6, 5);
    let x = bits(0..50, 6);
    let trained = |own: bool| {
        let mut trained = machine.clone();
        let params = params(Estimator::Exact, Coordinates::Centred, Optimiser::ADAM);
        let task = trained.train(&x).params(params);
        let task = if own { task.estimator_with(enumerate) } else { task };
        task.run().unwrap();
        trained
    };
    assert_eq!(trained(true), trained(false));
    assert_ne!(trained(true), machine);
}

#[test]
fn a_gradient_can_be_seen_and_added_to() {
    let machine = machine::<f64>(6, 5);
    let data = data(&machine, 0..50);
    let wts = (0..50).map(|r| f64::from(1 + r % 3)).collect();
    let data = data.with_weights(wts).unwrap();
    let params = params(Estimator::Exact, Coordinates::Plain, Optimiser::Sgd);
    let l2 = |gradient: &mut Gradient<f64>, machine: &Machine<f64>| {
        let mut pull = machine.zero_parameters();
        pull.couplings[0].assign(machine.couplings()[0].w());
        gradient.add(-0.1, &pull);
        Ok(())
    };
    let regulariser = Regulariser { l2: 0.1, ..Regulariser::default() };
    let penalised = TrainParams { regulariser: Some(regulariser), ..params.clone() };
    let (own, _) = run(&machine, &data, &params, Hooks::default().gradient(l2));
    let (built_in, _) = run(&machine, &data, &penalised, Hooks::default());
    let distance = |a: &Machine<f64>, b: &Machine<f64>| {
        let mut gap = a.parameters();
        gap.add(-1.0, &b.parameters());
        gap.norm()
    };
    assert!(distance(&own, &built_in) < 1e-12);
    assert!(distance(&own, &run(&machine, &data, &params, Hooks::default()).0) > 1e-3);
    // All rows at once: the gradient that is seen is that of the likelihood.
    let whole = TrainParams { batch: Some(50), updates: Some(1), ..params };
    let mut seen = None;
    let look = |gradient: &mut Gradient<f64>, _: &Machine<f64>| {
        seen = Some(gradient.dense());
        Ok(())
    };
    run(&machine, &data, &whole, Hooks::default().gradient(look));
    let mut gap = seen.unwrap();
    gap.add(-1.0, &machine.exact().gradient(data.states(), data.wts()).unwrap());
    assert!(gap.norm() < 1e-12, "{}", gap.norm());
}

/// Two processes, here threads, with 20 and 30 of the rows make the updates of one that has all.
#[test]
fn processes_share_the_work_of_a_gradient() {
    let machine = machine::<f64>(6, 5);
    let all = data(&machine, 0..50);
    let wts = |rows: std::ops::Range<usize>| rows.map(|r| [0.5, 1.0, 1.5, 1.25, 0.75][r % 5]).collect();
    let all = all.with_weights(wts(0..50)).unwrap();
    let parts = [0..20, 20..50].map(|rows| {
        let part = data(&machine, rows.clone());
        part.with_weights(wts(rows)).unwrap()
    });
    let params = |rows: usize| {
        let params = params(Estimator::Exact, Coordinates::Plain, Optimiser::ADAM);
        TrainParams { batch: Some(rows), average: Some(0), ..params }
    };
    let alone = run(&machine, &all, &params(50), Hooks::default()).0;
    let (sum, barrier) = (Mutex::new(None::<Share<f64>>), Barrier::new(2));
    let all_reduce = |share: &mut Share<f64>| {
        let mut total = sum.lock().unwrap();
        match &mut *total {
            None => *total = Some(share.clone()),
            Some(total) => {
                total.positive.add(1.0, &share.positive);
                total.negative.add(1.0, &share.negative);
                (total.wt, total.rows) = (total.wt + share.wt, total.rows + share.rows);
            }
        }
        drop(total);
        barrier.wait();
        *share = sum.lock().unwrap().clone().unwrap();
        if barrier.wait().is_leader() {
            *sum.lock().unwrap() = None;
        }
        barrier.wait();
        Ok(())
    };
    let trained = std::thread::scope(|scope| {
        let threads = parts.each_ref().map(|part| {
            let (machine, all_reduce) = (&machine, &all_reduce);
            let params = params(part.rows());
            scope.spawn(move || {
                let reduce = |share: &mut Share<f64>| all_reduce(share);
                run(machine, part, &params, Hooks::default().reduce(reduce)).0
            })
        });
        threads.map(|thread| thread.join().unwrap())
    });
    assert_eq!(trained[0], trained[1]);
    let mut gap = trained[0].parameters();
    gap.add(-1.0, &alone.parameters());
    assert!(gap.norm() < 1e-9, "{}", gap.norm());
}

#[test]
fn a_resumed_run_is_given_its_parts_again() {
    let machine = machine::<f32>(70, 80);
    let data = data(&machine, 0..50);
    let pcd = Estimator::Pcd { sweeps: Some(1), chains: Some(30) };
    let params = params(pcd, Coordinates::Centred, Optimiser::Sgd);
    let hooks = || Hooks::default().step_rule(momentum()).rate(|update| 0.05 / update as f64);
    let (_, whole) = run(&machine, &data, &params, hooks());
    let plan = params.plan(&machine, &data).unwrap();
    let mut part = Trainer::with_hooks(machine.clone(), plan, &data, hooks()).unwrap();
    (0..10).for_each(|_| drop(part.update().unwrap()));
    let saved = Archive::from_bytes(&part.checkpoint().to_bytes().unwrap()).unwrap();
    let mut rest = Trainer::resume_with(machine.clone(), &data, &saved, hooks()).unwrap();
    rest.run(&mut []).unwrap();
    assert_eq!(rest.checkpoint().to_bytes().unwrap(), whole.to_bytes().unwrap());
    let refused = Trainer::resume(machine.clone(), &data, &saved).err().unwrap().to_string();
    assert!(refused.contains("learning rate, step rule"), "{refused}");
    let mut task = machine.clone();
    let refused = task.train(&data).resume(&saved).rate_with(|_| 0.1).run().unwrap_err().to_string();
    assert!(refused.contains("learning rate, step rule"), "{refused}");
}
