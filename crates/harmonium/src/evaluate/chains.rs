//! Diagnostics of mixing: R-hat, effective sample sizes and autocorrelation times of scalar draws.
//!
//! Definitions as in Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), "Rank-normalization, folding, and
//! localization". Draws are matrices with a row per chain and a column per draw.

use crate::{Error, Result};
use ndarray::{Array2, ArrayView1, ArrayView2, Axis, concatenate};

/// Diagnostics of one quantity along several chains.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Mixing {
    /// Rank-normalised split R-hat, the larger of bulk and tails: 1 when the chains agree, suspect above 1.01.
    pub r_hat: f64,
    /// Effective number of draws for the centre of the distribution.
    pub ess_bulk: f64,
    /// Effective number of draws for its 5 % and 95 % quantiles.
    pub ess_tail: f64,
    /// Integrated autocorrelation time in draws.
    pub autocorrelation: f64,
}

/// All diagnostics of one quantity.
///
/// # Errors
/// Fewer than two chains or four draws, or draws that are not finite.
pub fn mixing(draws: ArrayView2<'_, f64>) -> Result<Mixing> {
    check(draws, 2)?;
    Ok(Mixing {
        r_hat: r_hat(draws)?,
        ess_bulk: ess_bulk(draws)?,
        ess_tail: ess_tail(draws)?,
        autocorrelation: autocorrelation_time(draws)?,
    })
}

/// Split R-hat: $\sqrt{(\tfrac{n-1}{n}W + \tfrac1n B)/W}$ of the halves of the chains, with the variance W within
/// and B between them.
///
/// # Errors
/// As for [`mixing`].
pub fn split_r_hat(draws: ArrayView2<'_, f64>) -> Result<f64> {
    check(draws, 2)?;
    Ok(potential_scale_reduction(&split(draws)))
}

/// Rank-normalised split R-hat: the larger of that of the normal scores of the ranks and that of the ranks of the
/// distances from the median, which detects chains of equal mean and unequal width.
///
/// # Errors
/// As for [`mixing`].
pub fn r_hat(draws: ArrayView2<'_, f64>) -> Result<f64> {
    check(draws, 2)?;
    let halves = split(draws);
    let median = quantile(&mut halves.iter().copied().collect::<Vec<_>>(), 0.5);
    let folded = halves.mapv(|x| (x - median).abs());
    let bulk = potential_scale_reduction(&normal_scores(&halves));
    Ok(bulk.max(potential_scale_reduction(&normal_scores(&folded))))
}

/// Effective sample size of the bulk: that of the normal scores of the ranks.
///
/// # Errors
/// As for [`mixing`], but one chain is enough.
pub fn ess_bulk(draws: ArrayView2<'_, f64>) -> Result<f64> {
    check(draws, 1)?;
    Ok(ess_of(&normal_scores(&split(draws))))
}

/// Effective sample size of the tails: the smaller of those of the 5 % and 95 % quantiles.
///
/// # Errors
/// As for [`ess_bulk`].
pub fn ess_tail(draws: ArrayView2<'_, f64>) -> Result<f64> {
    check(draws, 1)?;
    let mut sorted: Vec<f64> = draws.iter().copied().collect();
    let of = |q: f64| ess_of(&split(draws.mapv(|x| f64::from(u8::from(x <= q))).view()));
    let ends = [0.05, 0.95].map(|p| of(quantile(&mut sorted, p)));
    Ok(ends[0].min(ends[1]))
}

/// Effective sample size of the mean, with the halves of the chains as chains.
///
/// # Errors
/// As for [`ess_bulk`].
pub fn ess_mean(draws: ArrayView2<'_, f64>) -> Result<f64> {
    check(draws, 1)?;
    Ok(ess_of(&split(draws)))
}

