//! Unchecked settings of a training run, as files, flags and dictionaries give them.

use crate::estimate::{Averaging, Estimator};
use serde::{Deserialize, Serialize};

/// Settings of a training run; unset fields get defaults that depend on the machine and the data.
///
/// [`plan`](Self::plan) checks them and fills in defaults; [`TrainPlan::params`](super::TrainPlan::params) has the
/// complete settings, to be saved with the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainParams {
    /// Seed of all random streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Estimator of the negative phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimator: Option<Estimator>,
    /// How the positive phase averages over hidden layers and missing entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub positive: Option<Averaging>,
    /// Rows of a minibatch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// Number of updates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updates: Option<u64>,
    /// Number of passes over the data, in place of `updates`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epochs: Option<f64>,
    /// Updates after which the run ends, if before the end of the schedule: a length chosen on held-out rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_after: Option<u64>,
    /// Coordinates of the gradient.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<Coordinates>,
    /// How a gradient becomes an update.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimiser: Option<Optimiser>,
    /// Learning rate at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// How the learning rate falls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// Updates over which the parameters are averaged for evaluation; 0 for no average.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average: Option<u64>,
    /// Where the parameters start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init: Option<Init>,
    /// Rate of the running averages of hidden offsets and scales.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset_rate: Option<f64>,
    /// Penalties and bounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regulariser: Option<Regulariser>,
    /// Updates between evaluations; 0 for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluate_every: Option<u64>,
    /// Rows of each data set used in an evaluation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluate_rows: Option<usize>,
    /// Evaluations without a better held-out score after which the run stops; 0 for never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience: Option<usize>,
}

/// Coordinates in which the gradient is taken; the model is the same in all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coordinates {
    /// $-x^\top W y$.
    Plain,
    /// $-(x-\mu)^\top W (y-\lambda)$.
    #[default]
    Centred,
    /// $-\big((x-\mu)/s\big)^\top W \big((y-\lambda)/s'\big)$.
    Standardised,
}

/// How a gradient becomes an update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case", deny_unknown_fields)]
pub enum Optimiser {
    /// $\Delta = \eta g$.
    #[default]
    Sgd,
    /// $m \leftarrow \mu m + g$, $\Delta = \eta m$.
    Momentum {
        /// μ in [0, 1).
        #[serde(default = "mu")]
        mu: f64,
    },
    /// $m \leftarrow \mu m + g$, $\Delta = \eta (g + \mu m)$.
    Nesterov {
        /// μ in [0, 1).
        #[serde(default = "mu")]
        mu: f64,
    },
    /// $m \leftarrow \beta_1 m + (1-\beta_1)g$, $s \leftarrow \beta_2 s + (1-\beta_2)g^2$,
    /// $\Delta = \eta \hat m/(\sqrt{\hat s} + \varepsilon)$.
    Adam {
        /// β₁ in [0, 1).
        #[serde(default = "beta1")]
        beta1: f64,
        /// β₂ in [0, 1).
        #[serde(default = "beta2")]
        beta2: f64,
        /// ε > 0.
        #[serde(default = "epsilon")]
        epsilon: f64,
    },
    /// $\Delta = \eta_a g$ with a rate for each array that grows by 1+δ after an update whose gradient
    /// points into the half-space of the one before, and shrinks by 1−δ otherwise.
    Cosine {
        /// δ in (0, 1).
        #[serde(default = "delta")]
        delta: f64,
        /// Largest rate; the run's learning rate is the smallest.
        #[serde(default = "max_rate")]
        max: f64,
    },
}

impl Optimiser {
    /// Adam with its usual numbers.
    pub const ADAM: Self = Self::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 };

    /// The cosine rule with its usual numbers.
    pub(super) const COSINE: Self = Self::Cosine { delta: DELTA, max: MAX_RATE };
}

const DELTA: f64 = 2e-3;
const MAX_RATE: f64 = 0.1;

fn mu() -> f64 {
    0.9
}
fn beta1() -> f64 {
    0.9
}
fn beta2() -> f64 {
    0.999
}
fn epsilon() -> f64 {
    1e-8
}
fn delta() -> f64 {
    DELTA
}
fn max_rate() -> f64 {
    MAX_RATE
}

