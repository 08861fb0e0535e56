//! Table-driven products against their one-element-at-a-time twins, over odd shapes.

mod common;

use common::Source;
use harmonium_kernels::fixed::{Side, States};
use harmonium_kernels::{Codes, Real, bits, reference, transpose};
use proptest::prelude::*;

fn close<T: Real>(a: &[T], b: &[T], tolerance: f64) {
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a.f64() - b.f64()).abs() <= tolerance, "element {i}: {a} and {b}");
    }
}

fn binary_and_spin<T: Real>(seed: u64, rows: usize, k: usize, n: usize, p: f64, eps: f64) {
    let mut s = Source(seed);
    let x = s.bits(rows, k, p);
    let x = bits::BitMatrix::new(&x, rows, k);
    let w: Vec<T> = s.reals(k * n);
    let start: Vec<T> = s.reals(rows * n);
    let scale = T::of(-1.3);
    let tolerance = eps * (2.0 + k as f64);
    let (mut fast, mut slow) = (start.clone(), start.clone());
    T::add_bits(x, &w, n, scale, &mut fast);
    for r in 0..rows {
        reference::add_rows_of_bits(x.row(r), &w, n, scale, &mut slow[r * n..(r + 1) * n]);
    }
    close(&fast, &slow, tolerance);
    let (mut fast, mut slow) = (start.clone(), start);
    T::add_spins(x, &w, n, scale, &mut fast);
    for r in 0..rows {
        reference::add_rows_of_spins(x.row(r), &w, n, scale, &mut slow[r * n..(r + 1) * n]);
    }
    close(&fast, &slow, 3.0 * tolerance);
}

fn potts<T: Real>(seed: u64, rows: usize, sites: usize, q: usize, n: usize, eps: f64) {
    let mut s = Source(seed);
    let codes: Vec<u32> = (0..rows * sites).map(|_| (s.next() >> 32) as u32 % q as u32).collect();
    let w: Vec<T> = s.reals(sites * q * n);
    let start: Vec<T> = s.reals(rows * n);
    let (mut fast, mut slow) = (start.clone(), start);
    T::add_codes(Codes::new(&codes, sites, q), &w, n, T::of(0.7), &mut fast);
    for r in 0..rows {
        let codes = &codes[r * sites..(r + 1) * sites];
        reference::add_rows_of_codes(codes, q, &w, n, T::of(0.7), &mut slow[r * n..(r + 1) * n]);
    }
    close(&fast, &slow, eps * (2.0 + sites as f64));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn bits_and_spins(seed: u64, rows in 0usize..40, k in 0usize..200, n in 0usize..67, p in prop::sample::select(vec![0.0, 0.02, 0.3, 1.0])) {
        binary_and_spin::<f64>(seed, rows, k, n, p, 1e-15);
        binary_and_spin::<f32>(seed, rows, k, n, p, 5e-7);
    }

    #[test]
    fn codes(seed: u64, rows in 0usize..40, sites in 1usize..67, q in prop::sample::select(vec![1usize, 2, 3, 21, 500]), n in 0usize..40) {
        potts::<f64>(seed, rows, sites, q, n, 1e-15);
        potts::<f32>(seed, rows, sites, q, n, 5e-7);
    }
}

#[test]
fn bits_as_reals_and_column_sums() {
    let mut s = Source(6);
    for (rows, n) in [(0, 5), (3, 0), (4, 64), (7, 131)] {
        let x = s.bits(rows, n, 0.5);
        let x = bits::BitMatrix::new(&x, rows, n);
        let mut out = vec![0f32; rows * n];
        f32::read_bits(x, -1.0, 1.0, &mut out);
        let wts: Vec<f64> = s.reals(rows);
        let (mut sums, mut weighted) = (vec![1.0; n], vec![0.0; n]);
        f32::add_column_sums(&out, None, &mut sums);
        if n > 0 {
            f32::add_column_sums(&out, Some(&wts), &mut weighted);
        }
        for j in 0..n {
            let spin = |r: usize| reference::value(Side::Spin(n), States::Bits(x), r, j);
            assert!((0..rows).all(|r| f64::from(out[r * n + j]) == spin(r)));
            assert_eq!(sums[j], 1.0 + reference::column_sum(&out, n, &vec![1.0; rows], j));
            assert!((weighted[j] - reference::column_sum(&out, n, &wts, j)).abs() < 1e-12);
        }
    }
}

