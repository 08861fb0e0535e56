//! Ratios of partition functions from samples of many distributions: Bennett along a ladder, MBAR.

use super::weights::log_mean_exp;
use crate::sample::{LogRatio, bennett};
use crate::units::sigmoid;
use crate::{Error, Result};
use ndarray::{Array2, Axis};

/// $\ln Z_{\text{last}}/Z_{\text{first}}$ along a ladder: the sum of [Bennett's ratios](crate::sample::bennett) of the pairs.
///
/// `ratios[i]` holds $u = \ln f_{i+1} - \ln f_i$ of samples of distribution i and of samples of i+1, each draw after
/// draw with `chains` numbers per draw. Chain r of all distributions belongs together (replicas exchange states), so
/// the standard error adds up what chain r contributes to all pairs before it is squared: correlations along the
/// chain and between pairs are accounted for.
pub fn bennett_ladder(ratios: &[(Vec<f64>, Vec<f64>)], chains: usize) -> LogRatio {
    let mut influence = vec![0.0; chains];
    let mut value = 0.0;
    for (from_0, from_1) in ratios {
        let r = bennett(from_0, from_1).value;
        value += r;
        let kappa = (from_1.len() as f64 / from_0.len() as f64).ln();
        // f and g are the two sides of Bennett's equation; their slopes turn an excess into a shift of r.
        let mut slope = 0.0;
        let mut excess = vec![0.0; chains];
        let sides = [(from_0, 1.0), (from_1, -1.0)];
        for (u, sign) in sides {
            for (k, u) in u.iter().enumerate() {
                let f = sigmoid(sign * (u - r + kappa));
                slope += f * (1.0 - f);
                excess[k % chains] += sign * f;
            }
        }
        influence.iter_mut().zip(excess).for_each(|(i, e)| *i += e / slope);
    }
    let n = chains as f64;
    let spread: f64 = influence.iter().map(|i| i * i).sum();
    LogRatio { value, std_err: (spread * n / (n - 1.0)).sqrt() }
}

/// Multistate Bennett acceptance ratio: ln Z of all distributions relative to the first, from samples of all.
///
/// `log_f[[k, n]]` is $\ln f_k(x_n)$ of sample n under distribution k, `counts[k]` says how many samples come from
/// distribution k. The solution of
///
/// $$Z_k = \sum_n \frac{f_k(x_n)}{\sum_l N_l f_l(x_n)/Z_l}$$
///
/// has the least variance of all estimates that use these numbers; with two distributions it is Bennett's.
///
/// # Errors
/// Counts that do not add up to the number of samples or a distribution without samples; numbers that are not finite.
pub fn mbar(log_f: &Array2<f64>, counts: &[usize]) -> Result<Vec<f64>> {
    let (k, n) = log_f.dim();
    if counts.len() != k || counts.iter().sum::<usize>() != n {
        return Err(Error::shape("samples of the distributions", n, counts.iter().sum::<usize>()));
    }
    if counts.contains(&0) || log_f.iter().any(|x| !x.is_finite()) {
        return Err(Error::value("samples of the distributions", "some of each, all finite", "others"));
    }
    let log_n: Vec<f64> = counts.iter().map(|&c| (c as f64).ln()).collect();
    let mut log_z = start(log_f, counts);
    for _ in 0..10_000 {
        // ln of the mixture Σ N_l f_l/Z_l at each sample.
        let log_mixture: Vec<f64> = log_f
            .axis_iter(Axis(1))
            .map(|f| {
                let terms: Vec<f64> = (0..k).map(|l| log_n[l] + f[l] - log_z[l]).collect();
                log_mean_exp(&terms) + (k as f64).ln()
            })
            .collect();
        let next: Vec<f64> = log_f
            .rows()
            .into_iter()
            .map(|f| {
                let terms: Vec<f64> = f.iter().zip(&log_mixture).map(|(f, m)| f - m).collect();
                log_mean_exp(&terms) + (n as f64).ln()
            })
            .collect();
        let next: Vec<f64> = next.iter().map(|z| z - next[0]).collect();
        let change = next.iter().zip(&log_z).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        log_z = next;
        if change < 1e-12 {
            break;
        }
    }
    Ok(log_z)
}

