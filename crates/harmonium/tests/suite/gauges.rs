//! Gauges leave the distribution as it is: ln Z up to the stated shift, p(v) of every v, all moments, to 1e-12.

use crate::common::*;
use harmonium::{Bits, Coupling, Error, Kind, Machine, Member, Role, States};
use ndarray::{Array1, Array2};

const TOL: f64 = 1e-12;
const BETAS: [f64; 2] = [1.0, 0.7];

/// Layers of the test machine, by position.
const V: usize = 0;
const Y: usize = 1;
const S: usize = 2;
const B: usize = 3;
const D: usize = 4;
const G: usize = 5;

/// Seven layers of unequal kinds with three lateral couplings and two masks, one on each sort.
fn machine() -> Machine<f64> {
    let mut dice = Dice(11);
    let kinds = [
        ("v", Role::Visible, Kind::Potts { q: 3 }, 2),
        ("y", Role::Visible, Kind::Potts { q: 2 }, 2),
        ("s", Role::Visible, Kind::Spin, 2),
        ("b", Role::Hidden, Kind::Binary, 3),
        ("d", Role::Hidden, Kind::Drelu, 2),
        ("g", Role::Hidden, Kind::Gaussian, 2),
        ("r", Role::Hidden, Kind::Relu, 1),
    ];
    let members: Vec<_> = kinds
        .into_iter()
        .map(|(name, role, kind, n)| Member {
            name: name.into(),
            role,
            layer: layer(kind, n, &mut dice),
        })
        .collect();
    let pairs =
        [(V, V), (V, Y), (V, B), (V, D), (Y, Y), (Y, 6), (S, S), (S, B), (V, S), (B, B), (B, D), (S, G)];
    let couplings = pairs.map(|(a, b)| {
        let (rows, cols) = (members[a].layer.width(), members[b].layer.width());
        let c = Coupling::new(a, b, Array2::zeros((rows, cols))).unwrap();
        match (a, b) {
            // No weights between the first unit of v and the second of b.
            (V, B) => c.with_mask(Bits::from_fn(rows, cols, |i, j| !(i < 3 && j == 1))).unwrap(),
            (B, B) => c.with_mask(Bits::from_fn(rows, cols, |i, j| i + j != 2)).unwrap(),
            _ => c,
        }
    });
    let mut machine = Machine::new(members, couplings.into()).unwrap();
    fill_weights(&mut machine, &mut dice);
    machine
}

/// All states of the discrete layers with these roles.
fn all_states(machine: &Machine<f64>) -> States<f64> {
    let given: Vec<usize> = (0..machine.len()).filter(|&l| machine.role(l) != Role::Hidden).collect();
    let mut rows: Vec<Vec<f64>> = vec![vec![]];
    for &l in &given {
        let kind = machine.layer(l).kind();
        let states = kind.states().expect("visible layers of these tests are finite");
        for _ in 0..machine.layer(l).len() {
            let longer = |row: &Vec<f64>| {
                let row = row.clone();
                (0..states).map(move |a| [&row[..], &[kind.value(a)]].concat())
            };
            rows = rows.iter().flat_map(longer).collect();
        }
    }
    let mut start = 0;
    let batches = given.iter().map(|&l| {
        let n = machine.layer(l).len();
        let x = Array2::from_shape_fn((rows.len(), n), |(r, j)| rows[r][start + j]);
        start += n;
        machine.layer(l).batch(x.view()).unwrap()
    });
    machine.data(batches.collect()).unwrap()
}

/// The new states of layer `layer` are (x − o)/k; ln Z' = ln Z − β·shift + volume.
#[derive(Clone)]
struct Change {
    layer: usize,
    o: f64,
    k: Array1<f64>,
    shift: f64,
    volume: f64,
}

