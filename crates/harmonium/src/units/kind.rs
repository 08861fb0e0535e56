//! The kinds of units and their properties, which each kind states in its own file as a `Family`.

use super::family::{Family, Marginal, Square, Tail};
use super::{binary, binomial, drelu, gaussian, negative_binomial, ordinal, poisson, potts, relu, spin};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// The kind of the units of a layer: their values and their energy.
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
    /// {0, 1 … n}; $E = -\theta x - \nu_x$: counts or grades with arbitrary frequencies; couplings act on the number x.
    Ordinal {
        /// Largest number, at most 1023.
        n: u32,
    },
}

/// How the states of a kind are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Packed bits.
    Bits,
    /// Unsigned integers.
    Codes,
    /// Numbers of type `T`.
    Reals,
}

/// The list of kinds: the pattern of the enum, the description in the kind's own file, and an example with small sizes.
macro_rules! kinds {
    ($($pattern:pat => $family:expr, $example:expr;)*) => {
        impl Kind {
            /// Every kind once, with small sizes where a kind has some: for tests and listings.
            pub const ALL: [Self; [$($example),*].len()] = [$($example),*];

            /// Calls `question` with the description of this kind.
            fn ask<R>(self, question: impl FnOnce(&dyn Family) -> R) -> R {
                match self {
                    $($pattern => question(&$family),)*
                }
            }
        }
    };
}

kinds! {
    Self::Binary => binary::Binary, Self::Binary;
    Self::Spin => spin::Spin, Self::Spin;
    Self::Potts { q } => potts::Potts { q }, Self::Potts { q: 3 };
    Self::Gaussian => gaussian::Gaussian, Self::Gaussian;
    Self::Relu => relu::Relu, Self::Relu;
    Self::Drelu => drelu::Drelu, Self::Drelu;
    Self::Binomial { n } => binomial::Binomial { n }, Self::Binomial { n: 3 };
    Self::Poisson => poisson::Poisson, Self::Poisson;
    Self::NegativeBinomial { shape, n } => negative_binomial::Sizes { shape, n },
        Self::NegativeBinomial { shape: 24, n: 5 };
    Self::Ordinal { n } => ordinal::Ordinal { n }, Self::Ordinal { n: 3 };
}

