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
        machine.check_rows(rows)?;
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
        self.machine.check_rows(n)?;
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

    /// What the rest of the library needs to know of an estimator.
    fn description(&self) -> Description {
        let usual = |name| Description {
            name,
            has_settings: true,
            steps: Steps::Any,
            models_rows: true,
            takes_soft_data: true,
        };
        match self {
            Self::Exact => {
                Description { has_settings: false, steps: Steps::Noiseless, ..usual("exact") }
            }
            Self::Cd { .. } => usual("cd"),
            Self::Pcd { .. } => usual("pcd"),
            Self::Fpcd(_) => usual("fpcd"),
            Self::Pt(_) => usual("pt"),
            Self::Ptt(_) => Description { steps: Steps::Small, ..usual("ptt") },
            Self::Tap(_) => usual("tap"),
            Self::Pl => Description { has_settings: false, takes_soft_data: false, ..usual("pl") },
            Self::Ucd(_) => usual("ucd"),
            Self::Jarzynski(_) => usual("jarzynski"),
            Self::Labels(p) => Description {
                models_rows: false,
                takes_soft_data: p.generative.as_ref().is_none_or(|e| e.takes_soft_data()),
                ..usual("labels")
            },
        }
    }

    /// Name, as in configurations.
    pub fn name(&self) -> &'static str {
        self.description().name
    }

    /// What it asks of the steps of a run.
    pub(crate) fn steps(&self) -> Steps {
        self.description().steps
    }

    /// Whether it has settings at all.
    pub fn has_settings(&self) -> bool {
        self.description().has_settings
    }

    /// Whether a machine trained by it is a model of whole rows, and not only of their classes.
    pub fn models_rows(&self) -> bool {
        self.description().models_rows
    }

    /// Whether it can learn from soft bits: see [`Layer::check_data`](crate::Layer::check_data).
    fn takes_soft_data(&self) -> bool {
        self.description().takes_soft_data
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

    /// Checks that counts of chains, sweeps and iterations are not zero; `build` checks the other settings.
    ///
    /// # Errors
    /// [`Error::Value`] with the setting.
    pub(crate) fn check_settings(&self) -> Result<()> {
        let counts = match self {
            Self::Exact | Self::Pl => vec![],
            Self::Cd { sweeps } => vec![("sweeps", *sweeps)],
            Self::Pcd { sweeps, chains } => vec![("sweeps", *sweeps), ("chains", *chains)],
            Self::Fpcd(p) => vec![("sweeps", Some(p.sweeps)), ("chains", p.chains)],
            Self::Pt(p) => vec![("sweeps", Some(p.sweeps)), ("chains", p.chains)],
            Self::Ptt(p) => vec![("sweeps", Some(p.sweeps)), ("chains", p.chains)],
            Self::Tap(p) => vec![("iterations", Some(p.iterations)), ("chains", p.chains)],
            Self::Ucd(p) => vec![("sweeps", Some(p.sweeps))],
            Self::Jarzynski(p) => {
                vec![("sweeps", Some(p.sweeps)), ("chains", p.chains), ("witnesses", p.witnesses)]
            }
            Self::Labels(p) => return p.generative.as_ref().map_or(Ok(()), |e| e.check_settings()),
        };
        match counts.into_iter().find(|(_, n)| *n == Some(0)) {
            Some((name, _)) => Err(Error::value(format!("estimator.{name}"), "at least 1", 0)),
            None => Ok(()),
        }
    }

    /// The settings with unset fields filled in that do not adapt during the run: as many persistent chains as rows in a
    /// minibatch, so that both phases have equal noise, but no fewer than 100.
    pub(crate) fn with_defaults(self, batch: usize) -> Self {
        match self {
            Self::Cd { sweeps } => Self::Cd { sweeps: sweeps.or(Some(1)) },
            Self::Pcd { sweeps, chains } => {
                Self::Pcd { sweeps, chains: chains.or(Some(batch.max(100))) }
            }
            // Nothing is unset, or `build` fills it in.
            Self::Exact
            | Self::Fpcd(_)
            | Self::Pt(_)
            | Self::Ptt(_)
            | Self::Tap(_)
            | Self::Pl
            | Self::Ucd(_)
            | Self::Jarzynski(_)
            | Self::Labels(_) => self,
        }
    }

    /// Whether this estimator can learn from soft bits.
    ///
    /// # Errors
    /// [`Error::Inapplicable`] with the estimators that can.
    pub(crate) fn check_soft<T: Real>(&self, machine: &Machine<T>) -> Result<()> {
        if self.takes_soft_data() {
            return Ok(());
        }
        let others = Self::ALL.iter().filter(|e| e.takes_soft_data() && e.obstacle(machine).is_none());
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

/// The properties of an estimator that others ask for.
struct Description {
    name: &'static str,
    has_settings: bool,
    steps: Steps,
    models_rows: bool,
    takes_soft_data: bool,
}

/// What an estimator asks of the steps of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Steps {
    /// Its gradient has no noise, so that long steps do no harm.
    Noiseless,
    /// Its chains can follow small steps only.
    Small,
    /// Nothing in particular.
    Any,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bits, Kind, Layer};
    use serde_json::json;

    /// The names that a configuration may have are those of the list, in its order.
    #[test]
    fn the_list_has_every_estimator() {
        let error =
            serde_json::from_value::<Estimator>(json!({ "name": "none" })).unwrap_err().to_string();
        let known: Vec<&str> = error.split('`').skip(1).step_by(2).skip(1).collect();
        assert_eq!(known, Estimator::ALL.iter().map(Estimator::name).collect::<Vec<_>>());
    }

    /// A setting that an estimator does not know is refused by those that have settings; the others cannot see it.
    #[test]
    fn estimators_know_whether_they_have_settings() {
        for estimator in Estimator::ALL {
            let wrong = json!({ "name": estimator.name(), "no such setting": 1 });
            let refused = serde_json::from_value::<Estimator>(wrong).is_err();
            assert_eq!(refused, estimator.has_settings(), "{}", estimator.name());
        }
    }

    /// Every setting that is named after something to be counted, in every estimator.
    #[test]
    fn none_of_something_is_refused() {
        let mut checked = 0;
        for estimator in Estimator::ALL {
            estimator.check_settings().unwrap();
            for name in ["sweeps", "chains", "witnesses", "iterations"] {
                let mut settings = serde_json::to_value(estimator).unwrap();
                settings[name] = json!(0);
                let Ok(zero) = serde_json::from_value::<Estimator>(settings) else { continue };
                if !estimator.has_settings() {
                    continue;
                }
                let error = zero.check_settings().unwrap_err().to_string();
                assert!(error.contains(name), "{}: {error}", estimator.name());
                let inside = LabelsParams { generative: Some(Box::new(zero)), ..LabelsParams::DEFAULT };
                assert!(Estimator::Labels(inside).check_settings().is_err(), "{}", estimator.name());
                checked += 1;
            }
        }
        assert!(checked >= 14, "{checked}");
    }

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
