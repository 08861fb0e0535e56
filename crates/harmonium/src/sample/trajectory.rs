//! Trajectory tempering: a ladder whose rungs are past states of one machine, with ln Z along it.

use super::bennett::bennett;
use super::exchange::{Exchange, acceptance, exchange, log_ratio};
use super::purpose;
use crate::{Archive, Chains, Clamps, Error, Key, Machine, Real, Result, States};
use ndarray::Array2;

/// One checkpoint of the trajectory and the chains that follow it.
#[derive(Clone, Debug, PartialEq)]
struct Rung<T: Real> {
    machine: Machine<T>,
    chains: Chains<T>,
    gap: Gap,
}

/// Measurements of the gap between a rung and the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Gap {
    /// Estimate of $\ln Z/Z_{\text{before}}$.
    log_ratio: f64,
    /// Its variance.
    variance: f64,
    /// Samples behind it.
    samples: f64,
    /// Acceptance at the last exchange.
    acceptance: f64,
}

/// Chains at the checkpoints $\theta_0, \theta_1, \dots$ of a training run that exchange configurations.
///
/// The first rung has no couplings: its samples and its ln Z are exact. Neighbouring checkpoints are close, so
/// configurations travel from there to the last rung, even across transitions that tempering in β does not survive.
/// Regions to which no checkpoint gives weight are never visited.
#[derive(Clone, Debug, PartialEq)]
pub struct Trajectory<T: Real = f32> {
    rungs: Vec<Rung<T>>,
    seed: u64,
    exchanges: u64,
}

/// The result of [`Trajectory::equilibrate`].
#[derive(Clone, Debug)]
pub struct Equilibration<T: Real> {
    /// Configurations of the last rung from the second half of the run, several times its chains.
    pub samples: States<T>,
    /// Rounds made.
    pub rounds: usize,
    /// Integrated autocorrelation time of the last rung's log-density, in rounds.
    pub autocorrelation: f64,
}

impl<T: Real> Trajectory<T> {
    /// The ladder of one rung: `machine` with its couplings cut, followed by `rows` chains.
    ///
    /// # Errors
    /// A machine that cannot be normalised, or with a conditioning layer.
    pub fn new(machine: &Machine<T>, rows: usize, seed: u64) -> Result<Self> {
        if let Some(l) = machine.with_role(crate::Role::Condition).next() {
            let why = format!("layer {} conditions each row on its own", machine.members()[l].name);
            return Err(Error::Undefined { what: "trajectory tempering", why });
        }
        let first = uncoupled(machine);
        let chains = Chains::independent(&first, rows, rung_seed(seed, 0), purpose::NEGATIVE)?;
        Ok(Self {
            rungs: vec![Rung { machine: first, chains, gap: Gap::default() }],
            seed,
            exchanges: 0,
        })
    }

    /// Number of rungs.
    pub fn len(&self) -> usize {
        self.rungs.len()
    }
    /// Whether there is no rung (never: there is always the first).
    pub fn is_empty(&self) -> bool {
        self.rungs.is_empty()
    }
    /// The machine of rung `k`; rung 0 has no couplings.
    pub fn machine(&self, k: usize) -> &Machine<T> {
        &self.rungs[k].machine
    }
    /// The machine of the last rung.
    pub fn last(&self) -> &Machine<T> {
        self.machine(self.len() - 1)
    }
    /// The chains of rung `k`.
    pub fn chains(&self, k: usize) -> &Chains<T> {
        &self.rungs[k].chains
    }
    /// Acceptance between each rung and the next at their last exchange.
    pub fn acceptance(&self) -> Vec<f64> {
        self.rungs[1..].iter().map(|r| r.gap.acceptance).collect()
    }

    /// $\ln Z$ of the last rung and its standard error: exact at the first, plus Bennett's ratio over every
    /// gap. The error assumes independent samples.
    pub fn log_z(&self) -> (f64, f64) {
        let gaps = || self.rungs[1..].iter().map(|r| &r.gap);
        let value = log_z_uncoupled(self.machine(0)) + gaps().map(|g| g.log_ratio).sum::<f64>();
        (value, gaps().map(|g| g.variance).sum::<f64>().sqrt())
    }

