//! The Gaussian restricted to the half-line, density ∝ exp(−γx²/2 + ηx) on x ≥ 0: its integral, moments and draws.

use std::f64::consts::{FRAC_1_SQRT_2, TAU};

use rand::Rng;
use rand_distr::{Distribution, Exp1, StandardNormal};

/// Scale of the map y = (a − 4)/(a + 4) of a ≥ 0 onto [−1, 1): near 4 the coefficients below fall fastest.
const MAP: f64 = 4.0;

/// Chebyshev coefficients in y of (a + 4)·r₂(a), which runs from 5.01 at a = 0 to 2 at a = ∞: interpolation
/// at 96 Chebyshev nodes in 40-digit arithmetic, cut where the rest sums to 2.6e-16.
#[rustfmt::skip]
const R2: [f64; 30] = [
    3.4933844746395795, -1.583001024015242, 0.022221905189941157, 0.08104068008018266,
    -0.01002068828259692, -0.0049795542414933, 0.0011464161208395544, 0.0003337104856616649,
    -0.0001136794350202194, -2.3741347727891645e-05, 1.075758531575666e-05, 1.7858133310223518e-06,
    -9.940096320704991e-07, -1.4248394275753822e-07, 9.021903045602442e-08, 1.2061374382293213e-08,
    -8.043948168276198e-09, -1.0733546839093449e-09, 7.028769467622803e-10, 9.857700786641355e-11,
    -6.000192646965008e-11, -9.13427696807833e-12, 4.991014227505884e-12, 8.359370092045487e-13,
    -4.042966497471865e-13, -7.426326119491786e-14, 3.200713982790265e-14, 6.325390982351556e-15,
    -2.501912669617482e-15, -5.130460393688284e-16,
];

/// The ratios (r₁, r₂) = (I₁/I₀, I₂/I₁) of Iₙ = ∫₀^∞ uⁿ e^(−u²/2 − au) du, for a ≥ 0.
///
/// In units of u = √γ·x, with t = η/√γ = −a, the integral and all moments follow from them. Integration by parts gives
/// I₁ = 1 − a·I₀ and Iₙ₊₁ = n·Iₙ₋₁ − a·Iₙ, which cancel ever worse as a grows; divided by Iₙ they become I₀ = 1/(a +
/// r₁) and rₙ = n/(a + rₙ₊₁), sums of positive terms that carry full precision from r₂ to the rest. For large a, r₁ ≈
/// 1/a and r₂ ≈ 2/a.
fn ratios(a: f64) -> (f64, f64) {
    let y = 1.0 - 2.0 * MAP / (a + MAP);
    // Clenshaw's recurrence for Σ cₖ·Tₖ(y).
    let (b1, b2) = R2[1..].iter().rev().fold((0.0, 0.0), |(b1, b2), c| (c + 2.0 * y * b1 - b2, b1));
    let r2 = (R2[0] + y * b1 - b2) / (a + MAP);
    (1.0 / (a + r2), r2)
}

/// ln ∫₀^∞ e^(−γx²/2 + ηx) dx, for γ > 0 and any finite η.
///
/// For t = η/√γ > 0 it is t²/2 + ½·ln(2π/γ) + ln(1 − ½·erfc(t/√2)); for t = −a ≤ 0 it is −½·ln γ − ln(a + r₁),
/// the logarithm of I₀/√γ.
pub(crate) fn log_integral(gamma: f64, eta: f64) -> f64 {
    let t = eta / gamma.sqrt();
    if t > 0.0 {
        let missing = 0.5 * libm::erfc(t * FRAC_1_SQRT_2);
        0.5 * t * t + 0.5 * (TAU / gamma).ln() + (-missing).ln_1p()
    } else {
        -0.5 * gamma.ln() - (ratios(-t).0 - t).ln()
    }
}

/// The first two moments of the density.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moments {
    /// E x.
    pub mean: f64,
    /// E x².
    pub second: f64,
    /// E x² − (E x)².
    pub variance: f64,
}

