//! Averages of exponentials: values, standard errors and effective sample sizes of log-weights.

/// $\ln\frac1n\sum_i e^{x_i}$ without overflow.
pub fn log_mean_exp(x: &[f64]) -> f64 {
    let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !max.is_finite() {
        return max;
    }
    max + (x.iter().map(|x| (x - max).exp()).sum::<f64>() / x.len() as f64).ln()
}

/// $\sum_i w_i$ normalised to one from log-weights.
pub fn normalised(log_w: &[f64]) -> Vec<f64> {
    let total = log_mean_exp(log_w) + (log_w.len() as f64).ln();
    log_w.iter().map(|x| (x - total).exp()).collect()
}

/// Kish's effective number of samples, $(\sum w)^2/\sum w^2$.
pub fn effective_size(log_w: &[f64]) -> f64 {
    1.0 / normalised(log_w).iter().map(|w| w * w).sum::<f64>()
}

/// Standard error of [`log_mean_exp`] by the delta method, when consecutive runs of `group` log-weights come
/// from one chain and the groups are independent:
/// $\widehat{se}^2 = \frac{G}{G-1}\sum_g \big(\sum_{i\in g} \bar w_i - \tfrac1G\big)^2$ with weights that sum to one.
pub fn std_err(log_w: &[f64], group: usize) -> f64 {
    let w = normalised(log_w);
    let sums: Vec<f64> = w.chunks(group).map(|g| g.iter().sum()).collect();
    let g = sums.len() as f64;
    let spread: f64 = sums.iter().map(|s| (s - 1.0 / g).powi(2)).sum();
    (spread * g / (g - 1.0)).sqrt()
}

/// Mean and (n−1)-variance.
pub(crate) fn mean_var(x: &[f64]) -> (f64, f64) {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    let var = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (mean, var)
}

/// Systematic resampling: `n` rows from weights that sum to one. One uniform number `u` shifts an evenly spaced grid over
/// the cumulative weights, so that row i is taken ⌊n·w_i⌋ or ⌈n·w_i⌉ times.
pub(crate) fn systematic(wts: &[f64], n: usize, u: f64) -> Vec<usize> {
    let (mut rows, mut sum) = (Vec::with_capacity(n), 0.0);
    for (r, wt) in wts.iter().enumerate() {
        sum += wt * n as f64;
        while rows.len() < n && u + (rows.len() as f64) < sum {
            rows.push(r);
        }
    }
    // Rounding may leave the last grid point beyond the sum.
    let last = rows.last().copied().unwrap_or(0);
    rows.resize(n, last);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_of_exponentials() {
        let x = [1000.0, 1000.0 + 3f64.ln()];
        assert!((log_mean_exp(&x) - (1000.0 + 2f64.ln())).abs() < 1e-12);
        assert!((effective_size(&x) - 16.0 / 10.0).abs() < 1e-12);
        // Weights ¼ and ¾: se² = 2·(¼² + ¼²).
        assert!((std_err(&x, 1) - 0.5).abs() < 1e-12);
        assert!((effective_size(&[5.0; 7]) - 7.0).abs() < 1e-9 && std_err(&[5.0; 7], 1) < 1e-12);
    }

    #[test]
    fn resampling_follows_the_weights() {
        let log_w = [0.0, 3f64.ln(), f64::NEG_INFINITY, 4f64.ln()];
        assert_eq!(systematic(&normalised(&log_w), 8, 0.5), [0, 1, 1, 1, 3, 3, 3, 3]);
    }

    #[test]
    fn resampling_keeps_rows_in_proportion() {
        let wts = [0.5, 0.0, 0.26, 0.24];
        for k in 1..100 {
            let rows = systematic(&wts, 4, f64::from(k) / 100.0);
            let count = |r: usize| rows.iter().filter(|&&x| x == r).count();
            assert_eq!((rows.len(), count(0), count(1)), (4, 2, 0));
            assert!((1..=2).contains(&count(2)) && count(3) <= 1, "{rows:?}");
        }
        assert_eq!(systematic(&[0.0, 1.0], 2, 1.0 - 1e-16), [1, 1]);
    }
}
