//! Exchanges between ensembles: replicas at several β, checkpoints of a trajectory, coupled pairs.
//!
//! Ensembles that start from their exact distributions must stay there: total variation below twice the
//! Monte-Carlo floor (a correct sampler has 0.6–1.3, its 99.9 % quantile is 1.5).

use crate::common::sampling::{self, floors, samples};
use crate::common::*;
use harmonium::sample::{Order, Tempering, Trajectory, coupled_sweep};
use harmonium::{Archive, Key, Kind, Machine};

const ROWS: usize = 20_000;

fn generic(mut machine: Machine<f64>, seed: u64, scale: f64) -> Machine<f64> {
    fill_weights(&mut machine, &mut Dice(seed));
    for c in 0..machine.couplings().len() {
        machine.coupling_mut(c).w_mut().mapv_inplace(|w| scale * w);
    }
    machine
}

/// Machines whose swaps use the marginal (hidden units traced out) and the joint density.
fn machines() -> Vec<(Machine<f64>, &'static str)> {
    let d = &mut Dice(21);
    let binary = |n, d: &mut Dice| layer(Kind::Binary, n, d);
    vec![
        (generic(Machine::rbm(binary(5, d), layer(Kind::Spin, 3, d)), 1, 2.0), "RBM"),
        (generic(Machine::rbm(layer(Kind::Binomial { n: 2 }, 3, d), binary(2, d)), 2, 1.5), "binomial"),
        (generic(Machine::deep(binary(4, d), vec![binary(2, d), binary(2, d)]), 3, 2.0), "deep"),
        (generic(Machine::unrestricted(layer(Kind::Spin, 4, d), binary(2, d)), 4, 1.5), "unrestricted"),
    ]
}

#[test]
fn replicas_stay_in_their_distributions() {
    for (machine, what) in machines() {
        let betas = [1.0, 0.6, 0.3, 0.0];
        let mut replicas = Tempering::new(&machine, &betas, ROWS, 5).unwrap();
        let tables: Vec<_> = betas.iter().map(|&b| twin(&machine, b).probabilities()).collect();
        for (k, table) in tables.iter().enumerate() {
            *replicas.replica_mut(k).states_mut() = samples(&machine, table, ROWS, &mut Dice(k as u64));
        }
        for _ in 0..4 {
            replicas.sweep(&machine, 1).unwrap();
            replicas.exchange(&machine).unwrap();
        }
        for (k, table) in tables.iter().enumerate() {
            let d = floors(&machine, table, replicas.replica(k).states(), &[0]);
            assert!(d < 2.0, "{what} at β = {}: {d:.2} floors", betas[k]);
        }
        assert!(replicas.acceptance().iter().all(|a| *a > 0.05 && *a < 1.0), "{what}");
        assert!(
            replicas.round_trips() == 0,
            "{what}: four exchanges are too few for a round trip of six"
        );
    }
}

/// With three rungs, every configuration that goes up and down again is a round trip of four exchanges.
#[test]
fn round_trips_are_counted() {
    let d = &mut Dice(3);
    let machine = Machine::rbm(layer(Kind::Binary, 3, d), layer(Kind::Binary, 2, d));
    // Without weights and with fields that matter little, almost all swaps are accepted.
    let mut replicas = Tempering::new(&machine, &[1.0, 0.99, 0.98], 50, 1).unwrap();
    for _ in 0..4 {
        replicas.sweep(&machine, 1).unwrap();
        replicas.exchange(&machine).unwrap();
    }
    // Alternating pairs move a configuration one rung at each exchange: up at 0 and 1, turned back at 2 (at
    // the top the odd pair is idle), down at 3 and 4.
    assert_eq!(replicas.round_trips(), 0);
    replicas.exchange(&machine).unwrap();
    let trips = replicas.round_trips();
    assert!((40..=100).contains(&trips), "{trips} round trips of 50 chains");
}

