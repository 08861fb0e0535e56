//! ln Z from both sides against enumeration.

use crate::common::{Dice, fill_weights, integrable, layer};
use harmonium::partition::{self, Base, Schedule, ais, raise, reverse_ais, silent};
use harmonium::{Chains, Clamps, Kind, Layer, Machine, States};

const SEED: u64 = 20_261_115;

fn rbm(v: Kind, h: Kind, seed: u64) -> Machine<f64> {
    let mut dice = Dice(seed);
    let mut machine = Machine::rbm(layer(v, 4, &mut dice), layer(h, 3, &mut dice));
    fill_weights(&mut machine, &mut dice);
    let grows = |kind: Kind| kind.is_count() && kind.states().is_none_or(|n| n > 4);
    if grows(v) || grows(h) {
        // Z grows as the exponential of an exponential of these weights.
        machine.coupling_mut(0).w_mut().mapv_inplace(|w| 0.4 * w);
    }
    machine
}

/// Samples of a machine that mixes fast.
fn samples(machine: &Machine<f64>, rows: usize) -> States<f64> {
    let mut chains = Chains::independent(machine, rows, SEED, 50).unwrap();
    chains.sweep(&machine.at(1.0), &Clamps::none(machine), 50).unwrap();
    chains.states().clone()
}

/// Forward and reverse runs agree with enumeration within five standard errors (a false alarm in 10⁶ runs).
fn both_sides(machine: &Machine<f64>, what: &str) {
    let exact = machine.exact().log_z().unwrap();
    let (base, schedule) = (Base::own(machine), Schedule::uniform(100));
    let up = ais(machine, &base, &schedule, 128, SEED, &mut silent).unwrap();
    let down =
        reverse_ais(machine, &base, &schedule, &samples(machine, 128), SEED, &mut silent).unwrap();
    for z in [&up, &down] {
        assert!((z.value - exact).abs() < 5.0 * z.std_err + 1e-9, "{what}: {z:?} against {exact}");
        assert!(z.std_err < 0.2 && z.ess > 20.0, "{what}: {z:?}");
    }
}

#[test]
fn rbms_of_all_pairs() {
    for v in Kind::ALL {
        for h in Kind::ALL.into_iter().filter(|&h| integrable(v, h)) {
            both_sides(&rbm(v, h, 5), &format!("{v}-{h}"));
        }
    }
}

#[test]
fn machines_of_all_shapes() {
    let mut dice = Dice(8);
    let mut l = |kind, n| layer(kind, n, &mut dice);
    let (b, s) = (Kind::Binary, Kind::Spin);
    let machines = [
        ("deep 6-5-4", Machine::deep(l(b, 6), vec![l(b, 5), l(b, 4)])),
        ("deep of four", Machine::deep(l(s, 3), vec![l(b, 3), l(Kind::Potts { q: 3 }, 2), l(s, 2)])),
        ("unrestricted", Machine::unrestricted(l(b, 4), l(s, 3))),
        ("semi-restricted", Machine::semi_restricted(l(Kind::Potts { q: 3 }, 3), l(b, 3))),
        ("fully visible", Machine::fully_visible(l(s, 6))),
        ("class", Machine::class_rbm(l(b, 4), 3, l(b, 3))),
        (
            "mixed",
            Machine::mixed(
                vec![("x", l(Kind::Gaussian, 2)), ("n", l(Kind::Binomial { n: 3 }, 2)), ("y", l(s, 2))],
                l(b, 3),
            ),
        ),
    ];
    for (what, mut machine) in machines {
        fill_weights(&mut machine, &mut Dice(9));
        both_sides(&machine, what);
    }
}

/// The rows of a machine's own kind of data: the base of the data is closer than the machine's own.
#[test]
fn base_from_data() {
    let machine = rbm(Kind::Binary, Kind::Binary, 3);
    let exact = machine.exact().log_z().unwrap();
    let base = Base::of_data(&machine, &samples(&machine, 500)).unwrap();
    let z = ais(&machine, &base, &Schedule::uniform(30), 256, SEED, &mut silent).unwrap();
    assert!((z.value - exact).abs() < 5.0 * z.std_err, "{z:?} against {exact}");
    assert_eq!(z.bound, partition::Bound::Lower);
}

/// One chain per row and two per ln Z, repeated, show on which side each bound stands: above and below the
/// exact log-probability within three standard errors for every row, and strictly for the mean of the rows.
#[test]
fn raise_and_ais_bracket_single_rows() {
    let mut machine = rbm(Kind::Binary, Kind::Binary, 12);
    machine.coupling_mut(0).w_mut().mapv_inplace(|w| 3.0 * w);
    let mut data = samples(&machine, 12);
    data.take(1);
    let exact = machine.exact().log_probability(&data).unwrap();
    let base = Base::of_data(&machine, &data).unwrap();
    let f = machine.free_energy(&data).unwrap();
    let schedule = Schedule::uniform(3);
    let (mut low, mut high) = (vec![Vec::new(); 12], vec![Vec::new(); 12]);
    for seed in 0..80 {
        let r = raise(&machine, &base, &schedule, &data, 1, seed, &mut silent).unwrap();
        let z = ais(&machine, &base, &schedule, 2, seed, &mut silent).unwrap();
        for i in 0..12 {
            low[i].push(r[i]);
            high[i].push(-f[i] - z.value);
        }
    }
    let mut gaps = [0.0, 0.0];
    for i in 0..12 {
        let [(low, low_se), (high, high_se)] = [&low[i], &high[i]].map(|x| {
            let mean = x.iter().sum::<f64>() / 80.0;
            (mean, (x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 79.0 / 80.0).sqrt())
        });
        assert!(low < exact[i] + 3.0 * low_se, "{low} ± {low_se} against {}", exact[i]);
        assert!(high > exact[i] - 3.0 * high_se, "{high} ± {high_se} against {}", exact[i]);
        gaps[0] += (exact[i] - low) / 12.0;
        gaps[1] += (high - exact[i]) / 12.0;
    }
    assert!(gaps.iter().all(|g| (0.01..1.0).contains(g)), "{gaps:?}");
}

#[test]
fn an_observer_may_stop() {
    let machine = rbm(Kind::Binary, Kind::Binary, 1);
    let mut calls = 0;
    let mut stop = |p: partition::Progress| {
        calls += 1;
        assert!(p.total == 10 && p.done <= 10);
        if p.done == 4 { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
    };
    let z = ais(&machine, &Base::own(&machine), &Schedule::uniform(10), 4, 1, &mut stop);
    assert!(matches!(z, Err(harmonium::Error::Stopped { .. })));
    assert_eq!(calls, 4);
}

#[test]
fn one_thread_or_three() {
    let machine = rbm(Kind::Binary, Kind::Spin, 4);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let base = Base::own(&machine);
        pool.install(|| ais(&machine, &base, &Schedule::uniform(20), 200, 7, &mut silent).unwrap())
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn conditional_machines_need_their_condition() {
    let l = |n| Layer::<f64>::new(Kind::Binary, n);
    let machine = Machine::conditional(l(2), l(2), l(2));
    let z = ais(&machine, &Base::own(&machine), &Schedule::uniform(5), 10, 1, &mut silent);
    assert!(matches!(z, Err(harmonium::Error::Undefined { .. })));
}
