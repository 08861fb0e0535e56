//! One small call of every kernel, quick enough for `cargo miri test --test small`.

mod common;

use common::Source;
use harmonium_kernels::bits::{BitMatrix, Values};
use harmonium_kernels::fixed::{Coupling, Field, Input, Product, Side, States, Write, bits_means};
use harmonium_kernels::{Codes, Key, Real, bits, moments};

const KEY: Key = Key { seed: 1, purpose: 0, block: 0, sweep: 0 };

#[test]
fn products_of_reals() {
    let mut s = Source(1);
    let (rows, k, n) = (9, 70, 19);
    let x = s.bits(rows, k, 0.4);
    let x = BitMatrix::new(&x, rows, k);
    let w: Vec<f64> = s.reals(k * n);
    let (mut out, mut spins) = (vec![0.0; rows * n], vec![0.0; rows * n]);
    f64::add_bits(x, &w, n, 1.0, &mut out);
    f64::add_spins(x, &w, n, 0.5, &mut spins);
    for r in 0..rows {
        for j in 0..n {
            let sum: f64 = bits::ones(x.row(r)).map(|i| w[i * n + j]).sum();
            let all: f64 = (0..k).map(|i| w[i * n + j]).sum();
            assert!((out[r * n + j] - sum).abs() < 1e-12);
            assert!((spins[r * n + j] - (sum - 0.5 * all)).abs() < 1e-12);
        }
    }
    let codes = s.codes(rows * 14, 5);
    f64::add_codes(Codes::new(&codes, 14, 5), &w, n, 1.0, &mut out);
    let mut gradient = vec![0.0; k * n];
    moments::add_bits_outer(x, Values::Spin, &out, n, 1.0, &mut gradient);
    moments::add_codes_outer(Codes::new(&codes, 14, 5), &out, n, 1.0, &mut gradient);
    moments::add_bits_bits_outer((x, Values::Binary), (x, Values::Spin), 1.0, &mut vec![0f32; k * k]);
    assert!(gradient.iter().all(|g| g.is_finite()));
}

#[test]
fn fixed_point() {
    let mut s = Source(2);
    let (rows, k, n) = (50, 70, 37);
    let mut coupling = Coupling::new(Side::Binary(k), Side::Binary(n));
    coupling.refresh(&s.reals(k * n));
    let theta: Vec<f32> = s.reals(n);
    // By tables, and by lists of the set bits.
    for p in [0.5, 0.05] {
        let x = s.bits(rows, k, p);
        let x = BitMatrix::new(&x, rows, k);
        let inputs = [Input { direction: coupling.forward(), states: States::Bits(x) }];
        let field = Field::new(Side::Binary(n), rows, &theta, 1.0, &inputs);
        let (mut out, mut means) = (vec![0; rows * bits::words(n)], vec![0f32; rows * n]);
        field.means(&mut means);
        let mut rounded = harmonium_kernels::fixed::Means::default();
        field.sample_with_means(KEY, &mut out, &mut rounded);
        let mut gradient = vec![0f32; k * n];
        let product = Product { v: x, values: Values::Binary, means: &rounded, scale: 1.0 };
        bits_means(product, Write::Set, &mut gradient);
        let first: f32 = (0..rows).filter(|&r| bits::get(x.row(r), 0)).map(|r| means[r * n]).sum();
        assert!((gradient[0] - first).abs() < rows as f32 / 63.0);
    }
}

#[test]
fn draws_and_functions() {
    let logits: Vec<f32> = Source(3).reals(200);
    f32::sample_bits(&logits, 40, KEY, &mut [0; 5]);
    let mut x = logits;
    f32::sigmoid_slice(&mut x);
    f32::softmax_groups(&mut x, 4);
    assert!((f32::softplus_sum(&[0.0; 3]) - 3.0 * std::f64::consts::LN_2).abs() < 1e-6);
}
