//! The properties of a kind of unit that the library needs; each kind states them in its own file, and no other code matches on kinds.

use super::Form;

/// The description of one kind.
///
/// A new kind must implement every method without a default. The defaults are right for most kinds, and a test over
/// [`Kind::ALL`](super::Kind::ALL) fails where they are wrong. The formulas that samplers and products need are in the trait
/// `Unit`, because they are generic over precision and random numbers.
pub(crate) trait Family {
    /// The name in messages, with the sizes of the kind.
    fn name(&self) -> String;

    /// The kind as written in settings: lower case, its sizes after colons.
    fn word(&self) -> String;

    /// Names of the parameter arrays, in this order: `theta…` for what multiplies x (or one side of it), `gamma…` for what
    /// multiplies −x²/2 of the same sides, `nu_…` for the logarithms of frequencies of single states.
    fn params(&self) -> &'static [&'static str] {
        THETA
    }

    /// The values of a unit.
    fn values(&self) -> Values;

    /// What x² is in terms of the unit's own statistics.
    fn square(&self) -> Square;

    /// Parameters of an uncoupled unit with these marginals, where training starts, row by row; no state may have
    /// probability 0.
    fn start(&self, m: &Marginal<'_>) -> Vec<f64>;

    /// The same for the base of an annealing path, near the unit's `own` parameters where the data are few.
    fn base(&self, m: &Marginal<'_>, _own: &[f64]) -> Vec<f64> {
        self.start(m)
    }

    /// The variance of a unit with this mean and these means of its statistics, which sets the scale of standardised
    /// coordinates. Where the statistics do not determine it, the variance of an uncoupled unit with this mean.
    fn variance(&self, mean: f64, stats: &dyn Fn(usize) -> f64) -> f64;

    /// Measured nanoseconds that Γ of one column costs in an enumeration.
    fn cgf_cost(&self) -> f64;

    /// $a, b, c$ of the variance $a + bm + cm^2$ as a function of the mean m, where it is such a polynomial; mean field
    /// theory needs it.
    fn variance_polynomial(&self, _own: &[f64]) -> Option<[f64; 3]> {
        None
    }

    /// The field θ + I that gives the mean m, for the kinds that have a [`variance_polynomial`](Self::variance_polynomial).
    fn field_of_mean(&self, _own: &[f64], _m: f64) -> Option<f64> {
        None
    }

    /// Whether a unit of these sizes has any state.
    fn has_states(&self) -> bool {
        true
    }

    /// Number of states of a unit whose dense form has a column for each of them.
    fn one_hot(&self) -> Option<u32> {
        None
    }

    /// Whether the reference measure is not 1 on all states.
    fn has_measure(&self) -> bool {
        false
    }

    /// Whether units that are coupled to each other have a joint normal distribution.
    fn is_normal(&self) -> bool {
        false
    }

    /// Whether data may be anything from 0 to 1 in place of states.
    fn takes_soft_data(&self) -> bool {
        false
    }

    /// n, where Γ is that of n two-valued units with the same field.
    fn two_valued_parts(&self) -> Option<u32> {
        None
    }
}

/// The values of a unit, and how they are stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Values {
    /// 1 and a smaller number, as bits.
    Pair {
        /// The smaller one.
        lowest: f64,
    },
    /// 0, 1, 2 … up to a number of states.
    Codes {
        /// How many there are.
        states: u32,
    },
    /// All of 0, 1, 2 ….
    Counts {
        /// How fast their probabilities fall.
        tail: Tail,
    },
    /// Real numbers, of which each side is confined by a γ.
    Reals {
        /// The smallest one, or −∞.
        lowest: f64,
    },
}

impl Values {
    /// How they are stored.
    pub(super) fn form(self) -> Form {
        match self {
            Self::Pair { .. } => Form::Bits,
            Self::Codes { .. } | Self::Counts { .. } => Form::Codes,
            Self::Reals { .. } => Form::Reals,
        }
    }

    /// How many there are, or `None` when there are infinitely many.
    pub(super) fn states(self) -> Option<u32> {
        match self {
            Self::Pair { .. } => Some(2),
            Self::Codes { states } => Some(states),
            Self::Counts { .. } | Self::Reals { .. } => None,
        }
    }

