//! Discrete machines against sums done by hand.

mod common;

use common::{alone, assert_close, coupling, layer, pair, softplus};
use harmonium_oracle::{Kind, Machine};

#[test]
fn single_units_match_their_log_partition() {
    for beta in [0.0, 0.4, 1.0, 2.5] {
        let theta = [0.7, -1.9];
        let of = |kind| alone(kind, &[&theta], beta).log_z();
        let sum = |f: fn(f64) -> f64| theta.iter().map(|t| f(beta * t)).sum::<f64>();
        assert_close(of(Kind::Binary), sum(softplus), 1e-14);
        assert_close(of(Kind::Spin), sum(|t| (2.0 * t.cosh()).ln()), 1e-14);
        let binomial = of(Kind::Binomial { n: 5 });
        assert_close(binomial, sum(|t| 5.0 * softplus(t)), 1e-14);
        assert_close(of(Kind::Poisson), sum(f64::exp), 1e-14);
        // r = 1 has the measure 1: a geometric series up to n.
        let geometric = of(Kind::NegativeBinomial { shape: 16, n: 4 });
        assert_close(
            geometric,
            sum(|t| (0..=4).map(|x| (f64::from(x) * t).exp()).sum::<f64>().ln()),
            1e-14,
        );
    }
}

#[test]
fn potts_is_logsumexp_and_softmax_per_site() {
    let theta = [0.1, -0.4, 1.2, 2.0, 0.0, -1.0];
    let beta = 0.8;
    let m = alone(Kind::Potts { q: 3 }, &[&theta], beta).moments();
    let mut log_z = 0.0;
    for site in 0..2 {
        let e: Vec<f64> = (0..3).map(|a| (beta * theta[3 * site + a]).exp()).collect();
        let z: f64 = e.iter().sum();
        log_z += z.ln();
        for (a, e_a) in e.iter().enumerate() {
            let i = 3 * site + a;
            assert_close(m.first[0][i], e_a / z, 1e-14);
            assert_close(m.second[i][i], e_a / z, 1e-14);
            assert_eq!(m.second[i][3 * site + (a + 1) % 3], 0.0);
        }
    }
    assert_close(m.log_z, log_z, 1e-14);
    assert_close(m.second[0][4], m.first[0][0] * m.first[0][4], 1e-14);
}

#[test]
fn poisson_moments_and_large_means() {
    let m = alone(Kind::Poisson, &[&[1.3, 5.0]], 1.0).moments();
    let rate = [1.3_f64.exp(), 5.0_f64.exp()];
    assert_close(m.log_z, rate[0] + rate[1], 1e-13);
    for (i, rate) in rate.into_iter().enumerate() {
        assert_close(m.first[0][i], rate, 1e-12);
        assert_close(m.second[i][i], rate * rate + rate, 1e-12);
    }
}

#[test]
fn two_coupled_spins() {
    // Z = 2e^{βJ}cosh(2βθ) + 2e^{−βJ} for E = −J s₁s₂ − θ(s₁ + s₂); ⟨s₁s₂⟩ = ∂ln Z/∂(βJ).
    let (j, theta, beta) = (0.6_f64, 0.25_f64, 1.7_f64);
    let mut machine = alone(Kind::Spin, &[&[theta, theta]], beta);
    machine.couplings = vec![coupling(0, 0, &[&[0.0, j], &[j, 0.0]])];
    let even = 2.0 * (beta * j).exp() * (2.0 * beta * theta).cosh();
    let odd = 2.0 * (-beta * j).exp();
    let m = machine.moments();
    assert_close(m.log_z, (even + odd).ln(), 1e-14);
    assert_close(m.second[0][1], (even - odd) / (even + odd), 1e-14);
    assert_close(m.second[1][1], 1.0, 1e-15);
    let gradient = machine.grad_log_z();
    assert_close(gradient.couplings[0][0][1], beta * m.second[0][1], 1e-15);
    assert_eq!(gradient.couplings[0][1][1], 0.0);
    let x = vec![vec![1.0, -1.0]];
    assert_close(machine.energy(&x), j, 1e-15);
}

#[test]
fn binomial_is_a_sum_of_binary_units() {
    // n Binary units with the same bias and couplings, seen only through their sum.
    let (theta, w, c, beta) = (-0.3, 0.9, 0.4, 1.3);
    let h = layer(Kind::Spin, &[&[c]]);
    let binomial = layer(Kind::Binomial { n: 3 }, &[&[theta]]);
    let binary = layer(Kind::Binary, &[&[theta; 3]]);
    let one = pair(binomial, h.clone(), &[&[w]], beta).moments();
    let many = pair(binary, h, &[&[w], &[w], &[w]], beta).moments();
    assert_close(one.log_z, many.log_z, 1e-14);
    assert_close(one.first[0][0], 3.0 * many.first[0][0], 1e-14);
    assert_close(one.first[1][0], many.first[1][0], 1e-14);
    let total: f64 = many.second_block(0, 0).concat().iter().sum();
    assert_close(one.second[0][0], total, 1e-14);
}

fn small_rbm(beta: f64) -> Machine {
    let v = layer(Kind::Binary, &[&[0.2, -0.5, 0.9]]);
    let h = layer(Kind::Binary, &[&[-0.1, 0.7]]);
    pair(v, h, &[&[0.5, -1.1], &[0.3, 0.8], &[-0.6, 0.4]], beta)
}

