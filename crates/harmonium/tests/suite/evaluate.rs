//! Verdicts, likelihoods, verification and sample quality against enumeration and constructed cases.

#[path = "../../examples/support/zoo.rs"]
mod zoo;

use crate::common::{Dice, assert_close, fill_weights, is_unbounded, layer, some_states};
use harmonium::evaluate::{self, Budget, LogZParams, Pca};
use harmonium::partition::{Base, Bound, Method, Schedule, Verdict, ais_given, silent};
use harmonium::{Bits, Chains, Clamps, Kind, Layer, Machine, Role, States};
use ndarray::{Array2, array};

fn sampled(machine: &Machine<f64>, rows: usize, seed: u64) -> States<f64> {
    let mut chains = Chains::independent(machine, rows, seed, 51).unwrap();
    chains.sweep(&machine.at(1.0), &Clamps::none(machine), 60).unwrap();
    let mut states = chains.states().clone();
    for l in machine.with_role(Role::Hidden) {
        states.take(l);
    }
    states
}

fn params(seed: u64) -> LogZParams {
    LogZParams { exact_seconds: -1.0, temperatures: 2000, seed, ..LogZParams::default() }
}

/// The small twin of the example `coverage`: at least 95 % of the converged intervals hold ln Z (at most 2 of 24 may
/// miss: 3 or more happen in 11 % of all seeds at exactly 95 %, and the intervals are wider than that).
#[test]
fn converged_intervals_cover_and_missed_modes_are_detected() {
    let (mut converged, mut missed) = (0, 0);
    for (k, (what, machine)) in zoo::random(24, 77).into_iter().enumerate() {
        let exact = machine.exact().log_z().unwrap();
        let e = evaluate::log_z(&machine, None, &params(k as u64), None, &mut silent).unwrap();
        if e.verdict == Verdict::Converged {
            converged += 1;
            missed += usize::from(!e.interval.contains(exact));
            assert!((e.log_z.value - exact).abs() < 0.5, "{what}: {e:?}");
        }
    }
    assert!(converged >= 18 && missed <= 2, "{converged} converged, {missed} of them miss");
    for (what, machine) in zoo::deceptive(3, 5) {
        let exact = machine.exact().log_z().unwrap();
        let e = evaluate::log_z(&machine, None, &params(1), None, &mut silent).unwrap();
        assert!(!e.interval.contains(exact), "{what} does not deceive");
        assert_eq!(e.verdict, Verdict::NotConverged, "{what}: {e:?}");
    }
}

/// Every side of the estimate on its own, within five of its standard errors, and its reported bound.
#[test]
fn all_methods_agree_with_enumeration() {
    for (what, machine) in zoo::random(6, 5) {
        let exact = machine.exact().log_z().unwrap();
        let e = evaluate::log_z(&machine, None, &params(4), None, &mut silent).unwrap();
        let sides = [
            (e.forward, Bound::Lower, Method::Ais),
            (e.reverse, Bound::Upper, Method::ReverseAis),
            (e.bennett, Bound::Central, Method::Bennett),
            (e.integral, Bound::Central, Method::Integration),
        ];
        for (z, bound, method) in sides {
            let z = z.unwrap();
            assert_eq!((z.bound, z.method), (bound, method));
            assert!((z.value - exact).abs() < 5.0 * z.std_err + 1e-3, "{what}: {z:?} against {exact}");
            assert!(z.ess > 1.0 && z.cost.sweeps > 0.0 && z.cost.chains > 1);
        }
    }
}

/// Where the schedule may not grow, more chains reduce the error.
#[test]
fn chains_are_added_until_the_error_is_small() {
    let mut dice = Dice(52);
    let mut machine = Machine::rbm(layer(Kind::Binary, 8, &mut dice), layer(Kind::Binary, 6, &mut dice));
    machine.coupling_mut(0).w_mut().mapv_inplace(|_| dice.between(-1.5, 1.5));
    let few = LogZParams { temperatures: 64, chains: 32, std_err: 0.02, ..params(1) };
    let e = evaluate::log_z(&machine, None, &few, None, &mut silent).unwrap();
    let z = e.forward.unwrap();
    assert!(z.cost.chains > 32 && z.cost.temperatures <= 64, "{z:?}");
    assert!((z.value - machine.exact().log_z().unwrap()).abs() < 5.0 * z.std_err, "{z:?}");
}

