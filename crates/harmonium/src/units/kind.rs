//! The kinds of units and what can be said of them without parameters.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What the units of a layer are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// {0, 1}; $E = -\theta x$.
    Binary,
    /// {−1, +1}; $E = -\theta x$.
    Spin,
    /// One of `q` states; $E = -\theta_a$.
    Potts {
        /// Number of states.
        q: u32,
    },
    /// A real number; $E = \gamma x^2/2 - \theta x$, $\gamma > 0$.
    Gaussian,
    /// A number ≥ 0; $E = \gamma x^2/2 - \theta x$, $\gamma > 0$.
    Relu,
    /// A real number; $E = \gamma^+x_+^2/2 + \gamma^-x_-^2/2 - \theta^+x_+ - \theta^-x_-$ with
    /// $x_+ = \max(x,0)$ and $x_- = \min(x,0)$.
    Drelu,
    /// {0, 1 … n}; $E = -\theta x$ over the measure $\binom{n}{x}$: the sum of n binary units.
    Binomial {
        /// Largest count.
        n: u32,
    },
    /// {0, 1, 2 …}; $E = -\theta x$ over the measure $1/x!$.
    Poisson,
    /// {0, 1 … n}; $E = -\theta x$ over the measure $\binom{x+r-1}{x}$ with r = `shape`/16: counts whose variance
    /// $m + m^2/r$ exceeds their mean m. The bound n, far above the counts of the data, makes Z finite whatever the
    /// units are coupled to; where θ + I is close to zero or above, a mean costs a sum over it.
    NegativeBinomial {
        /// r in sixteenths: few sixteenths are broad, many come close to Poisson.
        shape: u32,
        /// Largest count.
        n: u32,
    },
    /// {0, 1 … n}; $E = -\theta x - \nu_x$: counts and grades of any frequencies, coupled by their number.
    Ordinal {
        /// Largest number, at most 1023.
        n: u32,
    },
}

/// How the states of a kind are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Packed bits.
    Bits,
    /// Unsigned integers.
    Codes,
    /// Numbers of type `T`.
    Reals,
}

impl Kind {
    /// Every kind once, with small parameters where a kind has some: for tests and listings.
    pub const ALL: [Self; 10] = [
        Self::Binary,
        Self::Spin,
        Self::Potts { q: 3 },
        Self::Gaussian,
        Self::Relu,
        Self::Drelu,
        Self::Binomial { n: 3 },
        Self::Poisson,
        Self::NegativeBinomial { shape: 24, n: 5 },
        Self::Ordinal { n: 3 },
    ];

    /// Names of the parameter arrays, in the order of the rows of a layer's parameters.
    pub fn params(self) -> &'static [&'static str] {
        match self {
            Self::Gaussian | Self::Relu => &["theta", "gamma"],
            Self::Drelu => &["theta_plus", "theta_minus", "gamma_plus", "gamma_minus"],
            Self::Ordinal { n } => super::ordinal::names(n),
            _ => &["theta"],
        }
    }

    /// Columns a unit takes in dense matrices and inputs: q for Potts, else 1.
    pub fn columns(self) -> usize {
        match self {
            Self::Potts { q } => q as usize,
            _ => 1,
        }
    }

    /// Whether the states are counts: whole numbers from 0 on that couple by their value.
    pub fn is_count(self) -> bool {
        self.has_measure() || matches!(self, Self::Ordinal { .. })
    }

    /// Whether the reference measure is not 1 on all states.
    pub fn has_measure(self) -> bool {
        matches!(self, Self::Binomial { .. } | Self::Poisson | Self::NegativeBinomial { .. })
    }

    /// Whether a unit of this kind can be in any state at all.
    pub fn has_states(self) -> bool {
        match self {
            Self::Potts { q } => q > 0,
            Self::Binomial { n } => n > 0,
            Self::NegativeBinomial { shape, n } => shape > 0 && n > 0,
            Self::Ordinal { n } => (1..=super::ordinal::LARGEST).contains(&n),
            _ => true,
        }
    }

    /// Number of states of one unit, or `None` when there are infinitely many.
    pub fn states(self) -> Option<u32> {
        match self {
            Self::Binary | Self::Spin => Some(2),
            Self::Potts { q } => Some(q),
            Self::Binomial { n } | Self::NegativeBinomial { n, .. } | Self::Ordinal { n } => {
                Some(n.saturating_add(1))
            }
            _ => None,
        }
    }

    /// How states are kept.
    pub fn form(self) -> Form {
        match self {
            Self::Binary | Self::Spin => Form::Bits,
            Self::Gaussian | Self::Relu | Self::Drelu => Form::Reals,
            _ => Form::Codes,
        }
    }

    /// The value of the state with this index, for kinds with bits or codes (a Potts state is its code).
    pub fn value(self, code: u32) -> f64 {
        match self {
            Self::Spin => 2.0 * f64::from(code) - 1.0,
            _ => f64::from(code),
        }
    }

    /// The allowed values in words.
    pub fn allowed(self) -> String {
        match self {
            Self::Binary => "0 or 1".into(),
            Self::Spin => "-1 or +1".into(),
            Self::Potts { q } => format!("a whole number from 0 to {}", q.saturating_sub(1)),
            Self::Gaussian | Self::Drelu => "a finite number".into(),
            Self::Relu => "a finite number that is not negative".into(),
            Self::Binomial { n } | Self::NegativeBinomial { n, .. } | Self::Ordinal { n } => {
                format!("a whole number from 0 to {n}")
            }
            Self::Poisson => format!("a whole number from 0 to {}", u32::MAX),
        }
    }

    /// Whether `x` is a value of this kind.
    pub fn allows(self, x: f64) -> bool {
        let whole = |max: u32| x.fract() == 0.0 && x >= 0.0 && x <= f64::from(max);
        match self {
            Self::Binary => x == 0.0 || x == 1.0,
            Self::Spin => x.abs() == 1.0,
            Self::Potts { q } => q > 0 && whole(q - 1),
            Self::Gaussian | Self::Drelu => x.is_finite(),
            Self::Relu => x.is_finite() && x >= 0.0,
            Self::Binomial { n } | Self::NegativeBinomial { n, .. } | Self::Ordinal { n } => whole(n),
            Self::Poisson => whole(u32::MAX),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Binary => f.write_str("Binary"),
            Self::Spin => f.write_str("Spin"),
            Self::Potts { q } => write!(f, "Potts({q})"),
            Self::Gaussian => f.write_str("Gaussian"),
            Self::Relu => f.write_str("ReLU"),
            Self::Drelu => f.write_str("dReLU"),
            Self::Binomial { n } => write!(f, "Binomial({n})"),
            Self::Poisson => f.write_str("Poisson"),
            Self::Ordinal { n } => write!(f, "Ordinal({n})"),
            Self::NegativeBinomial { shape, n } => {
                write!(f, "NegativeBinomial(r={}, n={n})", f64::from(*shape) / 16.0)
            }
        }
    }
}
