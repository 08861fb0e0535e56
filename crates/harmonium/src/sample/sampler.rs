//! Samples of the model: drawn exactly where that is fast, else by chains that are tested for mixing.

use super::start_dependence::{self, StartDependence};
use super::{Chains, Clamp, Clamps, Replicas, Stop, purpose};
use crate::exact::Draws;
use crate::machine::{Known, Pattern, Rest, put};
use crate::units::uniform;
use crate::{Key, Machine, Real, Result, Role, States};
use harmonium_kernels::Stream;

/// Longest enumeration of one distribution, and of those of all rows together, in seconds.
const SHORT: f64 = 0.05;
const SHORT_TOGETHER: f64 = 0.25;
/// Temperatures of replica exchange where none are set.
pub const TEMPERATURES: usize = 12;

/// How samples are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplingMethod {
    /// Automatic: exact draws where enumeration is fast, else plain chains if these forget their start, else replica
    /// exchange.
    Auto,
    /// Plain chains, not tested for mixing.
    Plain,
    /// Replica exchange over this many temperatures.
    Tempered(usize),
}

/// Draws samples of a machine with any units clamped: rows of states, renewed by sweeps.
///
/// The result depends only on the machine, the clamps, the number of sweeps and the seed.
#[derive(Debug)]
pub struct Sampler<T: Real = f32> {
    machine: Machine<T>,
    clamps: Clamps,
    source: Source<T>,
    start_dependence: Option<StartDependence>,
    method: SamplingMethod,
}

#[derive(Debug)]
enum Source<T: Real> {
    Exact(ExactDraws<T>),
    Plain(Chains<T>),
    Tempered(Box<Replicas<T>>),
}

impl<T: Real> Sampler<T> {
    /// Starts from `states`, in which clamped units keep their values. `sweeps` is the burn-in before the first sample;
    /// the test of mixing ends early when `go_on` returns false.
    ///
    /// # Errors
    /// A machine that cannot be normalised, clamps or states that do not fit, replica exchange of a conditional machine.
    pub fn new(
        machine: Machine<T>,
        clamps: Clamps,
        states: States<T>,
        method: SamplingMethod,
        seed: u64,
        sweeps: usize,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Self> {
        machine.check_normalisable()?;
        let mut start_dependence = None;
        let tempered = |rungs: usize| -> Result<Source<T>> {
            let replicas = Replicas::new(&machine, clamps.clone(), &states, rungs, seed, sweeps)?;
            Ok(Source::Tempered(Box::new(replicas)))
        };
        let source = match method {
            SamplingMethod::Plain => None,
            SamplingMethod::Tempered(rungs) => Some(tempered(rungs)?),
            SamplingMethod::Auto => match ExactDraws::new(&machine, &clamps, &states, seed)? {
                Some(exactly) => Some(Source::Exact(exactly)),
                None => {
                    start_dependence = start_dependence::start_dependence(
                        &machine, &clamps, &states, sweeps, seed, go_on,
                    )?;
                    let stuck = start_dependence.is_some_and(|m| !m.is_negligible());
                    let can = machine.with_role(Role::Condition).next().is_none();
                    if stuck && can { Some(tempered(TEMPERATURES)?) } else { None }
                }
            },
        };
        let source = source.unwrap_or_else(|| Source::Plain(Chains::new(states, seed, purpose::USER)));
        Ok(Self { machine, clamps, source, start_dependence, method })
    }

    /// `n` sweeps of all rows; for exact draws, one new draw for any n.
    ///
    /// # Errors
    /// Errors of sampling.
    pub fn sweep(&mut self, n: usize) -> Result<()> {
        match &mut self.source {
            Source::Exact(exactly) => exactly.draw(),
            Source::Plain(chains) => {
                chains.sweep_checked(&self.machine.at(1.0), &self.clamps, n, Stop::default())
            }
            Source::Tempered(replicas) => replicas.sweep(&self.machine, n),
        }
    }

    /// Sweeps one by one while `go_on` returns true; returns whether all `n` were made.
    ///
    /// # Errors
    /// Errors of sampling.
    pub fn sweep_while(&mut self, n: usize, go_on: &dyn Fn() -> bool) -> Result<bool> {
        for _ in 0..if self.is_exact() { 1 } else { n } {
            if !go_on() {
                return Ok(false);
            }
            self.sweep(1)?;
        }
        Ok(true)
    }

    /// Whether rows are independent draws from the exact distribution, for which a single sweep suffices.
    pub fn is_exact(&self) -> bool {
        matches!(self.source, Source::Exact(_))
    }

    /// The present states of all layers.
    pub fn states(&self) -> &States<T> {
        match &self.source {
            Source::Exact(exactly) => &exactly.states,
            Source::Plain(chains) => chains.states(),
            Source::Tempered(replicas) => replicas.states(),
        }
    }

    /// The replica exchange, if there is one.
    pub fn replicas(&self) -> Option<&Replicas<T>> {
        match &self.source {
            Source::Tempered(replicas) => Some(replicas),
            _ => None,
        }
    }

    /// The test of whether plain chains forget their start, where it was made.
    pub fn start_dependence(&self) -> Option<StartDependence> {
        self.start_dependence
    }

    /// A note on what was done beyond the settings, and a warning about the samples; `None` where there is none.
    pub fn remarks(&self) -> (Option<String>, Option<String>) {
        let trips = self.replicas().map(Replicas::round_trips);
        let note = trips.filter(|_| self.method == SamplingMethod::Auto).map(|_| {
            format!("plain chains do not forget their start here: replica exchange over {TEMPERATURES} temperatures")
        });
        let too_few = |trips: f64| {
            let least = self.replicas().map_or(&[][..], |r| r.ladder().acceptance());
            let least = least.iter().copied().fold(1.0, f64::min);
            format!(
                "replica exchange made {trips:.1} round trips per chain (acceptance at least {least:.2}): too few to trust \
                 that all modes were found; use more sweeps or more temperatures"
            )
        };
        let stuck = self.start_dependence.is_some_and(|m| !m.is_negligible()) && trips.is_none();
        let conditional = "chains do not forget their start: the shares of the modes among the samples depend on it, and \
                           replica exchange is not for conditional machines; use more sweeps";
        let warning = trips.filter(|&t| t < 1.0).map(too_few);
        (note, warning.or(stuck.then(|| conditional.to_owned())))
    }
}

/// Layers and their units.
type LayerUnits = Vec<(usize, Vec<usize>)>;

/// Independent draws from the exact distributions of rows.
struct ExactDraws<T: Real> {
    states: States<T>,
    /// Each distribution with its rows, and its layers and units.
    tables: Vec<(Draws, Vec<usize>, LayerUnits)>,
    seed: u64,
    drawn: u64,
}

impl<T: Real> std::fmt::Debug for ExactDraws<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExactDraws").field("tables", &self.tables.len()).finish_non_exhaustive()
    }
}

