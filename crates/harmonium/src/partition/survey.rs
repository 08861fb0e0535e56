//! The parts of a two-sided estimate: adaptive runs up, a ladder, runs down and probes.
//!
//! These are raw measurements; [`evaluate`](crate::evaluate) decides whether they have converged.

use super::anneal::{self, RunSeed};
use super::ladder::{Ladder, Seen};
use super::path::Path;
use super::result::{ProgressFn, report_progress};
use super::schedule::{Length, LengthEstimator, Schedule};
use super::{Base, Bound, Cost, LogZ, Method, ais, bennett_ladder, integrate, weights};
use crate::sample::purpose;
use crate::{Chains, Clamp, Clamps, Key, Machine, Real, Result, Role, States};
use harmonium_kernels::Stream;
use ndarray::{Array2, ArrayView1, Axis};

/// Most rungs of a ladder.
pub(crate) const RUNGS_MOST: usize = 300;
/// Equilibrium length between rungs: neighbouring distributions exchange with a probability near 0.4.
const RUNG: f64 = 1.2;
/// States of a run up that are kept for the ladder.
const SNAPSHOTS: usize = 64;
/// Sweeps of every replica between two exchanges.
const SWEEPS: usize = 1;
/// Unevenness of the weights up to which more chains help; beyond it a few chains have all the weight.
const EVEN: f64 = 1.6;
/// Unevenness beyond which it does not determine how many steps are needed.
const FAR: f64 = 2.5;
/// Pilot runs of fewer steps have a negligible cost.
const CHEAP: usize = 4096;
/// Rounds of replica exchange between checks of convergence.
const BLOCK_OF_ROUNDS: usize = 100;
/// Chains of each kind of probe, and their sweeps at β = 1 before they go down.
const PROBES: usize = 32;
const RELAX: usize = 60;
/// Shares of a time budget: the runs up, the ladder (the rest is for the way down and the probes).
const SHARE_UP: f64 = 0.45;
const SHARE_LADDER: f64 = 0.25;

/// One estimate in progress: the path, the random streams used so far, the clock.
pub(crate) struct Survey<'a, 'm, T: Real> {
    path: Path<'m, T>,
    seed: u64,
    runs: u64,
    sweeps: f64,
    budget: Option<(f64, &'a dyn Fn() -> f64)>,
    started: f64,
    shortened: bool,
    observer: &'a mut ProgressFn<'a>,
}

/// The last run up.
pub(crate) struct Forward<T> {
    pub(crate) z: LogZ,
    /// Variance of the log-weights.
    pub(crate) variance: f64,
    pub(crate) schedule: Schedule,
    log_w: Vec<f64>,
    snapshots: Vec<Snapshot<T>>,
    equilibrium: Length,
}

impl<T: Real> Forward<T> {
    fn new(
        log_w: Vec<f64>,
        schedule: Schedule,
        snapshots: Vec<Snapshot<T>>,
        equilibrium: Length,
    ) -> Self {
        let z = anneal::from_forward(&log_w, schedule.steps());
        let variance = weights::mean_var(&log_w).1;
        Self { z, variance, schedule, log_w, snapshots, equilibrium }
    }

    /// The variance that log-weights of this effective size would have if they were normal, ln(M/ESS): unlike their own
    /// variance it is insensitive to chains with negligible weights.
    fn unevenness(&self) -> f64 {
        (self.log_w.len() as f64 / self.z.ess).ln()
    }