#[test]
fn deep_6_5_4() {
    let mut dice = Dice(3);
    let mut l = |n| layer(Kind::Binary, n, &mut dice);
    let mut machine = Machine::deep(l(6), vec![l(5), l(4)]);
    fill_weights(&mut machine, &mut dice);
    let exact = machine.exact().log_z().unwrap();
    let e = evaluate::log_z(&machine, None, &params(2), None, &mut silent).unwrap();
    assert_eq!(e.verdict, Verdict::Converged, "{e:?}");
    assert!(e.interval.contains(exact) && e.interval.width() < 0.5, "{e:?} against {exact}");
    let automatic = evaluate::log_z(&machine, None, &LogZParams::default(), None, &mut silent).unwrap();
    assert_eq!(automatic.verdict, Verdict::Exact);
    assert_close(automatic.log_z.value, exact, 1e-12, "enumeration");
    // The hidden layers are coupled: their sum by AIS against enumeration, row by row.
    let data = sampled(&machine, 20, 4);
    let f = machine.exact().free_energy(&data).unwrap();
    let sums = ais_given(
        &machine,
        &Base::own(&machine),
        &Schedule::uniform(60),
        &data,
        &[],
        40,
        1,
        &mut silent,
    )
    .unwrap();
    for ((value, err), f) in sums.iter().zip(f) {
        assert!((value + f).abs() < 5.0 * err + 1e-6, "{value} ± {err} against {}", -f);
    }
}

#[test]
fn likelihood_of_data() {
    let mut dice = Dice(31);
    let mut machine = Machine::rbm(layer(Kind::Binary, 6, &mut dice), layer(Kind::Spin, 4, &mut dice));
    fill_weights(&mut machine, &mut dice);
    let data = sampled(&machine, 400, 8);
    let exact = machine.exact().log_probability(&data).unwrap();
    let (z, l) = evaluate::evaluate(&machine, None, &data, &params(3), None, &mut silent).unwrap();
    assert_eq!((z.verdict, l.verdict), (Verdict::Converged, Verdict::Converged));
    let shift = l.rows[0] - exact[0];
    assert!(shift.abs() < z.interval.width());
    for (a, b) in l.rows.iter().zip(&exact) {
        assert_close(a - b, shift, 1e-9, "one ln Z for all rows");
    }
    // The expected log-likelihood of the machine's own samples is minus its entropy.
    let many = machine.exact().log_likelihood(&sampled(&machine, 40_000, 9), None).unwrap();
    assert!(l.interval.contains(many), "{:?} against {many}", l.interval);
    let (gap, err) = evaluate::free_energy_gap(&machine, &data, &sampled(&machine, 400, 10)).unwrap();
    assert!(gap.abs() < 4.0 * err && err > 0.0);
}

/// A conditional machine with generic parameters and rows of it under some of the 8 conditions, each several times.
fn conditional(rows: usize) -> (Machine<f64>, States<f64>) {
    let mut dice = Dice(6);
    let mut l = |kind, n| layer(kind, n, &mut dice);
    let mut machine =
        Machine::conditional(l(Kind::Binary, 3), l(Kind::Potts { q: 3 }, 4), l(Kind::Spin, 3));
    fill_weights(&mut machine, &mut Dice(7));
    let data = some_states(&machine, &[0, 1], rows, 3);
    (machine, data)
}

