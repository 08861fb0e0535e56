//! The choice of an estimator in settings, what it is constructed from, and where it applies.

use super::applicable;
use super::{
    Cd, Exact, Fpcd, FpcdParams, Jarzynski, JarzynskiParams, Labels, LabelsParams, NegativePhase, Pcd,
    Pl, Pt, PtParams, Ptt, PttParams, Tap, TapParams, Ucd, UcdParams,
};
use crate::sample::{Order, layer_key, purpose, sweep};
use crate::{Batch, Chains, Clamps, Error, Key, Machine, Real, Result, Role, States};
use harmonium_kernels::Stream;
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// An estimator of the negative phase and its settings; unset fields get defaults in the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Estimator {
    /// Enumeration.
    Exact,
    /// Contrastive divergence.
    Cd {
        /// Sweeps from the data.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sweeps: Option<usize>,
    },
    /// Persistent contrastive divergence.
    Pcd {
        /// Sweeps for each update. Unset: 1 to 16, adapted to the autocorrelation of the chains, and exact gradients if
        /// the chains turn out not to mix and enumeration is fast.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sweeps: Option<usize>,
        /// Number of chains.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        chains: Option<usize>,
    },
    /// Persistent chains driven by extra weights that decay quickly.
    Fpcd(FpcdParams),
    /// Parallel tempering in β.
    Pt(PtParams),
    /// Parallel trajectory tempering.
    Ptt(PttParams),
    /// Mean field with Plefka's corrections.
    Tap(TapParams),
    /// Pseudo-likelihood.
    Pl,
    /// Unbiased contrastive divergence.
    Ucd(UcdParams),
    /// Persistent chains with Jarzynski's weights.
    Jarzynski(JarzynskiParams),
    /// Labels averaged over exactly: discriminative, or mixed with one of the others.
    Labels(LabelsParams),
}

/// What an estimator is constructed from.
#[derive(Clone, Copy)]
pub struct Setup<'a, T: Real> {
    /// The machine that the training starts from.
    pub machine: &'a Machine<T>,
    /// All training data: visible (and conditioning) layers held.
    pub data: &'a States<T>,
    /// Rows of a minibatch.
    pub batch: usize,
    /// The run's seed.
    pub seed: u64,
    /// Whether to draw the chains; otherwise only their shape matters, because a checkpoint will replace them.
    pub draw: bool,
}

impl<T: Real> Setup<'_, T> {
    /// Chains in equilibrium with an uncoupled machine.
    pub(super) fn independent(
        &self,
        machine: &Machine<T>,
        rows: usize,
        seed: u64,
        purpose: u32,
    ) -> Result<Chains<T>> {
        match self.draw {
            true => Chains::independent(machine, rows, seed, purpose),
            false => Ok(Chains::new(machine.zeros(rows), seed, purpose)),
        }
    }

    /// Chains that start at random rows of the data, their hidden layers drawn by a few clamped sweeps. Soft bits are
    /// probabilities here, from which bits are drawn.
    ///
    /// # Errors
    /// Errors of sampling.
    pub fn chains(&self, n: usize, purpose: u32) -> Result<States<T>> {
        if !self.draw {
            return Ok(self.machine.zeros(n));
        }
        let key = |sweep| Key { seed: self.seed, purpose: purpose::INIT, block: purpose, sweep };
        let mut rng = Stream::new(key(0));
        let total = self.data.rows();
        let rows: Vec<usize> = (0..n).map(|_| rng.random_range(0..total)).collect();
        let mut states = complete(self.machine, self.data.select(&rows), key(1))?;
        for l in self.machine.with_role(Role::Visible) {
            let layer = self.machine.layer(l);
            if let Some(Batch::Reals(p)) = states.get(l)
                && layer.kind().takes_soft_data()
            {
                let bits = layer.drawn(p, layer_key(key(1 << 16), l));
                states.set(l, bits);
            }
        }
        Ok(states)
    }
}

/// Draws the hidden layers given the others, with a few clamped sweeps where hidden layers are coupled.
pub(crate) fn complete<T: Real>(
    machine: &Machine<T>,
    mut states: States<T>,
    key: Key,
) -> Result<States<T>> {
    let hidden: Vec<_> = machine.with_role(Role::Hidden).collect();
    for &l in &hidden {
        states.set(l, machine.layer(l).zeros(states.rows()));
    }
    let sweeps = if machine.independent(&hidden) { 1 } else { 10 };
    let (order, clamps) = (Order::new(machine), Clamps::visible(machine));
    for k in 0..sweeps {
        let key = Key { sweep: key.sweep + k, ..key };
        sweep(&machine.at(1.0), &order, &mut states, &clamps, key)?;
    }
    Ok(states)
}

