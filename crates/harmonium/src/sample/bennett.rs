//! Bennett's acceptance ratio: the ratio of two partition functions from samples of both.

use crate::units::sigmoid;

/// $\ln Z_1/Z_0$ and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogRatio {
    /// The estimate, in nats.
    pub value: f64,
    /// Its asymptotic standard error, for independent samples.
    pub std_err: f64,
}

/// $\ln Z_1/Z_0$ from $u = \ln p_1^\ast(x) - \ln p_0^\ast(x)$ of samples of both distributions: the root of
///
/// $$\sum_{x\sim p_0} \sigma\big(u(x) - r + \kappa\big) = \sum_{x\sim p_1} \sigma\big(r - u(x) - \kappa\big),
/// \qquad \kappa = \ln\frac{n_1}{n_0},$$
///
/// which has the least variance of all estimates that use both sets. The one-sided averages
/// $\ln\langle e^{u}\rangle_0$ and $-\ln\langle e^{-u}\rangle_1$ are biased downwards and upwards.
///
/// `NaN` when a set is empty or a value is not finite.
pub fn bennett(from_0: &[f64], from_1: &[f64]) -> LogRatio {
    let all = || from_0.iter().chain(from_1).copied();
    if from_0.is_empty() || from_1.is_empty() || all().any(|u| !u.is_finite()) {
        return LogRatio { value: f64::NAN, std_err: f64::NAN };
    }
    let (n_0, n_1) = (from_0.len() as f64, from_1.len() as f64);
    let kappa = (n_1 / n_0).ln();
    let excess = |r: f64| {
        let sum_0: f64 = from_0.iter().map(|u| sigmoid(u - r + kappa)).sum();
        let sum_1: f64 = from_1.iter().map(|u| sigmoid(r - u - kappa)).sum();
        sum_0 - sum_1
    };
    // The excess falls with r, and each set alone has the root inside the range of its values ± |κ| + ln n.
    let margin = kappa.abs() + (n_0 + n_1).ln() + 1.0;
    let mut low = all().fold(f64::INFINITY, f64::min) - margin;
    let mut high = all().fold(f64::NEG_INFINITY, f64::max) + margin;
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if excess(middle) > 0.0 { low = middle } else { high = middle }
    }
    let value = 0.5 * (low + high);
    LogRatio { value, std_err: std_err(from_0, from_1, value - kappa) }
}

/// $\mathrm{Var} \hat r = \frac{\langle f^2\rangle_0/\langle f\rangle_0^2 - 1}{n_0} +
/// \frac{\langle g^2\rangle_1/\langle g\rangle_1^2 - 1}{n_1}$ with the two sides f, g of the equation.
fn std_err(from_0: &[f64], from_1: &[f64], shift: f64) -> f64 {
    let relative = |values: &[f64], sign: f64| {
        let n = values.len() as f64;
        let (mut sum, mut squares) = (0.0, 0.0);
        for u in values {
            let f = sigmoid(sign * (u - shift));
            sum += f;
            squares += f * f;
        }
        (squares * n / (sum * sum) - 1.0).max(0.0) / n
    };
    (relative(from_0, 1.0) + relative(from_1, -1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use harmonium_kernels::{Key, Stream};
    use rand_distr::{Distribution, StandardNormal};

    /// Two normals of different width: u is a quadratic, Z the widths.
    #[test]
    fn two_normals() {
        let mut rng = Stream::new(Key { seed: 5, purpose: 0, block: 0, sweep: 0 });
        let u = |x: f64| -0.5 * (x - 1.0).powi(2) / 4.0 + 0.5 * x * x;
        let mut draw = |n: usize, mean: f64, sd: f64| -> Vec<f64> {
            (0..n)
                .map(|_| u(mean + sd * Distribution::<f64>::sample(&StandardNormal, &mut rng)))
                .collect()
        };
        let (from_0, from_1) = (draw(4000, 0.0, 1.0), draw(8000, 1.0, 2.0));
        let ratio = bennett(&from_0, &from_1);
        assert!(ratio.std_err > 0.002 && ratio.std_err < 0.03, "{ratio:?}");
        // Four standard errors: one wrong seed in 16 000.
        assert!((ratio.value - 2f64.ln()).abs() < 4.0 * ratio.std_err, "{ratio:?}");
        let back = bennett(
            &from_1.iter().map(|u| -u).collect::<Vec<_>>(),
            &from_0.iter().map(|u| -u).collect::<Vec<_>>(),
        );
        assert!((back.value + ratio.value).abs() < 1e-9, "the two directions are one equation");
    }

    #[test]
    fn a_constant_ratio_is_exact() {
        let ratio = bennett(&[1.25; 3], &[1.25; 7]);
        assert!((ratio.value - 1.25).abs() < 1e-12 && ratio.std_err < 1e-6, "{ratio:?}");
    }

    #[test]
    fn no_samples_no_number() {
        assert!(bennett(&[], &[1.0]).value.is_nan());
        assert!(bennett(&[f64::INFINITY], &[1.0]).value.is_nan());
    }
}
