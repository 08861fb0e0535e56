//! The result of an estimate of ln Z.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::ControlFlow;

/// The side of ln Z on which the estimate lies in expectation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// $\mathbb{E}[\text{value}] \le \ln Z$: the likelihood looks too good.
    Lower,
    /// $\mathbb{E}[\text{value}] \ge \ln Z$: the likelihood looks too bad.
    Upper,
    /// Neither side is favoured to first order.
    Central,
    /// Enumerated.
    Exact,
}

/// How an estimate was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Enumeration.
    Exact,
    /// Annealed importance sampling from the base model to the machine.
    Ais,
    /// Annealed importance sampling from equilibrium samples of the machine to the base model.
    ReverseAis,
    /// Forward and reverse AIS together.
    TwoSidedAis,
    /// Bennett's acceptance ratio between neighbouring distributions.
    Bennett,
    /// Thermodynamic integration.
    Integration,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exact => "enumeration",
            Self::Ais => "AIS",
            Self::ReverseAis => "reverse AIS",
            Self::TwoSidedAis => "two-sided AIS",
            Self::Bennett => "Bennett acceptance ratio",
            Self::Integration => "thermodynamic integration",
        })
    }
}

/// The cost of an estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Chains (or samples) that the value averages over.
    pub chains: usize,
    /// Intermediate distributions between the two ends.
    pub temperatures: usize,
    /// Sweeps of single chains, everything included.
    pub sweeps: f64,
}

/// An estimate of ln Z from one method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogZ {
    /// ln Z in nats.
    pub value: f64,
    /// Standard error of the value.
    pub std_err: f64,
    /// Effective number of samples behind the value (infinite for enumeration).
    pub ess: f64,
    /// The side on which it lies.
    pub bound: Bound,
    /// How it was made.
    pub method: Method,
    /// Its cost.
    pub cost: Cost,
}

impl LogZ {
    /// An enumerated value.
    pub fn exact(value: f64) -> Self {
        let (bound, method) = (Bound::Exact, Method::Exact);
        Self { value, std_err: 0.0, ess: f64::INFINITY, bound, method, cost: Cost::default() }
    }
}

/// An interval intended to contain the true value with at least 95 % probability.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

impl Interval {
    /// `value ± half_width`.
    pub fn around(value: f64, half_width: f64) -> Self {
        Self { lower: value - half_width, upper: value + half_width }
    }
    /// The smallest interval that holds both.
    #[must_use]
    pub fn hull(self, other: Self) -> Self {
        Self { lower: self.lower.min(other.lower), upper: self.upper.max(other.upper) }
    }
    /// Whether `x` lies inside.
    pub fn contains(&self, x: f64) -> bool {
        self.lower <= x && x <= self.upper
    }
    /// Upper minus lower end.
    pub fn width(&self) -> f64 {
        self.upper - self.lower
    }
}

/// Whether a value is reliable and, for a likelihood, whether the model is any good. Faults of the model come before
/// faults of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The likelihood is not finite: parameters or rows overflow.
    #[serde(rename = "diverged")]
    Diverged,
    /// The likelihood lies below that of independent columns.
    #[serde(rename = "worse than independent columns")]
    WorseThanIndependent,
    /// Enumerated.
    #[serde(rename = "exact")]
    Exact,
    /// Both sides agree and every check passed.
    #[serde(rename = "converged", alias = "certified")]
    Converged,
    /// At least one check failed: the interval is not reliable.
    #[serde(rename = "not converged")]
    NotConverged,
}

impl Verdict {
    /// Whether the model itself is at fault, however well its likelihood is known.
    pub fn condemns_model(self) -> bool {
        matches!(self, Self::Diverged | Self::WorseThanIndependent)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Diverged => "diverged",
            Self::WorseThanIndependent => "worse than independent columns",
            Self::Exact => "exact",
            Self::Converged => "converged",
            Self::NotConverged => "not converged",
        })
    }
}

/// Progress of a computation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// What is being done, in a word or two.
    pub stage: &'static str,
    /// Work done in this stage.
    pub done: u64,
    /// Work of this stage in total.
    pub total: u64,
}

/// Called regularly with the progress; may stop the computation.
pub type ProgressFn<'a> = dyn FnMut(Progress) -> ControlFlow<()> + 'a;

/// A callback that never stops the computation.
pub fn silent(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Reports progress; a stop becomes an error.
pub(crate) fn report_progress(
    observer: &mut ProgressFn<'_>,
    stage: &'static str,
    done: usize,
    total: usize,
) -> crate::Result<()> {
    match observer(Progress { stage, done: done as u64, total: total as u64 }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(crate::Error::Stopped { what: stage }),
    }
}
