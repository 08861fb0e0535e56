//! The fixed-point engine against exact sums of rounded weights, and its samples against enumeration.

mod common;

use common::Source;
use harmonium_kernels::fixed::{Coupling, Field, Input, Means, Range, Side, States};
use harmonium_kernels::{Codes, Key, bits, reference};
use proptest::prelude::*;

/// A batch of states of a layer.
struct Batch {
    side: Side,
    bits: Vec<u64>,
    codes: Vec<u32>,
    rows: usize,
}

impl Batch {
    fn new(s: &mut Source, side: Side, rows: usize, p: f64) -> Self {
        let (mut bits, mut codes) = (vec![], vec![]);
        match side {
            Side::Binary(n) | Side::Spin(n) => bits = s.bits(rows, n, p),
            Side::Potts { sites, q } => codes = s.codes(rows * sites, q),
        }
        Self { side, bits, codes, rows }
    }
    fn states(&self) -> States<'_> {
        match self.side {
            Side::Binary(n) | Side::Spin(n) => {
                States::Bits(bits::BitMatrix::new(&self.bits, self.rows, n))
            }
            Side::Potts { sites, q } => States::Codes(Codes::new(&self.codes, sites, q)),
        }
    }
}

fn side(kind: u8, n: usize) -> Side {
    match kind {
        0 => Side::Binary(n),
        1 => Side::Spin(n),
        _ => Side::Potts { sites: n.div_ceil(4), q: 3 },
    }
}