fn assert_same(old: &Machine<f64>, new: &Machine<f64>, change: &Change) {
    for beta in BETAS {
        let (a, b) = (old.exact().at(beta), new.exact().at(beta));
        let (ma, mb) = (a.second_moments().unwrap(), b.second_moments().unwrap());
        assert_close(mb.log_z, ma.log_z - beta * change.shift + change.volume, TOL, "ln Z");
        let (mut o, mut k, mut mean) = (vec![], vec![], vec![]);
        for (l, m) in ma.means.iter().enumerate() {
            for (j, &m) in m.iter().enumerate() {
                let here = l == change.layer;
                o.push(if here { change.o } else { 0.0 });
                k.push(if here { change.k[j] } else { 1.0 });
                mean.push(m);
            }
        }
        let found: Vec<f64> = mb.means.iter().flatten().copied().collect();
        let (second, found_second) = (ma.second.unwrap(), mb.second.unwrap());
        for i in 0..mean.len() {
            assert_close(found[i], (mean[i] - o[i]) / k[i], TOL, "⟨x⟩");
            for j in 0..mean.len() {
                let expected = second[[i, j]] - o[i] * mean[j] - o[j] * mean[i] + o[i] * o[j];
                assert_close(found_second[[i, j]], expected / (k[i] * k[j]), TOL, "⟨x x⟩");
            }
        }
        let pa = a.log_probability(&all_states(old)).unwrap();
        let pb = b.log_probability(&all_states(new)).unwrap();
        assert!(pa.len() >= 16);
        for (pa, pb) in pa.iter().zip(&pb) {
            assert_close(*pa, *pb, TOL, "ln p(v)");
        }
    }
}

fn still(machine: &Machine<f64>, shift: f64) -> Change {
    Change { layer: 0, o: 0.0, k: Array1::ones(machine.layer(0).width()), shift, volume: 0.0 }
}

#[test]
fn zero_sum_of_potts_layers() {
    let old = machine();
    let mut new = old.clone();
    let first = new.zero_sum(V).unwrap();
    assert!(first.abs() > 0.1, "a generic machine is not in the gauge");
    assert_same(&old, &new, &still(&old, first));
    let both = first + new.zero_sum(Y).unwrap();
    assert_same(&old, &new, &still(&old, both));

    for l in [V, Y] {
        let q = new.layer(l).kind().columns();
        let small = |x: f64| assert!(x.abs() < 1e-14, "{x}");
        new.layer(l).params().exact_chunks((1, q)).into_iter().for_each(|unit| small(unit.sum()));
        for c in new.couplings() {
            if c.ends().0 == l {
                c.w().exact_chunks((q, 1)).into_iter().for_each(|unit| small(unit.sum()));
            }
            if c.ends().1 == l {
                c.w().exact_chunks((1, q)).into_iter().for_each(|unit| small(unit.sum()));
            }
        }
    }
    assert_eq!(new.couplings()[2].w()[[1, 1]], 0.0, "the mask holds");
    let mut again = new.clone();
    assert!(again.zero_sum(V).unwrap().abs() < 1e-14, "the gauge is reached once and for all");
}

#[test]
fn zero_sum_is_refused_where_it_has_no_meaning() {
    let old = machine();
    let mut new = old.clone();
    assert!(matches!(new.zero_sum(B), Err(Error::Undefined { .. })));
    assert!(matches!(new.zero_sum(99), Err(Error::Value { .. })));
    // A mask that allows a weight of one state of a unit and not of the others; lateral, of one end, of the other end.
    let mut dice = Dice(2);
    let potts = |dice: &mut Dice| layer(Kind::Potts { q: 2 }, 2, dice);
    for (ends, l) in [((0, 0), 0), ((0, 1), 0), ((0, 1), 1)] {
        let members = ["v", "h"].map(|name| Member {
            name: name.into(),
            role: Role::Visible,
            layer: potts(&mut dice),
        });
        // For the pair, rows differ inside a unit of v (l = 0), or columns inside a unit of h (l = 1).
        let mask = Bits::from_fn(4, 4, |i, j| match (ends, l) {
            ((0, 0), _) => (i, j) != (0, 2) && (j, i) != (0, 2),
            (_, 0) => i != 1,
            _ => j != 1,
        });
        let c = Coupling::new(ends.0, ends.1, Array2::zeros((4, 4))).unwrap();
        let mut masked = Machine::new(members.into(), vec![c.with_mask(mask).unwrap()]).unwrap();
        fill_weights(&mut masked, &mut dice);
        let before = masked.clone();
        let found = masked.zero_sum(l);
        assert!(
            matches!(&found, Err(Error::Undefined { why, .. }) if why.contains("mask")),
            "{found:?}"
        );
        assert_eq!(masked, before);
        if ends == (0, 1) {
            assert!(masked.zero_sum(1 - l).is_ok(), "the other layer's units are not split");
        }
    }
}