/// ln p(v|u) of every row is the one of enumeration, also with missing entries and through the annealing of each condition
/// from both sides or, of many conditions, from one.
#[test]
fn conditional_likelihood_is_that_of_enumeration() {
    let (machine, data) = conditional(40);
    let exact = machine.exact().log_probability(&data).unwrap();
    let usual = LogZParams::default();
    let of = |data: &States<f64>, known: &[_], params: &LogZParams| {
        evaluate::conditional_log_likelihood(&machine, data, known, None, params, None, &mut silent)
            .unwrap()
    };
    let got = of(&data, &[], &usual);
    assert_eq!(got.verdict, Verdict::Exact);
    for (r, (x, i)) in got.rows.iter().zip(&got.intervals).enumerate() {
        assert_close(*x, exact[r], 1e-10, "ln p(v|u)");
        assert_eq!((i.lower, i.upper), (*x, *x));
    }
    let known: Vec<_> = [None, Some(Bits::from_fn(40, 4, |r, j| (r + j) % 3 > 0)), None].into();
    let with_gaps = machine.exact().log_probability_known(&data, &known).unwrap();
    for (x, want) in of(&data, &known, &usual).rows.iter().zip(with_gaps) {
        assert_close(*x, want, 1e-10, "ln p(v_K|u)");
    }

    let sampled = of(&data, &[], &params(3));
    assert_eq!(sampled.verdict, Verdict::Converged, "{:?}", sampled.reasons);
    // 8 conditions, each with an interval of at least 95 %: two or more misses have a probability of 6 %.
    let mut missed: Vec<_> = (0..40).filter(|&r| !sampled.intervals[r].contains(exact[r])).collect();
    missed.dedup_by_key(|r| (sampled.rows[*r] - exact[*r]).to_bits());
    assert!(missed.len() < 2, "{missed:?}");
    assert!(sampled.intervals.iter().all(|i| (0.0..1.0).contains(&i.width()) && i.width() > 0.0));

    let z = evaluate::log_z(&machine, None, &params(1), None, &mut silent);
    assert!(matches!(z, Err(harmonium::Error::Undefined { .. })));
    let no_condition = [Some(Bits::from_fn(40, 3, |r, _| r > 0)), None, None];
    let refused = evaluate::conditional_log_likelihood(
        &machine,
        &data,
        &no_condition,
        None,
        &usual,
        None,
        &mut silent,
    );
    assert!(refused.unwrap_err().to_string().contains("condition has missing entries"));
}

/// More conditions than are annealed from both sides: real ones, all different. The intervals of rows hold at least 36 of
/// 40 (with 38 expected, fewer have a probability of 4 %).
#[test]
fn many_conditions_are_annealed_from_one_side() {
    let mut dice = Dice(16);
    let mut l = |kind, n| layer(kind, n, &mut dice);
    let mut machine = Machine::conditional(l(Kind::Gaussian, 2), l(Kind::Binary, 5), l(Kind::Binary, 4));
    fill_weights(&mut machine, &mut Dice(17));
    let data = some_states(&machine, &[0, 1], 40, 3);
    let exact = machine.exact().log_probability(&data).unwrap();
    let got =
        evaluate::conditional_log_likelihood(&machine, &data, &[], None, &params(2), None, &mut silent);
    let got = got.unwrap();
    assert_eq!(got.verdict, Verdict::NotConverged);
    let held = got.intervals.iter().zip(&exact).filter(|(i, x)| i.contains(**x)).count();
    assert!((36..=40).contains(&held), "{held}");
    let widest = got.intervals.iter().map(harmonium::partition::Interval::width).fold(0.0, f64::max);
    assert!(widest < 0.5, "{widest}");
}

