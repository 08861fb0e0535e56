//! Samples are the model's: exact draws against enumeration, two modes of known weights, chains that mix by themselves.

use crate::common::{Dice, fill_weights, layer};
use harmonium::sample::{Sampler, SamplingMethod, purpose};
use harmonium::{Batch, Bits, Chains, Clamp, Clamps, Kind, Layer, Machine, States};
use ndarray::{Array2, array};

const SPINS: usize = 30;
/// A field on the spins, compensated by the hidden unit: independent starts follow it into the upper mode.
const FIELD: f64 = 0.3;
/// The field that remains gives the modes weights of about 52 and 48 %.
const TILT: f64 = 0.0014;

/// $p(v) \propto e^{JM^2/2N + \mathrm{tilt} M}$ of the sum M of N spins, by one Gaussian hidden unit: too many spins to
/// enumerate, and no other finite set of states to enumerate.
fn ferromagnet(j: f64) -> Machine {
    let w = (j / SPINS as f64).sqrt();
    let spins = Layer::with_params(Kind::Spin, Array2::from_elem((1, SPINS), FIELD as f32)).unwrap();
    let theta = (TILT - FIELD) / w;
    let hidden = Layer::with_params(Kind::Gaussian, array![[theta as f32], [1.0]]).unwrap();
    let mut machine = Machine::rbm(spins, hidden);
    machine.coupling_mut(0).w_mut().fill(w as f32);
    machine
}

/// The exact probability of M > 0, half of that of M = 0 included, when `up` and `down` spins are clamped.
fn upper_share(j: f64, up: usize, down: usize) -> f64 {
    let free = SPINS - up - down;
    let (mut above, mut all, mut binomial) = (0.0, 0.0, 1.0f64);
    for k in 0..=free {
        let m = (2 * k) as f64 - free as f64 + up as f64 - down as f64;
        let p = binomial * (0.5 * j * m * m / SPINS as f64 + TILT * m - 0.5 * j * SPINS as f64).exp();
        all += p;
        above += p * if m == 0.0 { 0.5 } else { f64::from(u8::from(m > 0.0)) };
        binomial *= (free - k) as f64 / (k + 1) as f64;
    }
    above / all
}

fn share(states: &States) -> f64 {
    let Batch::Bits(bits) = states.layer(0).unwrap() else { unreachable!("spins are bits") };
    let of = |r: usize| match (0..SPINS).filter(|&j| bits.get(r, j)).count().cmp(&(SPINS / 2)) {
        std::cmp::Ordering::Less => 0.0,
        std::cmp::Ordering::Equal => 0.5,
        std::cmp::Ordering::Greater => 1.0,
    };
    (0..bits.rows()).map(of).sum::<f64>() / bits.rows() as f64
}

fn sampled(
    machine: &Machine,
    clamp: Option<Bits>,
    rows: usize,
    how: SamplingMethod,
    sweeps: usize,
) -> Sampler {
    let mut states = Chains::independent(machine, rows, 1, purpose::USER).unwrap().states().clone();
    let mut clamps = Clamps::none(machine);
    if let Some(bits) = clamp {
        // The first half of what is clamped is up.
        let values = Bits::from_fn(rows, SPINS, |_, j| j % 2 == 0);
        clamps = clamps.with(0, Clamp::Units(bits));
        let mut given = States::empty(machine.len(), rows);
        given.set(0, Batch::Bits(values));
        clamps.put(&given, &mut states);
    }
    let mut s = Sampler::new(machine.clone(), clamps, states, how, 1, sweeps, &mut || true).unwrap();
    s.sweep(sweeps).unwrap();
    s
}

/// Plain chains stay in their first mode, which is the same for nine of ten; by default both modes get their weights,
/// within four standard errors of 1000 independent rows (one wrong seed in 16 000).
#[test]
fn two_modes_have_their_weights() {
    let machine = ferromagnet(2.0);
    let truth = upper_share(2.0, 0, 0);
    assert!((0.5..0.54).contains(&truth), "{truth}");
    let plain = share(sampled(&machine, None, 1000, SamplingMethod::Plain, 500).states());
    assert!(plain > 0.8, "{plain}: this machine was to mislead plain chains");
    let found = sampled(&machine, None, 1000, SamplingMethod::Auto, 500);
    let dependence = found.start_dependence().expect("asked");
    assert!(!dependence.is_negligible() && dependence.units > 5.0, "{dependence:?}");
    assert!(found.replicas().is_some_and(|r| r.round_trips() > 1.0), "{:?}", found.remarks());
    assert!(found.remarks().0.is_some() && found.remarks().1.is_none(), "{:?}", found.remarks());
    let got = share(found.states());
    assert!((got - truth).abs() < 4.0 * (0.25f64 / 1000.0).sqrt(), "{got} against {truth}");
}

/// The same with one spin held up and one held down, which leaves both modes.
#[test]
fn two_modes_under_clamps_have_their_weights() {
    let machine = ferromagnet(2.0);
    let truth = upper_share(2.0, 1, 1);
    let held = Bits::from_fn(800, SPINS, |_, j| j < 2);
    let found = sampled(&machine, Some(held), 800, SamplingMethod::Auto, 500);
    assert!(found.replicas().is_some(), "{:?}", found.start_dependence());
    let got = share(found.states());
    assert!((got - truth).abs() < 4.0 * (0.25f64 / 800.0).sqrt(), "{got} against {truth}");
    let Batch::Bits(bits) = found.states().layer(0).unwrap() else { unreachable!("spins are bits") };
    assert!((0..800).all(|r| bits.get(r, 0) && !bits.get(r, 1)));
}