#[test]
fn adaptation_evens_the_acceptance() {
    let d = &mut Dice(8);
    let machine = generic(Machine::rbm(layer(Kind::Spin, 8, d), layer(Kind::Spin, 6, d)), 5, 1.0);
    let spread = |adapt: bool| {
        let betas = [1.0, 0.95, 0.9, 0.85, 0.0];
        let mut replicas = Tempering::new(&machine, &betas, 500, 2).unwrap();
        for k in 0..400 {
            replicas.sweep(&machine, 1).unwrap();
            replicas.exchange(&machine).unwrap();
            if adapt && k < 300 && k % 20 == 19 {
                replicas.adapt();
            }
        }
        let a = replicas.acceptance();
        let (low, high) = a.iter().fold((1.0_f64, 0.0_f64), |(l, h), &a| (l.min(a), h.max(a)));
        assert!(replicas.betas().windows(2).all(|b| b[0] > b[1]));
        assert_eq!((replicas.betas()[0], replicas.betas()[4]), (1.0, 0.0));
        (high - low, replicas.round_trips())
    };
    let (uneven, few) = spread(false);
    let (even, many) = spread(true);
    assert!(uneven > 0.4, "{uneven}");
    assert!(even < 0.1, "{even}");
    assert!(many > few, "{many} round trips against {few}");
}

#[test]
fn ladders_are_checked() {
    let d = &mut Dice(3);
    let binary = Machine::rbm(layer(Kind::Binary, 3, d), layer(Kind::Binary, 2, d));
    let real = Machine::rbm(layer(Kind::Gaussian, 3, d), layer(Kind::Binary, 2, d));
    assert!(Tempering::new(&binary, &[1.0, 0.0], 5, 1).is_ok());
    assert!(Tempering::new(&real, &[1.0, 0.0], 5, 1).is_err(), "no Gaussian at β = 0");
    for bad in [vec![1.0], vec![0.9, 0.1], vec![1.0, 0.5, 0.6], vec![1.0, -0.1]] {
        assert!(Tempering::new(&binary, &bad, 5, 1).is_err(), "{bad:?}");
    }
    let condition = Machine::conditional(
        layer(Kind::Binary, 2, d),
        layer(Kind::Binary, 2, d),
        layer(Kind::Binary, 2, d),
    );
    assert!(Tempering::new(&condition, &[1.0, 0.0], 5, 1).is_err());
    assert!(Trajectory::new(&condition, 5, 1).is_err());
}

/// A ladder of checkpoints, each with chains of its exact distribution: they stay, and ln Z is right.
#[test]
fn trajectories_stay_and_know_ln_z() {
    for (machine, what) in machines() {
        let part = |s: f64| {
            let mut m = machine.clone();
            for c in 0..m.couplings().len() {
                m.coupling_mut(c).w_mut().mapv_inplace(|w| s * w);
            }
            m
        };
        let mut ladder = Trajectory::new(&machine, ROWS, 7).unwrap();
        for (k, s) in [0.4, 0.7, 1.0].into_iter().enumerate() {
            let rung = part(s);
            let table = twin(&rung, 1.0).probabilities();
            let exact = samples(&rung, &table, ROWS, &mut Dice(40 + k as u64));
            ladder.push(rung, exact);
        }
        let run = ladder.equilibrate(1, 2, 8, 8).unwrap();
        for k in 0..ladder.len() {
            let table = twin(ladder.machine(k), 1.0).probabilities();
            let d = floors(&machine, &table, ladder.chains(k).states(), &[0]);
            assert!(d < 2.0, "{what}, rung {k}: {d:.2} floors");
        }
        assert_eq!(run.samples.rows(), 2 * ROWS);
        let (log_z, error) = ladder.log_z();
        let exact = machine.exact().log_z().unwrap();
        // 80 000 samples at each gap; the error estimate ignores their correlation.
        assert!(error > 1e-4 && error < 0.02, "{what}: {error}");
        assert!((log_z - exact).abs() < 6.0 * error, "{what}: {log_z} ± {error} against {exact}");
    }
}