/// The moments of the density ∝ e^(−γx²/2 + ηx) on x ≥ 0, for γ > 0 and any finite η.
///
/// In units of u = √γ·x, with t = η/√γ: for t > 0 and h = e^(−t²/2)/(√(2π)·Φ(t)), one over the integral,
/// E u = t + h, E u² = 1 + t·E u and Var u = 1 − h·E u, where h·E u ≤ 2/π; for t = −a ≤ 0, E u = r₁,
/// E u² = r₁·r₂ and Var u = r₁·(r₂ − r₁), where r₂ is between 1.57·r₁ (a = 0) and 2·r₁ (a = ∞). So neither
/// variance loses more than two bits.
pub(crate) fn moments(gamma: f64, eta: f64) -> Moments {
    let scale = gamma.sqrt().recip();
    let t = eta * scale;
    if t <= 0.0 {
        let (r1, r2) = ratios(-t);
        return below(gamma, scale, r1, r2);
    }
    let h = (-0.5 * t * t).exp() / (TAU.sqrt() * 0.5 * libm::erfc(-t * FRAC_1_SQRT_2));
    let mean = t + h;
    Moments { mean: mean * scale, second: (1.0 + t * mean) / gamma, variance: (1.0 - h * mean) / gamma }
}

/// [`log_integral`] and [`moments`] at once: below zero both follow from the same ratios, which cost the most.
pub(crate) fn log_integral_and_moments(gamma: f64, eta: f64) -> (f64, Moments) {
    let t = eta / gamma.sqrt();
    if t > 0.0 {
        return (log_integral(gamma, eta), moments(gamma, eta));
    }
    let scale = gamma.sqrt().recip();
    let (at_integral, at_moments) = (ratios(-t), eta * scale);
    // The two roundings of t may differ in the last bit.
    let (r1, r2) = if at_moments == t { at_integral } else { ratios(-at_moments) };
    let log_integral = -0.5 * gamma.ln() - (at_integral.0 - t).ln();
    (log_integral, below(gamma, scale, r1, r2))
}

/// The moments for η ≤ 0 from the ratios.
fn below(gamma: f64, scale: f64, r1: f64, r2: f64) -> Moments {
    Moments { mean: r1 * scale, second: r1 * r2 / gamma, variance: r1 * (r2 - r1) / gamma }
}

/// Below this t = η/√γ the exponential proposal takes over. A trial of it costs two draws and is accepted with
/// probability 0.80 at t = −¼ (2.5 draws per sample); a normal trial costs one and is accepted with
/// Φ(−¼) = 0.40 (also 2.5), which only improves as t grows.
const TAIL: f64 = -0.25;

