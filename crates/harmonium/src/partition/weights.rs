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

/// Systematic resampling: `n` indices, index i about n·w_i times, with a single uniform number `u`.
pub(crate) fn systematic(log_w: &[f64], n: usize, u: f64) -> Vec<usize> {
    let w = normalised(log_w);
    let (mut out, mut i, mut sum) = (Vec::with_capacity(n), 0, w[0]);
    for k in 0..n {
        let at = (k as f64 + u) / n as f64;
        while sum < at && i + 1 < w.len() {
            i += 1;
            sum += w[i];
        }
        out.push(i);
    }
    out
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
        assert_eq!(systematic(&log_w, 8, 0.5), [0, 1, 1, 1, 3, 3, 3, 3]);
    }
}
