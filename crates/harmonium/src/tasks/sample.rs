//! The task of sampling.

use super::IntoData;
use crate::sample::{Sampler, SamplingMethod, purpose};
use crate::train::Data;
use crate::{Bits, Chains, Clamp, Clamps, Error, Machine, Member, Real, Result, Role, States};
use ndarray::Array2;
use std::borrow::Cow;

/// Sweeps of every chain before its first sample, by default.
pub const SWEEPS: usize = 1000;
/// Sweeps between two samples of a chain, by default.
pub const SWEEPS_BETWEEN: usize = 100;

/// A sampling task; [`run`](Self::run) carries it out.
#[must_use = "nothing is drawn until `run` is called"]
pub struct Sample<'a, T: Real = f32> {
    machine: &'a Machine<T>,
    n: usize,
    chains: Option<usize>,
    sweeps: usize,
    between: usize,
    temperature: f64,
    method: SamplingMethod,
    seed: u64,
    clamps: Vec<(String, usize, f64)>,
    given: Option<Result<Cow<'a, Data<T>>>>,
    stopped: Box<dyn Fn() -> bool + 'a>,
}

/// Samples of all layers, and how they were drawn.
#[derive(Clone, Debug)]
pub struct Samples<T: Real = f32> {
    members: Vec<Member<T>>,
    /// The states of all layers, a sample for each row.
    pub states: States<T>,
    /// Whether they are independent draws from the exact distribution.
    pub exact: bool,
    /// Diagnostics of the replica exchange, if it was used.
    pub exchange: Option<ExchangeDiagnostics>,
    /// A note on choices made automatically.
    pub note: Option<String>,
    /// A reason why the samples may be unreliable.
    pub warning: Option<String>,
}

/// Diagnostics of replica exchange.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExchangeDiagnostics {
    /// Number of temperatures.
    pub temperatures: usize,
    /// Smallest acceptance between neighbours.
    pub acceptance: f64,
    /// Round trips per chain between the coldest and the hottest temperature.
    pub round_trips: f64,
}

impl<T: Real> Machine<T> {
    /// The task of drawing `n` samples.
    pub fn sample(&self, n: usize) -> Sample<'_, T> {
        Sample {
            machine: self,
            n,
            chains: None,
            sweeps: SWEEPS,
            between: SWEEPS_BETWEEN,
            temperature: 1.0,
            method: SamplingMethod::Auto,
            seed: 0,
            clamps: Vec::new(),
            given: None,
            stopped: Box::new(|| false),
        }
    }
}

impl<'a, T: Real> Sample<'a, T> {
    chain_settings!();