/// Chains that forget their start stay plain chains, to the bit. Permanent differences between rows with different
/// clamps do not count as dependence on the start.
#[test]
fn chains_that_mix_stay_plain() {
    let machine = ferromagnet(0.5);
    for clamp in [None, Some(Bits::from_fn(200, SPINS, |r, j| j < r % 9))] {
        let found = sampled(&machine, clamp.clone(), 200, SamplingMethod::Auto, 200);
        let dependence = found.start_dependence().expect("asked");
        assert!(dependence.is_negligible() && found.replicas().is_none(), "{dependence:?}");
        assert_eq!(found.remarks(), (None, None));
        let plain = sampled(&machine, clamp, 200, SamplingMethod::Plain, 200);
        assert_eq!(found.states(), plain.states());
    }
}

/// Small machines: the frequencies of all states of 20 000 exact draws, within five standard errors (one wrong seed in
/// some ten thousand for 64 states), for walked and for traced visible layers and for coupled hidden ones.
#[test]
fn small_machines_are_drawn_exactly() {
    let mut dice = Dice(5);
    let mut l = |kind, n| layer(kind, n, &mut dice);
    let machines = [
        ("walked", Machine::rbm(l(Kind::Binary, 3), l(Kind::Spin, 5))),
        ("traced", Machine::rbm(l(Kind::Potts { q: 4 }, 3), l(Kind::Binary, 2))),
        ("deep", Machine::deep(l(Kind::Spin, 4), vec![l(Kind::Binary, 3), l(Kind::Binary, 2)])),
        ("lateral", Machine::fully_visible(l(Kind::Binary, 5))),
    ];
    for (what, mut machine) in machines {
        fill_weights(&mut machine, &mut Dice(6));
        let rows = 20_000;
        let states = Chains::independent(&machine, rows, 1, 8).unwrap().states().clone();
        let clamps = Clamps::none(&machine);
        let draw = |seed| {
            let (m, c, s) = (machine.clone(), clamps.clone(), states.clone());
            let mut sampler =
                Sampler::new(m, c, s, SamplingMethod::Auto, seed, 1, &mut || true).unwrap();
            sampler.sweep(1).unwrap();
            assert!(sampler.is_exact(), "{what}");
            sampler
        };
        let mut sampler = draw(3);
        assert_eq!(sampler.states(), draw(3).states(), "{what}: equal seeds");
        let first = sampler.states().clone();
        check_frequencies(&machine, &first, what);
        sampler.sweep(1).unwrap();
        assert_ne!(sampler.states(), &first, "{what}: new draws");
    }
}

fn check_frequencies(machine: &Machine<f64>, states: &States<f64>, what: &str) {
    let (v, rows) = (machine.layer(0), states.rows() as f64);
    let n = v.kind().states().unwrap();
    let all = (0..n.pow(v.len() as u32)).map(|code| {
        let digit = |j: usize| v.kind().value(code / n.pow(j as u32) % n);
        (0..v.len()).map(digit).collect::<Vec<f64>>()
    });
    let all: Vec<Vec<f64>> = all.collect();
    let table = Array2::from_shape_fn((all.len(), v.len()), |(r, j)| all[r][j]);
    let data = machine.data(vec![v.batch(table.view()).unwrap()]).unwrap();
    let p = machine.exact().log_probability(&data).unwrap();
    let drawn = v.values(states.layer(0).unwrap());
    for (x, p) in all.iter().zip(p) {
        let p = p.exp();
        let count = drawn.rows().into_iter().filter(|row| row.iter().eq(x)).count() as f64;
        let err = (p * (1.0 - p) / rows).sqrt();
        assert!((count / rows - p).abs() < 5.0 * err, "{what}, {x:?}: {} against {p}", count / rows);
    }
}

/// Rows with their own clamps: two patterns, each with its conditional distribution.
#[test]
fn clamped_rows_are_drawn_exactly() {
    let mut dice = Dice(7);
    let mut machine = Machine::rbm(layer(Kind::Binary, 4, &mut dice), layer(Kind::Binary, 3, &mut dice));
    fill_weights(&mut machine, &mut dice);
    let rows = 8000;
    let mut states = Chains::independent(&machine, rows, 1, 8).unwrap().states().clone();
    let held = Bits::from_fn(rows, 4, |r, j| j == r % 2);
    let clamps = Clamps::none(&machine).with(0, Clamp::Units(held));
    let mut given = States::empty(2, rows);
    given.set(0, Batch::Bits(Bits::from_fn(rows, 4, |_, _| true)));
    clamps.put(&given, &mut states);
    let mut s =
        Sampler::new(machine.clone(), clamps, states, SamplingMethod::Auto, 2, 1, &mut || true).unwrap();
    s.sweep(1).unwrap();
    assert!(s.is_exact());
    let Batch::Bits(bits) = s.states().layer(0).unwrap() else { unreachable!("bits") };
    // p(v_2 = 1 | v_k = 1) from the marginals of the known entries.
    for k in 0..2 {
        assert!((k..rows).step_by(2).all(|r| bits.get(r, k)));
        let ones = machine.data(vec![Batch::Bits(Bits::from_fn(1, 4, |_, _| true))]).unwrap();
        let f = |known: &[usize]| {
            let bits = Bits::from_fn(1, 4, |_, j| known.contains(&j));
            machine.exact().free_energy_known(&ones, &[Some(bits), None]).unwrap()[0]
        };
        let p = (f(&[k]) - f(&[k, 2])).exp();
        let n = rows as f64 / 2.0;
        let got = (k..rows).step_by(2).filter(|&r| bits.get(r, 2)).count() as f64 / n;
        assert!((got - p).abs() < 4.0 * (p * (1.0 - p) / n).sqrt(), "{got} against {p}");
    }
}