impl<T: Real> ExactDraws<T> {
    /// `None` where enumeration would take too long or is impossible.
    fn new(
        machine: &Machine<T>,
        clamps: &Clamps,
        states: &States<T>,
        seed: u64,
    ) -> Result<Option<Self>> {
        clamps.check(machine, states.rows())?;
        let wide = machine.cast::<f64>();
        let known = (0..machine.len()).map(|l| match clamps.layer(l) {
            Clamp::Free => Known::Nothing,
            Clamp::All => Known::All,
            Clamp::Units(bits) => Known::Units(bits),
        });
        let patterns = Pattern::of(machine, &known.collect::<Vec<_>>(), states.rows());
        let (mut left, mut tables) = (SHORT_TOGETHER, Vec::new());
        for pattern in patterns {
            let rest = Rest::new(&wide, 1.0, states, &pattern)?;
            for rows in rest.alike() {
                let Some(alone) = rest.row(rows[0]) else { continue };
                let Some(seconds) = Draws::seconds(&alone)? else { return Ok(None) };
                left -= seconds;
                if seconds > SHORT || left < 0.0 {
                    return Ok(None);
                }
                let rows = rows.into_iter().map(|i| pattern.rows[i]).collect();
                tables.push((alone, rows, rest.parts.clone()));
            }
        }
        let weighed = tables.into_iter().map(|(m, rows, parts)| Ok((Draws::new(m)?, rows, parts)));
        let tables = weighed.collect::<Result<_>>()?;
        Ok(Some(Self { states: states.clone(), tables, seed, drawn: 0 }))
    }

    fn draw(&mut self) -> Result<()> {
        self.drawn += 1;
        let key = Key { seed: self.seed, purpose: purpose::USER, block: 0, sweep: self.drawn };
        let mut rng = Stream::new(Key { purpose: purpose::EXACT, ..key });
        let all: Vec<f64> = (0..self.states.rows()).map(|_| uniform(&mut rng)).collect();
        for (draws, rows, parts) in &self.tables {
            let uniforms: Vec<f64> = rows.iter().map(|&r| all[r]).collect();
            // The first row of a group makes its stream unique.
            let seed = Key { block: rows[0] as u32, ..key }.hash();
            let drawn = draws.draw(&uniforms, Key { seed, purpose: purpose::EXACT, ..key })?;
            for (part, (l, units)) in parts.iter().enumerate() {
                let values = draws.machine().layer(part).values(drawn.layer(part)?);
                let mut x = self.states.take(*l).expect("samples hold every layer");
                for (&r, values) in rows.iter().zip(values.rows()) {
                    put(&mut x, r, units, values.to_slice().expect("a row"));
                }
                self.states.set(*l, x);
            }
        }
        Ok(())
    }
}