    /// Adds a checkpoint as the last rung. Its chains start from `states`, of as many rows as the others.
    pub fn push(&mut self, machine: Machine<T>, states: States<T>) {
        let chains = Chains::new(states, rung_seed(self.seed, self.len()), purpose::NEGATIVE);
        self.rungs.push(Rung { machine, chains, gap: Gap::default() });
    }

    /// Adds rungs between the last one and `target`, on the straight line of parameters, until
    /// configurations exchange with `target` at the given acceptance. Returns how many it added.
    ///
    /// # Errors
    /// Errors of sampling.
    pub fn bridge(&mut self, target: &Machine<T>, wanted: f64, rounds: usize) -> Result<usize> {
        let start = self.len();
        // Sixty halvings reach the precision of the parameters: more rungs cannot help.
        while self.len() - start < 60 && self.reach(target, 1)? < wanted {
            let mut part = 1.0;
            let mut next = target.clone();
            while part > 1e-3 && self.reach(&next, 1)? < wanted {
                part *= 0.5;
                next = between(self.last(), target, part)?;
            }
            let states = self.rungs[self.len() - 1].chains.states().clone();
            self.push(next, states);
            self.equilibrate(1, 1, rounds, rounds)?;
        }
        Ok(self.len() - start)
    }

    /// The acceptance of exchanges between the last rung and another machine, guessed from `sweeps` sweeps
    /// of the last rung's configurations under that machine.
    fn reach(&self, target: &Machine<T>, sweeps: usize) -> Result<f64> {
        let last = &self.rungs[self.len() - 1];
        let (a, b) = (last.machine.at(1.0), target.at(1.0));
        let mut moved =
            Chains::new(last.chains.states().clone(), rung_seed(self.seed, self.len()), purpose::SWAP);
        moved.sweep(&b, &Clamps::none(target), sweeps)?;
        let (x, y) = (log_ratio(&a, &b, last.chains.states())?, log_ratio(&a, &b, moved.states())?);
        Ok(mean_acceptance(&x, &y))
    }

    /// Makes `sweeps` sweeps at every rung, then exchanges the even or the odd pairs of neighbours, in turn.
    /// Calls `seen(gap, exchange)` for each pair.
    ///
    /// # Errors
    /// Errors of sampling.
    fn round(&mut self, sweeps: usize, mut seen: impl FnMut(usize, Exchange)) -> Result<()> {
        for rung in &mut self.rungs {
            let clamps = Clamps::none(&rung.machine);
            rung.chains.sweep(&rung.machine.at(1.0), &clamps, sweeps)?;
        }
        for k in ((self.exchanges % 2) as usize..self.len() - 1).step_by(2) {
            let key =
                Key { seed: self.seed, purpose: purpose::SWAP, block: k as u32, sweep: self.exchanges };
            let (left, right) = self.rungs.split_at_mut(k + 1);
            let (a, b) = (&mut left[k], &mut right[0]);
            let x = (&a.machine.at(1.0), a.chains.states_mut());
            let done = exchange(x, (&b.machine.at(1.0), b.chains.states_mut()), key)?;
            b.gap.acceptance = done.acceptance;
            seen(k, done);
        }
        self.exchanges += 1;
        Ok(())
    }

