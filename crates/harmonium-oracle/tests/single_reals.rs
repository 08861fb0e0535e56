//! Single real units against Gaussian algebra and integrals computed to 30 digits with mpmath.

mod common;

use common::{LN_SQRT_2PI, alone, assert_close, layer, pair};
use harmonium_oracle::Kind;

#[test]
fn one_gaussian() {
    for (theta, gamma, beta) in [(0.0, 1.0, 1.0), (-1.5, 0.3, 2.0), (40.0, 2.0, 0.5), (1e3, 1.0, 1.0)] {
        let m = alone(Kind::Gaussian, &[&[theta], &[gamma]], beta).moments();
        let (mean, variance) = (theta / gamma, 1.0 / (beta * gamma));
        let want = beta * theta * theta / (2.0 * gamma) + LN_SQRT_2PI + 0.5_f64 * variance.ln();
        assert_close(m.log_z, want, 1e-14);
        assert_close(m.first[0][0], mean, 1e-12);
        assert_close(m.second[0][0], mean * mean + variance, 1e-12);
        assert_close(m.statistics[0][1][0], -m.second[0][0] / 2.0, 1e-14);
    }
}

#[test]
fn one_relu() {
    // (θ, γ, β) → ln Z, ⟨x⟩, ⟨x²⟩, by mpmath.quad; ln Z also by its erfc formula.
    let cases = [
        ((0.7, 1.3, 1.0), (0.66201763204607, 0.935238130752548, 1.27282053194368)),
        ((-3.0, 0.5, 1.0), (-1.14799809905641, 0.303753689003234, 0.177477865980593)),
        ((-40.0, 1.0, 1.0), (-3.68950348054912, 0.0249688472072637, 0.00124611170945107)),
        ((6.0, 2.0, 1.0), (9.5723538976152, 3.00003481364751, 9.50010444094254)),
        ((0.7, 1.3, 2.5), (0.619431794861683, 0.704076980690548, 0.686810681910295)),
        ((0.0, 1.0, 1.0), (0.225791352644727, 0.797884560802865, 1.0)),
    ];
    for ((theta, gamma, beta), (log_z, first, second)) in cases {
        let m = alone(Kind::Relu, &[&[theta], &[gamma]], beta).moments();
        assert_close(m.log_z, log_z, 1e-13);
        assert_close(m.first[0][0] / first, 1.0, 1e-13);
        assert_close(m.second[0][0] / second, 1.0, 1e-13);
    }
}

#[test]
fn one_drelu() {
    // ln Z, then ⟨x₊⟩, ⟨x₋⟩, ⟨−x₊²/2⟩, ⟨−x₋²/2⟩, by mpmath.quad.
    let cases = [
        (
            ([0.8, -1.1, 0.9, 2.3], 1.0),
            1.54003752811208,
            [0.813291943668779, -0.262037925359667, -0.72090037290971, -0.139403174259387],
        ),
        (
            ([0.8, 0.4, 0.9, 2.3], 0.6),
            1.39894968597072,
            [1.14568396451142, -0.139683132280475, -1.22642519676245, -0.0695163546067819],
        ),
    ];
    for (([tp, tm, gp, gm], beta), log_z, statistics) in cases {
        let m = alone(Kind::DRelu, &[&[tp], &[tm], &[gp], &[gm]], beta).moments();
        assert_close(m.log_z, log_z, 1e-13);
        for (array, want) in m.statistics[0].iter().zip(statistics) {
            assert_close(array[0], want, 1e-13);
        }
        assert_close(m.first[0][0], statistics[0] + statistics[1], 1e-13);
        let second = -2.0 * (statistics[2] + statistics[3]);
        assert_close(m.second[0][0], second, 1e-13);
    }
}

#[test]
fn equal_sides_make_a_drelu_gaussian() {
    let gaussian = alone(Kind::Gaussian, &[&[0.9], &[0.6]], 1.4).moments();
    let drelu = alone(Kind::DRelu, &[&[0.9], &[0.9], &[0.6], &[0.6]], 1.4).moments();
    assert_close(drelu.log_z, gaussian.log_z, 1e-14);
    assert_close(drelu.second[0][0], gaussian.second[0][0], 1e-13);
}

#[test]
fn distant_modes_are_found() {
    // Both halves of a dReLU at ±30σ, with nothing in between.
    let drelu = alone(Kind::DRelu, &[&[30.0], &[-30.0], &[1.0], &[1.0]], 1.0).moments();
    assert_close(drelu.log_z, 450.0 + LN_SQRT_2PI + 2.0_f64.ln(), 1e-14);
    assert_close(drelu.second[0][0], 901.0, 1e-12);

    // A Gaussian at 0 or at 60σ as the Binary unit decides, with equal weight.
    let w = 60.0;
    let v = layer(Kind::Gaussian, &[&[0.0], &[1.0]]);
    let h = layer(Kind::Binary, &[&[-w * w / 2.0]]);
    let m = pair(v, h, &[&[w]], 1.0).moments();
    assert_close(m.log_z, LN_SQRT_2PI + 2.0_f64.ln(), 1e-12);
    assert_close(m.first[0][0], w / 2.0, 1e-12);
    assert_close(m.second[0][1], w / 2.0, 1e-12);
}

#[test]
fn clamped_gaussian_has_a_density() {
    let machine = alone(Kind::Gaussian, &[&[0.5], &[2.0]], 1.5);
    let (mean, variance) = (0.25, 1.0 / 3.0);
    let want = -(1.0_f64 - mean).powi(2) / (2.0 * variance) - LN_SQRT_2PI - f64::ln(variance) / 2.0;
    let row = vec![Some(vec![1.0])];
    assert_close(machine.mean_log_likelihood(&[row]), want, 1e-14);
}