proptest! {
    /// Each matrix by rows or by columns, with or without what was there.
    #[test]
    fn dense_products(seed: u64, m in 0usize..20, n in 0usize..20, k in 0usize..20, by_columns in 0u8..8, beta in prop::sample::select(vec![0.0, -0.5])) {
        let mut s = Source(seed);
        let (a, b, start): (Vec<f64>, Vec<f64>, Vec<f64>) = (s.reals(m * k), s.reals(k * n), s.reals(m * n));
        let strides = |bit: u8, rows: usize, columns: usize| if by_columns >> bit & 1 == 1 { (1, rows) } else { (columns, 1) };
        let (sa, sb, sc) = (strides(0, m, k), strides(1, k, n), strides(2, m, n));
        let mut c = if beta == 0.0 { vec![f64::NAN; m * n] } else { start.clone() };
        f64::gemm((m, n, k), 1.5, (&a, sa.0, sa.1), (&b, sb.0, sb.1), beta, (&mut c, sc.0, sc.1));
        for i in 0..m {
            for j in 0..n {
                let (x, y) = (|i: usize, l: usize| a[i * sa.0 + l * sa.1], |l: usize, j: usize| b[l * sb.0 + j * sb.1]);
                let at = i * sc.0 + j * sc.1;
                let want = 1.5 * reference::product(k, x, y, (i, j)) + if beta == 0.0 { 0.0 } else { beta * start[at] };
                prop_assert!((c[at] - want).abs() < 1e-12);
            }
        }
    }

    /// Also of a shape that is not packed.
    #[test]
    fn dense_products_in_single_precision(seed: u64, m in 0usize..40, n in 0usize..80, k in 0usize..300, by_columns: bool, beta in prop::sample::select(vec![0f32, 1.0])) {
        let mut s = Source(seed);
        let (a, b, start): (Vec<f32>, Vec<f32>, Vec<f32>) = (s.reals(m * k), s.reals(k * n), s.reals(m * n));
        let (rs, cs) = if by_columns { (1, m) } else { (k, 1) };
        let mut c = if beta == 0.0 { vec![f32::NAN; m * n] } else { start.clone() };
        f32::gemm((m, n, k), 1.5, (&a, rs, cs), (&b, n, 1), beta, (&mut c, n, 1));
        for (at, (&c, &start)) in c.iter().zip(&start).enumerate() {
            let (x, y) = (|i: usize, l: usize| f64::from(a[i * rs + l * cs]), |l: usize, j: usize| f64::from(b[l * n + j]));
            let want = 1.5 * reference::product(k, x, y, (at / n, at % n)) + f64::from(beta * start);
            prop_assert!((f64::from(c) - want).abs() < 1e-6 * (2 + k) as f64);
        }
    }

    #[test]
    fn transposes(k in 0usize..40, n in 0usize..40) {
        let w: Vec<u32> = (0..(k * n) as u32).collect();
        let mut out = vec![0; k * n];
        transpose(&w, k, n, &mut out);
        prop_assert_eq!(out, reference::transpose(&w, k, n));
    }
}

#[test]
fn many_rows_use_the_tables_and_every_thread_count_agrees() {
    let mut s = Source(5);
    let (rows, k, n) = (500, 200, 100);
    let x = s.bits(rows, k, 0.5);
    let x = bits::BitMatrix::new(&x, rows, k);
    let w: Vec<f32> = s.reals(k * n);
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut out = vec![0f32; rows * n];
        pool.install(|| f32::add_bits(x, &w, n, 1.0, &mut out));
        out
    };
    let one = run(1);
    assert_eq!(one, run(2));
    assert_eq!(one, run(5));
    let mut slow = vec![0f32; rows * n];
    for r in 0..rows {
        reference::add_rows_of_bits(x.row(r), &w, n, 1.0, &mut slow[r * n..(r + 1) * n]);
    }
    close(&one, &slow, 2e-5);
}