    /// Number of chains, each of which gives every `chains`-th sample; by default one for each sample.
    pub fn chains(mut self, chains: usize) -> Self {
        self.chains = Some(chains);
        self
    }
    /// Sweeps of every chain before its first sample.
    pub fn sweeps(mut self, sweeps: usize) -> Self {
        self.sweeps = sweeps;
        self
    }
    /// Sweeps between two samples of a chain.
    pub fn between(mut self, sweeps: usize) -> Self {
        self.between = sweeps;
        self
    }
    /// Temperature: below 1 samples are more typical, above 1 more varied.
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.temperature = temperature;
        self
    }
    /// Exact draws, plain chains or replica exchange; by default chosen for the machine.
    pub fn method(mut self, method: SamplingMethod) -> Self {
        self.method = method;
        self
    }
    /// Clamps a unit of a layer to a value in all samples.
    pub fn clamp(mut self, layer: &str, unit: usize, value: f64) -> Self {
        self.clamps.push((layer.to_owned(), unit, value));
        self
    }
    /// Clamps the known entries of these rows: sample r to those of row r, cyclically if there are fewer rows.
    pub fn given(mut self, rows: impl IntoData<'a, T>) -> Self {
        self.given = Some(rows.into_data(self.machine));
        self
    }

    /// Draws the samples.
    ///
    /// # Errors
    /// Settings, clamps or rows that do not fit; a machine that cannot be normalised, or is conditional and has no rows given; being
    /// stopped.
    pub fn run(mut self) -> Result<Samples<T>> {
        self.machine.check()?;
        if !(self.temperature.is_finite() && self.temperature > 0.0) {
            return Err(Error::value("temperature", "a positive number", self.temperature));
        }
        let chains = self.chains.unwrap_or(self.n).min(self.n);
        if chains == 0 {
            return Err(Error::value("samples and chains", "at least one", 0));
        }
        self.machine.check_samples(self.n)?;
        self.machine.check_rows(chains)?;
        let given = self.given.take().transpose()?;
        if given.is_none()
            && let Some(c) = self.machine.with_role(Role::Condition).next()
        {
            let name = &self.machine.members()[c].name;
            return Err(Error::value(
                format!("layer {name:?}"),
                "given rows: the machine is conditional",
                "none",
            ));
        }
        let mut states =
            Chains::independent(self.machine, chains, self.seed, purpose::USER)?.states().clone();
        let clamps = match &given {
            Some(data) => clamp_rows(self.machine, data, &mut states),
            None => clamp_units(self.machine, &self.clamps, &mut states)?,
        };
        let machine = self.machine.tempered_by(1.0 / self.temperature)?;
        let stopped = || Error::Stopped { what: "sampling" };
        let mut go_on = || !(self.stopped)();
        let mut source =
            Sampler::new(machine, clamps, states, self.method, self.seed, self.sweeps, &mut go_on)?;
        let mut parts: Vec<States<T>> = Vec::new();
        while parts.len() * chains < self.n {
            let sweeps = if parts.is_empty() { self.sweeps } else { self.between.max(1) };
            source.sweep_while(sweeps, &|| !(self.stopped)())?.then_some(()).ok_or_else(stopped)?;
            parts.push(source.states().clone());
        }
        let all = if parts.len() == 1 { parts.remove(0) } else { States::stack(&parts) };
        let states = match all.rows() > self.n {
            true => all.select(&(0..self.n).collect::<Vec<_>>()),
            false => all,
        };
        let exchange = source.replicas().map(|replicas| ExchangeDiagnostics {
            temperatures: replicas.ladder().betas().len(),
            acceptance: replicas.ladder().acceptance().iter().copied().fold(1.0, f64::min),
            round_trips: replicas.round_trips(),
        });
        let (note, warning) = source.remarks();
        Ok(Samples {
            members: self.machine.members().to_vec(),
            states,
            exact: source.is_exact(),
            exchange,
            note,
            warning,
        })
    }
}

impl<T: Real> Samples<T> {
    /// The values of a layer, a column for each unit.
    ///
    /// # Errors
    /// No layer of this name.
    pub fn values(&self, layer: &str) -> Result<Array2<f64>> {
        let found = self.members.iter().position(|m| m.name == layer);
        let l = found.ok_or_else(|| Error::value("layer", "the name of a layer", layer))?;
        Ok(self.members[l].layer.values(self.states.layer(l)?))
    }
}

/// Puts the known entries of rows into `states` and clamps them.
fn clamp_rows<T: Real>(machine: &Machine<T>, data: &Data<T>, states: &mut States<T>) -> Clamps {
    let rows: Vec<usize> = (0..states.rows()).map(|r| r % data.rows()).collect();
    let data = data.select(&rows);
    let mut clamps = Clamps::known(machine, rows.len(), data.known());
    for l in machine.with_role(Role::Visible).filter(|&l| data.states().get(l).is_none()) {
        clamps = clamps.with(l, Clamp::Free);
    }
    clamps.put(data.states(), states);
    clamps
}

/// Sets units to values in all rows and clamps them.
fn clamp_units<T: Real>(
    machine: &Machine<T>,
    set: &[(String, usize, f64)],
    states: &mut States<T>,
) -> Result<Clamps> {
    let mut clamps = Clamps::none(machine);
    for (l, m) in machine.members().iter().enumerate() {
        let units: Vec<(usize, f64)> =
            set.iter().filter(|s| s.0 == m.name).map(|s| (s.1, s.2)).collect();
        if units.is_empty() {
            continue;
        }
        if let Some((unit, _)) = units.iter().find(|u| u.0 >= m.layer.len()) {
            return Err(Error::value(
                format!("unit of layer {}", m.name),
                format!("below {}", m.layer.len()),
                unit,
            ));
        }
        let mut values = m.layer.values(states.layer(l)?);
        units.iter().for_each(|&(unit, x)| values.column_mut(unit).fill(x));
        states.set(l, m.layer.batch(values.view())?);
        let bits = Bits::from_fn(states.rows(), m.layer.len(), |_, j| units.iter().any(|u| u.0 == j));
        clamps = clamps.with(l, Clamp::Units(bits));
    }
    match set.iter().find(|s| machine.find(&s.0).is_none()) {
        Some((name, ..)) => machine.layer_named(name).map(|_| clamps),
        None => Ok(clamps),
    }
}