impl Kind {
    /// Names of the parameter arrays, in the order of the rows of a layer's parameters.
    pub fn params(self) -> &'static [&'static str] {
        self.ask(|f| f.params())
    }

    /// How states are stored.
    pub fn form(self) -> Form {
        self.ask(|f| f.values()).form()
    }

    /// Number of states of one unit, or `None` when there are infinitely many.
    pub fn states(self) -> Option<u32> {
        self.ask(|f| f.values()).states()
    }

    /// Whether a unit of this kind has any state (`Potts { q: 0 }` has none).
    pub fn has_states(self) -> bool {
        self.ask(|f| f.has_states())
    }

    /// The smallest value of a unit; −∞ where there is none.
    pub fn lowest(self) -> f64 {
        self.ask(|f| f.values()).lowest()
    }

    /// Number of states, for kinds whose dense form has a column for each of them: Potts units.
    pub fn one_hot(self) -> Option<u32> {
        self.ask(|f| f.one_hot())
    }

    /// Columns a unit takes in dense matrices and inputs: one for each state of Potts units, else 1.
    pub fn columns(self) -> usize {
        self.one_hot().map_or(1, |q| q as usize)
    }

    /// Column and entry of the value `x` in a dense row, for the unit whose columns start at `first`.
    pub(crate) fn dense(self, first: usize, x: f64) -> (usize, f64) {
        match self.one_hot() {
            Some(_) => (first + x as usize, 1.0),
            None => (first, x),
        }
    }

    /// Whether the states are counts: whole numbers from 0 on that couple by their value.
    pub fn is_count(self) -> bool {
        self.form() == Form::Codes && self.one_hot().is_none()
    }

    /// Whether the reference measure is not 1 on all states.
    pub fn has_measure(self) -> bool {
        self.ask(|f| f.has_measure())
    }

    /// Whether units that are coupled to each other have a joint normal distribution.
    pub fn is_normal(self) -> bool {
        self.ask(|f| f.is_normal())
    }

    /// Whether data may be any numbers from 0 to 1 in place of states; see [`Layer::check_data`](crate::Layer::check_data).
    pub fn takes_soft_data(self) -> bool {
        self.ask(|f| f.takes_soft_data())
    }

    /// The value of the state with this index, for kinds with bits or codes (a Potts state is its code).
    pub fn value(self, code: u32) -> f64 {
        match self.form() {
            Form::Bits if code == 0 => self.lowest(),
            _ => f64::from(code),
        }
    }

    /// A valid value to store in missing entries, which is never read.
    pub fn placeholder(self) -> f64 {
        if self.lowest().is_finite() { self.lowest() } else { 0.0 }
    }

    /// The kind as written in settings: `binary`, `potts:3`, `neg_binomial:1.5:64` (r, then the largest count); the inverse of
    /// `parse`.
    pub fn word(self) -> String {
        self.ask(|f| f.word())
    }

    /// The largest code of a state, for kinds stored as codes.
    fn largest_code(self) -> u32 {
        self.states().map_or(u32::MAX, |states| states.saturating_sub(1))
    }

    /// The allowed values in words.
    pub fn allowed(self) -> String {
        match self.form() {
            Form::Bits => {
                format!("{} or {}1", self.lowest(), if self.lowest() < 0.0 { "+" } else { "" })
            }
            Form::Codes => format!("a whole number from 0 to {}", self.largest_code()),
            Form::Reals if self.lowest() == 0.0 => "a finite number that is not negative".into(),
            Form::Reals => "a finite number".into(),
        }
    }

    /// Whether `x` is a value of this kind; [`domain`](Self::domain) for many of them.
    pub fn allows(self, x: f64) -> bool {
        self.domain().contains(x)
    }

    /// The values of this kind.
    pub fn domain(self) -> Domain {
        let highest = match self.form() {
            Form::Bits => 1.0,
            Form::Codes if self.has_states() => f64::from(self.largest_code()),
            Form::Codes => f64::NEG_INFINITY,
            Form::Reals => f64::INFINITY,
        };
        Domain { form: self.form(), lowest: self.lowest(), highest }
    }

    /// The value to fill in for a unit whose mean (in dense form) is this: the most probable state of bits, spins and Potts units,
    /// the count nearest to the mean, and the mean itself of real units.
    pub fn most_probable(self, mean: &[f64]) -> f64 {
        match self.form() {
            Form::Bits => self.value(u32::from(mean[0] > 0.5 * (self.lowest() + 1.0))),
            Form::Codes if self.is_count() => (mean[0] + 0.5).floor(),
            Form::Codes => {
                mean.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map_or(0.0, |m| m.0 as f64)
            }
            Form::Reals => mean[0],
        }
    }

    /// The probability of value `x` of a unit with this mean, where the mean determines it: bits, spins and Potts units.
    pub fn probability(self, mean: &[f64], x: f64) -> Option<f64> {
        if self.one_hot().is_some() {
            return mean.get(x as usize).copied();
        }
        let p = self.upper_probability(mean[0])?;
        let low = self.lowest();
        Some(if x == 1.0 { p } else { (1.0 - mean[0]) / (1.0 - low) })
    }

    /// The probability of the upper of two states, from the mean; `None` for other kinds.
    pub(crate) fn upper_probability(self, mean: f64) -> Option<f64> {
        let low = self.lowest();
        (self.form() == Form::Bits).then(|| (mean - low) / (1.0 - low))
    }
}

/// Properties that the algorithms use.
impl Kind {
    /// How fast the distribution of an uncoupled unit decays in its tails.
    pub(crate) fn tail(self) -> Tail {
        self.ask(|f| f.values()).tail()
    }

    /// Whether units of this kind are non-negative real numbers.
    pub(crate) fn is_half_line(self) -> bool {
        self.tail().has_gamma() && self.lowest() == 0.0
    }

    /// What x² is in terms of the unit's statistics.
    pub(crate) fn square(self) -> Square {
        self.ask(|f| f.square())
    }

    /// The rows of a layer's parameters whose statistics add up to x.
    pub(crate) fn linear_rows(self) -> Range<usize> {
        0..self.params().iter().take_while(|name| name.starts_with("theta")).count()
    }