#[test]
fn rbm_free_energy_conditional_and_table() {
    let beta = 0.9;
    let machine = small_rbm(beta);
    let (v, h) = (vec![1.0, 0.0, 1.0], vec![1.0, 0.0]);
    let clamps = vec![Some(v.clone()), None];
    // F(v) = −βbᵀv − Σ_j softplus(β(c_j + (vW)_j)), with (vW) = (−0.1, −0.7).
    let inputs = [beta * (-0.1 - 0.1), beta * (0.7 - 0.7)];
    let f = -beta * (0.2 + 0.9) - softplus(inputs[0]) - softplus(inputs[1]);
    assert_close(machine.free_energy(&clamps), f, 1e-14);
    let mean = machine.conditional_mean(&clamps);
    assert_eq!(mean[0], v);
    for (j, input) in inputs.iter().enumerate() {
        assert_close(mean[1][j], 1.0 / (1.0 + (-input).exp()), 1e-14);
    }

    let table = machine.probabilities();
    assert_eq!(table.len(), 32);
    assert_close(table.iter().map(|(_, p)| p).sum(), 1.0, 1e-14);
    let p_v: f64 = table.iter().filter(|(x, _)| x[0] == v).map(|(_, p)| p).sum();
    assert_close(p_v, (-f - machine.log_z()).exp(), 1e-14);
    assert_close(machine.mean_log_likelihood(std::slice::from_ref(&clamps)), p_v.ln(), 1e-14);

    let state = vec![v, h];
    let all = vec![Some(state[0].clone()), Some(state[1].clone())];
    assert_close(machine.free_energy(&all), -machine.log_weight(&state), 1e-14);
    let given: f64 = machine.probabilities_given(&clamps).iter().map(|(_, p)| p).sum();
    assert_close(given, 1.0, 1e-14);
}

#[test]
fn reference_measure_enters_clamped_units_without_beta() {
    // p(x) of a Binomial or Poisson unit at β: C(n,x) e^{βθx}/(1+e^{βθ})ⁿ and e^{βθx − e^{βθ}}/x!. The measure of a negative
    // binomial one with r = 2 is x + 1.
    let (theta, beta) = (0.4, 2.0);
    let ln_p = |kind| {
        let row = vec![Some(vec![3.0])];
        alone(kind, &[&[theta]], beta).mean_log_likelihood(&[row])
    };
    let binomial = 4.0_f64.ln() + 3.0 * beta * theta - 4.0 * softplus(beta * theta);
    assert_close(ln_p(Kind::Binomial { n: 4 }), binomial, 1e-14);
    let poisson = 3.0 * beta * theta - (beta * theta).exp() - 6.0_f64.ln();
    assert_close(ln_p(Kind::Poisson), poisson, 1e-14);
    let z: f64 = (0..=3).map(|x| f64::from(x + 1) * (f64::from(x) * beta * theta).exp()).sum();
    let negative_binomial = 4.0_f64.ln() + 3.0 * beta * theta - z.ln();
    assert_close(ln_p(Kind::NegativeBinomial { shape: 32, n: 3 }), negative_binomial, 1e-14);
}

#[test]
fn outside_the_support_the_free_energy_is_infinite() {
    let f = |kind, params: &[&[f64]], x: &[f64]| {
        alone(kind, params, 1.0).free_energy(&vec![Some(x.to_vec())])
    };
    let theta: &[&[f64]] = &[&[0.1]];
    assert_eq!(f(Kind::Binary, theta, &[0.5]), f64::INFINITY);
    assert_eq!(f(Kind::Spin, theta, &[0.0]), f64::INFINITY);
    assert_eq!(f(Kind::Binomial { n: 2 }, theta, &[3.0]), f64::INFINITY);
    assert_eq!(f(Kind::Poisson, theta, &[-1.0]), f64::INFINITY);
    assert_eq!(f(Kind::NegativeBinomial { shape: 16, n: 2 }, theta, &[3.0]), f64::INFINITY);
    assert_eq!(f(Kind::Relu, &[&[0.1], &[1.0]], &[-0.1]), f64::INFINITY);
    let potts = f(Kind::Potts { q: 2 }, &[&[0.1, 0.2]], &[1.0, 1.0]);
    assert_eq!(potts, f64::INFINITY);
}

#[test]
fn three_layers_and_huge_biases() {
    // v–h1–h2 summed by hand over the middle unit, far beyond e^{709}.
    let big = 5000.0;
    let unit = |theta| layer(Kind::Spin, &[&[theta]]);
    let machine = Machine {
        layers: vec![unit(big), unit(0.3), unit(-big)],
        couplings: vec![coupling(0, 1, &[&[0.5]]), coupling(2, 1, &[&[0.25]])],
        beta: 1.0,
    };
    let want = 2.0 * big + (2.0 * (0.3_f64 + 0.5 - 0.25).cosh()).ln();
    assert_close(machine.log_z(), want, 1e-14);
    assert_close(machine.moments().first[1][0], 0.55_f64.tanh(), 1e-11);
}

#[test]
#[should_panic(expected = "symmetric")]
fn asymmetric_lateral_couplings_are_refused() {
    let mut machine = alone(Kind::Spin, &[&[0.0, 0.0]], 1.0);
    machine.couplings = vec![coupling(0, 0, &[&[0.0, 0.1], &[0.2, 0.0]])];
    machine.log_z();
}

#[test]
#[should_panic(expected = "zero diagonal")]
fn couplings_within_a_potts_site_are_refused() {
    let mut machine = alone(Kind::Potts { q: 2 }, &[&[0.0, 0.0]], 1.0);
    machine.couplings = vec![coupling(0, 0, &[&[0.0, 0.1], &[0.1, 0.0]])];
    machine.log_z();
}