/// Finite units: all changes of one unit of a row, enumerated. One unit alone: its pseudo-likelihood is its likelihood.
#[test]
fn pseudo_likelihood_is_exact() {
    for kind in Kind::ALL.into_iter().filter(|&kind| !is_unbounded(kind)) {
        let mut dice = Dice(14);
        let mut machine =
            Machine::semi_restricted(layer(kind, 3, &mut dice), layer(Kind::Binary, 2, &mut dice));
        fill_weights(&mut machine, &mut dice);
        let data = sampled(&machine, 4, 2);
        let got = evaluate::pseudo_log_likelihood(&machine, &data).unwrap();
        let values = machine.layer(0).values(data.layer(0).unwrap());
        for r in 0..4 {
            let mut expected = 0.0;
            for i in 0..3 {
                let states = kind.states().unwrap();
                let mut rows = Array2::zeros((states as usize, 3));
                for a in 0..states {
                    rows.row_mut(a as usize).assign(&values.row(r));
                    rows[[a as usize, i]] = kind.value(a);
                }
                let batch = machine.data(vec![machine.layer(0).batch(rows.view()).unwrap()]).unwrap();
                let p: Vec<f64> =
                    machine.exact().log_probability(&batch).unwrap().into_iter().map(f64::exp).collect();
                let own = (0..states).find(|&a| kind.value(a) == values[[r, i]]).unwrap() as usize;
                expected += (p[own] / p.iter().sum::<f64>()).ln();
            }
            assert_close(got[r], expected, 1e-9, &kind.to_string());
        }
    }
    for kind in Kind::ALL.into_iter().filter(|&kind| is_unbounded(kind)) {
        let mut dice = Dice(15);
        let mut machine = Machine::rbm(layer(kind, 1, &mut dice), layer(Kind::Binary, 3, &mut dice));
        fill_weights(&mut machine, &mut dice);
        let data = sampled(&machine, 6, 2);
        let exact = machine.exact().log_probability(&data).unwrap();
        for (got, e) in evaluate::pseudo_log_likelihood(&machine, &data).unwrap().into_iter().zip(exact)
        {
            assert_close(got, e, 1e-7, &kind.to_string());
        }
    }
}

#[test]
fn verify_passes_the_sampler_and_fails_a_stuck_one() {
    let mut dice = Dice(21);
    let mut machine =
        Machine::rbm(layer(Kind::Binary, 5, &mut dice), layer(Kind::Gaussian, 3, &mut dice));
    fill_weights(&mut machine, &mut dice);
    let good = evaluate::verify(&machine, 2000, 40, 1, &mut silent).unwrap();
    assert!(good.p_value > 1e-3 && !good.partial, "{:?}", good.p_value);
    assert_eq!(good.checks.len(), 5 + 3 + 15);
    // No sweeps: independent units are not this machine.
    let bad = evaluate::verify(&machine, 2000, 0, 1, &mut silent).unwrap();
    assert!(bad.p_value < 1e-6, "{:?}", bad.p_value);
    // Too large: only a part of it is compared.
    let mut big = Machine::rbm(layer(Kind::Spin, 60, &mut dice), layer(Kind::Binary, 50, &mut dice));
    big.coupling_mut(0).w_mut().mapv_inplace(|_| dice.between(-0.2, 0.2));
    let part = evaluate::verify(&big, 500, 40, 1, &mut silent).unwrap();
    assert!(part.partial && part.p_value > 1e-3 && part.units[0] < 60, "{:?}", part.units);
}

#[test]
fn two_far_modes_are_out_of_equilibrium() {
    // Eight visible spins that all agree, all up or all down: Gibbs sampling never leaves its mode.
    let stuck = |w: f64| {
        let mut machine = Machine::rbm(Layer::<f64>::new(Kind::Spin, 8), Layer::new(Kind::Spin, 4));
        machine.coupling_mut(0).w_mut().fill(w);
        machine.layer_mut(0).params_mut().fill(0.05);
        machine
    };
    let up = |machine: &Machine<f64>| {
        machine.data(vec![machine.layer(0).batch(Array2::<f64>::ones((10, 8)).view()).unwrap()]).unwrap()
    };
    let bad = stuck(1.5);
    let e = evaluate::equilibrium(&bad, &up(&bad), 20, 200, 1, &mut silent).unwrap();
    assert_eq!(e.verdict, Verdict::NotConverged, "{e:?}");
    let good = stuck(0.1);
    let e = evaluate::equilibrium(&good, &up(&good), 20, 400, 1, &mut silent).unwrap();
    assert_eq!(e.verdict, Verdict::Converged, "{e:?}");
}

