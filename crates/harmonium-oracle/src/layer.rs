//! Unit kinds and layers: base energy, reference measure and sufficient statistics of given values.

/// The kind of every unit in a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// x ∈ {0, 1}; energy −θx.
    Binary,
    /// x ∈ {−1, +1}; energy −θx.
    Spin,
    /// One of `q` states, written one-hot in `q` dense columns; energy −θ_a in state a.
    Potts {
        /// Number of states.
        q: usize,
    },
    /// x ∈ ℝ; energy γx²/2 − θx with γ > 0.
    Gaussian,
    /// x ∈ [0, ∞); energy γx²/2 − θx with γ > 0.
    Relu,
    /// x ∈ ℝ; energy γ⁺x₊²/2 + γ⁻x₋²/2 − θ⁺x₊ − θ⁻x₋ with x₊ = max(x, 0), x₋ = min(x, 0), γ± > 0.
    DRelu,
    /// x ∈ {0, …, n}; energy −θx, reference measure C(n, x).
    Binomial {
        /// Largest value, the number of trials.
        n: usize,
    },
    /// x ∈ {0, 1, 2, …}; energy −θx, reference measure 1/x!.
    Poisson,
    /// x ∈ {0, …, n}; energy −θx, reference measure r(r+1)…(r+x−1)/x! with r = shape/16.
    NegativeBinomial {
        /// r in sixteenths.
        shape: usize,
        /// Largest value.
        n: usize,
    },
    /// x ∈ {0, …, n}; energy −θx − ν_x.
    Ordinal {
        /// Largest value.
        n: usize,
    },
}

impl Kind {
    /// Dense columns taken by one unit: q for Potts, 1 for all others.
    pub fn columns_per_unit(self) -> usize {
        match self {
            Kind::Potts { q } => q,
            _ => 1,
        }
    }

    /// Number of parameter arrays.
    pub fn n_params(self) -> usize {
        match self {
            Kind::Binary | Kind::Spin | Kind::Potts { .. } => 1,
            Kind::Binomial { .. } | Kind::Poisson | Kind::NegativeBinomial { .. } => 1,
            Kind::Gaussian | Kind::Relu => 2,
            Kind::DRelu => 4,
            Kind::Ordinal { n } => n + 2,
        }
    }

    /// Where the values of a unit lie.
    pub(crate) fn support(self) -> Support {
        match self {
            Kind::Binary | Kind::Spin | Kind::Potts { .. } => Support::Finite,
            Kind::Binomial { .. } | Kind::NegativeBinomial { .. } | Kind::Ordinal { .. } => {
                Support::Finite
            }
            Kind::Poisson => Support::Counts,
            Kind::Relu => Support::HalfLine,
            Kind::Gaussian | Kind::DRelu => Support::Line,
        }
    }

    /// True for the kinds that are integrated rather than summed.
    pub fn is_real(self) -> bool {
        matches!(self.support(), Support::HalfLine | Support::Line)
    }

    /// True for the kinds with infinitely many values.
    pub fn is_unbounded(self) -> bool {
        self.support() != Support::Finite
    }

    /// True for the kinds with infinitely many values that stop at 0.
    pub(crate) fn is_half_line(self) -> bool {
        matches!(self.support(), Support::Counts | Support::HalfLine)
    }
}

/// Where the values of a unit lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Support {
    /// Finitely many values.
    Finite,
    /// 0, 1, 2, ….
    Counts,
    /// The real numbers ≥ 0.
    HalfLine,
    /// All real numbers.
    Line,
}

/// Units of one kind.
///
/// `params` holds one array per parameter, each as long as the layer is wide (dense columns):
///
/// | kind | arrays |
/// |---|---|
/// | Binary, Spin, Binomial, Poisson, NegativeBinomial | θ |
/// | Potts | θ, site-major: state a of unit i at `i * q + a` |
/// | Gaussian, Relu | θ, γ |
/// | DRelu | θ⁺, θ⁻, γ⁺, γ⁻ |
/// | Ordinal | θ, ν₀, …, ν_n |
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// Kind of all its units.
    pub kind: Kind,
    /// Parameter arrays in the order of the table above.
    pub params: Vec<Vec<f64>>,
}

impl Layer {
    /// Number of dense columns.
    pub fn width(&self) -> usize {
        self.params[0].len()
    }

    /// Number of units: the width, divided by q for Potts.
    pub fn n_units(&self) -> usize {
        self.width() / self.kind.columns_per_unit()
    }