/// Integrated autocorrelation time in draws, $1 + 2\sum_t\rho_t$: the number of draws over [`ess_mean`].
///
/// # Errors
/// As for [`ess_bulk`].
pub fn autocorrelation_time(draws: ArrayView2<'_, f64>) -> Result<f64> {
    let halves = (draws.ncols() / 2 * 2 * draws.nrows()) as f64;
    Ok(halves / ess_mean(draws)?)
}

fn check(draws: ArrayView2<'_, f64>, chains: usize) -> Result<()> {
    if draws.nrows() < chains || draws.ncols() < 4 {
        let got = format!("{} × {}", draws.nrows(), draws.ncols());
        return Err(Error::shape("chains × draws", format!("at least {chains} × 4"), got));
    }
    match draws.iter().find(|x| !x.is_finite()) {
        Some(x) => Err(Error::value("a draw", "a finite number", x)),
        None => Ok(()),
    }
}

/// First and second halves of all chains as chains of their own.
fn split(draws: ArrayView2<'_, f64>) -> Array2<f64> {
    let n = draws.ncols();
    let (first, second) = (draws.split_at(Axis(1), n / 2).0, draws.split_at(Axis(1), n - n / 2).1);
    concatenate(Axis(0), &[first, second]).expect("halves have one length")
}

fn variance(x: ArrayView1<'_, f64>) -> f64 {
    let mean = x.mean().expect("not empty");
    x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (x.len() as f64 - 1.0)
}

fn potential_scale_reduction(draws: &Array2<f64>) -> f64 {
    let n = draws.ncols() as f64;
    let means = draws.mean_axis(Axis(1)).expect("not empty");
    let between = n * variance(means.view());
    let within = draws.rows().into_iter().map(variance).sum::<f64>() / draws.nrows() as f64;
    ((between / within + n - 1.0) / n).sqrt()
}

/// $\Phi^{-1}\big((r - 3/8)/(S + 1/4)\big)$ of the rank r of each draw among all S, ties sharing their mean rank.
fn normal_scores(draws: &Array2<f64>) -> Array2<f64> {
    let values: Vec<f64> = draws.iter().copied().collect();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut scores = vec![0.0; values.len()];
    let size = values.len() as f64;
    let mut first = 0;
    while first < order.len() {
        let tied = order[first..].iter().take_while(|&&i| values[i] == values[order[first]]).count();
        let rank = first as f64 + 0.5 * (tied as f64 + 1.0);
        let score = normal_quantile((rank - 0.375) / (size + 0.25));
        order[first..first + tied].iter().for_each(|&i| scores[i] = score);
        first += tied;
    }
    Array2::from_shape_vec(draws.dim(), scores).expect("one score per draw")
}

/// $\Phi^{-1}(p)$: a rational start (Acklam's, relative error 1e-9) and one step of Halley's method.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    let horner = |c: &[f64], x: f64| c.iter().fold(0.0, |sum, c| sum * x + c);
    const A: [f64; 6] = [
        -3.969683028665376e+01,
        2.209460984245205e+02,
        -2.759285104469687e+02,
        1.38357751867269e+02,
        -3.066479806614716e+01,
        2.506628277459239e+00,
    ];
    const B: [f64; 6] = [
        -5.447609879822406e+01,
        1.615858368580409e+02,
        -1.556989798598866e+02,
        6.680131188771972e+01,
        -1.328068155288572e+01,
        1.0,
    ];
    const C: [f64; 6] = [
        -7.784894002430293e-03,
        -3.223964580411365e-01,
        -2.400758277161838e+00,
        -2.549732539343734e+00,
        4.374664141464968e+00,
        2.938163982698783e+00,
    ];
    const D: [f64; 5] = [
        7.784695709041462e-03,
        3.224671290700398e-01,
        2.445134137142996e+00,
        3.754408661907416e+00,
        1.0,
    ];
    let tail = |p: f64| {
        let q = (-2.0 * p.ln()).sqrt();
        horner(&C, q) / horner(&D, q)
    };
    let x = match p {
        p if p < 0.02425 => tail(p),
        p if p > 1.0 - 0.02425 => -tail(1.0 - p),
        _ => {
            let q = p - 0.5;
            q * horner(&A, q * q) / horner(&B, q * q)
        }
    };
    let error = 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2) - p;
    let u = error * (2.0 * std::f64::consts::PI).sqrt() * (0.5 * x * x).exp();
    x - u / (1.0 + 0.5 * x * u)
}