/// The learning rate as a function of the fraction $0 \le t \le 1$ of the run that is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case", deny_unknown_fields)]
pub enum Schedule {
    /// 1.
    Constant,
    /// $1 - t$.
    #[default]
    Linear,
    /// $r^t$.
    Exponential {
        /// The last rate as a fraction r of the first.
        #[serde(default = "last_rate")]
        end: f64,
    },
    /// $\tfrac12(1+\cos\pi t)$.
    Cosine,
    /// $1/(1 + t/t_0)$.
    Inverse {
        /// t₀, where the rate has halved.
        #[serde(default = "halved")]
        half: f64,
    },
    /// $\min\big(1, (1-t)/(1-t_0)\big)$: a run of which only the last part is to be repeated can be made longer before it.
    Plateau {
        /// t₀, from which on the rate falls.
        #[serde(default = "plateau")]
        until: f64,
    },
}

fn plateau() -> f64 {
    0.7
}
fn last_rate() -> f64 {
    0.01
}
fn halved() -> f64 {
    0.1
}

impl Schedule {
    /// The factor on the learning rate when the fraction `t` of the run is done.
    pub fn factor(self, t: f64) -> f64 {
        match self {
            Self::Constant => 1.0,
            Self::Linear => 1.0 - t,
            Self::Exponential { end } => end.powf(t),
            Self::Cosine => 0.5 * (1.0 + (std::f64::consts::PI * t).cos()),
            Self::Inverse { half } => 1.0 / (1.0 + t / half),
            Self::Plateau { until } => ((1.0 - t) / (1.0 - until)).min(1.0),
        }
    }
}

/// Where the parameters start.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case", deny_unknown_fields)]
pub enum Init {
    /// The machine as it is.
    Keep,
    /// Visible layers reproduce the marginals of the data, hidden parameters are zero, weights are normal. Visible Gaussian units
    /// that are coupled to each other start as one normal distribution, and hidden dReLU units over them along directions in
    /// which the rows are least normal.
    Data {
        /// Standard deviation of the weights.
        #[serde(default = "small")]
        std: f64,
    },
    /// A machine that already has the data's density along their principal directions, see
    /// [`low_rank_start`](crate::estimate::low_rank_start): for one layer of Binary or Spin units joined to another.
    /// Training then need not pass through the transitions in which such directions form.
    LowRank {
        /// Number of directions, 1 to 3.
        #[serde(default = "two")]
        directions: usize,
        /// Standard deviation of the weights of hidden units not used by the directions.
        #[serde(default = "small")]
        std: f64,
    },
}

fn small() -> f64 {
    0.01
}

fn two() -> usize {
    2
}

/// Penalties on the weights and bounds. In standardised coordinates w is the weight per standard deviation of
/// a visible column, so that penalties do not depend on the units that columns are measured in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Regulariser {
    /// $\lambda\sum|w|$.
    pub l1: f64,
    /// $\tfrac\lambda2\sum w^2$.
    pub l2: f64,
    /// $\tfrac\lambda2\sum_j(\sum_i|w_{ij}|)^2$, over the columns of each weight matrix: sparse, with
    /// comparable strength for every hidden unit.
    pub l1b: f64,
    /// Largest Euclidean norm of a column of weights; 0 for no bound.
    pub max_norm: f64,
    /// Mean that hidden units are pulled towards, with the strength below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<f64>,
    /// Strength of the pull towards `target`.
    pub target_strength: f64,
}

impl Regulariser {
    /// Whether it adds to the gradient by the weights.
    pub(super) fn has_penalty(&self) -> bool {
        self.l1 != 0.0 || self.l2 != 0.0 || self.l1b != 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Averaging;
    use serde::de::DeserializeOwned;
    use serde_json::json;

    /// Front ends send a name alone; the numbers that go with it stand here.
    #[test]
    fn a_name_is_enough() {
        fn named<A: DeserializeOwned>(name: &str) -> A {
            serde_json::from_value(json!({ "name": name })).unwrap_or_else(|e| panic!("{name}: {e}"))
        }
        for name in ["sgd", "momentum", "nesterov", "adam", "cosine"] {
            named::<Optimiser>(name);
        }
        for name in ["constant", "linear", "exponential", "cosine", "inverse", "plateau"] {
            named::<Schedule>(name);
        }
        for name in ["keep", "data", "low_rank"] {
            named::<Init>(name);
        }
        assert_eq!(named::<Optimiser>("momentum"), Optimiser::Momentum { mu: 0.9 });
        assert_eq!(named::<Schedule>("inverse"), Schedule::Inverse { half: 0.1 });
        assert_eq!(named::<Schedule>("exponential"), Schedule::Exponential { end: 0.01 });
        assert_eq!(named::<Averaging>("chain"), Averaging::Chain { sweeps: 5 });
        assert_eq!(named::<Averaging>("mean_field"), Averaging::MeanField { rounds: 10 });
    }
}
