//! Second moments against their one-element-at-a-time twins.

mod common;

use common::Source;
use harmonium_kernels::bits::{BitMatrix, Values};
use harmonium_kernels::fixed::{
    F32x32, Means, Product, Range, Side, States, WIDTH, Write, bits_means, for_each_strip,
};
use harmonium_kernels::reference::{self, value};
use harmonium_kernels::{Codes, Real, bits, moments};
use proptest::prelude::*;

/// The units of a layer that is read as `values`.
fn side(x: BitMatrix<'_>, values: Values) -> Side {
    if values == Values::Spin { Side::Spin(x.bits()) } else { Side::Binary(x.bits()) }
}

fn outer<T: Real>(seed: u64, rows: usize, k: usize, n: usize, eps: f64) {
    let mut s = Source(seed);
    let (x, y) = (s.bits(rows, k, 0.3), s.bits(rows, n, 0.6));
    let (x, y) = (BitMatrix::new(&x, rows, k), BitMatrix::new(&y, rows, n));
    let h: Vec<T> = s.reals(rows * n);
    let start: Vec<T> = s.reals(k * n);
    let scale = T::of(-0.7);
    let tolerance = eps * (2.0 + rows as f64);
    let check = |got: &[T], twin: &dyn Fn(usize, usize) -> f64| {
        for i in 0..k {
            for j in 0..n {
                let want = start[i * n + j].f64() - 0.7 * twin(i, j);
                assert!((got[i * n + j].f64() - want).abs() < tolerance, "{i} {j}");
            }
        }
    };
    let real = |r: usize, j: usize| h[r * n + j].f64();
    for values in [Values::Binary, Values::Spin] {
        let a = |r: usize, i: usize| value(side(x, values), States::Bits(x), r, i);
        let mut out = start.clone();
        moments::add_bits_outer(x, values, &h, n, scale, &mut out);
        check(&out, &|i, j| reference::outer(rows, a, real, (i, j)));
        for other in [Values::Binary, Values::Spin] {
            let b = |r: usize, j: usize| value(side(y, other), States::Bits(y), r, j);
            let mut out = start.clone();
            moments::add_bits_bits_outer((x, values), (y, other), scale, &mut out);
            check(&out, &|i, j| reference::outer(rows, a, b, (i, j)));
        }
    }
    let q = 3;
    if k.is_multiple_of(q) && k > 0 {
        let codes = s.codes(rows * k / q, q);
        let codes = Codes::new(&codes, k / q, q);
        let mut out = start.clone();
        moments::add_codes_outer(codes, &h, n, scale, &mut out);
        let potts = Side::Potts { sites: k / q, q };
        let a = |r: usize, i: usize| value(potts, States::Codes(codes), r, i);
        check(&out, &|i, j| reference::outer(rows, a, real, (i, j)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn outer_products(seed: u64, rows in 0usize..150, k in 0usize..67, n in 0usize..67) {
        outer::<f64>(seed, rows, k, n, 1e-14);
        outer::<f32>(seed, rows, k, n, 2e-6);
    }

    #[test]
    fn counts(seed: u64, rows in 0usize..600, n in 0usize..150, p in prop::sample::select(vec![0.3, 1.0])) {
        let x = Source(seed).bits(rows, n, p);
        let x = BitMatrix::new(&x, rows, n);
        let mut out = vec![1u32; n];
        bits::add_counts(x, &mut out);
        for (j, &count) in out.iter().enumerate() {
            prop_assert_eq!(count, 1 + reference::count(x, j));
        }
    }

    #[test]
    fn means_in_fixed_point(seed: u64, rows in 0usize..200, k in 1usize..100, n in 1usize..70, spin: bool, p in prop::sample::select(vec![0.1, 1.0])) {
        let mut s = Source(seed);
        let v = s.bits(rows, k, p);
        let v = BitMatrix::new(&v, rows, k);
        let low = if spin { -1.0 } else { 0.0 };
        let m: Vec<f32> = (0..rows * n).map(|_| (low + (1.0 - low) * s.unit().powi(2)) as f32).collect();
        let m: Vec<f32> = m.iter().map(|&m| if s.unit() < 0.1 { m.round() } else { m }).collect();
        let mut out = vec![0.25f32; k * n];
        let range = if spin { Range::Spin } else { Range::Binary };
        let means = Means::new(&m, rows, n, range);
        let values = if s.unit() < 0.5 { Values::Spin } else { Values::Binary };
        let product = Product { v, values, means: &means, scale: 2.0 };
        bits_means(product, Write::Add, &mut out);
        let mut set = vec![f32::NAN; k * n];
        bits_means(product, Write::Set, &mut set);
        for (a, b) in out.iter().zip(&set) {
            prop_assert!((a - 0.25 - b).abs() <= 1e-6 * (1.0 + b.abs()));
        }
        for (j, sum) in means.sums().iter().enumerate() {
            let want: f64 = (0..rows).map(|r| f64::from(m[r * n + j])).sum();
            prop_assert!((sum - want).abs() <= 1e-5 * (1.0 + want.abs()), "sum {sum}, {want}");
        }
        // Of the means as they were rounded, the sum is right up to the rounding of f32.
        let bit = |r: usize, i: usize| value(side(v, values), States::Bits(v), r, i);
        let rounded = |r: usize, j: usize| f64::from(means.rounded(r, j));
        let lost = |j: usize| means.sums()[j] - (0..rows).map(|r| rounded(r, j)).sum::<f64>();
        for i in 0..k {
            for j in 0..n {
                let mut want = 2.0 * reference::outer(rows, bit, rounded, (i, j));
                if values == Values::Spin {
                    // The sums of the means enter unrounded: a spin is 2·bit − 1.
                    want -= 2.0 * lost(j);
                }
                let got = f64::from(set[i * n + j]);
                prop_assert!((got - want).abs() <= 1e-5 * (1.0 + rows as f64), "{i}, {j}: {got}, {want}");
            }
        }
        let step = if spin { 2.0 / 63.0 } else { 1.0 / 63.0 } * if values == Values::Spin { 2.0 } else { 1.0 };
        let mut squares = 0.0;
        for i in 0..k {
            for j in 0..n {
                let want = reference::outer(rows, bit, |r, j| f64::from(m[r * n + j]), (i, j));
                let error = (f64::from(out[i * n + j]) - 0.25) / 2.0 - want;
                prop_assert!(error.abs() <= step * rows as f64 + 1e-4 * (1.0 + want.abs()));
                squares += error * error;
            }
        }
        // Rounding errors of random sign: √(rows/12) steps or less; 3 leaves room for dither and f32.
        let rms = (squares / (k * n) as f64).sqrt();
        prop_assert!(rms <= 3.0 * step * (1.0 + rows as f64 / 12.0).sqrt(), "rms {rms}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// Products of both signs and of other scales, by each method: few bits, and many.
    #[test]
    fn strips_of_several_products(seed: u64, rows in 1usize..150, k in 1usize..400, n in 1usize..70, p in prop::sample::select(vec![0.05, 0.6]), scales in prop::collection::vec(prop::sample::select(vec![-0.5f32, 0.5, 1.5]), 1..4)) {
        let mut s = Source(seed);
        let v: Vec<Vec<u64>> = scales.iter().map(|_| s.bits(rows, k, p)).collect();
        let v: Vec<_> = v.iter().map(|v| BitMatrix::new(v, rows, k)).collect();
        let m: Vec<Vec<f32>> = scales.iter().map(|_| (0..rows * n).map(|_| s.unit() as f32).collect()).collect();
        let means: Vec<_> = m.iter().map(|m| Means::new(m, rows, n, Range::Binary)).collect();
        let products: Vec<_> = v.iter().zip(&means).zip(&scales).map(|((&v, means), &scale)| {
            Product { v, values: Values::Binary, means, scale }
        }).collect();
        let mut strips = vec![Vec::<F32x32>::new(); n.div_ceil(WIDTH)];
        for_each_strip(&products, strips.iter_mut(), |_, _| (), |_, first, strip, all| {
            assert_eq!(all.len(), first);
            all.extend_from_slice(strip);
        });
        for (i, j) in (0..k).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let want: f64 = products.iter().map(|p| {
                let bit = |r: usize, i: usize| value(Side::Binary(k), States::Bits(p.v), r, i);
                let rounded = |r: usize, j: usize| f64::from(p.means.rounded(r, j));
                f64::from(p.scale) * reference::outer(rows, bit, rounded, (i, j))
            }).sum();
            let got = f64::from(strips[j / WIDTH][i].0[j % WIDTH]);
            prop_assert!((got - want).abs() <= 1e-5 * (1.0 + rows as f64), "{i}, {j}: {got}, {want}");
        }
    }
}

/// Means far below the step count on average.
#[test]
fn rounding_has_no_bias() {
    let (rows, n) = (6400, 40);
    let v = vec![1u64; rows];
    for mean in [1e-4f32, 3.3e-3, 0.5001, 0.9999] {
        let mut out = vec![0f32; n];
        let means = Means::new(&vec![mean; rows * n], rows, n, Range::Binary);
        let v = BitMatrix::new(&v, rows, 1);
        let scale = 1.0 / rows as f32;
        let product = Product { v, values: Values::Binary, means: &means, scale };
        bits_means(product, Write::Set, &mut out);
        for &got in &out {
            // Probabilities have 16 bits; multiples of the golden ratio leave less than three points of 6400 too many
            // below any threshold.
            assert!((got - mean).abs() < 0.5 / 65536.0 + 3.0 / (6400.0 * 63.0), "{got} for {mean}");
        }
    }
}

#[test]
fn moments_do_not_depend_on_the_threads() {
    let mut s = Source(9);
    let (rows, k, n) = (300, 200, 150);
    let v = s.bits(rows, k, 0.4);
    let m: Vec<f32> = (0..rows * n).map(|_| s.unit() as f32).collect();
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let (mut a, mut b) = (vec![0f32; k * n], vec![0f32; k * n]);
        let v = BitMatrix::new(&v, rows, k);
        pool.install(|| {
            let means = Means::new(&m, rows, n, Range::Binary);
            let product = Product { v, values: Values::Binary, means: &means, scale: 1.0 };
            bits_means(product, Write::Set, &mut a);
            moments::add_bits_outer(v, Values::Spin, &m, n, 1.0, &mut b);
        });
        (a, b)
    };
    assert_eq!(run(1), run(2));
    assert_eq!(run(1), run(6));
}
