//! Draws from real logits: frequencies, extremes, shapes, threads.

mod common;

use harmonium_kernels::{Key, Real, bits, reference};
use proptest::prelude::*;

const KEY: Key = Key { seed: 5, purpose: 1, block: 0, sweep: 0 };

/// χ² of the number of ones in 40 columns of logits from −9 to 9, over `draws` rows each.
fn chi2<T: Real>(sweeps: u64) -> f64 {
    let (rows, n) = (4096, 40);
    let logit = |j: usize| (j as f64 - 19.5) * 0.46;
    let logits: Vec<T> = (0..rows * n).map(|i| T::of(logit(i % n))).collect();
    let mut ones = vec![0u64; n];
    let mut out = vec![0; rows * bits::words(n)];
    for sweep in 0..sweeps {
        T::sample_bits(&logits, n, Key { sweep, ..KEY }, &mut out);
        for row in &out {
            for j in bits::ones(&[*row]) {
                ones[j] += 1;
            }
        }
    }
    let draws = (rows as u64 * sweeps) as f64;
    (0..n)
        .map(|j| {
            let p = 1.0 / (1.0 + libm::exp(-T::of(logit(j)).f64()));
            (ones[j] as f64 - draws * p).powi(2) / (draws * p * (1.0 - p))
        })
        .sum()
}

#[test]
fn frequencies_are_those_of_the_logits() {
    // χ² with 40 degrees of freedom: mean 40, standard deviation 9.
    for x in [chi2::<f32>(100), chi2::<f64>(100)] {
        assert!((10.0..85.0).contains(&x), "χ² = {x}");
    }
}

#[test]
fn extreme_logits() {
    let logits = [-1e4f32, 1e4, f32::NEG_INFINITY, f32::INFINITY, -40.0, 40.0].repeat(2000);
    let mut out = vec![0; 2000];
    f32::sample_bits(&logits, 6, KEY, &mut out);
    assert!(out.iter().all(|&row| row == 0b101010));
}

/// Small and large logits, more rows and columns than share a stream.
fn draws<T: Real>(seed: u64, rows: usize, n: usize, size: f64) {
    let logits: Vec<T> =
        common::Source(seed).reals::<T>(rows * n).iter().map(|x| T::of(size * x.f64())).collect();
    let exact: Vec<f64> = logits.iter().map(|x| x.f64()).collect();
    let (mut fast, mut slow) = (vec![7; rows * bits::words(n)], vec![7; rows * bits::words(n)]);
    T::sample_bits(&logits, n, Key { seed, ..KEY }, &mut fast);
    reference::sample_bits(&exact, n, Key { seed, ..KEY }, &mut slow);
    assert!(fast == slow, "{rows} × {n}");
}

/// The values of a key are part of what a seed means: a change here is value-breaking.
#[test]
fn pinned_values() {
    let mut out = vec![0; 4];
    f32::sample_bits(&[0.0; 256], 64, KEY, &mut out);
    let wide = out.clone();
    f64::sample_bits(&[0.0; 256], 64, KEY, &mut out);
    assert_eq!(out, wide);
    assert_eq!(wide, PINNED, "{wide:#x?}");
}
const PINNED: [u64; 4] =
    [0xad61_cda1_9e92_5c9e, 0x7fd2_3e23_fa02_b146, 0xcd64_f1d2_b8cb_f71d, 0x4e2b_88ed_5060_907b];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn every_bit_is_that_of_the_comparison_in_f64(seed: u64, rows in prop_oneof![9 => 0usize..80, 1 => Just(1030usize)], n in 0usize..140, size in prop::sample::select(vec![0.01, 3.0, 40.0])) {
        draws::<f32>(seed, rows, n, size);
        draws::<f64>(seed, rows, n, size);
    }

    #[test]
    fn any_shape_and_any_number_of_threads(rows in 0usize..80, n in 0usize..140, seed: u64) {
        let logits: Vec<f32> = common::Source(seed).reals(rows * n);
        let key = Key { seed, ..KEY };
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut out = vec![u64::MAX; rows * bits::words(n)];
            pool.install(|| f32::sample_bits(&logits, n, key, &mut out));
            out
        };
        let one = run(1);
        prop_assert_eq!(&one, &run(3));
        for row in one.chunks_exact(bits::words(n).max(1)) {
            prop_assert_eq!(row[row.len() - 1] & !bits::last_mask(n), 0);
        }
    }
}