/// Bennett's ratios of neighbours: near the solution already.
fn start(log_f: &Array2<f64>, counts: &[usize]) -> Vec<f64> {
    let mut first = 0;
    let mut log_z = vec![0.0];
    for i in 0..counts.len() - 1 {
        let u = |from: usize, n: usize| -> Vec<f64> {
            (from..from + n).map(|s| log_f[[i + 1, s]] - log_f[[i, s]]).collect()
        };
        let next = first + counts[i];
        let ratio = bennett(&u(first, counts[i]), &u(next, counts[i + 1]));
        log_z.push(log_z[i] + ratio.value);
        first = next;
    }
    log_z
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;
    use harmonium_kernels::Stream;
    use rand_distr::{Distribution, StandardNormal};

    /// Normals of width 1, 2, 3 around 0, 1, 2: $\ln f = -(x-m)^2/2s^2$, so Z is proportional to the width.
    fn normals(n: usize, seed: u64) -> Array2<f64> {
        let mut rng = Stream::new(Key { seed, purpose: 0, block: 0, sweep: 0 });
        let mut out = Array2::zeros((3, 3 * n));
        for s in 0..3 * n {
            let k = (s / n) as f64;
            let x: f64 = k + (k + 1.0) * Distribution::<f64>::sample(&StandardNormal, &mut rng);
            (0..3).for_each(|l| out[[l, s]] = -0.5 * ((x - l as f64) / (l as f64 + 1.0)).powi(2));
        }
        out
    }

    #[test]
    fn ladder_and_multistate_find_the_widths() {
        let n = 4000;
        let log_f = normals(n, 3);
        let u = |i: usize, from: usize| -> Vec<f64> {
            (from * n..(from + 1) * n).map(|s| log_f[[i + 1, s]] - log_f[[i, s]]).collect()
        };
        let ladder = bennett_ladder(&[(u(0, 0), u(0, 1)), (u(1, 1), u(1, 2))], 50);
        let truth = 3f64.ln();
        assert!((0.005..0.05).contains(&ladder.std_err), "{ladder:?}");
        assert!((ladder.value - truth).abs() < 4.0 * ladder.std_err, "{ladder:?}");
        let z = mbar(&log_f, &[n; 3]).unwrap();
        assert!((z[1] - 2f64.ln()).abs() < 0.1 && (z[2] - truth).abs() < 4.0 * ladder.std_err, "{z:?}");
    }

    #[test]
    fn the_error_of_a_ladder_is_honest() {
        let n = 200;
        let errors: Vec<f64> = (0..200)
            .map(|seed| {
                let log_f = normals(n, 100 + seed);
                let u = |i: usize, from: usize| -> Vec<f64> {
                    (from * n..(from + 1) * n).map(|s| log_f[[i + 1, s]] - log_f[[i, s]]).collect()
                };
                let z = bennett_ladder(&[(u(0, 0), u(0, 1)), (u(1, 1), u(1, 2))], 20);
                (z.value - 3f64.ln()) / z.std_err
            })
            .collect();
        // The mean square of 200 t-like numbers with 19 degrees of freedom: 1.1 ± 0.13.
        let square = errors.iter().map(|e| e * e).sum::<f64>() / 200.0;
        assert!((0.7..1.6).contains(&square), "{square}");
    }

    #[test]
    fn two_distributions_are_bennetts() {
        let log_f =
            normals(300, 5).select(Axis(0), &[0, 1]).select(Axis(1), &(0..600).collect::<Vec<_>>());
        let u: Vec<f64> = (0..600).map(|s| log_f[[1, s]] - log_f[[0, s]]).collect();
        let two = bennett(&u[..300], &u[300..]).value;
        assert!((mbar(&log_f, &[300, 300]).unwrap()[1] - two).abs() < 1e-9);
        assert!(mbar(&log_f, &[600, 0]).is_err() && mbar(&log_f, &[300, 200]).is_err());
    }
}
