//! Rows with missing entries: the sums over missing entries against the oracle, whose layers are split by hand.

use crate::common::*;
use harmonium::evaluate;
use harmonium::partition::{Base, Schedule, ais_given, silent};
use harmonium::{Bits, Error, Kind, Layer, Machine, Role, States};
use harmonium_oracle as oracle;

const BETA: f64 = 0.83;
const ROWS: usize = 4;

/// The machine with every visible layer split into its known and its missing units (first and second), and the row's
/// known values as clamps.
fn cut(
    machine: &Machine<f64>,
    beta: f64,
    states: &States<f64>,
    known: &[Option<Bits>],
    r: usize,
) -> (oracle::Machine, oracle::Clamps) {
    let whole = twin(machine, beta);
    let given = |l: usize, column: usize| {
        let unit = column / machine.layer(l).kind().columns();
        machine.role(l) != Role::Hidden && known[l].as_ref().is_none_or(|k| k.get(r, unit))
    };
    // The parts that are not empty: layer, columns, whether they are given.
    let mut parts: Vec<(usize, Vec<usize>, bool)> = Vec::new();
    for l in 0..machine.len() {
        for side in [true, false] {
            let columns: Vec<usize> =
                (0..machine.layer(l).width()).filter(|&c| given(l, c) == side).collect();
            if !columns.is_empty() {
                parts.push((l, columns, side));
            }
        }
    }
    let pick = |row: &Vec<f64>, columns: &[usize]| columns.iter().map(|&c| row[c]).collect::<Vec<_>>();
    let layers = parts.iter().map(|(l, columns, _)| oracle::Layer {
        kind: whole.layers[*l].kind,
        params: whole.layers[*l].params.iter().map(|row| pick(row, columns)).collect(),
    });
    let mut couplings = Vec::new();
    for c in &whole.couplings {
        for (i, (a, rows, _)) in parts.iter().enumerate() {
            for (j, (b, columns, _)) in parts.iter().enumerate().skip(i) {
                if (*a, *b) == (c.a, c.b) {
                    let w = rows.iter().map(|&row| pick(&c.w[row], columns)).collect();
                    couplings.push(oracle::Coupling { a: i, b: j, w });
                }
            }
        }
    }
    let all = clamps(machine, states, r);
    let clamps = parts.iter().map(|(l, columns, side)| {
        side.then(|| pick(all[*l].as_ref().expect("given layers are held"), columns))
    });
    let clamps = clamps.collect();
    (oracle::Machine { layers: layers.collect(), couplings, beta }, clamps)
}

/// Row 0 is whole, row 1 lacks everything, the others lack random entries; row 3 shares the gaps of row 2.
fn gaps(machine: &Machine<f64>, seed: u64) -> Vec<Option<Bits>> {
    let mut dice = Dice(seed);
    let of = |l: usize| {
        let n = machine.layer(l).len();
        let lost: Vec<bool> = (0..n).map(|_| dice.between(0.0, 1.0) < 0.5).collect();
        let known = |r: usize, j: usize| r == 0 || r > 1 && !lost[j];
        (machine.role(l) == Role::Visible).then(|| Bits::from_fn(ROWS, n, known))
    };
    (0..machine.len()).map(of).collect()
}

/// F(v_K) and ln p(v_K) at β ≠ 1 and at 1, by the library and by the oracle.
fn check(machine: &Machine<f64>, what: &str) {
    let visible: Vec<usize> = machine.with_role(Role::Visible).collect();
    let states = some_states(machine, &visible, ROWS, 5);
    let known = gaps(machine, 8);
    let exact = machine.exact();
    let tempered = exact.clone().at(BETA).free_energy_known(&states, &known).unwrap();
    let f = evaluate::free_energies(machine, &states, &known, 1, &mut silent).unwrap();
    assert!(f.errors.iter().all(|&e| e == 0.0) && f.remark.is_none(), "{what}");
    let log_p = exact.log_probability_known(&states, &known).unwrap();
    let log_z = twin(machine, 1.0).log_z();
    for r in 0..ROWS {
        let (twin, clamps) = cut(machine, BETA, &states, &known, r);
        assert_close(tempered[r], twin.free_energy(&clamps), 1e-9, &format!("{what}: F of row {r}"));
        let (twin, clamps) = cut(machine, 1.0, &states, &known, r);
        let want = twin.free_energy(&clamps);
        assert_close(f.rows[r], want, 1e-9, &format!("{what}: F of row {r} at β = 1"));
        assert_close(log_p[r], -want - log_z, 1e-9, &format!("{what}: ln p of row {r}"));
    }
    // Nothing known: the sum over everything is 1.
    assert_close(log_p[1], 0.0, 1e-9, &format!("{what}: ln p of nothing"));
}