    /// Runs the ladder until the last rung has seen 20 of its autocorrelation times, at least `least` and
    /// at most `most` rounds, and gathers `copies` times its chains as samples. The second half of the run
    /// also improves ln Z of every gap.
    ///
    /// # Errors
    /// Errors of sampling.
    pub fn equilibrate(
        &mut self,
        sweeps: usize,
        copies: usize,
        least: usize,
        most: usize,
    ) -> Result<Equilibration<T>> {
        let mut thinned = Thinned::new(copies);
        let mut series: Vec<Vec<f64>> = Vec::new();
        let mut ratios: Vec<[Vec<Vec<f64>>; 2]> = vec![Default::default(); self.len() - 1];
        let mut autocorrelation = f64::INFINITY;
        while series.len() < most.max(1) {
            self.round(sweeps, |gap, done| {
                ratios[gap][0].push(done.u_a);
                ratios[gap][1].push(done.u_b);
            })?;
            let last = &self.rungs[self.len() - 1];
            series.push(super::log_density(&last.machine.at(1.0), last.chains.states())?);
            thinned.offer(last.chains.states());
            if series.len() >= least.max(2) && series.len().is_multiple_of(5) {
                autocorrelation = autocorrelation_time(&series);
                if series.len() as f64 >= 20.0 * autocorrelation {
                    break;
                }
            }
        }
        for (rung, [u_a, u_b]) in self.rungs[1..].iter_mut().zip(&ratios) {
            rung.gap.refine(u_a, u_b);
        }
        Ok(Equilibration { samples: thinned.samples(), rounds: series.len(), autocorrelation })
    }

    /// Saves everything the next round depends on in `archive`, below `name`.
    pub fn save(&self, archive: &mut Archive, name: &str) {
        let counters = [self.rungs.len() as u64, self.seed, self.exchanges];
        archive.put_u64s(format!("{name}/counters"), &counters);
        for (k, r) in self.rungs.iter().enumerate() {
            archive.put_parameters(&format!("{name}/rung{k}/machine"), &r.machine.parameters());
            r.chains.save(archive, &format!("{name}/rung{k}/chains"));
            let Gap { log_ratio, variance, samples, acceptance } = r.gap;
            let gap = [log_ratio, variance, samples, acceptance];
            archive.put_f64s(format!("{name}/rung{k}/gap"), &gap);
        }
    }

    /// The ladder as [`save`](Self::save) left it, of machines shaped like `machine`.
    ///
    /// # Errors
    /// When the archive does not hold it.
    pub fn load(archive: &Archive, name: &str, machine: &Machine<T>) -> Result<Self> {
        let counters = archive.u64s(&format!("{name}/counters"))?;
        let &[len, seed, exchanges] = counters.as_slice() else {
            return Err(Error::shape("counters of a trajectory", 3, counters.len()));
        };
        if len == 0 {
            return Err(Error::shape("rungs of a trajectory", "at least one", 0));
        }
        let rung = |k: u64| {
            let name = format!("{name}/rung{k}");
            let mut own = machine.clone();
            own.set_parameters(&archive.parameters(&format!("{name}/machine"), &machine.parameters())?)?;
            let gap = archive.f64s(&format!("{name}/gap"))?;
            let &[log_ratio, variance, samples, acceptance] = gap.as_slice() else {
                return Err(Error::shape("numbers of a gap", 4, gap.len()));
            };
            let gap = Gap { log_ratio, variance, samples, acceptance };
            Ok(Rung { machine: own, chains: Chains::load(archive, &format!("{name}/chains"))?, gap })
        };
        Ok(Self { rungs: (0..len).map(rung).collect::<Result<_>>()?, seed, exchanges })
    }
}

impl Gap {
    /// Bennett's ratio from the second half of a run, averaged with what was known by number of samples.
    fn refine(&mut self, u_a: &[Vec<f64>], u_b: &[Vec<f64>]) {
        let half = |u: &[Vec<f64>]| u[u.len() / 2..].concat();
        let (a, b) = (half(u_a), half(u_b));
        let ratio = bennett(&a, &b);
        if ratio.value.is_nan() {
            return;
        }
        let (old, new) = (self.samples, a.len() as f64);
        let part = new / (old + new);
        self.log_ratio += part * (ratio.value - self.log_ratio);
        self.variance = (1.0 - part).powi(2) * self.variance + (part * ratio.std_err).powi(2);
        self.samples = old + new;
    }
}

