//! Parallel trajectory tempering: chains exchange with a reservoir of equilibrium samples of the last checkpoint.

use super::{Context, Decision, Info, NegativePhase, Setup, averaged, chains_like};
use crate::machine::Phase;
use crate::sample::{Order, Trajectory, bennett, exchange, log_ratio, mean_acceptance, purpose, sweep};
use crate::{Archive, Chains, Clamps, Error, Key, Machine, Real, Result, States};
use harmonium_kernels::Stream;
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// Settings of [`Ptt`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PttParams {
    /// Number of chains; the size of a minibatch when left out.
    pub chains: Option<usize>,
    /// Sweeps for each update.
    pub sweeps: usize,
    /// Size of the reservoir in units of the chains.
    pub reservoir: usize,
    /// Acceptance below which a checkpoint is frozen.
    pub freeze: f64,
    /// Acceptance below which an update is rejected.
    pub reject: f64,
    /// Fewest rounds of the ladder when a checkpoint is frozen; at least one per rung.
    pub least_rounds: usize,
    /// Most rounds.
    pub most_rounds: usize,
}

impl PttParams {
    /// Ten sweeps, a reservoir of ten times the chains, thresholds 0.3 and 0.1, 20 to 200 rounds.
    pub const DEFAULT: Self = Self {
        chains: None,
        sweeps: 10,
        reservoir: 10,
        freeze: 0.3,
        reject: 0.1,
        least_rounds: 20,
        most_rounds: 200,
    };
}

impl Default for PttParams {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Chains of the present machine θ that exchange states with equilibrium samples of the last checkpoint θ*.
///
/// As θ leaves θ*, the acceptance falls. Below [`freeze`](PttParams::freeze) the present machine becomes
/// the next rung of the [`Trajectory`], the ladder is run until it has forgotten where it started, and
/// the reservoir is filled anew; an update that would take it below [`reject`](PttParams::reject) at once is
/// refused. Bennett's ratio between reservoir and chains, on top of the ladder's, gives ln Z at every update.
#[derive(Clone, Debug)]
pub struct Ptt<T: Real = f32> {
    params: PttParams,
    ladder: Trajectory<T>,
    reservoir: States<T>,
    chains: Chains<T>,
    seed: u64,
    exchanges: u64,
    started: bool,
}

impl<T: Real> Ptt<T> {
    /// A ladder of one rung, the machine with its couplings cut, whose samples are exact.
    ///
    /// # Errors
    /// A machine it does not apply to, thresholds out of order, or an error of sampling.
    pub fn new(setup: &Setup<'_, T>, params: PttParams) -> Result<Self> {
        super::Estimator::Ptt(params.clone()).check(setup.machine)?;
        if !(0.0 <= params.reject && params.reject < params.freeze && params.freeze < 1.0) {
            let got = format!("{} and {}", params.reject, params.freeze);
            return Err(Error::value("acceptances reject and freeze", "0 ≤ reject < freeze < 1", got));
        }
        let n = params.chains.unwrap_or(setup.batch);
        let ladder = Trajectory::new(setup.machine, n, setup.seed)?;
        let exact = |rows, purpose| setup.independent(ladder.last(), rows, setup.seed, purpose);
        let reservoir =
            exact(n.saturating_mul(params.reservoir.max(1)), purpose::INIT)?.states().clone();
        let chains = exact(n, purpose::NEGATIVE)?;
        Ok(Self { params, ladder, reservoir, chains, seed: setup.seed, exchanges: 0, started: false })
    }

    /// The checkpoints so far.
    pub fn ladder(&self) -> &Trajectory<T> {
        &self.ladder
    }
    /// The chains of the present machine.
    pub fn chains(&self) -> &Chains<T> {
        &self.chains
    }

    fn key(&self, block: u32) -> Key {
        // High block numbers, because the rungs of the ladder share the purpose.
        Key { seed: self.seed, purpose: purpose::SWAP, block: u32::MAX - block, sweep: self.exchanges }
    }

    /// As many distinct rows of the reservoir as there are chains.
    fn picks(&self) -> Vec<usize> {
        let mut rng = Stream::new(self.key(0));
        let (n, total) = (self.chains.states().rows(), self.reservoir.rows());
        let mut rows: Vec<usize> = (0..total).collect();
        for r in 0..n {
            rows.swap(r, rng.random_range(r..total));
        }
        rows.truncate(n);
        rows
    }

