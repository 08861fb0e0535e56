//! Thermodynamic integration: ln Z from the mean slope along a path.

/// $\ln Z_1 - \ln Z_0 = \int_0^1 \langle\partial_\beta \ln f_\beta\rangle_\beta d\beta$ from the mean slopes `g` at the nodes
/// `betas`, by Hermite's rule $h\frac{g_0+g_1}2 + \frac{h^2}{12}(g_0' - g_1')$ with derivatives from parabolas through
/// neighbouring nodes: exact for parabolas. The second number is the correction to the trapezoidal rule, a safe
/// estimate of what the nodes do not resolve.
pub fn integrate(betas: &[f64], g: &[f64]) -> (f64, f64) {
    let n = betas.len();
    let secant = |i: usize| (g[i + 1] - g[i]) / (betas[i + 1] - betas[i]);
    let derivative = |i: usize| {
        if n < 3 {
            return secant(0);
        }
        let j = i.clamp(1, n - 2);
        let (h0, h1) = (betas[j] - betas[j - 1], betas[j + 1] - betas[j]);
        let second = (secant(j) - secant(j - 1)) / (h0 + h1);
        // Newton's form of the parabola through j−1, j, j+1, differentiated at i.
        secant(j - 1) + second * (2.0 * betas[i] - betas[j - 1] - betas[j])
    };
    let (mut sum, mut correction) = (0.0, 0.0);
    for i in 0..n - 1 {
        let h = betas[i + 1] - betas[i];
        let c = h * h / 12.0 * (derivative(i) - derivative(i + 1));
        sum += h * 0.5 * (g[i] + g[i + 1]) + c;
        correction += c.abs();
    }
    (sum, correction)
}

#[cfg(test)]
mod tests {
    use super::integrate;

    #[test]
    fn parabolas_are_exact() {
        let betas: [f64; 5] = [0.0, 0.2, 0.3, 0.7, 1.0];
        let g = betas.map(|b| 1.0 - 2.0 * b + 6.0 * b * b);
        assert!((integrate(&betas, &g).0 - 2.0).abs() < 1e-12);
        let smooth: Vec<f64> = (0..=20).map(|k| f64::from(k) / 20.0).collect();
        let g: Vec<f64> = smooth.iter().map(|b| (3.0 * b).exp()).collect();
        let (value, correction) = integrate(&smooth, &g);
        let error = (value - (3f64.exp() - 1.0) / 3.0).abs();
        assert!(error < 1e-3 && error < correction, "{value} {correction}");
    }
}