    /// Base energy of the dense values `x`: without couplings, β or ν.
    pub fn energy(&self, x: &[f64]) -> f64 {
        assert_eq!(x.len(), self.width(), "one value per dense column");
        let p = &self.params;
        let column_energy = |(i, &x): (usize, &f64)| match self.kind {
            Kind::Gaussian | Kind::Relu => p[1][i] * x * x / 2.0 - p[0][i] * x,
            Kind::DRelu => {
                let (plus, minus) = (x.max(0.0), x.min(0.0));
                p[2][i] * plus * plus / 2.0 + p[3][i] * minus * minus / 2.0
                    - p[0][i] * plus
                    - p[1][i] * minus
            }
            Kind::Ordinal { .. } => -p[0][i] * x - p[1 + x as usize][i],
            _ => -p[0][i] * x,
        };
        x.iter().enumerate().map(column_energy).sum()
    }

    /// Statistics s with ∂E/∂param = −s, shaped like `params`:
    /// x for θ, −x²/2 for γ; dReLU: x₊, x₋, −x₊²/2, −x₋²/2; 1 for the ν of the value, 0 for the others.
    pub fn statistics(&self, x: &[f64]) -> Vec<Vec<f64>> {
        let array = |k| x.iter().map(|&x| self.statistic(k, x)).collect();
        (0..self.kind.n_params()).map(array).collect()
    }

    /// The statistic that belongs to the k-th parameter array, of one dense column with value x.
    pub(crate) fn statistic(&self, k: usize, x: f64) -> f64 {
        let (plus, minus) = (x.max(0.0), x.min(0.0));
        match (self.kind, k) {
            (Kind::DRelu, 0) => plus,
            (Kind::DRelu, 1) => minus,
            (Kind::DRelu, 2) => -plus * plus / 2.0,
            (Kind::DRelu, 3) => -minus * minus / 2.0,
            (Kind::Gaussian | Kind::Relu, 1) => -x * x / 2.0,
            (Kind::Ordinal { .. }, 1..) => f64::from(u8::from(k == 1 + x as usize)),
            _ => x,
        }
    }

    /// ln ν(x), the reference measure; −∞ when a value lies outside the support.
    pub fn log_nu(&self, x: &[f64]) -> f64 {
        assert_eq!(x.len(), self.width(), "one value per dense column");
        let units = x.chunks(self.kind.columns_per_unit());
        units.map(|unit| self.kind.log_nu(unit)).sum()
    }
}

impl Kind {
    /// ln ν of one unit, given its dense columns.
    pub(crate) fn log_nu(self, unit: &[f64]) -> f64 {
        let x = unit[0];
        let is_count = x >= 0.0 && x.fract() == 0.0;
        let (in_support, log_nu) = match self {
            Kind::Binary => (x == 0.0 || x == 1.0, 0.0),
            Kind::Spin => (x == -1.0 || x == 1.0, 0.0),
            Kind::Potts { .. } => (is_one_hot(unit), 0.0),
            Kind::Gaussian | Kind::DRelu => (x.is_finite(), 0.0),
            Kind::Relu => (x.is_finite() && x >= 0.0, 0.0),
            Kind::Binomial { n } => (is_count && x <= n as f64, log_choose(n, x as usize)),
            Kind::Poisson => (is_count, -log_factorial(x as usize)),
            Kind::Ordinal { n } => (is_count && x <= n as f64, 0.0),
            Kind::NegativeBinomial { shape, n } => {
                (is_count && x <= n as f64, log_rising(shape as f64 / 16.0, x as usize))
            }
        };
        if in_support { log_nu } else { f64::NEG_INFINITY }
    }
}

fn is_one_hot(unit: &[f64]) -> bool {
    unit.iter().all(|&x| x == 0.0 || x == 1.0) && unit.iter().sum::<f64>() == 1.0
}

/// ln n!, by adding up logarithms.
fn log_factorial(n: usize) -> f64 {
    (1..=n).map(|k| (k as f64).ln()).sum()
}

/// ln of r(r+1)…(r+k−1)/k!, factor by factor.
fn log_rising(r: f64, k: usize) -> f64 {
    (0..k).map(|i| ((r + i as f64) / (i + 1) as f64).ln()).sum()
}

/// ln C(n, k) as ∏_{i=1}^{k} (n−k+i)/i; 0 for k > n, where the caller rejects the value anyway.
fn log_choose(n: usize, k: usize) -> f64 {
    let factor = |i: usize| ((n - k + i) as f64 / i as f64).ln();
    if k > n { 0.0 } else { (1..=k).map(factor).sum() }
}