/// From independent units to a strongly coupled machine: rungs are put in between, and ln Z is right.
#[test]
fn bridges_reach_a_distant_machine() {
    let d = &mut Dice(31);
    let machine = generic(Machine::rbm(layer(Kind::Spin, 10, d), layer(Kind::Binary, 8, d)), 6, 1.5);
    let mut ladder = Trajectory::new(&machine, 500, 9).unwrap();
    let added = ladder.bridge(&machine, 0.3, 20).unwrap();
    let last = ladder.chains(ladder.len() - 1).states().clone();
    ladder.push(machine.clone(), last);
    let run = ladder.equilibrate(1, 4, 100, 400).unwrap();
    assert!((1..30).contains(&added), "{added} rungs");
    assert!(run.rounds >= 100 && run.autocorrelation >= 1.0);
    let worst = ladder.acceptance().into_iter().fold(1.0, f64::min);
    assert!(worst > 0.15, "acceptance {worst}");
    let exact = machine.exact().log_z().unwrap();
    assert!((ladder.log_z().0 - exact).abs() < 0.1, "{:?} against {exact}", ladder.log_z());
}

/// Each of two coupled chains on its own follows the Gibbs sampler, for every kind of unit with a table;
/// rows that start equal stay equal, and rows that start apart meet.
#[test]
fn coupled_chains_are_chains() {
    for kind in Kind::ALL.into_iter().filter(|&kind| !is_unbounded(kind)) {
        let d = &mut Dice(50);
        let machine = generic(Machine::rbm(layer(kind, 3, d), layer(Kind::Binary, 2, d)), 7, 0.8);
        let table = twin(&machine, 1.0).probabilities();
        let mut x = samples(&machine, &table, ROWS, &mut Dice(1));
        let mut y = samples(&machine, &table, ROWS, &mut Dice(2));
        let order = Order::new(&machine);
        for t in 0..3 {
            let key = Key { seed: 3, purpose: 4, block: 0, sweep: t };
            coupled_sweep(&machine.at(1.0), &order, &mut x, &mut y, key).unwrap();
        }
        for (states, name) in [(&x, "first"), (&y, "second")] {
            let d = floors(&machine, &table, states, &[0, 1]);
            assert!(d < 2.0, "{kind}, {name}: {d:.2} floors");
        }
        let (a, b) =
            (machine.layer(0).values(x.layer(0).unwrap()), machine.layer(0).values(y.layer(0).unwrap()));
        let met = a.rows().into_iter().zip(b.rows()).filter(|(a, b)| a == b).count();
        assert!(met > ROWS / 2, "{kind}: {met} pairs met");
        let mut same = x.clone();
        let key = Key { seed: 3, purpose: 4, block: 0, sweep: 9 };
        coupled_sweep(&machine.at(1.0), &order, &mut x, &mut same, key).unwrap();
        assert_eq!(x, same, "{kind}");
    }
}

/// Real units: coupled chains keep the moments of their conditional and meet with positive probability.
#[test]
fn coupled_reals_meet() {
    for kind in Kind::ALL.into_iter().filter(|&kind| is_unbounded(kind)) {
        let d = &mut Dice(60);
        let machine = generic(Machine::rbm(layer(kind, 2, d), layer(Kind::Binary, 3, d)), 8, 0.5);
        let (mut x, mut y) =
            (some_states(&machine, &[0, 1], ROWS, 1), some_states(&machine, &[0, 1], ROWS, 2));
        let order = Order::new(&machine);
        for t in 0..12 {
            let key = Key { seed: 5, purpose: 4, block: 0, sweep: t };
            coupled_sweep(&machine.at(1.0), &order, &mut x, &mut y, key).unwrap();
        }
        let values = |s: &harmonium::States<f64>| machine.layer(0).values(s.layer(0).unwrap());
        let (a, b) = (values(&x), values(&y));
        let met = a.rows().into_iter().zip(b.rows()).filter(|(a, b)| a == b).count();
        assert!(met > ROWS * 9 / 10, "{kind}: {met} pairs met");
        let exact = machine.exact().moments().unwrap().means[0].clone();
        for (values, name) in [(&a, "first"), (&b, "second")] {
            for j in 0..2 {
                let column = values.column(j);
                let mean = column.mean().unwrap();
                let error = column.std(1.0) / (ROWS as f64).sqrt();
                let z = (mean - exact[j]) / error;
                assert!(z.abs() < 4.5, "{kind}, {name}: mean {j} is {z:.1} standard errors off");
            }
        }
    }
}