/// Weights of `std`-like size, some masked.
fn weights(s: &mut Source, n: usize, size: f64) -> Vec<f32> {
    (0..n)
        .map(|_| if s.unit() < 0.2 { 0.0 } else { (size * (s.unit() + s.unit() - 1.0)) as f32 })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn fields_are_those_of_the_rounded_weights(
        seed: u64, target in 0u8..3, kinds in prop::collection::vec(0u8..3, 0..3),
        rows in prop_oneof![40 => 0usize..67, 1 => Just(1030usize)], n in 1usize..80, k in prop::sample::select(vec![1usize, 5, 60, 64, 65, 150, 300]),
        size in prop::sample::select(vec![0.01, 0.5, 3.0]), p in prop::sample::select(vec![0.02, 0.5]), beta in prop_oneof![Just(1.0), 0.2f32..2.0],
        backward: bool,
    ) {
        let mut s = Source(seed);
        let target = side(target, n);
        let n = target.units();
        let theta: Vec<f32> = s.reals(n);
        let sources: Vec<Side> = kinds.iter().map(|&kind| side(kind, k)).collect();
        let w: Vec<Vec<f32>> = sources.iter().map(|a| weights(&mut s, a.units() * n, size)).collect();
        let couplings: Vec<Coupling> = sources.iter().zip(&w).map(|(&a, w)| {
            if backward {
                let mut c = Coupling::new(target, a);
                let mut t = w.clone();
                harmonium_kernels::transpose(w, a.units(), n, &mut t);
                c.refresh(&t);
                c
            } else {
                let mut c = Coupling::new(a, target);
                c.refresh(w);
                c
            }
        }).collect();
        let batches: Vec<Batch> = sources.iter().map(|&a| Batch::new(&mut s, a, rows, p)).collect();
        let inputs: Vec<Input<'_>> = couplings.iter().zip(&batches).map(|(c, b)| Input {
            direction: if backward { c.backward() } else { c.forward() },
            states: b.states(),
        }).collect();
        let field = Field::new(target, rows, &theta, beta, &inputs);
        let mut got = vec![0f32; rows * n];
        field.fields(&mut got);
        let bound = f64::from(field.error_bound());
        let finest = couplings.iter().map(Coupling::step_exponent).max().unwrap_or(14);
        let factor = if matches!(target, Side::Spin(_)) { 2.0 } else { 1.0 };
        for r in 0..rows {
            for j in 0..n {
                let (mut exact, mut rounded) = (f64::from(theta[j]), f64::from(theta[j]));
                for ((b, w), c) in batches.iter().zip(&w).zip(&couplings) {
                    exact += reference::input(b.side, b.states(), w, n, None, r, j);
                    rounded += reference::input(b.side, b.states(), w, n, Some(c.step_exponent()), r, j);
                }
                let (exact, rounded) = (f64::from(beta) * exact, f64::from(beta) * rounded);
                let got = f64::from(got[r * n + j]);
                let theta_error = f64::from(beta).max(1.0) * (0.51 * f64::from(-finest).exp2()).max(2.5e-4);
                prop_assert!((got - rounded).abs() <= theta_error + 1e-5 * rounded.abs(), "{got} {rounded}");
                prop_assert!(factor * (got - exact).abs() <= bound * 1.001 + 1e-4, "{got} {exact} {bound}");
            }
        }
        if !matches!(target, Side::Potts { .. }) {
            let mut means = vec![0f32; rows * n];
            field.means(&mut means);
            let mut sampled = vec![0; rows * bits::words(n)];
            let key = Key { seed, purpose: 1, block: 0, sweep: 2 };
            let (mut rounded, mut means_alone) = (Means::default(), Means::default());
            field.sample_with_means(key, &mut sampled, &mut rounded);
            field.rounded_means(&mut means_alone);
            let range = if factor == 2.0 { Range::Spin } else { Range::Binary };
            // σ in 16 bits is within 1.1e-4, logits are rounded to 2^-11, and levels are 1/63 apart.
            let exact = Means::new(&means, rows, n, range);
            let size = if range == Range::Spin { 2.0 } else { 1.0 };
            for j in 0..n {
                let error = (rounded.sums()[j] - exact.sums()[j]).abs();
                prop_assert!(error <= rows as f64 * size * 2.5e-4, "sum {j}: {error}");
                for r in 0..rows {
                    let error = (rounded.rounded(r, j) - means[r * n + j]).abs();
                    prop_assert!(f64::from(error) <= size * (1.0 / 63.0 + 2.5e-4), "{r}, {j}: {error}");
                }
            }
            prop_assert_eq!(&means_alone, &rounded);
            for (&f, &m) in got.iter().zip(&means) {
                let f = f64::from(f);
                let want = if factor == 2.0 { reference::tanh(f) } else { reference::sigmoid(f) };
                prop_assert!((want - f64::from(m)).abs() < 1e-6);
            }
            // Then the fields have no rounding errors, and neither have the logits.
            if beta == 1.0 {
                let logits: Vec<f64> = got.iter().map(|&f| factor * f64::from(f)).collect();
                let mut slow = vec![0; sampled.len()];
                reference::sample_bits(&logits, n, key, &mut slow);
                prop_assert!(slow == sampled);
            }
            let mut alone = vec![0; sampled.len()];
            field.sample(key, &mut alone);
            prop_assert_eq!(alone, sampled);
        }
    }
}

#[test]
fn weights_out_of_reach_are_reported() {
    let mut c = Coupling::new(Side::Binary(70), Side::Spin(3));
    assert!(c.is_trusted());
    for (w, trusted) in [
        (0.3, true),
        (1e5, false),
        (f32::NAN, false),
        (f32::INFINITY, false),
        (40.3, false),
        (0.1, true),
    ] {
        c.refresh(&vec![w; 210]);
        assert_eq!(c.is_trusted(), trusted, "weights of {w}: bound {}", c.error_bound());
    }
    // The step is a function of the weights, not of what was there before.
    let mut fresh = Coupling::new(Side::Binary(70), Side::Spin(3));
    fresh.refresh(&vec![0.1; 210]);
    assert_eq!(fresh.step_exponent(), c.step_exponent());
    assert_eq!(fresh.error_bound(), c.error_bound());
}

