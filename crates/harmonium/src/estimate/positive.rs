//! The positive phase: moments with the data clamped.
//!
//! Soft bits (see [`Layer::check_data`](crate::Layer::check_data)) are clamped as they are: hidden units are averaged
//! or drawn given the soft values, which also enter the moments.

use super::averaged;
use crate::exact::whole_rows;
use crate::machine::{Phase, Tempered};
use crate::sample::{Order, Stop, purpose, sweep};
use crate::{Archive, Bits, Clamp, Clamps, Error, Key, Machine, Real, Result, Role, States};
use serde::{Deserialize, Serialize};

/// How the hidden layers (and missing entries) are averaged over given the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Averaging {
    /// By the conditional mean: where the hidden layers are independent given the visible ones.
    Analytic,
    /// By enumeration of the hidden layers, row by row.
    Exact,
    /// By a clamped chain for each row of the data, which continues whenever the row is in a minibatch.
    Chain {
        /// Sweeps for each update.
        #[serde(default = "chain_sweeps")]
        sweeps: usize,
    },
    /// By mean field: the product distribution closest to the truth, a lower bound on the likelihood.
    MeanField {
        /// Rounds over the hidden layers for each update.
        #[serde(default = "mean_field_rounds")]
        rounds: usize,
    },
}

fn chain_sweeps() -> usize {
    5
}
fn mean_field_rounds() -> usize {
    10
}

impl Averaging {
    /// The cheapest valid method: the conditional mean where it factorises, else a chain.
    pub fn default_for<T: Real>(machine: &Machine<T>, missing: bool) -> Self {
        let hidden: Vec<_> = machine.with_role(Role::Hidden).collect();
        match machine.independent(&hidden) && !missing {
            true => Self::Analytic,
            false => Self::Chain { sweeps: chain_sweeps() },
        }
    }

    /// Whether it can be used for this machine.
    ///
    /// # Errors
    /// [`Error::Inapplicable`] with those that can.
    pub fn check<T: Real>(&self, machine: &Machine<T>, missing: bool) -> Result<()> {
        let hidden: Vec<_> = machine.with_role(Role::Hidden).collect();
        let independent = machine.independent(&hidden);
        let (name, why) = match self {
            Self::Analytic if !independent => {
                ("analytic", "hidden layers are coupled to each other or to themselves")
            }
            Self::Analytic if missing => ("analytic", "entries of the data are missing"),
            Self::Exact if missing => ("exact", "entries of the data are missing"),
            Self::MeanField { .. } if missing => ("mean_field", "entries of the data are missing"),
            _ => return Ok(()),
        };
        let instead: &[&str] = match (missing, independent) {
            (true, _) => &["chain"],
            (false, true) => &["analytic", "exact", "chain", "mean_field"],
            (false, false) => &["exact", "chain", "mean_field"],
        };
        Err(Error::Inapplicable {
            what: format!("positive phase {name}"),
            why: why.into(),
            instead: instead.iter().map(|s| (*s).into()).collect(),
        })
    }
}

impl Averaging {
    /// Whether it can be used with soft bits.
    ///
    /// # Errors
    /// [`Error::Inapplicable`] with those that can.
    pub(crate) fn check_soft<T: Real>(&self, machine: &Machine<T>) -> Result<()> {
        if !matches!(self, Self::Exact) {
            return Ok(());
        }
        let hidden: Vec<_> = machine.with_role(Role::Hidden).collect();
        let analytic = machine.independent(&hidden).then_some("analytic");
        Err(Error::Inapplicable {
            what: "positive phase exact".into(),
            why: "enumeration is of states, and the data are values between 0 and 1".into(),
            instead: analytic.into_iter().chain(["chain", "mean_field"]).map(Into::into).collect(),
        })
    }
}

/// The positive phase of a run: the method and, where needed, a state for every row of the data.
#[derive(Clone, Debug)]
pub struct Positive<T = f32> {
    averaging: Averaging,
    /// For each layer, which entries are known; all where `None`.
    known: Vec<Option<Bits>>,
    particles: Option<States<T>>,
    /// Whether a row has to be drawn: hidden layers that are averaged need no states, so whole rows may have nothing to draw.
    is_drawn: Vec<bool>,
    /// The layers averaged by their conditional means.
    averaged: Vec<usize>,
    /// The rows of the last estimate, kept to reuse their memory.
    batch: States<T>,
}