#[test]
fn replicas_and_trajectories_resume() {
    let d = &mut Dice(70);
    let machine = generic(Machine::rbm(layer(Kind::Binary, 5, d), layer(Kind::Gaussian, 3, d)), 9, 0.3);
    let mut replicas = Tempering::new(&machine, &[1.0, 0.5, 0.2], 70, 1).unwrap();
    let mut ladder = Trajectory::new(&machine, 70, 1).unwrap();
    let start = ladder.chains(0).states().clone();
    ladder.push(machine.clone(), start);
    for _ in 0..3 {
        replicas.sweep(&machine, 1).unwrap();
        replicas.exchange(&machine).unwrap();
    }
    ladder.equilibrate(1, 1, 2, 2).unwrap();
    let mut archive = Archive::default();
    replicas.save(&mut archive, "a");
    ladder.save(&mut archive, "b");
    let mut replicas_2 = Tempering::<f64>::load(&archive, "a").unwrap();
    let mut ladder_2 = Trajectory::<f64>::load(&archive, "b", &machine).unwrap();
    for replicas in [&mut replicas, &mut replicas_2] {
        replicas.adapt();
        replicas.sweep(&machine, 2).unwrap();
        replicas.exchange(&machine).unwrap();
    }
    for ladder in [&mut ladder, &mut ladder_2] {
        ladder.equilibrate(1, 1, 3, 3).unwrap();
    }
    assert_eq!(replicas, replicas_2);
    assert_eq!(ladder, ladder_2);
    assert!(Tempering::<f64>::load(&archive, "b").is_err());
}

/// One coupled sweep from two fixed visible states far apart: each chain has the exact transition probabilities
/// $\sum_h p(h\mid v) p(v'\mid h)$, although their values are drawn together.
#[test]
fn coupled_chains_have_the_right_transitions() {
    for kind in [Kind::Spin, Kind::Potts { q: 3 }, Kind::Binomial { n: 2 }] {
        let d = &mut Dice(55);
        let machine =
            generic(Machine::rbm(layer(kind, 3, d), layer(Kind::Potts { q: 3 }, 2, d)), 7, 1.5);
        let joint = twin(&machine, 1.0).probabilities();
        let row = |code: u32| vec![kind.value(code); 3];
        let ends = [row(0), row(kind.states().unwrap() - 1)];
        let states = |v: &[f64]| {
            let batch = sampling::batch(machine.layer(0), &vec![v.to_vec(); ROWS]);
            machine.data(vec![batch]).unwrap()
        };
        let (mut x, mut y) = (states(&ends[0]), states(&ends[1]));
        let key = Key { seed: 3, purpose: 4, block: 0, sweep: 0 };
        coupled_sweep(&machine.at(1.0), &Order::new(&machine), &mut x, &mut y, key).unwrap();
        for (states, end) in [(&x, &ends[0]), (&y, &ends[1])] {
            let from: Vec<_> =
                joint.iter().filter(|(s, _)| sampling::values(kind, &s[0]) == *end).collect();
            let p_v: f64 = from.iter().map(|(_, p)| p).sum();
            let table: sampling::Table = joint
                .iter()
                .map(|(s, p)| {
                    let p_h: f64 = joint.iter().filter(|(t, _)| t[1] == s[1]).map(|(_, p)| p).sum();
                    let here = from.iter().find(|(t, _)| t[1] == s[1]).expect("every h is listed").1;
                    (s.clone(), here / p_v * p / p_h)
                })
                .collect();
            let d = floors(&machine, &table, states, &[0, 1]);
            assert!(d < 2.0, "{kind} from {end:?}: {d:.2} floors");
        }
    }
}
