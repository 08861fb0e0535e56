//! Draws of codes: frequencies, extremes, shapes, threads.

mod common;

use harmonium_kernels::fixed::{Coupling, Field, Input, Side, States};
use harmonium_kernels::{Key, Real, bits};
use proptest::prelude::*;

const KEY: Key = Key { seed: 8, purpose: 3, block: 0, sweep: 0 };

fn chi2<T: Real>(q: usize) -> f64 {
    let (rows, sites) = (2_000_000 / q.max(20), 2);
    let logit = |a: usize| (a as f64 * 1.7).sin() * 2.0;
    let logits: Vec<T> = (0..rows * sites * q).map(|i| T::of(logit(i % q))).collect();
    let mut codes = vec![0; rows * sites];
    T::sample_codes(&logits, q, sites, KEY, &mut codes);
    let z: f64 = (0..q).map(|a| libm::exp(T::of(logit(a)).f64())).sum();
    let draws = (rows * sites) as f64;
    (0..q)
        .map(|a| {
            let p = libm::exp(T::of(logit(a)).f64()) / z;
            let count = codes.iter().filter(|&&c| c as usize == a).count() as f64;
            (count - draws * p).powi(2) / (draws * p)
        })
        .sum()
}

#[test]
fn frequencies_are_those_of_the_softmax() {
    for q in [2, 21, 600] {
        let dof = q as f64 - 1.0;
        for x in [chi2::<f32>(q), chi2::<f64>(q)] {
            assert!((x - dof).abs() < 6.0 * (2.0 * dof).sqrt() + 8.0, "q = {q}: χ² = {x}");
        }
    }
}

#[test]
fn extreme_logits() {
    let logits = [-1e4f32, 1e4, 0.0, f32::NEG_INFINITY, -3.0, f32::NEG_INFINITY].repeat(500);
    let mut codes = vec![0; 1000];
    f32::sample_codes(&logits, 3, 2, KEY, &mut codes);
    assert!(codes.iter().all(|&c| c == 1));
}

/// The values of a key are part of what a seed means: a change here is value-breaking.
#[test]
fn pinned_values() {
    let mut codes = vec![0; 16];
    f32::sample_codes(&[0.0; 64], 4, 8, KEY, &mut codes);
    assert_eq!(codes, PINNED);
}
const PINNED: [u32; 16] = [3, 2, 0, 1, 1, 2, 0, 2, 0, 1, 3, 2, 2, 2, 0, 3];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn any_shape_and_any_number_of_threads(rows in 0usize..150, sites in 1usize..20, q in 1usize..30, seed: u64) {
        let logits: Vec<f32> = common::Source(seed).reals(rows * sites * q);
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut out = vec![99; rows * sites];
            pool.install(|| f32::sample_codes(&logits, q, sites, KEY, &mut out));
            out
        };
        let one = run(1);
        prop_assert!(one.iter().all(|&c| (c as usize) < q));
        prop_assert_eq!(one, run(3));
    }
}

#[test]
fn a_potts_layer_is_sampled_from_its_fields() {
    let mut s = common::Source(4);
    let (rows, k, potts) = (300, 70, Side::Potts { sites: 9, q: 5 });
    let w: Vec<f32> = s.reals(45 * k);
    let theta: Vec<f32> = s.reals(45);
    let mut coupling = Coupling::new(potts, Side::Spin(k));
    coupling.refresh(&w);
    let h = s.bits(rows, k, 0.5);
    let inputs =
        [Input { direction: coupling.backward(), states: States::Bits(bits::Rows::new(&h, rows, k)) }];
    let field = Field::new(potts, rows, &theta, 0.7, &inputs);
    let (mut fields, mut direct, mut fused) =
        (vec![0f32; rows * 45], vec![0; rows * 9], vec![0; rows * 9]);
    field.fields(&mut fields);
    f32::sample_codes(&fields, 5, 9, KEY, &mut direct);
    field.sample_codes(KEY, &mut fused);
    assert_eq!(direct, fused);
}