/// Mean of the acceptance over paired rows.
pub(crate) fn mean_acceptance(u_x: &[f64], u_y: &[f64]) -> f64 {
    let sum: f64 = u_x.iter().zip(u_y).map(|(&x, &y)| acceptance(x, y)).sum();
    sum / u_x.len().max(1) as f64
}

/// The same machine with all couplings zero.
pub(crate) fn uncoupled<T: Real>(machine: &Machine<T>) -> Machine<T> {
    let mut out = machine.clone();
    for c in 0..out.couplings().len() {
        out.coupling_mut(c).w_mut().fill(T::zero());
    }
    out
}

/// $\ln Z = \sum_l \Gamma_l(0)$ of a machine without couplings.
pub(crate) fn log_z_uncoupled<T: Real>(machine: &Machine<T>) -> f64 {
    let mut sum = [0.0];
    for m in machine.members() {
        m.layer.add_cgf(&Array2::zeros((1, m.layer.width())), &mut sum);
    }
    sum[0]
}

/// The machine at `part` of the way from `a` to `b`.
pub(crate) fn between<T: Real>(a: &Machine<T>, b: &Machine<T>, part: f64) -> Result<Machine<T>> {
    let mut parameters = a.parameters();
    parameters.scale(T::of(1.0 - part));
    parameters.add(T::of(part), &b.parameters());
    let mut out = a.clone();
    out.set_parameters(&parameters)?;
    Ok(out)
}

fn rung_seed(seed: u64, k: usize) -> u64 {
    Key { seed, purpose: purpose::NEGATIVE, block: k as u32, sweep: 0 }.hash()
}

/// Keeps configurations from evenly spaced rounds, between `copies` and twice as many, whatever the length
/// of the run; the latest `copies` are the samples.
struct Thinned<T> {
    copies: usize,
    stride: usize,
    offered: usize,
    kept: Vec<States<T>>,
}

impl<T: Real> Thinned<T> {
    fn new(copies: usize) -> Self {
        Self { copies: copies.max(1), stride: 1, offered: 0, kept: Vec::new() }
    }

    fn offer(&mut self, states: &States<T>) {
        self.offered += 1;
        if !self.offered.is_multiple_of(self.stride) {
            return;
        }
        self.kept.push(states.clone());
        if self.kept.len() == 2 * self.copies {
            self.stride *= 2;
            let mut keep = [false, true].into_iter().cycle();
            self.kept.retain(|_| keep.next().expect("an endless cycle"));
        }
    }

    fn samples(mut self) -> States<T> {
        let late = self.kept.len().saturating_sub(self.copies);
        States::stack(&self.kept.split_off(late))
    }
}

/// $\tau = 1 + 2\sum_t\rho(t)$ of a number that every chain reports each round, with the deviations taken from the mean
/// over all chains: a chain that stays in one region counts as correlated. The sum ends at five times its own value.
///
/// It decides how long a run goes on, and chains that disagree must make it long. The one for finished runs, which is compared
/// with other programs, is [`autocorrelation_time`](crate::evaluate::autocorrelation_time).
fn autocorrelation_time(series: &[Vec<f64>]) -> f64 {
    let (rounds, chains) = (series.len(), series[0].len());
    let mean = series.iter().flatten().sum::<f64>() / (rounds * chains) as f64;
    let covariance = |lag: usize| {
        let pairs = series.iter().zip(&series[lag..]);
        let sum: f64 =
            pairs.flat_map(|(a, b)| a.iter().zip(b)).map(|(a, b)| (a - mean) * (b - mean)).sum();
        sum / ((rounds - lag) * chains) as f64
    };
    let variance = covariance(0);
    if variance <= 0.0 || variance.is_nan() {
        return 1.0;
    }
    let mut tau = 1.0;
    for lag in 1..rounds / 2 {
        tau += 2.0 * covariance(lag) / variance;
        if lag as f64 >= 5.0 * tau {
            break;
        }
    }
    tau.max(1.0)
}