#[test]
fn binary_units_and_spins() {
    let old = machine();
    let change = |l: usize, o: f64, k: f64, shift: f64| Change {
        k: Array1::from_elem(old.layer(l).width(), k),
        layer: l,
        o,
        shift,
        volume: 0.0,
    };
    let mut new = old.clone();
    let shift = new.to_spin(B).unwrap();
    assert_eq!(new.layer(B).kind(), Kind::Spin);
    assert_same(&old, &new, &change(B, 0.5, 0.5, shift));
    let back = new.to_binary(B).unwrap();
    assert_close(back, -shift, TOL, "there and back");
    for (a, b) in old.parameters().arrays().zip(new.parameters().arrays()) {
        a.iter().zip(b).for_each(|(a, b)| assert_close(*a, *b, 1e-14, "there and back"));
    }
    // A visible layer: its bits are what they were, and so are their probabilities.
    let mut new = old.clone();
    let shift = new.to_binary(S).unwrap();
    assert_eq!(all_states(&old).get(S), all_states(&new).get(S));
    assert_same(&old, &new, &change(S, -1.0, 2.0, shift));
}

#[test]
fn the_exchange_of_binary_and_spin_is_refused_for_others() {
    let old = machine();
    let mut new = old.clone();
    for l in [V, S, D] {
        assert!(matches!(new.to_spin(l), Err(Error::Undefined { .. })), "layer {l}");
    }
    for l in [V, B, D] {
        assert!(matches!(new.to_binary(l), Err(Error::Undefined { .. })), "layer {l}");
    }
    assert_eq!(new, old);
}

#[test]
fn scale_of_hidden_real_units() {
    let old = machine();
    for (l, s) in [(D, vec![0.3, 2.5]), (G, vec![1.7, 0.6]), (6, vec![3.0])] {
        let s = Array1::from(s);
        let mut new = old.clone();
        let volume = new.rescale(l, &s).unwrap();
        assert_close(volume, s.mapv(f64::ln).sum(), TOL, "Σ ln s");
        let change = Change { layer: l, o: 0.0, k: s.mapv(f64::recip), shift: 0.0, volume };
        assert_same(&old, &new, &change);
        // F(v) falls by the same constant.
        let v = all_states(&old);
        let (a, b) =
            (old.exact().at(0.7).free_energy(&v).unwrap(), new.exact().at(0.7).free_energy(&v).unwrap());
        a.iter().zip(&b).for_each(|(a, b)| assert_close(a - volume, *b, TOL, "F(v)"));
    }
}

#[test]
fn scale_of_laterally_coupled_units() {
    let mut dice = Dice(21);
    let (v, h) = (layer(Kind::Spin, 4, &mut dice), layer(Kind::Gaussian, 2, &mut dice));
    let mut old = Machine::unrestricted(v, h);
    fill_weights(&mut old, &mut dice);
    let mut new = old.clone();
    let s = Array1::from(vec![0.7, 1.9]);
    let volume = new.rescale(1, &s).unwrap();
    // Two coupled Gaussian units are integrated by quadrature, to 1e-10.
    for beta in BETAS {
        let (a, b) = (old.exact().at(beta), new.exact().at(beta));
        assert_close(b.log_z().unwrap(), a.log_z().unwrap() + volume, 1e-10, "ln Z");
        let v = all_states(&old);
        let (a, b) = (a.log_probability(&v).unwrap(), b.log_probability(&v).unwrap());
        a.iter().zip(&b).for_each(|(a, b)| assert_close(*a, *b, 1e-10, "ln p(v)"));
    }
}

