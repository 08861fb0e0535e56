//! Settings of a machine; unset fields get defaults.

use serde::{Deserialize, Serialize};

/// Settings of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MachineConfig {
    /// Which couplings there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<MachineKind>,
    /// Units of each hidden layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<Vec<usize>>,
    /// What the hidden units are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden_kind: Option<String>,
    /// What the units of count columns are: `poisson`, `binomial:N`, `neg_binomial:R:N` or `ordinal:N`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<String>,
    /// Whether the levels of a deep machine are trained one after the other before the whole is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pretrain: Option<bool>,
}

/// Which couplings a machine has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum MachineKind {
    /// Visible and hidden units, couplings between them
    #[default]
    Rbm,
    /// The same with the label as one more visible unit, to classify
    Class,
    /// Several hidden layers, each coupled to the next
    Deep,
    /// No hidden units, all visible ones coupled (inverse Ising, Potts)
    FullyVisible,
    /// As rbm, and the measured (real) columns are coupled among themselves
    CoupledReals,
    /// As rbm, and the visible units are coupled among themselves
    SemiRestricted,
    /// As semi-restricted, and the hidden units are coupled too
    Unrestricted,
}