    /// The rows of γ: one for each linear row, or none.
    pub(crate) fn gamma_rows(self) -> Range<usize> {
        let first = self.linear_rows().len();
        first..first + self.params()[first..].iter().take_while(|name| name.starts_with("gamma")).count()
    }

    /// Whether x > 0 and x < 0 have separate parameters.
    pub(crate) fn has_sides(self) -> bool {
        self.linear_rows().len() == 2
    }

    /// Whether the frequencies of single states are parameters.
    pub(crate) fn has_frequencies(self) -> bool {
        self.params().len() > self.gamma_rows().end
    }

    /// Parameters of a unit with these marginals, where training starts: see [`Family::start`].
    pub(crate) fn start(self, m: &Marginal<'_>) -> Vec<f64> {
        self.ask(|f| f.start(m))
    }

    /// Parameters of the base of an annealing path: see [`Family::base`].
    pub(crate) fn base(self, m: &Marginal<'_>, own: &[f64]) -> Vec<f64> {
        self.ask(|f| f.base(m, own))
    }

    /// The variance from the means of statistics: see [`Family::variance`].
    pub(crate) fn variance(self, mean: f64, stats: impl Fn(usize) -> f64) -> f64 {
        self.ask(|f| f.variance(mean, &stats))
    }

    /// Nanoseconds that Γ of one column costs in an enumeration.
    pub(crate) fn cgf_cost(self) -> f64 {
        self.ask(|f| f.cgf_cost())
    }

    /// The variance as a polynomial of the mean, where it is one: see [`Family::variance_polynomial`].
    pub(crate) fn variance_polynomial(self, own: &[f64]) -> Option<[f64; 3]> {
        self.ask(|f| f.variance_polynomial(own))
    }

    /// The field that gives a mean: see [`Family::field_of_mean`].
    pub(crate) fn field_of_mean(self, own: &[f64], m: f64) -> Option<f64> {
        self.ask(|f| f.field_of_mean(own, m))
    }

    /// n, where Γ is that of n two-valued units with the same field.
    pub(crate) fn two_valued_parts(self) -> Option<u32> {
        self.ask(|f| f.two_valued_parts())
    }
}

impl FromStr for Kind {
    type Err = Error;

    /// Reads a [`word`](Kind::word).
    fn from_str(word: &str) -> Result<Self> {
        let parts: Vec<&str> = word.split(':').collect();
        // r in sixteenths.
        let shape = |r: &str| {
            let shape = 16.0 * r.parse::<f64>().ok()?;
            (shape.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&shape))
                .then_some(shape as u32)
        };
        let kind = match parts[..] {
            ["binary"] => Some(Self::Binary),
            ["spin"] => Some(Self::Spin),
            ["potts", q] => q.parse().ok().map(|q| Self::Potts { q }),
            ["gaussian"] => Some(Self::Gaussian),
            ["relu"] => Some(Self::Relu),
            ["drelu"] => Some(Self::Drelu),
            ["binomial", n] => n.parse().ok().map(|n| Self::Binomial { n }),
            ["poisson"] => Some(Self::Poisson),
            ["neg_binomial", r, n] => {
                shape(r).zip(n.parse().ok()).map(|(shape, n)| Self::NegativeBinomial { shape, n })
            }
            ["ordinal", n] => n.parse().ok().map(|n| Self::Ordinal { n }),
            _ => None,
        };
        kind.filter(|kind| kind.has_states()).ok_or_else(|| {
            let known: Vec<String> = Self::ALL.iter().map(|kind| kind.word()).collect();
            Error::value("kind of units", format!("a word such as {}", known.join(", ")), word)
        })
    }
}

/// The values of a kind of unit.
#[derive(Clone, Copy, Debug)]
pub struct Domain {
    form: Form,
    lowest: f64,
    highest: f64,
}

impl Domain {
    /// Whether `x` is one of them.
    pub fn contains(&self, x: f64) -> bool {
        match self.form {
            Form::Bits => x == self.lowest || x == self.highest,
            Form::Codes => x.fract() == 0.0 && x >= self.lowest && x <= self.highest,
            Form::Reals => x.is_finite() && x >= self.lowest,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.ask(|f| f.name()))
    }
}