#[test]
fn norms_of_weights_fix_the_scale() {
    let mut m = machine();
    let norms = m.weight_norms(D);
    let direct =
        m.couplings().iter().filter(|c| c.ends().1 == D).map(|c| c.w().column(1).dot(&c.w().column(1)));
    assert_close(norms[1], direct.sum::<f64>().sqrt(), TOL, "‖w‖");
    m.rescale(D, &norms).unwrap();
    m.weight_norms(D).iter().for_each(|x| assert_close(*x, 1.0, TOL, "‖w‖"));
}

#[test]
fn scale_is_refused_where_it_is_not_free() {
    let old = machine();
    let mut new = old.clone();
    assert!(matches!(new.rescale(B, &Array1::ones(3)), Err(Error::Undefined { .. })));
    assert!(matches!(new.rescale(D, &Array1::ones(3)), Err(Error::Shape { .. })));
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-200, 1e200] {
        let found = new.rescale(D, &Array1::from(vec![1.0, bad]));
        assert!(matches!(found, Err(Error::Value { .. })), "{bad}");
    }
    assert_eq!(new, old);
    let mut dice = Dice(1);
    let mut visible =
        Machine::rbm(layer(Kind::Gaussian, 2, &mut dice), layer(Kind::Binary, 2, &mut dice));
    assert!(matches!(visible.rescale(0, &Array1::ones(2)), Err(Error::Undefined { .. })));
}

#[test]
fn conditions_stay_conditions() {
    let mut dice = Dice(31);
    let past = layer(Kind::Potts { q: 3 }, 1, &mut dice);
    let (v, h) = (layer(Kind::Binary, 3, &mut dice), layer(Kind::Drelu, 2, &mut dice));
    let mut old = Machine::conditional(past, v, h);
    fill_weights(&mut old, &mut dice);
    let mut new = old.clone();
    new.zero_sum(0).unwrap();
    new.to_spin(1).unwrap();
    new.rescale(2, &Array1::from(vec![0.4, 1.3])).unwrap();
    for beta in BETAS {
        let a = old.exact().at(beta).log_probability(&all_states(&old)).unwrap();
        let b = new.exact().at(beta).log_probability(&all_states(&new)).unwrap();
        a.iter().zip(&b).for_each(|(a, b)| assert_close(*a, *b, TOL, "ln p(v | past)"));
    }
}

/// Offsets or scales for every column of every layer.
fn columns(machine: &Machine<f64>, dice: &mut Dice, lo: f64, hi: f64) -> Vec<Array1<f64>> {
    let one = |m: &Member<f64>| Array1::from_shape_simple_fn(m.layer.width(), || dice.between(lo, hi));
    machine.members().iter().map(one).collect()
}

/// The energy of couplings that act on (x − o)/s, straight from its definition.
fn standardised_energy(
    machine: &Machine<f64>,
    states: &States<f64>,
    offsets: &[Array1<f64>],
    scales: &[Array1<f64>],
) -> Vec<f64> {
    let mut energy = vec![0.0; states.rows()];
    for l in 0..machine.len() {
        machine.layer(l).add_energy(states.layer(l).unwrap(), &mut energy);
    }
    let y: Vec<Array2<f64>> = (0..machine.len())
        .map(|l| (machine.layer(l).dense(states.layer(l).unwrap()) - &offsets[l]) / &scales[l])
        .collect();
    for c in machine.couplings() {
        let (a, b) = c.ends();
        let half = if a == b { 0.5 } else { 1.0 };
        for (r, e) in energy.iter_mut().enumerate() {
            *e -= half * y[a].row(r).dot(&c.w().dot(&y[b].row(r)));
        }
    }
    energy
}

/// −Σ λWλ − ½ Σ λUλ, as documented.
fn constant(machine: &Machine<f64>, offsets: &[Array1<f64>]) -> f64 {
    let one = |c: &Coupling<f64>| {
        let (a, b) = c.ends();
        let half = if a == b { 0.5 } else { 1.0 };
        -half * offsets[a].dot(&c.w().dot(&offsets[b]))
    };
    machine.couplings().iter().map(one).sum()
}