#[test]
fn quality_of_samples() {
    let mut dice = Dice(41);
    let mut machine =
        Machine::rbm(layer(Kind::Binary, 12, &mut dice), layer(Kind::Binary, 4, &mut dice));
    fill_weights(&mut machine, &mut dice);
    let (data, same) = (sampled(&machine, 600, 1), sampled(&machine, 600, 2));
    let a = evaluate::adversarial(&machine, &data, &same).unwrap();
    // Two samples of one distribution: ½ within four binomial standard errors of 1200 rows.
    assert!((a.accuracy() - 0.5).abs() < 4.0 * 0.5 / 1200f64.sqrt(), "{a:?}");
    let copies = evaluate::adversarial(&machine, &data, &data).unwrap();
    assert!(copies.accuracy() < 0.45, "{copies:?}");
    let other = Machine::rbm(Layer::<f64>::new(Kind::Binary, 12), Layer::new(Kind::Binary, 4));
    let unlike = evaluate::adversarial(&machine, &data, &sampled(&other, 600, 3)).unwrap();
    assert!(unlike.accuracy() > 0.55, "{unlike:?}");
    let m = evaluate::moments(&machine, &data, &same, 100).unwrap();
    assert!(
        m[0].correlation > 0.95 && m[1].correlation > 0.9 && m[0].number == 12 && m[1].number == 78,
        "{m:?}"
    );
    assert_eq!(m[2].number, 100);
    let own = evaluate::moments(&machine, &data, &data, 1000).unwrap();
    assert!(own.iter().all(|m| m.rms < 1e-12 && (m.slope - 1.0).abs() < 1e-9) && own[2].number == 220);
    let d = evaluate::duplicates(&machine, &data, &data).unwrap();
    assert!(d.of_training == 1.0 && d.of_samples == d.within_training);
}

#[test]
fn principal_components() {
    // Two Gaussian columns with variances 4 and 1 along (3, 4)/5 and (−4, 3)/5.
    let machine = Machine::rbm(Layer::<f64>::new(Kind::Gaussian, 2), Layer::new(Kind::Binary, 1));
    let axes = array![[0.6, 0.8], [-0.8, 0.6]];
    let scores = array![[2.0, 1.0], [-2.0, 1.0], [2.0, -1.0], [-2.0, -1.0]];
    let rows = scores.dot(&axes) + 3.0;
    let data = machine.data(vec![machine.layer(0).batch(rows.view()).unwrap()]).unwrap();
    let pca = Pca::new(&machine, &data, 2).unwrap();
    for (got, e) in pca.variances.iter().zip([4.0, 1.0]) {
        assert_close(*got, e, 1e-9, "variance");
    }
    let at = pca.project(&machine, &data).unwrap();
    for (got, e) in at.column(0).iter().zip(scores.column(0)) {
        assert_close(*got, *e, 1e-6, "score");
    }
    assert!(Pca::new(&machine, &data, 3).is_err());
}

#[test]
fn a_time_budget_shortens_and_says_so() {
    let mut dice = Dice(51);
    let mut machine =
        Machine::rbm(layer(Kind::Binary, 14, &mut dice), layer(Kind::Binary, 14, &mut dice));
    machine.coupling_mut(0).w_mut().mapv_inplace(|_| dice.between(-2.5, 2.5));
    let ticks = std::cell::Cell::new(0.0);
    // A clock that runs a second each time it is read: the budget is used up after a few readings.
    let clock = || {
        ticks.set(ticks.get() + 1.0);
        ticks.get()
    };
    let budget = Budget { seconds: 3.0, clock: &clock };
    let want = LogZParams { std_err: 0.02, ..params(1) };
    let e = evaluate::log_z(&machine, None, &want, Some(budget), &mut silent).unwrap();
    assert!(e.reasons.iter().any(|r| r.contains("budget")), "{:?}", e.reasons);
    let free = evaluate::log_z(&machine, None, &want, None, &mut silent).unwrap();
    assert!(free.log_z.cost.sweeps > e.log_z.cost.sweeps);
    assert_eq!(free, evaluate::log_z(&machine, None, &want, None, &mut silent).unwrap());
    let (cost, seconds) = evaluate::log_z_cost(&machine, &want).unwrap();
    assert!(cost.sweeps >= free.log_z.cost.sweeps && seconds > 0.0);
}