/// One exact draw from the density ∝ e^(−γx²/2 + ηx) on x ≥ 0, for γ > 0 and any finite η.
///
/// u = √γ·x is a normal of mean t = η/√γ and variance 1 given u ≥ 0. Unless the cut is in the upper tail, normals
/// are drawn until one is not negative. In the tail, t = −a, almost none would be; there u is drawn from
/// λe^(−λu) and kept with probability e^(−(u − (λ − a))²/2), the ratio of the densities over its maximum. The
/// rate of acceptance, I₀·λ·e^(−(λ − a)²/2), is greatest for λ(λ − a) = 1, that is λ = (a + √(a² + 4))/2
/// (Robert, Simulation of truncated normal variables, 1995), and goes to 1 as a → ∞.
pub(crate) fn sample<R: Rng>(gamma: f64, eta: f64, rng: &mut R) -> f64 {
    let scale = gamma.sqrt().recip();
    let t = eta * scale;
    if t < TAIL {
        let rate = 0.5 * (t.hypot(2.0) - t);
        loop {
            let draw: f64 = Exp1.sample(rng);
            let threshold: f64 = Exp1.sample(rng);
            let u = draw / rate;
            let off = u - rate.recip(); // λ − a = 1/λ
            // P(threshold ≥ s) = e^(−s): a test of acceptance without computing the exponential.
            if threshold >= 0.5 * off * off {
                return u * scale;
            }
        }
    }
    loop {
        let normal: f64 = StandardNormal.sample(rng);
        let u = t + normal;
        if u >= 0.0 || u.is_nan() {
            return u * scale;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use harmonium_kernels::{Key, Stream};

    /// (γ, η, [log integral, mean, second moment, variance]), in 220-digit arithmetic from erfc, which leaves
    /// more than 50 digits after the cancellation in the tails.
    #[rustfmt::skip]
    const REFERENCE: [(f64, f64, [f64; 4]); 20] = [
        (2.0, 0.0, [-0.12078223763524522, 0.5641895835477563, 0.5, 0.18169011381620934]),
        (1.0, -0.25, [0.037126768393537686, 0.7135539794164039, 0.821611505145899, 0.31245222360491326]),
        (3.0, -1.0, [-0.7300761323809737, 0.35841286483845936, 0.21386237838718022, 0.0854025967054685]),
        (1.0, -2.0, [-0.8642458004773592, 0.37321553282284087, 0.25356893435431827, 0.11427910041408125]),
        (1.0, -7.0, [-1.9653689656064024, 0.13754561322650327, 0.037180707414477064, 0.01826191169662223]),
        (2.0, -30.0, [-3.403407391441631, 0.03318680476625669, 0.002197928506149615, 0.0010965644955559769]),
        (1.0, -1000.0, [-6.907756278979637, 0.00099999800001, 1.9999900000739994e-06, 9.999940000499995e-07]),
        (1.0, -100000000.0, [-18.420680743952367, 9.999999999999999e-09, 1.999999999999999e-16, 9.999999999999994e-17]),
        (1e-06, -100000.0, [-11.512925464970229, 9.999999999999997e-06, 1.999999999999999e-10, 9.999999999999994e-11]),
        (1000000.0, -100000000000.0, [-25.328436022934504, 9.999999999999998e-12, 1.999999999999999e-22, 9.999999999999993e-23]),
        (1e-06, -0.002, [6.043509478504778, 373.2155328228409, 253568.93435431828, 114279.10041408126]),
        (1000000.0, -500.0, [-7.039728507371083, 0.0006410777703680645, 6.794611148159678e-07, 2.6848040715587897e-07]),
        (1e-06, 100000.0, [5000000000000008.0, 100000000000.0, 1.0000000000000002e+22, 1000000.0]),
        (1000000.0, 100000000000.0, [4999999999999994.0, 100000.0, 10000000000.000002, 1e-06]),
        (1.0, 0.5, [0.6749921179160163, 1.0091604338370335, 1.5045802169185167, 0.4861754356963671]),
        (3.0, 2.0, [0.9037882396671364, 0.8016774633465203, 0.867784975564347, 0.2250982203266354]),
        (0.5, 2.5, [7.515308626771871, 5.001089363774569, 27.005446818872848, 1.9945519944137204]),
        (1.0, 6.0, [18.918938532218085, 6.000000006075883, 37.0000000364553, 0.9999999635447028]),
        (1.0, 1000.0, [500000.9189385332, 1000.0, 1000001.0, 1.0]),
        (1.0, 100000000.0, [5000000000000001.0, 100000000.0, 1e+16, 1.0]),
    ];

    fn close(got: f64, want: f64, tolerance: f64) -> bool {
        (got - want).abs() <= tolerance * want.abs()
    }

    #[test]
    fn agrees_with_high_precision_references() {
        for (gamma, eta, [log, mean, second, variance]) in REFERENCE {
            let (l, m) = (log_integral(gamma, eta), moments(gamma, eta));
            let bound = 1e-14 * log.abs().max(1.0);
            assert!((l - log).abs() <= bound, "{gamma} {eta}: {l}");
            for (got, want) in [(m.mean, mean), (m.second, second), (m.variance, variance)] {
                assert!(close(got, want, 1e-14), "{gamma} {eta}: {m:?}");
            }
        }
    }

    #[test]
    fn moments_obey_their_identities() {
        for gamma in [1e-3f64, 1.0, 40.0] {
            for t in (-60..=60).map(|i| f64::from(i) * 0.2) {
                let (eta, step) = (t * gamma.sqrt(), 1e-4 * gamma.sqrt());
                let m = moments(gamma, eta);
                let slope = |f: fn(f64, f64) -> f64| {
                    (f(gamma, eta + step) - f(gamma, eta - step)) / (2.0 * step)
                };
                let bend = slope(|gamma, eta| moments(gamma, eta).mean);
                assert!(close(slope(log_integral), m.mean, 1e-7), "{gamma} {t}");
                assert!(close(bend, m.variance, 1e-7), "{gamma} {t}");
                // For t well below 0 the sum cancels.
                let second = (1.0 + eta * m.mean) / gamma;
                assert!(t < -1.0 || close(second, m.second, 1e-14), "{gamma} {t}");
            }
        }
    }

    #[test]
    fn extremes_stay_finite_and_ordered() {
        let mut rng = stream(0);
        for gamma in [1e-6, 1.0, 1e6] {
            for size in [1e4, 1e8, 1e12, 1e40, 1e100] {
                for eta in [-size, size] {
                    let m = moments(gamma, eta);
                    assert!(log_integral(gamma, eta).is_finite());
                    assert!(m.mean > 0.0 && m.second.is_finite(), "{m:?}");
                    assert!(m.variance >= 0.0 && m.variance <= m.second, "{m:?}");
                    let x = sample(gamma, eta, &mut rng);
                    assert!(x.is_finite() && x >= 0.0);
                }
            }
        }
    }

    fn stream(seed: u64) -> Stream {
        Stream::new(Key { seed, purpose: 0, block: 0, sweep: 0 })
    }

    const DRAWS: usize = 200_000;

    #[test]
    fn draws_have_the_mean_and_variance() {
        let n = DRAWS as f64;
        let mut rng = stream(1);
        for t in [-1e8, -50.0, -4.0, -1.0, -0.26, -0.24, 0.0, 1.0, 5.0, 1e3] {
            let (gamma, eta) = (2.5, t * 2.5f64.sqrt());
            let m = moments(gamma, eta);
            let (mut first, mut square, mut fourth) = (0.0, 0.0, 0.0);
            for _ in 0..DRAWS {
                let d = (sample(gamma, eta, &mut rng) - m.mean) / m.variance.sqrt();
                first += d / n;
                square += d * d / n;
                fourth += d.powi(4) / n;
            }
            let error = ((fourth - 1.0) / n).sqrt();
            assert!(first.abs() < 4.5 / n.sqrt(), "{t}: {first}");
            assert!((square - 1.0).abs() < 4.5 * error, "{t}: {square}");
        }
    }

    /// The share of the mass above x is e^(−γx²/2 + ηx) times the integral at η − γx, over the one at η.
    #[test]
    fn draws_follow_the_distribution_in_the_tail() {
        let (gamma, eta, mut rng) = (1.5, -1.5, stream(2));
        let mut draws: Vec<f64> = (0..DRAWS).map(|_| sample(gamma, eta, &mut rng)).collect();
        draws.sort_by(f64::total_cmp);
        let (n, total) = (DRAWS as f64, log_integral(gamma, eta));
        let mut distance = 0.0f64;
        for (i, x) in draws.into_iter().enumerate() {
            let above = log_integral(gamma, eta - gamma * x) + x * (eta - 0.5 * gamma * x) - total;
            let below = -above.exp_m1();
            let step = i as f64 / n;
            distance = distance.max(below - step).max(step + 1.0 / n - below);
        }
        // Kolmogorov's distribution: √n·D exceeds 1.95 once in a thousand.
        assert!(distance * n.sqrt() < 1.95, "{distance}");
    }
}