    /// Exchanges the chains with part of the reservoir, which then makes a sweep. Returns the acceptance and ln Z of
    /// the present machine.
    fn trade(&mut self, context: &Context<'_, T>) -> Result<(f64, f64)> {
        let picks = self.picks();
        let mut part = self.reservoir.select(&picks);
        let frozen = self.ladder.last().at(1.0);
        let key = self.key(1);
        let y = (context.model, self.chains.states_mut());
        let done = exchange((&frozen, &mut part), y, key)?;
        let machine = frozen.machine();
        sweep(&frozen, &Order::new(machine), &mut part, &Clamps::none(machine), self.key(2))?;
        for (r, &row) in picks.iter().enumerate() {
            self.reservoir.swap_row(row, &mut part, r);
        }
        self.exchanges += 1;
        Ok((done.acceptance, self.ladder.log_z().0 + bennett(&done.u_a, &done.u_b).value))
    }

    /// Makes the present machine the last rung and fills the reservoir with its equilibrium samples.
    fn freeze(&mut self, machine: &Machine<T>) -> Result<f64> {
        self.ladder.push(machine.clone(), self.chains.states().clone());
        let PttParams { reservoir, least_rounds, most_rounds, .. } = self.params;
        // New draws at the first rung need a round per rung to reach the last. Older rungs are in equilibrium already,
        // so the ladder continues from its present states.
        let least = least_rounds.max(self.ladder.len());
        let run = self.ladder.equilibrate(1, reservoir.max(1), least, most_rounds.max(least))?;
        self.reservoir = run.samples;
        *self.chains.states_mut() = self.ladder.chains(self.ladder.len() - 1).states().clone();
        Ok(run.autocorrelation)
    }

    /// A machine far from independent units is reached through intermediate rungs.
    fn start(&mut self, machine: &Machine<T>) -> Result<()> {
        self.started = true;
        let rounds = self.params.least_rounds;
        if self.ladder.bridge(machine, self.params.freeze, rounds)? > 0 {
            self.freeze(machine)?;
        }
        Ok(())
    }
}

impl<T: Real> NegativePhase<T> for Ptt<T> {
    fn name(&self) -> &'static str {
        "ptt"
    }

    fn estimate(&mut self, context: &Context<'_, T>, out: &mut Phase<T>) -> Result<Info> {
        let machine = context.model.machine();
        if !self.started {
            self.start(machine)?;
        }
        let clamps = Clamps::none(machine);
        self.chains.sweep_checked(context.model, &clamps, self.params.sweeps, context.stop)?;
        let (acceptance, mut log_z) = self.trade(context)?;
        let mut metrics = vec![("acceptance", acceptance)];
        if acceptance < self.params.freeze {
            metrics.push(("autocorrelation", self.freeze(machine)?));
            log_z = self.ladder.log_z().0;
        }
        context.model.moments_into(self.chains.states(), &averaged(machine), None, out)?;
        metrics.extend([("log_z", log_z), ("rungs", self.ladder.len() as f64)]);
        Ok(Info { metrics })
    }

    fn updated(&mut self, _old: &Machine<T>, new: &Machine<T>) -> Result<Decision> {
        let (frozen, model) = (self.ladder.last().at(1.0), new.at(1.0));
        // Before a sweep the chains look like the reservoir whatever the new machine is, so a copy makes one sweep
        // first.
        let mut ahead = self.chains.clone();
        ahead.sweep(&model, &Clamps::none(new), 1)?;
        let u_x = log_ratio(&frozen, &model, &self.reservoir.select(&self.picks()))?;
        let u_y = log_ratio(&frozen, &model, ahead.states())?;
        let follows = mean_acceptance(&u_x, &u_y) >= self.params.reject;
        Ok(if follows { Decision::Accept } else { Decision::Reject })
    }

    fn chains(&self) -> Option<&States<T>> {
        Some(self.chains.states())
    }

    fn save(&self, archive: &mut Archive) {
        self.ladder.save(archive, "ladder");
        self.chains.save(archive, "chains");
        archive.put_states("reservoir", &self.reservoir);
        archive.put_u64s("counters", &[self.seed, self.exchanges, u64::from(self.started)]);
    }

    fn load(&mut self, archive: &Archive) -> Result<()> {
        let counters = archive.u64s("counters")?;
        let &[seed, exchanges, started] = counters.as_slice() else {
            return Err(Error::shape("counters of ptt", 3, counters.len()));
        };
        let chains = chains_like(&self.chains, Chains::load(archive, "chains")?)?;
        let reservoir = archive.states("reservoir")?;
        if reservoir.rows() < chains.states().rows() {
            let (expected, got) = (chains.states().rows(), reservoir.rows());
            return Err(Error::shape("rows of the reservoir in a checkpoint", expected, got));
        }
        self.ladder = Trajectory::load(archive, "ladder", self.ladder.machine(0))?;
        (self.chains, self.reservoir) = (chains, reservoir);
        (self.seed, self.exchanges, self.started) = (seed, exchanges, started != 0);
        Ok(())
    }
}
