//! Moments of batches against plain sums over rows, for every form of states, weighted and masked.

use crate::common::*;
use harmonium::{Bits, Coupling, Kind, Machine, Parameters, Real, States};
use ndarray::Array2;

/// ⟨t⟩ and ⟨x_a x_bᵀ⟩ as they are defined, row by row in f64.
fn naive<T: Real>(
    machine: &Machine<T>,
    x: &States<T>,
    averaged: &[usize],
    wts: Option<&[f64]>,
) -> Parameters<f64> {
    let total = wts.map_or(x.rows() as f64, |w| w.iter().sum());
    let wt = |r: usize| wts.map_or(1.0, |w| w[r]) / total;
    let model = machine.at(1.0);
    let dense: Vec<Array2<f64>> = (0..machine.len())
        .map(|l| {
            let d = if averaged.contains(&l) {
                model.mean(l, x).unwrap()
            } else {
                machine.layer(l).dense(x.layer(l).unwrap())
            };
            d.mapv(|x| x.f64())
        })
        .collect();
    let mut out: Parameters<f64> = machine.zero_parameters();
    for l in 0..machine.len() {
        let layer = machine.layer(l);
        out.layers[l] = if averaged.contains(&l) {
            let wts: Vec<f64> = (0..x.rows()).map(wt).collect();
            layer.mean_stats(&model.inputs(l, x).unwrap(), Some(&wts))
        } else {
            let wts: Vec<f64> = (0..x.rows()).map(wt).collect();
            layer.stats(x.layer(l).unwrap(), Some(&wts))
        };
    }
    for (c, coupling) in machine.couplings().iter().enumerate() {
        let (a, b) = coupling.ends();
        let columns = machine.layer(a).kind().columns();
        for ((i, j), m) in out.couplings[c].indexed_iter_mut() {
            let own = a == b && i / columns == j / columns;
            if !own && coupling.mask().is_none_or(|mask| mask.get(i, j)) {
                *m = (0..x.rows()).map(|r| wt(r) * dense[a][[r, i]] * dense[b][[r, j]]).sum();
            }
        }
    }
    out
}

fn agree<T: Real>(
    machine: &Machine<T>,
    x: &States<T>,
    averaged: &[usize],
    wts: Option<&[f64]>,
    tol: f64,
    what: &str,
) {
    let got = machine.at(1.0).moments(x, averaged, wts).unwrap();
    let want = naive(machine, x, averaged, wts);
    for (k, (g, w)) in got.arrays().zip(want.arrays()).enumerate() {
        for ((i, j), w) in w.indexed_iter() {
            let g = g[[i, j]].f64();
            assert!(
                (g - w).abs() <= tol * w.abs().max(1.0),
                "{what}, array {k} ({i},{j}): {g} against {w}"
            );
        }
    }
}

fn weights(rows: usize) -> Vec<f64> {
    (0..rows).map(|r| 0.2 + (r * 37 % 11) as f64).collect()
}

#[test]
fn every_pair_of_forms() {
    for a in Kind::ALL {
        for b in Kind::ALL {
            let d = &mut Dice(5);
            let mut machine = Machine::rbm(layer(a, 3, d), layer(b, 2, d));
            if integrable(a, b) {
                fill_weights(&mut machine, d);
            }
            let x = some_states(&machine, &[0, 1], 67, 3);
            let wts = weights(67);
            for wts in [None, Some(&wts[..])] {
                for averaged in [&[][..], &[0], &[1]] {
                    agree(&machine, &x, averaged, wts, 1e-12, &format!("{a}-{b} {averaged:?}"));
                }
            }
            let single: Machine<f32> = machine.cast();
            let mut y = States::empty(2, 67);
            for l in 0..2 {
                y.set(
                    l,
                    single.layer(l).batch(machine.layer(l).values(x.layer(l).unwrap()).view()).unwrap(),
                );
            }
            agree(&single, &y, &[1], None, 2e-5, &format!("{a}-{b} in single precision"));
        }
    }
}

#[test]
fn lateral_and_masked() {
    for kind in [Kind::Binary, Kind::Spin, Kind::Potts { q: 3 }, Kind::Gaussian] {
        let d = &mut Dice(6);
        let machine = Machine::unrestricted(layer(kind, 4, d), layer(Kind::Binary, 3, d));
        let (n, m) = (machine.layer(0).width(), 3);
        let mask = Bits::from_fn(n, m, |i, j| (i + j) % 2 == 0);
        let mut couplings: Vec<_> = machine.couplings().to_vec();
        couplings[0] = Coupling::new(0, 1, couplings[0].w().clone()).unwrap().with_mask(mask).unwrap();
        let machine = Machine::new(machine.members().to_vec(), couplings).unwrap();
        let x = some_states(&machine, &[0, 1], 50, 4);
        agree(&machine, &x, &[], None, 1e-12, &format!("{kind}"));
        agree(&machine, &x, &[], Some(&weights(50)), 1e-12, &format!("{kind} weighted"));
    }
}

/// A large single-precision machine takes the fixed-point path: means from weights rounded to 2⁻¹¹ or finer
/// (the bound on a mean is a quarter of that on a logit) and rounded without bias to 1/1022 (1/511 for spins).
#[test]
fn the_fixed_point_path() {
    for (a, b) in [
        (Kind::Binary, Kind::Binary),
        (Kind::Binary, Kind::Spin),
        (Kind::Spin, Kind::Binary),
        (Kind::Potts { q: 3 }, Kind::Binary),
    ] {
        let d = &mut Dice(8);
        let mut machine = Machine::rbm(layer(a, 70, d), layer(b, 65, d));
        machine.coupling_mut(0).w_mut().mapv_inplace(|_| d.between(-0.3, 0.3));
        let x = some_states(&machine, &[0], 300, 3);
        let single: Machine<f32> = machine.cast();
        let values = machine.layer(0).values(x.layer(0).unwrap());
        let y = single.data(vec![single.layer(0).batch(values.view()).unwrap()]).unwrap();
        // Rounding of the weights, 70 inputs: 2⁻¹¹/√12·√70/4 = 3e-4 (rms); of means to 1/63, over 300 rows:
        // 1/63/√(6·300) = 3.7e-4, and twice that with spins. Five times their sum.
        let spins = a == Kind::Spin || b == Kind::Spin;
        let tol = 5.0 * (3e-4 + if spins { 7.5e-4 } else { 3.7e-4 });
        agree(&single, &y, &[1], None, tol, &format!("{a}-{b}"));
        // Weighted rows are averaged over unrounded means.
        agree(&single, &y, &[1], Some(&weights(300)), 1.7e-3, &format!("{a}-{b} weighted"));
    }
}

#[test]
fn weights_are_checked() {
    let machine = Machine::<f64>::rbm(
        harmonium::Layer::new(Kind::Binary, 2),
        harmonium::Layer::new(Kind::Binary, 2),
    );
    let x = machine.zeros(3);
    for (wts, needle) in [
        (vec![1.0; 2], "weights"),
        (vec![0.0; 3], "sum"),
        (vec![1.0, -1.0, 1.0], "row 1"),
        (vec![1.0, 1.0, f64::NAN], "row 2"),
    ] {
        let error = machine.at(1.0).moments(&x, &[1], Some(&wts)).unwrap_err().to_string();
        assert!(error.contains(needle), "{error}");
    }
}
