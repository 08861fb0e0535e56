//! Element-wise functions against the formulas in libm's f64.

use harmonium_kernels::Real;
use harmonium_kernels::reference::{ln2cosh, logsumexp, sigmoid, softmax, softplus, tanh};
use proptest::prelude::*;

/// Largest |got − want| relative to `want`, in f64; values below `floor` are compared absolutely.
fn relative(got: f64, want: f64, floor: f64) -> f64 {
    if got == want { 0.0 } else { (got - want).abs() / want.abs().max(floor) }
}

fn check<T: Real>(name: &str, f: fn(&mut [T]), g: fn(f64) -> f64, range: f64, tolerance: f64) {
    let mut points: Vec<T> =
        (-40_000..=40_000).map(|k| T::of(f64::from(k) / 40_000.0 * range)).collect();
    points.extend((0..400).map(|k| T::of(libm::exp(f64::from(k - 380) / 10.0))));
    points.extend((0..400).map(|k| T::of(-libm::exp(f64::from(k - 380) / 10.0))));
    let mut values = points.clone();
    f(&mut values);
    for (&x, &y) in points.iter().zip(&values) {
        let want = g(x.f64());
        let error = relative(y.f64(), want, T::min_positive_value().f64() * 4.0);
        assert!(error <= tolerance, "{name}({x}) = {y}, expected {want}, relative error {error:e}");
    }
}

/// A sum over one element is that element.
fn each<T: Real>(sum: fn(&[T]) -> f64, x: &mut [T]) {
    x.iter_mut().for_each(|x| *x = T::of(sum(&[*x])));
}

#[test]
fn f64_within_1e_15() {
    check::<f64>("sigmoid", f64::sigmoid_slice, sigmoid, 40.0, 1e-15);
    check::<f64>("tanh", f64::tanh_slice, tanh, 25.0, 1e-15);
    check::<f64>("softplus", |x| each(f64::softplus_sum, x), softplus, 40.0, 1e-15);
    check::<f64>("ln2cosh", |x| each(f64::ln2cosh_sum, x), ln2cosh, 40.0, 1e-15);
}

#[test]
fn f32_within_4_ulp() {
    let ulp = f64::from(f32::EPSILON);
    check::<f32>("sigmoid", f32::sigmoid_slice, sigmoid, 40.0, 2.0 * ulp);
    check::<f32>("tanh", f32::tanh_slice, tanh, 12.0, 3.0 * ulp);
    check::<f32>("softplus", |x| each(f32::softplus_sum, x), softplus, 40.0, 2.0 * ulp);
    check::<f32>("ln2cosh", |x| each(f32::ln2cosh_sum, x), ln2cosh, 40.0, 2.0 * ulp);
}

fn extremes<T: Real>() {
    let x = [-1e4, 1e4, f64::NEG_INFINITY, f64::INFINITY, f64::NAN, 0.0].map(T::of);
    let on = |f: fn(&mut [T])| {
        let mut y = x;
        f(&mut y);
        y.map(|y| y.f64())
    };
    assert_eq!(on(T::sigmoid_slice)[..4], [0.0, 1.0, 0.0, 1.0]);
    assert_eq!(on(T::tanh_slice)[..4], [-1.0, 1.0, -1.0, 1.0]);
    assert_eq!(on(|x| each(T::softplus_sum, x))[..4], [0.0, 1e4, 0.0, f64::INFINITY]);
    assert_eq!(on(|x| each(T::ln2cosh_sum, x))[..4], [1e4, 1e4, f64::INFINITY, f64::INFINITY]);
    for f in [
        T::sigmoid_slice as fn(&mut [T]),
        T::tanh_slice,
        |x: &mut [T]| each(T::softplus_sum, x),
        |x: &mut [T]| each(T::ln2cosh_sum, x),
    ] {
        assert!(on(f)[4].is_nan());
    }
    assert_eq!(on(T::sigmoid_slice)[5], 0.5);
    assert!(on(T::tanh_slice)[5] == 0.0 && on(T::tanh_slice)[5].is_sign_positive());
    assert_eq!(T::softplus_sum(&x[..2]), 1e4);
}

#[test]
fn extreme_inputs() {
    extremes::<f32>();
    extremes::<f64>();
}

fn groups<T: Real>(x: &[f64], q: usize, tolerance: f64) {
    let x: Vec<T> = x[..x.len() / q * q].iter().map(|&x| T::of(x)).collect();
    let mut p = x.clone();
    T::softmax_groups(&mut p, q);
    let (mut total, mut size) = (0.0, 1.0);
    for (g, x) in x.chunks(q).enumerate() {
        let got = T::logsumexp_sum(x, q);
        let x: Vec<f64> = x.iter().map(|x| x.f64()).collect();
        let want = logsumexp(&x);
        total += want;
        size += want.abs();
        assert!(relative(got, want, 1.0) <= tolerance);
        for a in 0..q {
            assert!((p[g * q + a].f64() - softmax(&x, a)).abs() <= tolerance);
        }
    }
    // Terms of both signs may cancel: the error is relative to their sizes.
    assert!((T::logsumexp_sum(&x, q) - total).abs() <= tolerance * size);
}

proptest! {
    #[test]
    fn softmax_and_logsumexp(x in prop::collection::vec(-50.0..50.0f64, 0..300), q in 1usize..30) {
        groups::<f64>(&x, q, 2e-15 * 10.0);
        groups::<f32>(&x, q, 2e-6);
    }

    #[test]
    fn sums_are_the_sums_of_the_terms(x in prop::collection::vec(-30.0..30.0f64, 0..300)) {
        let want: f64 = x.iter().map(|&x| softplus(x)).sum();
        prop_assert!(relative(f64::softplus_sum(&x), want, 1.0) < 1e-14);
        let want: f64 = x.iter().map(|&x| ln2cosh(x)).sum();
        prop_assert!(relative(f64::ln2cosh_sum(&x), want, 1.0) < 1e-14);
        let y: Vec<f32> = x.iter().map(|&x| x as f32).collect();
        let want: f64 = y.iter().map(|&x| softplus(f64::from(x))).sum();
        prop_assert!(relative(f32::softplus_sum(&y), want, 1.0) < 3e-7);
    }
}