    /// Adds the chains of another run with the same schedule.
    fn join(&mut self, other: Self) {
        self.log_w.extend(&other.log_w);
        for (a, b) in self.snapshots.iter_mut().zip(other.snapshots) {
            a.log_w.extend(&b.log_w);
            a.states = States::stack(&[a.states.clone(), b.states]);
        }
        self.z = anneal::from_forward(&self.log_w, self.schedule.steps());
        self.variance = weights::mean_var(&self.log_w).1;
    }
}

struct Snapshot<T> {
    beta: f64,
    states: States<T>,
    log_w: Vec<f64>,
}

/// Measurements of the replica exchange.
pub(crate) struct ExchangeResult<T> {
    pub(crate) betas: Vec<f64>,
    pub(crate) acceptance: Vec<f64>,
    pub(crate) round_trips: u64,
    /// $\partial_\beta\ln f_\beta$ at β = 1: a row per ladder, a column per round.
    pub(crate) trace: Array2<f64>,
    pub(crate) bennett: LogZ,
    pub(crate) integral: LogZ,
    /// Samples at β = 1, those of one ladder next to each other.
    samples: States<T>,
    per_ladder: usize,
}

/// Reverse log-weights of one kind of start.
pub(crate) struct Probe {
    pub(crate) what: &'static str,
    pub(crate) log_w: Vec<f64>,
}

impl<'a, 'm, T: Real> Survey<'a, 'm, T> {
    pub(crate) fn new(
        machine: &'m Machine<T>,
        base: &Base<T>,
        seed: u64,
        budget: Option<(f64, &'a dyn Fn() -> f64)>,
        observer: &'a mut ProgressFn<'a>,
    ) -> Result<Self> {
        let path = ais::unconditional(machine, base)?;
        let started = budget.map_or(0.0, |(_, clock)| clock());
        Ok(Self { path, seed, runs: 0, sweeps: 0.0, budget, started, shortened: false, observer })
    }

    pub(crate) fn sweeps(&self) -> f64 {
        self.sweeps
    }
    /// Whether the time budget shortened anything.
    pub(crate) fn shortened(&self) -> bool {
        self.shortened
    }

    fn run(&mut self) -> RunSeed {
        self.runs += 1;
        RunSeed { seed: self.seed, number: 16 + self.runs }
    }

    /// How often something that takes `sweeps` sweeps of a chain can be done in `share` of what is left of the
    /// budget, at the speed so far.
    fn affordable(&self, share: f64, sweeps: f64) -> f64 {
        match self.budget {
            Some((seconds, clock)) if self.sweeps > 0.0 => {
                let elapsed = clock() - self.started;
                let speed = self.sweeps / elapsed.max(1e-9);
                (share * (seconds - elapsed).max(0.0) * speed / sweeps).max(0.0)
            }
            _ => f64::INFINITY,
        }
    }

    /// Runs up until the standard error is small enough: first with ever finer schedules, then with ever more chains.
    pub(crate) fn forward(&mut self, chains: usize, std_err: f64, most: usize) -> Result<Forward<T>> {
        // The relative variance of M weights with log-variance V is (e^V − 1)/M. At the same cost long schedules beat
        // many chains, and (e^V − 1)/V shows by how much: little below V = 0.5.
        let aim = (1.0 + chains as f64 * (0.85 * std_err).powi(2)).ln().min(0.52);
        let mut schedule = self.pilots(aim, chains, most)?;
        loop {
            let (mut forward, annealing) = self.up(&schedule, chains)?;
            let steps = schedule.steps() as f64;
            let limit = loop {
                let even = forward.unevenness() <= EVEN;
                if even && forward.z.std_err <= std_err {
                    return Ok(forward);
                }
                let affordable = self.affordable(SHARE_UP, chains as f64);
                let limit = affordable.min(most as f64);
                let spent = forward.log_w.len() as f64 * steps;
                let finer = !even && 1.5 * steps <= limit;
                let more = even && steps <= affordable && spent <= (chains * most) as f64;
                if finer {
                    break limit;
                }
                if !more {
                    self.shortened |= affordable < 1.5 * steps && affordable < most as f64;
                    return Ok(forward);
                }
                // As many as the error requires, in whole blocks.
                let rows = forward.log_w.len();
                let missing = rows as f64 * ((forward.z.std_err / std_err).powi(2) - 1.0);
                let add = (missing as usize).clamp(16, 2 * chains).next_multiple_of(16);
                let (again, _) = self.up(&schedule, add)?;
                forward.join(again);
            };
            let needed = 1.2 * forward.unevenness() * steps / aim;
            schedule = annealing.divide(needed.clamp(1.5 * steps, 4.0 * steps).min(limit) as usize);
        }
    }

    /// Runs of few chains, each refining the schedule of the next, until there is a schedule for all chains.
    fn pilots(&mut self, aim: f64, chains: usize, most: usize) -> Result<Schedule> {
        let mut schedule = Schedule::uniform(64.min(most));
        loop {
            let (forward, annealing) = self.up(&schedule, (chains / 4).max(16))?;
            let steps = schedule.steps() as f64;
            let limit = self.affordable(SHARE_UP, chains as f64).min(most as f64);
            // A schedule of n steps leaves the variance ∝ 1/n once it is fine enough; before that it falls more slowly,
            // and few chains see too little of it. Estimates from few chains are noisy: where runs are expensive, the
            // schedule grows at most by a factor of two.
            let (far, finer) = if schedule.steps() < CHEAP { (aim, 4) } else { (FAR, 2) };
            if forward.unevenness() > far && finer as f64 * steps <= limit {
                schedule = annealing.divide(finer * schedule.steps());
                continue;
            }
            let needed = (forward.unevenness() * steps / aim).clamp(0.6 * steps, finer as f64 * steps);
            return Ok(annealing.divide(needed.min(limit).max(2.0) as usize));
        }
    }

    fn up(&mut self, schedule: &Schedule, chains: usize) -> Result<(Forward<T>, Length)> {
        let run = self.run();
        let steps = schedule.steps();
        let mut watch = LengthEstimator::new(chains, steps);
        let mut snapshots = Vec::new();
        let mut sums = vec![0.0; chains];
        let (path, observer) = (&self.path, &mut *self.observer);
        let every = steps.div_ceil(SNAPSHOTS);
        let each = |k: usize, beta: f64, increments: &[f64], states: &States<T>| {
            watch.step(k, beta, increments);
            sums.iter_mut().zip(increments).for_each(|(s, x)| *s += x);
            if (k + 1).is_multiple_of(every) || k + 1 == steps {
                snapshots.push(Snapshot {
                    beta,
                    states: path.keep(states.clone()),
                    log_w: sums.clone(),
                });
            }
            report_progress(observer, "annealing", k + 1, steps)
        };
        let (log_w, _) = anneal::forward(path, schedule, chains, run, each)?;
        self.sweeps += (chains * steps) as f64;
        let forward = Forward::new(log_w, schedule.clone(), snapshots, watch.equilibrium());
        Ok((forward, watch.annealing()))
    }

    /// Replica exchange from the weighted states of the run up.
    pub(crate) fn ladder(
        &mut self,
        forward: &Forward<T>,
        ladders: usize,
        rounds: usize,
        mixed: impl Fn(&Array2<f64>) -> bool,
    ) -> Result<ExchangeResult<T>> {
        // As many runs down as up.
        let samples = forward.log_w.len();
        let gaps = (forward.equilibrium.total() / RUNG).ceil().clamp(2.0, RUNGS_MOST as f64 - 1.0);
        let betas = forward.equilibrium.divide(gaps as usize).betas().to_vec();
        let per_round = (betas.len() * ladders * (SWEEPS + 1)) as f64;
        let affordable = self.affordable(SHARE_LADDER / (1.0 - SHARE_UP), per_round);
        let most = (rounds as f64).min(affordable).max(16.0) as usize;
        let run = self.run();
        let replicas = self.replicas(forward, &betas, ladders);
        let mut ladder = Ladder::new(&self.path, betas, replicas, run);
        let mut record = Record::new(ladder.betas().len(), ladders, 2 * samples.div_ceil(ladders));
        let (mut done, mut next) = (0, most.min(BLOCK_OF_ROUNDS));
        // The replicas start near equilibrium, so a short burn-in suffices.
        let burn = next / 4;
        loop {
            for k in done..next {
                let seen = ladder.round(SWEEPS)?;
                if k >= burn {
                    record.take(&seen, || self.path.keep(ladder.top().clone()));
                }
                report_progress(self.observer, "replica exchange", k + 1, next)?;
            }
            done = next;
            next = most.min(2 * done);
            if done >= most || mixed(&record.trace()) {
                break;
            }
        }
        self.shortened |= done < rounds && done >= most;
        let rounds = done;
        let climb = record.finish(
            &ladder,
            self.path.log_z0(),
            per_round * rounds as f64,
            samples.div_ceil(ladders),
        );
        self.sweeps += per_round * rounds as f64;
        Ok(climb)
    }

    /// For each β the weighted states of the run up nearest to it, resampled to equal weights.
    fn replicas(&mut self, forward: &Forward<T>, betas: &[f64], ladders: usize) -> Vec<States<T>> {
        let run = self.run();
        let mut rng = Stream::new(Key { purpose: purpose::PARTITION << 8 | 0xff, ..run.key(0) });
        let mut replica = |i: usize| {
            if betas[i] == 0.0 {
                let mut states = States::empty(self.path.machine().len(), ladders);
                self.path.start(&mut states, run.key(1));
                return states;
            }
            let distance = |s: &&Snapshot<T>| (s.beta - betas[i]).abs();
            let nearest = forward.snapshots.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
            let s = nearest.expect("a run up keeps its end at least");
            let mut rows = weights::systematic(
                &weights::normalised(&s.log_w),
                ladders,
                crate::units::uniform(&mut rng),
            );
            // Rows come out in order; ladders should not start with related states on all rungs.
            rows.rotate_left(i % ladders);
            s.states.select(&rows)
        };
        (0..betas.len()).map(&mut replica).collect()
    }

    /// Runs down from the samples of the ladder and from starts that are independent of the run up: rows of data, and
    /// random states quenched to low energy, both relaxed at β = 1.
    pub(crate) fn down(
        &mut self,
        schedule: &Schedule,
        climb: &ExchangeResult<T>,
        data: Option<&States<T>>,
    ) -> Result<(LogZ, Vec<Probe>)> {
        let mut kinds = Vec::new();
        let mut starts = vec![climb.samples.clone()];
        if let Some(data) = data.filter(|d| d.rows() > 0) {
            let n = data.rows().min(PROBES);
            let rows: Vec<usize> = (0..n).map(|i| i * data.rows() / n).collect();
            kinds.push("data");
            starts.push(self.started_from(&data.select(&rows))?);
        }
        kinds.push("quenched random states");
        starts.push(self.quenched(self.path.machine())?);
        for states in &mut starts[1..] {
            let run = self.run();
            for k in 0..RELAX {
                self.path.sweep(states, 1.0, run.key(k))?;
            }
            *states = self.path.keep(states.clone());
        }
        let run = self.run();
        let log_w = anneal::reverse(&self.path, schedule, States::stack(&starts), run, self.observer)?;
        self.sweeps +=
            (log_w.len() * schedule.steps() + RELAX * (log_w.len() - starts[0].rows())) as f64;
        let (reverse, mut rest) = log_w.split_at(starts[0].rows());
        let mut probes = Vec::new();
        for (what, states) in kinds.into_iter().zip(&starts[1..]) {
            let (own, others) = rest.split_at(states.rows());
            probes.push(Probe { what, log_w: own.to_vec() });
            rest = others;
        }
        Ok((anneal::from_reverse(reverse, climb.per_ladder, schedule.steps()), probes))
    }

    /// All kept layers with the visible ones as given: hidden ones follow from sweeps with the data clamped.
    fn started_from(&mut self, data: &States<T>) -> Result<States<T>> {
        let machine = self.path.machine();
        machine.must_be_states("a chain from these rows", data)?;
        let run = self.run();
        let mut states =
            Chains::independent(machine, data.rows(), run.key(0).hash(), purpose::PARTITION)?
                .states()
                .clone();
        for l in 0..machine.len() {
            if let Some(x) = data.get(l) {
                states.set(l, x.clone());
            }
        }
        let mut chains = Chains::new(states, run.key(1).hash(), purpose::PARTITION);
        chains.sweep(&machine.at(1.0), &Clamps::visible(machine), RELAX)?;
        Ok(self.path.keep(chains.states().clone()))
    }

    /// Random states cooled below the machine's temperature. Half of them start from independent units and are cooled
    /// slowly; the others start from hidden units without biases, which lead the visible ones to improbable regions
    /// too.
    fn quenched(&mut self, machine: &Machine<T>) -> Result<States<T>> {
        let run = self.run();
        let may_be_cooled = machine.members().iter().all(|m| m.layer.kind().tail().may_be_cooled());
        let coldest = if may_be_cooled { 3.0 } else { 1.0 };
        let sweeps = RELAX / 3;
        let slow = Chains::independent(machine, PROBES / 2, run.key(0).hash(), purpose::PARTITION)?;
        let mut states = States::empty(machine.len(), PROBES / 2);
        for l in 0..machine.len() {
            let layer = super::base::unbiased(machine.layer(l));
            let mut x = layer.zeros(PROBES / 2);
            let key = Key { purpose: purpose::PARTITION << 8 | l as u32, ..run.key(1) };
            layer.sample_into(&Array2::zeros((PROBES / 2, layer.width())), key, &mut x);
            states.set(l, x);
        }
        let mut drawn = Chains::new(states, run.key(2).hash(), purpose::PARTITION);
        let hidden = machine.with_role(Role::Hidden);
        let held = hidden.fold(Clamps::none(machine), |c, l| c.with(l, Clamp::All));
        drawn.sweep(&machine.at(1.0), &held, 1)?;
        let mut parts = Vec::new();
        for (mut chains, first) in [(slow, 1), (drawn, sweeps)] {
            for k in first..first + sweeps {
                let beta = coldest * (k as f64 / sweeps as f64).min(1.0);
                chains.sweep(&machine.at(beta), &Clamps::none(machine), 1)?;
            }
            parts.push(self.path.keep(chains.states().clone()));
        }
        Ok(States::stack(&parts))
    }
}

/// Accumulated measurements of the rounds of a ladder.
struct Record<T> {
    ratios: Vec<(Vec<f64>, Vec<f64>)>,
    /// Sum over rounds, a row per rung and a column per ladder.
    slopes: Array2<f64>,
    /// The slope at β = 1, round after round.
    trace: Vec<Vec<f64>>,
    /// States at β = 1 after every `every` rounds, at most `most` of them.
    samples: Vec<States<T>>,
    every: usize,
    most: usize,
}

impl<T: Real> Record<T> {
    fn new(rungs: usize, ladders: usize, most: usize) -> Self {
        Self {
            ratios: vec![(Vec::new(), Vec::new()); rungs - 1],
            slopes: Array2::zeros((rungs, ladders)),
            trace: Vec::new(),
            samples: Vec::new(),
            every: 1,
            most,
        }
    }