#[test]
fn samples_do_not_depend_on_the_threads() {
    let mut s = Source(3);
    let (rows, k, n) = (1500, 130, 90);
    let w = weights(&mut s, k * n, 0.5);
    let mut c = Coupling::new(Side::Binary(k), Side::Binary(n));
    c.refresh(&w);
    let batch = Batch::new(&mut s, Side::Binary(k), rows, 0.4);
    let theta: Vec<f32> = s.reals(n);
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let inputs = [Input { direction: c.forward(), states: batch.states() }];
        let field = Field::new(Side::Binary(n), rows, &theta, 1.0, &inputs);
        let mut out = vec![0; rows * bits::words(n)];
        pool.install(|| field.sample(Key { seed: 1, purpose: 2, block: 9, sweep: 4 }, &mut out));
        out
    };
    let one = run(1);
    assert_eq!(one, run(2));
    assert_eq!(one, run(7));
}

/// Chains of a 9 × 7 machine against enumeration of the machine with rounded weights.
fn gibbs(a: Side, b: Side, seed: u64) {
    let mut s = Source(seed);
    let (m, n) = (a.units(), b.units());
    let w: Vec<f32> = s.reals(m * n);
    let (tv, th): (Vec<f32>, Vec<f32>) = (s.reals(m), s.reals(n));
    let mut c = Coupling::new(a, b);
    c.refresh(&w);
    assert!(c.is_trusted());
    let beta = 0.8f32;
    let value = |side: Side, x: usize, i: usize| {
        let bit = (x >> i & 1) as f64;
        if matches!(side, Side::Spin(_)) { 2.0 * bit - 1.0 } else { bit }
    };
    let mut exact = vec![0.0; m * n];
    let mut z = 0.0;
    for v in 0..1usize << m {
        for h in 0..1usize << n {
            let mut e = 0.0;
            for j in 0..n {
                let mut field = f64::from(th[j]);
                for i in 0..m {
                    field += value(a, v, i) * f64::from(w[i * n + j]);
                }
                e += field * value(b, h, j);
            }
            e += (0..m).map(|i| f64::from(tv[i]) * value(a, v, i)).sum::<f64>();
            let p = (f64::from(beta) * e).exp();
            z += p;
            for i in 0..m {
                for j in 0..n {
                    exact[i * n + j] += p * value(a, v, i) * value(b, h, j);
                }
            }
        }
    }
    let (rows, burn, sweeps) = (1000, 60, 300);
    let (mut v, mut h) = (s.bits(rows, m, 0.5), vec![0u64; rows]);
    let mut sums = vec![vec![0.0; rows]; m * n];
    for t in 0..burn + sweeps {
        let key = |purpose| Key { seed, purpose, block: 0, sweep: t as u64 };
        let inputs =
            [Input { direction: c.forward(), states: States::Bits(bits::BitMatrix::new(&v, rows, m)) }];
        Field::new(b, rows, &th, beta, &inputs).sample(key(0), &mut h);
        if t >= burn {
            for r in 0..rows {
                for i in 0..m {
                    for j in 0..n {
                        sums[i * n + j][r] += value(a, v[r] as usize, i) * value(b, h[r] as usize, j);
                    }
                }
            }
        }
        let inputs =
            [Input { direction: c.backward(), states: States::Bits(bits::BitMatrix::new(&h, rows, n)) }];
        Field::new(a, rows, &tv, beta, &inputs).sample(key(1), &mut v);
    }
    // Chains are independent: the spread of their means gives the error of the mean over chains.
    let mut chi2 = 0.0;
    for (sums, exact) in sums.iter().zip(&exact) {
        let means: Vec<f64> = sums.iter().map(|x| x / f64::from(sweeps)).collect();
        let mean = means.iter().sum::<f64>() / rows as f64;
        let var = means.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (rows as f64 - 1.0);
        let t = (mean - exact / z) / (var / rows as f64).sqrt();
        assert!(t.abs() < 5.0, "⟨vh⟩ off by {t} standard errors");
        chi2 += t * t;
    }
    assert!(chi2 / ((m * n) as f64) < 2.5, "χ²/dof = {}", chi2 / (m * n) as f64);
}

#[test]
fn chains_sample_the_machine() {
    gibbs(Side::Binary(9), Side::Binary(7), 1);
    gibbs(Side::Binary(7), Side::Spin(9), 2);
    gibbs(Side::Spin(8), Side::Spin(7), 3);
}