#[test]
fn every_kind_with_binary_hidden_units() {
    for kind in Kind::ALL {
        let mut dice = Dice(21);
        let mut machine = Machine::rbm(layer(kind, 3, &mut dice), layer(Kind::Binary, 3, &mut dice));
        fill_weights(&mut machine, &mut dice);
        check(&machine, &format!("{kind}"));
    }
}

/// Missing binary units and hidden units of every kind: there the visible units are walked.
#[test]
fn every_kind_as_hidden_units() {
    for kind in Kind::ALL {
        let mut dice = Dice(22);
        let mut machine = Machine::rbm(layer(Kind::Binary, 3, &mut dice), layer(kind, 2, &mut dice));
        fill_weights(&mut machine, &mut dice);
        check(&machine, &format!("hidden {kind}"));
    }
}

#[test]
fn deep_semi_restricted_and_mixed_machines() {
    let mut dice = Dice(23);
    let mut l = |kind, n| layer(kind, n, &mut dice);
    let classes = Machine::class_rbm(l(Kind::Binary, 3), 3, l(Kind::Spin, 2));
    let kinds = vec![("a", l(Kind::Gaussian, 2)), ("b", l(Kind::Potts { q: 3 }, 2))];
    let machines = [
        ("deep", Machine::deep(l(Kind::Binary, 4), vec![l(Kind::Spin, 3), l(Kind::Binary, 2)])),
        ("semi-restricted", Machine::semi_restricted(l(Kind::Spin, 4), l(Kind::Binary, 2))),
        ("lateral Potts", Machine::semi_restricted(l(Kind::Potts { q: 3 }, 3), l(Kind::Binary, 2))),
        ("fully visible", Machine::fully_visible(l(Kind::Binary, 4))),
        ("classes", classes),
        ("mixed", Machine::mixed(kinds, l(Kind::Binary, 2))),
    ];
    for (what, mut machine) in machines {
        fill_weights(&mut machine, &mut Dice(24));
        check(&machine, what);
    }
}

/// Gaussian units that are coupled to each other or to other unbounded units are integrated in closed form, also where
/// quadrature would be too slow; it agrees with quadrature where that is feasible.
#[test]
fn gaussian_units_in_closed_form() {
    let mut dice = Dice(25);
    let mut l = |kind, n| layer(kind, n, &mut dice);
    for hidden in [Kind::Binary, Kind::Spin, Kind::Potts { q: 3 }, Kind::Gaussian, Kind::Relu] {
        let mut machine = Machine::semi_restricted(l(Kind::Gaussian, 2), l(hidden, 1));
        fill_weights(&mut machine, &mut Dice(26));
        machine.coupling_mut(0).w_mut().mapv_inplace(|w| 0.6 * w);
        check(&machine, &format!("lateral Gaussian, hidden {hidden}"));
    }
    // Ten of twelve missing: ln p of two units alone is that of a two-dimensional normal distribution.
    let mut machine = Machine::fully_visible(Layer::<f64>::new(Kind::Gaussian, 12));
    machine.coupling_mut(0).w_mut().indexed_iter_mut().for_each(|((i, j), w)| {
        *w = if i.abs_diff(j) == 1 { 0.4 } else { 0.0 };
    });
    let states = some_states(&machine, &[0], ROWS, 3);
    let known = vec![Some(Bits::from_fn(ROWS, 12, |_, j| j == 3 || j == 4))];
    let f = machine.exact().within(1.0).free_energy_known(&states, &known).unwrap();
    let none = vec![Some(Bits::zeros(ROWS, 12))];
    let log_z = -machine.exact().within(1.0).free_energy_known(&states, &none).unwrap()[0];
    let precision = ndarray::Array2::from_shape_fn((12, 12), |(i, j)| match i.abs_diff(j) {
        0 => 1.0,
        1 => -0.4,
        _ => 0.0,
    });
    let column = |k: usize| solve(precision.clone(), k);
    let (a, b) = (column(3), column(4));
    let (s33, s34, s44) = (a[3], a[4], b[4]);
    let det = s33 * s44 - s34 * s34;
    let x = machine.layer(0).values(states.layer(0).unwrap());
    for r in 0..ROWS {
        let (p, q) = (x[[r, 3]], x[[r, 4]]);
        let square = (s44 * p * p - 2.0 * s34 * p * q + s33 * q * q) / det;
        let want = -0.5 * square - 0.5 * det.ln() - (2.0 * std::f64::consts::PI).ln();
        assert_close(-f[r] - log_z, want, 1e-9, "a marginal of a normal distribution");
    }
}