#[test]
fn centred_and_standardised_energies_are_the_plain_one() {
    let mut dice = Dice(17);
    let plain = machine();
    let offsets = columns(&plain, &mut dice, -0.8, 0.9);
    let ones: Vec<_> = offsets.iter().map(|o| Array1::ones(o.len())).collect();
    let scales = columns(&plain, &mut dice, 0.3, 2.0);
    let layers: Vec<usize> = (0..plain.len()).collect();
    let states = some_states(&plain, &layers, 200, 4);
    let energy = plain.energy(&states).unwrap();
    let p = plain.parameters();

    let centred = plain.centred(&p, &offsets).unwrap();
    let standardised = plain.standardised(&p, &offsets, &scales).unwrap();
    assert_eq!(centred.couplings, p.couplings);
    assert_eq!(plain.standardised(&p, &offsets, &ones).unwrap(), centred);
    for (q, scales) in [(&centred, &ones), (&standardised, &scales)] {
        let mut other = plain.clone();
        other.set_parameters(q).unwrap();
        assert_eq!(other.parameters(), *q, "masks and symmetry hold");
        let found = standardised_energy(&other, &states, &offsets, scales);
        let constant = constant(&plain, &offsets);
        for (found, energy) in found.iter().zip(&energy) {
            assert_close(*found, energy + constant, TOL, "E");
        }
    }
    let back = plain.uncentred(&centred, &offsets).unwrap();
    let back_too = plain.unstandardised(&standardised, &offsets, &scales).unwrap();
    for back in [back, back_too] {
        for (a, b) in p.arrays().zip(back.arrays()) {
            a.iter().zip(b).for_each(|(a, b)| assert_close(*a, *b, 1e-14, "there and back"));
        }
    }
}

#[test]
fn the_distribution_of_centred_parameters_taken_back_is_the_plain_one() {
    let mut dice = Dice(19);
    let old = machine();
    let (o, s) = (columns(&old, &mut dice, -0.8, 0.9), columns(&old, &mut dice, 0.3, 2.0));
    let mut new = old.clone();
    let p = old.standardised(&old.parameters(), &o, &s).unwrap();
    new.set_parameters(&old.unstandardised(&p, &o, &s).unwrap()).unwrap();
    assert_same(&old, &new, &still(&old, 0.0));
}

#[test]
fn offsets_and_scales_are_checked() {
    let m = machine();
    let p = m.parameters();
    let good: Vec<_> = m.members().iter().map(|m| Array1::<f64>::ones(m.layer.width())).collect();
    let with = |x: f64| {
        let mut bad = good.clone();
        bad[3][1] = x;
        bad
    };
    assert!(matches!(m.centred(&p, &good[1..]), Err(Error::Shape { .. })));
    let mut short = good.clone();
    short[2] = Array1::ones(1);
    assert!(matches!(m.uncentred(&p, &short), Err(Error::Shape { .. })));
    assert!(matches!(m.centred(&p, &with(f64::NAN)), Err(Error::Value { .. })));
    for bad in [0.0, -1.0, f64::INFINITY, f64::NAN] {
        assert!(matches!(m.standardised(&p, &good, &with(bad)), Err(Error::Value { .. })));
        assert!(matches!(m.unstandardised(&p, &good, &with(bad)), Err(Error::Value { .. })));
    }
}

#[test]
fn single_precision_keeps_its_symmetry() {
    let mut m = machine().cast::<f32>();
    m.zero_sum(V).unwrap();
    m.zero_sum(Y).unwrap();
    m.to_spin(B).unwrap();
    m.to_binary(S).unwrap();
    m.rescale(D, &Array1::from(vec![0.37, 1.93])).unwrap();
    let (a, b) = (machine().exact(), m.exact());
    let states = |m: &Machine<f64>| all_states(m);
    let pa = a.log_probability(&states(&machine())).unwrap();
    let pb = b.log_probability(&states(&m.cast())).unwrap();
    pa.iter().zip(&pb).for_each(|(a, b)| assert_close(*a, *b, 1e-5, "ln p(v)"));
}
