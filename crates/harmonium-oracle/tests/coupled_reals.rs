//! Coupled real units against Gaussian algebra and integrals computed to 30 digits with mpmath.

mod common;

use common::{LN_SQRT_2PI, assert_close, coupling, layer, pair};
use harmonium_oracle::{Kind, Machine};

/// Solves A x = b by elimination (A positive definite) and returns (x, det A).
fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> (Vec<f64>, f64) {
    let n = b.len();
    let mut det = 1.0;
    for k in 0..n {
        det *= a[k][k];
        let (pivot, b_k) = (a[k].clone(), b[k]);
        for i in (0..n).filter(|&i| i != k) {
            let factor = a[i][k] / pivot[k];
            (0..n).for_each(|j| a[i][j] -= factor * pivot[j]);
            b[i] -= factor * b_k;
        }
    }
    ((0..n).map(|i| b[i] / a[i][i]).collect(), det)
}

/// Checks an all-Gaussian machine against ln Z = ½βbᵀA⁻¹b − ½ln det(βA/2π), covariance (βA)⁻¹.
fn check_gaussian(machine: &Machine, a: &[Vec<f64>], b: &[f64], tolerance: f64) {
    let (beta, n) = (machine.beta, b.len());
    let (mean, det) = solve(a.to_vec(), b.to_vec());
    let quadratic: f64 = mean.iter().zip(b).map(|(m, b)| m * b).sum();
    let log_z = beta * quadratic / 2.0 + n as f64 * (LN_SQRT_2PI - beta.ln() / 2.0) - det.ln() / 2.0;
    let m = machine.moments();
    assert_close(m.log_z, log_z, tolerance);
    let covariance = m.covariance();
    for i in 0..n {
        assert_close(m.first.concat()[i], mean[i], tolerance);
        let unit = (0..n).map(|j| if i == j { 1.0 } else { 0.0 }).collect();
        let (column, _) = solve(a.to_vec(), unit);
        for j in 0..n {
            assert_close(covariance[i][j], column[j] / beta, tolerance);
        }
    }
}

#[test]
fn gaussian_gaussian_by_determinants() {
    let (w, u, beta) = ([0.5, -0.4], 0.3, 1.6);
    let mut machine = pair(
        layer(Kind::Gaussian, &[&[0.3, -0.8], &[1.0, 1.5]]),
        layer(Kind::Gaussian, &[&[0.6], &[0.9]]),
        &[&[w[0]], &[w[1]]],
        beta,
    );
    machine.couplings.push(coupling(0, 0, &[&[0.0, u], &[u, 0.0]]));
    let a = [vec![1.0, -u, -w[0]], vec![-u, 1.5, -w[1]], vec![-w[0], -w[1], 0.9]];
    check_gaussian(&machine, &a, &[0.3, -0.8, 0.6], 1e-12);
}

#[test]
fn strongly_correlated_gaussians() {
    // Correlation 0.99: the marginals are seven times wider than 1/√γ.
    let unit = |theta| layer(Kind::Gaussian, &[&[theta], &[1.0]]);
    let machine = pair(unit(0.4), unit(-0.1), &[&[0.99]], 1.0);
    let a = [vec![1.0, -0.99], vec![-0.99, 1.0]];
    check_gaussian(&machine, &a, &[0.4, -0.1], 1e-11);
}

#[test]
fn four_gaussians() {
    let unit = || layer(Kind::Gaussian, &[&[0.1, 0.2], &[1.0, 1.2]]);
    let machine = pair(unit(), unit(), &[&[0.3, 0.1], &[-0.2, 0.25]], 1.0);
    let a = [
        vec![1.0, 0.0, -0.3, -0.1],
        vec![0.0, 1.2, 0.2, -0.25],
        vec![-0.3, 0.2, 1.0, 0.0],
        vec![-0.1, -0.25, 0.0, 1.2],
    ];
    check_gaussian(&machine, &a, &[0.1, 0.2, 0.1, 0.2], 1e-12);
}

#[test]
fn coupled_relus() {
    // (γ₁, γ₂, θ₁, θ₂, w) → ln Z, ⟨x₁⟩, ⟨x₁²⟩ by mpmath; the second case is not positive definite,
    // held together only by x ≥ 0.
    let cases = [
        ((0.9, 1.4, 0.3, -0.5, 0.6), (0.751910016749876, 1.24949748796317, 2.25300899224888)),
        ((1.0, 1.0, 2.0, 3.0, -5.0), (3.19268080550084, 0.310979509100081, 0.445012554073363)),
        ((1.0, 1.0, 0.3, -0.5, 0.9), (1.51186961268222, 1.91975808365773, 5.29968052462017)),
    ];
    for ((g1, g2, t1, t2, w), (log_z, first, second)) in cases {
        let unit = |theta, gamma| layer(Kind::Relu, &[&[theta], &[gamma]]);
        let m = pair(unit(t1, g1), unit(t2, g2), &[&[w]], 1.0).moments();
        assert_close(m.log_z, log_z, 1e-13);
        assert_close(m.first[0][0], first, 1e-12);
        assert_close(m.second[0][0], second, 1e-12);
    }
}

#[test]
fn poisson_inhibited_by_a_relu() {
    let v = layer(Kind::Poisson, &[&[1.2]]);
    let h = layer(Kind::Relu, &[&[0.5], &[0.8]]);
    let m = pair(v, h, &[&[-0.4]], 1.0).moments();
    assert_close(m.log_z, 3.21710764661463, 1e-13);
    assert_close(m.first[0][0], 2.54110395820101, 1e-13);
    assert_close(m.first[1][0], 0.740075135430932, 1e-13);
}

#[test]
#[should_panic(expected = "Z diverges")]
fn a_divergent_gaussian_pair_is_refused() {
    let unit = || layer(Kind::Gaussian, &[&[0.0], &[1.0]]);
    pair(unit(), unit(), &[&[1.1]], 1.0).log_z();
}

#[test]
#[should_panic(expected = "Z diverges")]
fn a_divergent_poisson_pair_is_refused() {
    let unit = || layer(Kind::Poisson, &[&[0.0]]);
    pair(unit(), unit(), &[&[0.5]], 1.0).log_z();
}