impl<T: Real> Positive<T> {
    /// The positive phase over `data`. A bit of `known` (one matrix per layer that misses entries) is set where the
    /// entry is given. Without `draw` the clamped chains are not drawn, because [`load`](Self::load) follows.
    ///
    /// # Errors
    /// Errors of sampling.
    pub fn new(
        averaging: Averaging,
        machine: &Machine<T>,
        data: &States<T>,
        known: &[Option<Bits>],
        seed: u64,
        draw: bool,
    ) -> Result<Self> {
        averaging.check(machine, known.iter().any(Option::is_some))?;
        let averaged = match averaging {
            Averaging::Analytic => machine.with_role(Role::Hidden).collect(),
            _ => averaged(machine),
        };
        let batch = States::empty(machine.len(), 0);
        let mut is_drawn = vec![true; data.rows()];
        if averaged.len() == machine.with_role(Role::Hidden).count() {
            whole_rows(data.rows(), known).into_iter().for_each(|r| is_drawn[r] = false);
        }
        let known = known.to_vec();
        let mut positive = Self { averaging, known, particles: None, is_drawn, averaged, batch };
        if let Averaging::Chain { .. } = averaging {
            let mut particles = data.clone();
            for l in machine.with_role(Role::Hidden) {
                particles.set(l, machine.layer(l).zeros(data.rows()));
            }
            let clamps = positive.clamps(machine, None);
            let order = Order::new(machine);
            for k in 0..if draw { 10 } else { 0 } {
                let key = Key { seed, purpose: purpose::INIT, block: purpose::POSITIVE, sweep: k };
                sweep(&machine.at(1.0), &order, &mut particles, &clamps, key)?;
            }
            positive.particles = Some(particles);
        }
        Ok(positive)
    }

    /// The clamps of the data except for missing entries, of all rows or the given ones.
    fn clamps(&self, machine: &Machine<T>, rows: Option<&[usize]>) -> Clamps {
        let mut clamps = Clamps::visible(machine);
        for (l, known) in self.known.iter().enumerate() {
            if let Some(known) = known {
                let mask = rows.map_or_else(|| known.clone(), |rows| known.select(rows));
                clamps = clamps.with(l, Clamp::Units(mask));
            }
        }
        clamps
    }

    /// Writes the moments of the given rows into `out` and returns their states: missing entries drawn, hidden layers
    /// present where they had to be drawn. After a request to `stop` the clamped chains are as they were.
    ///
    /// # Errors
    /// Errors of sampling or enumeration.
    #[allow(clippy::too_many_arguments)]
    pub fn estimate(
        &mut self,
        model: &Tempered<'_, T>,
        data: &States<T>,
        rows: &[usize],
        wts: Option<&[f64]>,
        seed: u64,
        update: u64,
        stop: Stop<'_>,
        out: &mut Phase<T>,
    ) -> Result<&States<T>> {
        let machine = model.machine();
        self.batch = match self.averaging {
            Averaging::Analytic => {
                data.select_into(rows, &mut self.batch);
                model.moments_into(&self.batch, &self.averaged, wts, out)?;
                return Ok(&self.batch);
            }
            Averaging::Exact => {
                let states = data.select(rows);
                *out.parameters_mut() = machine.exact().at(model.beta()).positive(&states, wts)?.cast();
                let key = Key { seed, purpose: purpose::POSITIVE, block: 0, sweep: 16 * update };
                super::choice::complete(machine, states, key)?
            }
            Averaging::Chain { sweeps } => {
                let drawn: Vec<usize> = rows.iter().copied().filter(|&r| self.is_drawn[r]).collect();
                let clamps = self.clamps(machine, Some(&drawn));
                let particles = self.particles.as_mut().expect("a chain has particles");
                let mut states = particles.select(&drawn);
                let order = Order::new(machine);
                for k in 0..sweeps as u64 {
                    stop.check_before(k)?;
                    let sweep_number = update * sweeps as u64 + k;
                    let key = Key { seed, purpose: purpose::POSITIVE, block: 0, sweep: sweep_number };
                    sweep(model, &order, &mut states, &clamps, key)?;
                }
                particles.scatter(&drawn, &states);
                let mut states = particles.select(rows);
                if drawn.len() < rows.len() {
                    // Those of rows that were not drawn are not current.
                    machine.with_role(Role::Hidden).for_each(|l| drop(states.take(l)));
                }
                model.moments_into(&states, &self.averaged, wts, out)?;
                states
            }
            Averaging::MeanField { rounds } => {
                let states = data.select(rows);
                *out.parameters_mut() = model.mean_field(&states, rounds, wts)?;
                let key = Key { seed, purpose: purpose::POSITIVE, block: 0, sweep: 16 * update };
                super::choice::complete(machine, states, key)?
            }
        };
        Ok(&self.batch)
    }

    /// Saves the clamped chains in `archive`.
    pub fn save(&self, archive: &mut Archive) {
        if let Some(particles) = &self.particles {
            archive.put_states("particles", particles);
        }
    }

    /// Restores them.
    ///
    /// # Errors
    /// An archive that does not hold them.
    pub fn load(&mut self, archive: &Archive) -> Result<()> {
        if let Some(particles) = &mut self.particles {
            let saved: States<T> = archive.states("particles")?;
            if (saved.len(), saved.rows()) != (particles.len(), particles.rows()) {
                let what = "clamped chains of the checkpoint";
                return Err(Error::shape(what, particles.rows(), saved.rows()));
            }
            *particles = saved;
        }
        Ok(())
    }
}
