//! Streaming sums Σ e^{a_k} f_k that neither overflow nor lose digits.

/// A compensated (Neumaier) sum: millions of terms without piling up rounding errors.
#[derive(Clone, Copy, Default)]
struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    fn add(&mut self, term: f64) {
        let next = self.sum + term;
        self.lost += if self.sum.abs() >= term.abs() {
            (self.sum - next) + term
        } else {
            (term - next) + self.sum
        };
        self.sum = next;
    }

    fn scale(&mut self, factor: f64) {
        self.sum *= factor;
        self.lost *= factor;
    }

    fn value(self) -> f64 {
        self.sum + self.lost
    }
}

/// Streaming ln Σ_k e^{a_k} and averages Σ_k e^{a_k} f_k / Σ_k e^{a_k}.
///
/// All sums are kept in units of e^{max}, the largest weight so far, and rescaled when it rises.
pub(crate) struct WeightedSums {
    max: f64,
    total: Sum,
    sums: Vec<Sum>,
}

impl WeightedSums {
    /// Empty sums of `n` quantities.
    pub(crate) fn new(n: usize) -> Self {
        WeightedSums { max: f64::NEG_INFINITY, total: Sum::default(), sums: vec![Sum::default(); n] }
    }

    /// Adds a term of weight e^{`log_weight`}; `features` is called to write f only if it matters.
    pub(crate) fn add(
        &mut self,
        log_weight: f64,
        buffer: &mut [f64],
        features: impl FnOnce(&mut [f64]),
    ) {
        assert!(!log_weight.is_nan(), "a weight is not a number");
        // e^{−100} ≈ 4e−44: even 10⁹ such terms, times any moment, stay far below one ulp.
        if log_weight == f64::NEG_INFINITY || log_weight < self.max - 100.0 {
            return;
        }
        if log_weight > self.max {
            let factor = (self.max - log_weight).exp();
            self.total.scale(factor);
            self.sums.iter_mut().for_each(|sum| sum.scale(factor));
            self.max = log_weight;
        }
        let weight = (log_weight - self.max).exp();
        self.total.add(weight);
        features(buffer);
        for (sum, &f) in self.sums.iter_mut().zip(buffer.iter()) {
            sum.add(weight * f);
        }
    }

    /// ln Σ_k e^{a_k}; −∞ when there was no term.
    pub(crate) fn log_total(&self) -> f64 {
        self.max + self.total.value().ln()
    }

    /// The averages.
    pub(crate) fn averages(&self) -> Vec<f64> {
        let total = self.total.value();
        assert!(total > 0.0, "no state has positive weight");
        self.sums.iter().map(|sum| sum.value() / total).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_exponents_and_rising_maxima() {
        let mut sums = WeightedSums::new(1);
        for (a, f) in [(-2000.0, 1.0), (1000.0, 2.0), (1000.0 + 3.0_f64.ln(), 6.0)] {
            sums.add(a, &mut [0.0], |buffer| buffer[0] = f);
        }
        assert!((sums.log_total() - (1000.0 + 4.0_f64.ln())).abs() < 1e-12);
        assert!((sums.averages()[0] - 5.0).abs() < 1e-12);
    }

    #[test]
    fn small_terms_are_not_lost() {
        let mut sum = Sum::default();
        sum.add(1.0);
        (0..1_000_000).for_each(|_| sum.add(1e-17));
        assert!((sum.value() - (1.0 + 1e-11)).abs() < 1e-16 * 2.0);
    }

    #[test]
    fn nothing_sums_to_minus_infinity() {
        let mut sums = WeightedSums::new(0);
        sums.add(f64::NEG_INFINITY, &mut [], |_| ());
        assert_eq!(sums.log_total(), f64::NEG_INFINITY);
    }
}