    fn take(&mut self, seen: &Seen, top: impl FnOnce() -> States<T>) {
        for (to, from) in self.ratios.iter_mut().zip(&seen.ratios) {
            to.0.extend(&from.0);
            to.1.extend(&from.1);
        }
        for (mut row, d) in self.slopes.rows_mut().into_iter().zip(&seen.derivatives) {
            row.iter_mut().zip(d).for_each(|(s, d)| *s += d);
        }
        self.trace.push(seen.derivatives[seen.derivatives.len() - 1].clone());
        if self.trace.len().is_multiple_of(self.every) {
            self.samples.push(top());
            if self.samples.len() > self.most {
                let mut k = 0;
                self.samples.retain(|_| {
                    k += 1;
                    k % 2 == 0
                });
                self.every *= 2;
            }
        }
    }

    /// A row per ladder, a column per round.
    fn trace(&self) -> Array2<f64> {
        Array2::from_shape_fn((self.slopes.ncols(), self.trace.len()), |(r, k)| self.trace[k][r])
    }

    fn finish(
        mut self,
        ladder: &Ladder<'_, '_, T>,
        log_z0: f64,
        sweeps: f64,
        per_ladder: usize,
    ) -> ExchangeResult<T> {
        let (betas, ladders) = (ladder.betas().to_vec(), self.slopes.ncols());
        let rounds = self.trace.len() as f64;
        let cost = Cost { chains: ladders, temperatures: betas.len(), sweeps };
        let made = |value, std_err, method| {
            let (ess, bound) = (ladders as f64, Bound::Central);
            LogZ { value: log_z0 + value, std_err, ess, bound, method, cost }
        };
        let ratio = bennett_ladder(&self.ratios, ladders);
        let curve = |s: ArrayView1<'_, f64>| s.iter().map(|s| s / rounds).collect::<Vec<_>>();
        let integrals: Vec<f64> =
            self.slopes.columns().into_iter().map(|s| integrate(&betas, &curve(s)).0).collect();
        let (mean, var) = weights::mean_var(&integrals);
        let average = self.slopes.mean_axis(Axis(1)).expect("at least one ladder");
        let unresolved = integrate(&betas, &curve(average.view())).1;
        // The latest samples, and from round after round to ladder after ladder.
        let per_ladder = per_ladder.min(self.samples.len());
        let latest = self.samples.split_off(self.samples.len() - per_ladder);
        let rows: Vec<usize> =
            (0..ladders).flat_map(|r| (0..per_ladder).map(move |s| s * ladders + r)).collect();
        ExchangeResult {
            acceptance: ladder.trips().acceptance(),
            round_trips: ladder.trips().trips().iter().sum(),
            trace: self.trace(),
            bennett: made(ratio.value, ratio.std_err, Method::Bennett),
            integral: made(mean, (var / ladders as f64).sqrt().hypot(unresolved), Method::Integration),
            samples: States::stack(&latest).select(&rows),
            per_ladder,
            betas,
        }
    }
}