/// Column k of the inverse of a, by Gauss's elimination.
fn solve(mut a: ndarray::Array2<f64>, k: usize) -> Vec<f64> {
    let n = a.nrows();
    let mut x: Vec<f64> = (0..n).map(|i| f64::from(u8::from(i == k))).collect();
    for p in 0..n {
        for i in (0..n).filter(|&i| i != p) {
            let by = a[[i, p]] / a[[p, p]];
            for j in 0..n {
                let from = a[[p, j]];
                a[[i, j]] -= by * from;
            }
            x[i] -= by * x[p];
        }
    }
    (0..n).map(|i| x[i] / a[[i, i]]).collect()
}

/// AIS with the known units clamped, within five of its standard errors (one wrong seed in a million or so).
#[test]
fn annealing_given_some_units() {
    let mut dice = Dice(27);
    let mut l = |kind, n| layer(kind, n, &mut dice);
    let machines = [
        ("rbm", Machine::rbm(l(Kind::Binary, 5), l(Kind::Binary, 4))),
        ("potts", Machine::rbm(l(Kind::Potts { q: 3 }, 3), l(Kind::Spin, 3))),
        ("gaussian", Machine::rbm(l(Kind::Gaussian, 3), l(Kind::Binary, 3))),
        ("deep", Machine::deep(l(Kind::Spin, 4), vec![l(Kind::Binary, 3), l(Kind::Binary, 2)])),
        ("fully visible", Machine::fully_visible(l(Kind::Spin, 5))),
    ];
    for (what, mut machine) in machines {
        fill_weights(&mut machine, &mut Dice(28));
        let states = some_states(&machine, &[0], ROWS, 5);
        let known = gaps(&machine, 9);
        let exact = machine.exact().free_energy_known(&states, &known).unwrap();
        let (base, schedule) = (Base::own(&machine), Schedule::uniform(60));
        let sums = ais_given(&machine, &base, &schedule, &states, &known, 60, 1, &mut silent).unwrap();
        for ((value, err), f) in sums.iter().zip(exact) {
            assert!((value + f).abs() < 5.0 * err + 1e-6, "{what}: {value} ± {err} against {}", -f);
        }
    }
}

#[test]
fn refuses_what_takes_too_long_or_does_not_fit() {
    let machine = Machine::<f64>::rbm(Layer::new(Kind::Binary, 60), Layer::new(Kind::Binary, 50));
    let mut machine = machine;
    fill_weights(&mut machine, &mut Dice(1));
    let states = some_states(&machine, &[0], ROWS, 1);
    let half = vec![Some(Bits::from_fn(ROWS, 60, |_, j| j < 20)), None];
    let too_long = machine.exact().free_energy_known(&states, &half);
    assert!(matches!(too_long, Err(Error::TooManyStates { .. })));
    // Some rows can be enumerated and others not: each gets the best feasible method.
    let some = vec![Some(Bits::from_fn(ROWS, 60, |r, j| r < 2 || j < 20)), None];
    let f = evaluate::free_energies(&machine, &states, &some, 1, &mut silent).unwrap();
    assert!(f.errors[..2].iter().all(|&e| e == 0.0) && f.errors[2..].iter().all(|&e| e > 0.0));
    assert!(f.remark.is_some());
    let wrong = vec![Some(Bits::zeros(ROWS, 59)), None];
    assert!(machine.exact().free_energy_known(&states, &wrong).is_err());
}