/// Linear interpolation between order statistics; sorts `x`.
fn quantile(x: &mut [f64], p: f64) -> f64 {
    x.sort_by(f64::total_cmp);
    let at = p * (x.len() - 1) as f64;
    let low = (at.floor() as usize).min(x.len() - 1);
    let high = (low + 1).min(x.len() - 1);
    x[low] + (at - low as f64) * (x[high] - x[low])
}

/// Effective sample size from the autocorrelations $\rho_t$ of all chains together, cut by Geyer's rules: sums of pairs
/// $\rho_{2k} + \rho_{2k+1}$ count as long as they are positive, and may only fall.
fn ess_of(draws: &Array2<f64>) -> f64 {
    let (chains, n) = draws.dim();
    let size = (chains * n) as f64;
    let (min, max) = draws.iter().fold((f64::MAX, f64::MIN), |(a, b), &x| (a.min(x), b.max(x)));
    if max - min < 1e-15 {
        return size;
    }
    let means = draws.mean_axis(Axis(1)).expect("not empty");
    let centred = draws - &means.view().insert_axis(Axis(1));
    let covariance = |t: usize| {
        let lagged = |x: &[f64]| x[..n - t].iter().zip(&x[t..]).map(|(a, b)| a * b).sum::<f64>();
        let of = |row: ArrayView1<'_, f64>| lagged(row.to_slice().expect("a row")) / n as f64;
        centred.rows().into_iter().map(of).sum::<f64>() / chains as f64
    };
    let zero = covariance(0);
    let within = zero * n as f64 / (n as f64 - 1.0);
    let between = if chains > 1 { variance(means.view()) } else { 0.0 };
    let correlation = |t: usize| 1.0 - (within - covariance(t)) / (zero + between);
    let mut rho = vec![1.0, correlation(1)];
    let (mut t, mut even, mut odd) = (1, rho[0], rho[1]);
    while t + 3 < n && even + odd > 0.0 {
        (even, odd) = (correlation(t + 1), correlation(t + 2));
        if even + odd >= 0.0 {
            rho.extend([even, odd]);
        }
        t += 2;
    }
    // The last even correlation counts once when it is positive; everything before it twice.
    let whole = t - 1;
    rho.truncate(whole);
    for k in (2..whole.saturating_sub(1)).step_by(2) {
        if rho[k] + rho[k + 1] > rho[k - 2] + rho[k - 1] {
            rho[k] = 0.5 * (rho[k - 2] + rho[k - 1]);
            rho[k + 1] = rho[k];
        }
    }
    let last = if even + odd >= 0.0 { even } else { even.max(0.0) };
    let tau = -1.0 + 2.0 * rho.iter().sum::<f64>() + last;
    // Effective draws of antithetic chains are capped at n·log₁₀ n.
    size / tau.max(1.0 / size.log10())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws from a linear congruential generator, so that another program can make the same ones.
    fn draws(kind: &str, chains: usize, n: usize, seed: u64) -> Array2<f64> {
        let mut state = seed;
        let mut out = Array2::zeros((chains, n));
        for c in 0..chains {
            let (mut x, f) = (0.0, c as f64);
            for t in 0..n {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let u = (state >> 11) as f64 / (1u64 << 53) as f64;
                x = match kind {
                    "white" => u,
                    "slow" => 0.9 * x + u - 0.5,
                    "swinging" => -0.6 * x + u - 0.5,
                    "apart" => 0.5 * (x - 3.0 * f) + 3.0 * f + u - 0.5,
                    "wide" => (1.0 + 2.0 * f) * (u - 0.5),
                    _ => (0.5 * x + 4.0 * u).floor(),
                };
                out[[c, t]] = x;
            }
        }
        out
    }

    /// Kind, chains, draws, seed; split R-hat, rank R-hat, ESS of bulk, tail and mean as ArviZ 0.23.4 gives them:
    /// `az.rhat(d, method="split")`, `"rank"`, `az.ess(d, method="bulk")`, `"tail"`, `"mean"`.
    #[allow(clippy::excessive_precision)]
    const REFERENCE: [(&str, usize, usize, u64, [f64; 5]); 7] = [
        (
            "white",
            4,
            100,
            1,
            [
                0.99584375353767,
                1.0025799426344721,
                450.1675368094055,
                416.0675869007568,
                479.80293501583407,
            ],
        ),
        (
            "slow",
            4,
            250,
            2,
            [
                1.0753075153552254,
                1.0811592231780134,
                39.4364260405217,
                89.23373601428715,
                44.179961898178135,
            ],
        ),
        (
            "swinging",
            3,
            101,
            3,
            [
                0.9917922028444477,
                1.0022105428135104,
                743.1363764158988,
                268.30892654933524,
                743.1363764158988,
            ],
        ),
        (
            "apart",
            2,
            60,
            4,
            [
                4.8105197923072165,
                1.8529330500251733,
                3.3311190594916664,
                99.60521121200155,
                2.41591846744354,
            ],
        ),
        (
            "wide",
            4,
            80,
            5,
            [
                0.996727147495192,
                1.3427101935201473,
                513.1828809662461,
                94.5401590679958,
                509.43194762815017,
            ],
        ),
        (
            "tied",
            4,
            120,
            6,
            [
                1.0231688771219845,
                1.0231852583949517,
                143.9020775736458,
                158.64808702068714,
                144.98375204891403,
            ],
        ),
        (
            "slow",
            2,
            8,
            7,
            [
                1.5113297244725206,
                1.4628177191587008,
                19.265919722494797,
                19.265919722494797,
                19.265919722494797,
            ],
        ),
    ];

    #[test]
    fn agrees_with_arviz() {
        for (kind, chains, n, seed, expected) in REFERENCE {
            let d = draws(kind, chains, n, seed);
            let d = d.view();
            let got = [split_r_hat(d), r_hat(d), ess_bulk(d), ess_tail(d), ess_mean(d)];
            for (got, e) in got.into_iter().zip(expected) {
                let got = got.unwrap();
                assert!((got - e).abs() <= 1e-6 * e.abs(), "{kind} {chains}×{n}: {got} against {e}");
            }
        }
    }

    #[test]
    fn far_modes_are_flagged_and_mixing_chains_pass() {
        let bad = mixing(draws("apart", 2, 400, 1).view()).unwrap();
        assert!(bad.r_hat > 1.5 && bad.ess_bulk < 10.0, "{bad:?}");
        let good = mixing(draws("white", 4, 1000, 2).view()).unwrap();
        assert!(good.r_hat < 1.01 && good.ess_bulk > 2000.0 && good.ess_tail > 2000.0, "{good:?}");
        // The autocorrelation time of an autoregression with coefficient 0.9 is 1.9/0.1.
        let slow = autocorrelation_time(draws("slow", 4, 20_000, 3).view()).unwrap();
        assert!((slow - 19.0).abs() < 3.0, "{slow}");
    }

    #[test]
    fn quantiles_of_the_normal() {
        for (p, x) in [(0.5, 0.0), (0.975, 1.959963984540054), (1e-10, -6.361340902404056)] {
            assert!((normal_quantile(p) - x).abs() < 1e-12, "{p}");
        }
    }

    #[test]
    fn refuses_what_says_nothing() {
        assert!(r_hat(Array2::zeros((1, 10)).view()).is_err());
        assert!(ess_bulk(Array2::zeros((3, 3)).view()).is_err());
        assert!(r_hat(Array2::from_elem((2, 10), f64::NAN).view()).is_err());
    }
}
