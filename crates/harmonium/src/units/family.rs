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
    fn params(&self) -> &'static [&'static str];

    /// How states are stored.
    fn form(&self) -> Form;

    /// Number of states, or `None` when there are infinitely many.
    fn states(&self) -> Option<u32>;

    /// The smallest value.
    fn lowest(&self) -> f64;

    /// How fast the distribution of an uncoupled unit decays in its tails.
    fn tail(&self) -> Tail;

    /// What x² is in terms of the unit's own statistics.
    fn square(&self) -> Square;

    /// Parameters of an uncoupled unit with these marginals, where training starts, row by row; no state may have
    /// probability 0.
    fn start(&self, m: &Marginal<'_>) -> Vec<f64>;

    /// The same for the base of an annealing path, near the unit's `own` parameters where the data are few.
    fn base(&self, m: &Marginal<'_>, own: &[f64]) -> Vec<f64>;

    /// The variance of a unit with this mean and these means of its statistics, which sets the scale of standardised
    /// coordinates. Where the statistics do not determine it, the variance of an uncoupled unit with this mean.
    fn variance(&self, mean: f64, stats: &dyn Fn(usize) -> f64) -> f64;

    /// Measured nanoseconds that Γ of one column costs in an enumeration.
    fn cgf_cost(&self) -> f64;

    /// $a, b, c$ of the variance $a + bm + cm^2$ as a function of the mean m, where it is such a polynomial; mean field
    /// theory needs it.
    fn variance_polynomial(&self, own: &[f64]) -> Option<[f64; 3]>;

    /// The field θ + I that gives the mean m, for the kinds that have a [`variance_polynomial`](Self::variance_polynomial).
    fn field_of_mean(&self, own: &[f64], m: f64) -> Option<f64>;

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