    /// The smallest one; −∞ where there is none.
    pub(super) fn lowest(self) -> f64 {
        match self {
            Self::Pair { lowest } | Self::Reals { lowest } => lowest,
            Self::Codes { .. } | Self::Counts { .. } => 0.0,
        }
    }

    /// How fast the distribution of an uncoupled unit decays in its tails.
    pub(super) fn tail(self) -> Tail {
        match self {
            Self::Pair { .. } | Self::Codes { .. } => Tail::Bounded,
            Self::Counts { tail } => tail,
            Self::Reals { .. } => Tail::Quadratic,
        }
    }
}

/// How fast the distribution of an uncoupled unit decays in its tails, which decides whether Z is finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// Finitely many states: nothing can make Z infinite.
    Bounded,
    /// As $e^{-\gamma x^2/2}$.
    Quadratic,
    /// As 1/x!, slower than any $e^{-x^2}$.
    Factorial,
}

/// What the tail of a kind means for each algorithm. The matches have no catch-all, so that the compiler asks about a new variant.
impl Tail {
    /// The weights between a unit with this tail and one with the `other` for which Z is finite.
    pub(crate) fn allowed_weights(self, other: Self) -> AllowedWeights {
        match (self, other) {
            (Self::Bounded, Self::Bounded | Self::Quadratic | Self::Factorial)
            | (Self::Quadratic | Self::Factorial, Self::Bounded) => AllowedWeights::Any,
            (Self::Quadratic, Self::Quadratic) => AllowedWeights::PositiveDefinite,
            (Self::Factorial, Self::Quadratic | Self::Factorial)
            | (Self::Quadratic, Self::Factorial) => AllowedWeights::NotPositive,
        }
    }

    /// Whether the unit is a real number that its γ confines.
    pub(crate) fn has_gamma(self) -> bool {
        match self {
            Self::Quadratic => true,
            Self::Bounded | Self::Factorial => false,
        }
    }

    /// Whether the reference measure alone, at β = 0, has a finite sum.
    pub(crate) fn is_finite_at_zero(self) -> bool {
        match self {
            Self::Bounded | Self::Factorial => true,
            Self::Quadratic => false,
        }
    }

    /// Whether the unit keeps to moderate values at β > 1: its tail is scaled by β as its inputs are, or it has none.
    pub(crate) fn may_be_cooled(self) -> bool {
        match self {
            Self::Bounded | Self::Quadratic => true,
            Self::Factorial => false,
        }
    }
}

/// The weights between two units for which Z is finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllowedWeights {
    /// All of them.
    Any,
    /// Those that leave $\sum\gamma x^2/2 - \sum w x x'$ over all such units positive definite.
    PositiveDefinite,
    /// Zero and, where both units are bounded below, negative ones.
    NotPositive,
}

/// x² of a unit in terms of its statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Square {
    /// x² = x, for each column of the dense form.
    Value,
    /// x² = 1.
    One,
    /// −x²/2 is the statistic of γ.
    Gamma,
    /// None of its statistics.
    Absent,
}

/// Statistics of one unit over the rows of the data.
pub(crate) struct Marginal<'a> {
    /// Total weight of the rows in which it is known.
    pub(crate) total: f64,
    /// Weighted sum of each column of the dense form.
    pub(crate) sums: &'a [f64],
    /// Mean and variance of its value; the variance of real units is positive.
    pub(crate) mean: f64,
    pub(crate) variance: f64,
    /// Weighted sum of (x − mean)².
    pub(crate) squares: f64,
    /// Weight of each state, for kinds that have a parameter per state.
    pub(crate) counts: &'a [f64],
}

impl Marginal<'_> {
    /// The log-odds of `ones` successes in `trials` trials, with one success and one failure added.
    pub(super) fn logit(ones: f64, trials: f64) -> f64 {
        ((ones + 1.0) / (trials - ones + 1.0)).ln()
    }
}

/// The names of most kinds' parameters.
pub(super) const THETA: &[&str] = &["theta"];
/// The names of the parameters of kinds with a normal density.
pub(super) const THETA_GAMMA: &[&str] = &["theta", "gamma"];

/// The field of a two-valued unit that is 1 with probability `p`.
pub(super) fn field_of_probability(p: f64) -> f64 {
    let p = p.clamp(1e-300, 1.0 - 1e-16);
    p.ln() - (-p).ln_1p()
}