impl Estimator {
    /// Every estimator with default settings.
    pub const ALL: &'static [Self] = &[
        Self::Exact,
        Self::Cd { sweeps: None },
        Self::Pcd { sweeps: None, chains: None },
        Self::Fpcd(FpcdParams::DEFAULT),
        Self::Pt(PtParams::DEFAULT),
        Self::Ptt(PttParams::DEFAULT),
        // The first order applies to most machines.
        Self::Tap(TapParams { order: 1, ..TapParams::DEFAULT }),
        Self::Pl,
        Self::Ucd(UcdParams::DEFAULT),
        Self::Jarzynski(JarzynskiParams::DEFAULT),
        Self::Labels(LabelsParams::DEFAULT),
    ];

    /// Name, as in configurations.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Cd { .. } => "cd",
            Self::Pcd { .. } => "pcd",
            Self::Fpcd(_) => "fpcd",
            Self::Pt(_) => "pt",
            Self::Ptt(_) => "ptt",
            Self::Tap(_) => "tap",
            Self::Pl => "pl",
            Self::Ucd(_) => "ucd",
            Self::Jarzynski(_) => "jarzynski",
            Self::Labels(_) => "labels",
        }
    }

    /// The reason why this estimator cannot train this machine, if there is one.
    pub fn obstacle<T: Real>(&self, machine: &Machine<T>) -> Option<String> {
        match self {
            // Limit: 60 s per update.
            Self::Exact => match machine.exact().cost() {
                Ok((_, seconds)) if seconds < 60.0 => None,
                Ok((states, seconds)) => Some(format!(
                    "one update would enumerate {states:.1e} states (about {})",
                    crate::error::duration(seconds)
                )),
                Err(e) => Some(e.to_string()),
            },
            Self::Cd { .. } | Self::Pcd { .. } => None,
            Self::Fpcd(_) => {
                applicable::condition(machine).or_else(|| applicable::unbounded_pair(machine))
            }
            Self::Pt(_) | Self::Ptt(_) | Self::Jarzynski(_) => applicable::condition(machine),
            Self::Tap(p) => {
                applicable::condition(machine).or_else(|| applicable::mean_field(machine, p.order))
            }
            Self::Pl => {
                applicable::hidden_coupled(machine).or_else(|| applicable::infinite_sum(machine))
            }
            Self::Ucd(_) => applicable::lateral(machine),
            Self::Labels(p) => super::labels::label_layer(p, machine)
                .err()
                .or_else(|| p.generative.as_ref().and_then(|g| g.obstacle(machine))),
        }
    }

    /// Whether this estimator can train this machine.
    ///
    /// # Errors
    /// [`Error::Inapplicable`] with the reason and the estimators that can.
    pub fn check<T: Real>(&self, machine: &Machine<T>) -> Result<()> {
        let Some(why) = self.obstacle(machine) else {
            return Ok(());
        };
        let others = Self::ALL.iter().filter(|e| e.obstacle(machine).is_none());
        Err(Error::Inapplicable {
            what: format!("estimator {}", self.name()),
            why,
            instead: others.map(|e| e.name().to_string()).collect(),
        })
    }

    /// Whether this estimator can learn from soft bits: see [`Layer::check_data`](crate::Layer::check_data).
    ///
    /// # Errors
    /// [`Error::Inapplicable`] with the estimators that can.
    pub(crate) fn check_soft<T: Real>(&self, machine: &Machine<T>) -> Result<()> {
        let hard = |e: &Self| match e {
            Self::Labels(p) => p.generative.as_deref() == Some(&Self::Pl),
            e => *e == Self::Pl,
        };
        if !hard(self) {
            return Ok(());
        }
        let others = Self::ALL.iter().filter(|e| !hard(e) && e.obstacle(machine).is_none());
        Err(Error::Inapplicable {
            what: format!("estimator {}", self.name()),
            why: "values between 0 and 1 have no probability given the others".into(),
            instead: others.map(|e| e.name().to_string()).collect(),
        })
    }

    /// The estimator, ready to run.
    ///
    /// # Errors
    /// Errors of its initialisation.
    pub fn build<T: Real>(&self, setup: &Setup<'_, T>) -> Result<Box<dyn NegativePhase<T>>> {
        Ok(match self {
            Self::Exact => Box::new(Exact),
            Self::Cd { sweeps } => Box::new(Cd::new(sweeps.unwrap_or(1))),
            Self::Pcd { sweeps, chains } => {
                Box::new(Pcd::new(setup, chains.unwrap_or(setup.batch), *sweeps)?)
            }
            Self::Fpcd(params) => Box::new(Fpcd::new(setup, params.clone())?),
            Self::Pt(params) => Box::new(Pt::new(setup, params.clone())?),
            Self::Ptt(params) => Box::new(Ptt::new(setup, params.clone())?),
            Self::Tap(params) => Box::new(Tap::new(setup, params.clone())?),
            Self::Pl => Box::new(Pl::new(setup)?),
            Self::Ucd(params) => Box::new(Ucd::new(setup, params.clone())?),
            Self::Jarzynski(params) => Box::new(Jarzynski::new(setup, params.clone())?),
            Self::Labels(params) => Box::new(Labels::new(setup, params)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bits, Kind, Layer};

    /// Chains that a checkpoint replaces are not drawn first.
    #[test]
    fn chains_of_a_resumed_run_are_not_drawn() {
        let machine = Machine::<f32>::rbm(Layer::new(Kind::Binary, 5), Layer::new(Kind::Binary, 4));
        let data = machine.data(vec![Batch::Bits(Bits::from_fn(9, 5, |_, _| true))]).unwrap();
        let setup = |draw| Setup { machine: &machine, data: &data, batch: 9, seed: 1, draw };
        let zeros = machine.zeros(9);
        let mut with_chains = 0;
        for estimator in Estimator::ALL.iter().filter(|e| e.obstacle(&machine).is_none()) {
            // The replicas of tempering start apart from the data.
            if matches!(estimator, Estimator::Ptt(_) | Estimator::Jarzynski(_)) {
                continue;
            }
            let drawn = estimator.build(&setup(true)).unwrap();
            let blank = estimator.build(&setup(false)).unwrap();
            if let Some(chains) = drawn.chains() {
                assert_ne!(*chains, zeros, "{}", estimator.name());
                assert_eq!(*blank.chains().unwrap(), zeros, "{}", estimator.name());
                with_chains += 1;
            }
        }
        assert!(with_chains > 1, "{with_chains}");
        let [drawn, blank] = [true, false]
            .map(|draw| setup(draw).independent(&machine, 9, 1, 1).unwrap().states().clone());
        assert!(drawn != zeros && blank == zeros);
    }
}
