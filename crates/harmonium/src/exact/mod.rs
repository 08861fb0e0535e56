//! Exact answers by enumeration: ln Z, moments, probabilities, likelihood and its gradient.
//!
//! A set of layers is walked through all its states, in Gray-code order so that a step costs one row of weights; the
//! layers that are independent given these are traced out analytically, real units included. Nothing is tabulated.
//! Clamped units are walked too, with a single state each, so both phases of learning run the same code.

mod binary;
mod draws;
mod gaps;
mod gaussian;
mod gray;
mod plan;
mod problem;
mod quadrature;
mod recouple;
mod walk;
mod window;

pub(crate) use draws::Draws;
pub use gaps::whole_rows;

use crate::machine::{Decoupled, Parameters};
use crate::{Error, Machine, Real, Result, Role, States};
use ndarray::{Array1, Array2};
use plan::Plan;
use rayon::prelude::*;
use walk::Want;

/// Longest enumeration that starts without being forced, in seconds (estimated).
pub const SECONDS: f64 = 600.0;

/// Exact computations on a machine: made by [`Machine::exact`].
#[derive(Clone, Debug)]
pub struct Exact {
    machine: Machine<f64>,
    beta: f64,
    patience: f64,
    /// ln Z, where it has been computed beforehand.
    log_z: Option<f64>,
}

/// ln Z and all moments of a machine.
#[derive(Clone, Debug)]
pub struct Moments {
    /// ln Z.
    pub log_z: f64,
    /// $\langle x\rangle$ of every layer, one number per column of the dense form.
    pub means: Vec<Array1<f64>>,
    /// $\langle t\rangle$ of every parameter: $\partial\ln Z/\partial\theta = \beta\langle t\rangle$.
    pub stats: Parameters<f64>,
    /// $\langle x x^\top\rangle$ over the columns of all layers in order, where it was asked for.
    pub second: Option<Array2<f64>>,
}

/// The result of a walk.
struct Answer {
    log_z: f64,
    /// Where they were asked for.
    moments: Option<Moments>,
}

impl Answer {
    fn into_moments(self) -> Moments {
        self.moments.expect("moments were asked for")
    }
}

impl<T: Real> Machine<T> {
    /// Exact answers by enumeration, in double precision.
    pub fn exact(&self) -> Exact {
        Exact { machine: self.cast(), beta: 1.0, patience: SECONDS, log_z: None }
    }
}

impl Exact {
    /// At another inverse temperature.
    #[must_use]
    pub fn at(self, beta: f64) -> Self {
        Self { beta, log_z: None, ..self }
    }

    /// With ln Z computed now, for several questions that need it.
    ///
    /// # Errors
    /// As for [`log_z`](Self::log_z).
    pub fn with_log_z(self) -> Result<Self> {
        Ok(Self { log_z: Some(self.log_z()?), ..self })
    }

    /// Without a limit on the estimated time.
    #[must_use]
    pub fn forced(self) -> Self {
        self.within(f64::INFINITY)
    }

    /// Refuses what is estimated to take longer than this many seconds on one thread (otherwise ten minutes).
    #[must_use]
    pub fn within(self, seconds: f64) -> Self {
        Self { patience: seconds, ..self }
    }

    /// Number of states that [`log_z`](Self::log_z) walks and the estimated time in seconds, on one thread, so that
    /// choices based on it do not depend on the number of threads.
    ///
    /// # Errors
    /// When the machine cannot be normalised.
    pub fn cost(&self) -> Result<(f64, f64)> {
        self.cost_given(&self.free())
    }

    /// The same with some layers held.
    fn cost_given(&self, fixed: &[Option<Vec<f64>>]) -> Result<(f64, f64)> {
        let decoupled = self.decoupled(fixed);
        let machine = decoupled.as_ref().map_or(&self.machine, |d| &d.machine);
        let plan = Plan::new(machine, self.beta, fixed)?;
        Ok((plan.states, 1e-9 * plan.cost(machine)))
    }

    fn free(&self) -> Vec<Option<Vec<f64>>> {
        vec![None; self.machine.len()]
    }

    /// The machine that is walked when only `fixed` is clamped, in coordinates that make coupled Gaussian units
    /// independent.
    fn decoupled(&self, fixed: &[Option<Vec<f64>>]) -> Option<Decoupled<f64>> {
        self.machine.decoupled(|l| fixed[l].is_none())
    }

    fn sum(&self, fixed: &[Option<Vec<f64>>], want: Want) -> Result<Answer> {
        let decoupled = self.decoupled(fixed);
        let machine = decoupled.as_ref().map_or(&self.machine, |d| &d.machine);
        let plan = Plan::new(machine, self.beta, fixed)?;
        let seconds = 1e-9 * plan.cost(machine);
        if seconds > self.patience {
            return Err(Error::TooManyStates { states: plan.states, seconds });
        }
        let Some(d) = &decoupled else {
            let sum = walk::run(machine, self.beta, &plan, want);
            let log_z = sum.log_z;
            return Ok(Answer { log_z, moments: (want != Want::LogZ).then(|| sum.moments(machine)) });
        };
        // The moments of coupled units need all second moments of the independent ones.
        let inner = if want == Want::LogZ { want } else { Want::Second };
        let sum = walk::run(machine, self.beta, &plan, inner);
        let log_z = sum.log_z + d.log_z_shift();
        let moments = (want != Want::LogZ).then(|| {
            let mut moments = recouple::moments(&self.machine, d, sum.moments(machine));
            moments.log_z = log_z;
            moments.second = moments.second.filter(|_| want == Want::Second);
            moments
        });
        Ok(Answer { log_z, moments })
    }

    /// $\ln Z_\beta = \ln\sum_x \nu(x) e^{-\beta E(x)}$.
    ///
    /// # Errors
    /// [`Error::TooManyStates`] when it would take too long, [`Error::NotNormalisable`] when Z is infinite.
    pub fn log_z(&self) -> Result<f64> {
        match self.log_z {
            Some(log_z) => Ok(log_z),
            None => Ok(self.sum(&self.free(), Want::LogZ)?.log_z),
        }
    }

    /// ln Z, all first moments and the moments of all parameters.
    ///
    /// # Errors
    /// As for [`log_z`](Self::log_z).
    pub fn moments(&self) -> Result<Moments> {
        Ok(self.sum(&self.free(), Want::Stats)?.into_moments())
    }

    /// As [`moments`](Self::moments), with all second moments.
    ///
    /// # Errors
    /// As for [`log_z`](Self::log_z).
    pub fn second_moments(&self) -> Result<Moments> {
        Ok(self.sum(&self.free(), Want::Second)?.into_moments())
    }

    /// ln Z(row) and moments with the layers held in `states` clamped to each row in turn.
    fn clamped<T: Real>(&self, states: &States<T>, want: Want) -> Result<Vec<Answer>> {
        let fixed = self.rows(states)?;
        // The cost of the first row decides whether to refuse, before threads start.
        fixed.first().map_or(Ok(()), |f| {
            let (states, seconds) = self.cost_given(f)?;
            let (states, seconds) = (states * fixed.len() as f64, seconds * fixed.len() as f64);
            if seconds > self.patience { Err(Error::TooManyStates { states, seconds }) } else { Ok(()) }
        })?;
        fixed.par_iter().map(|f| self.sum(f, want)).collect()
    }

    fn rows<T: Real>(&self, states: &States<T>) -> Result<Vec<Vec<Option<Vec<f64>>>>> {
        let values: Vec<Option<Array2<f64>>> = (0..self.machine.len())
            .map(|l| {
                states
                    .get(l)
                    .map(|x| {
                        self.machine.layer(l).cast::<T>().check_batch(x)?;
                        Ok(self.machine.layer(l).cast::<T>().values(x))
                    })
                    .transpose()
            })
            .collect::<Result<_>>()?;
        let row = |r: usize| values.iter().map(|v| v.as_ref().map(|v| v.row(r).to_vec())).collect();
        Ok((0..states.rows()).map(row).collect())
    }

    /// $F(v) = -\ln\sum_h \nu e^{-\beta E(v,h)}$ of each row: also where the hidden layers are coupled, by
    /// enumerating them.
    ///
    /// # Errors
    /// As for [`log_z`](Self::log_z), for the walk over the hidden layers.
    pub fn free_energy<T: Real>(&self, v: &States<T>) -> Result<Vec<f64>> {
        Ok(self.clamped(v, Want::LogZ)?.into_iter().map(|s| -s.log_z).collect())
    }

    /// ln Z, or the ln Z of each row given its condition when the machine has a conditioning layer.
    fn log_z_of_rows<T: Real>(&self, v: &States<T>) -> Result<Vec<f64>> {
        if self.machine.with_role(Role::Condition).next().is_none() {
            return Ok(vec![self.log_z()?; v.rows()]);
        }
        Ok(self.clamped(&self.conditions(v), Want::LogZ)?.into_iter().map(|s| s.log_z).collect())
    }

    fn conditions<T: Real>(&self, v: &States<T>) -> States<T> {
        let mut only = v.clone();
        for l in (0..self.machine.len()).filter(|&l| self.machine.role(l) != Role::Condition) {
            only.take(l);
        }
        only
    }

    /// $\ln p(v)$ of each row (given the row's condition, where the machine has one).
    ///
    /// # Errors
    /// As for [`log_z`](Self::log_z).
    pub fn log_probability<T: Real>(&self, v: &States<T>) -> Result<Vec<f64>> {
        let log_z = self.log_z_of_rows(v)?;
        Ok(self.free_energy(v)?.into_iter().zip(log_z).map(|(f, z)| -f - z).collect())
    }

    /// Mean log-likelihood per row, weighted where weights are given.
    ///
    /// # Errors
    /// As for [`log_z`](Self::log_z).
    pub fn log_likelihood<T: Real>(&self, v: &States<T>, wts: Option<&[f64]>) -> Result<f64> {
        Ok(mean(self.log_probability(v)?.into_iter(), wts))
    }

    /// The gradient of the mean log-likelihood, `β(positive − negative)`, shaped like the parameters.
    ///
    /// # Errors
    /// As for [`log_z`](Self::log_z).
    pub fn gradient<T: Real>(&self, v: &States<T>, wts: Option<&[f64]>) -> Result<Parameters<f64>> {
        let mut gradient = self.average(self.clamped(v, Want::Stats)?, wts);
        let negative = if self.machine.with_role(Role::Condition).next().is_none() {
            self.moments()?.stats
        } else {
            self.average(self.clamped(&self.conditions(v), Want::Stats)?, wts)
        };
        gradient.add(-1.0, &negative);
        gradient.scale(self.beta);
        Ok(gradient)
    }

    /// ⟨t⟩ of every parameter with each row of `v` clamped, averaged over the rows: the positive phase.
    ///
    /// # Errors
    /// As for [`log_z`](Self::log_z).
    pub fn positive<T: Real>(&self, v: &States<T>, wts: Option<&[f64]>) -> Result<Parameters<f64>> {
        Ok(self.average(self.clamped(v, Want::Stats)?, wts))
    }

    fn average(&self, sums: Vec<Answer>, wts: Option<&[f64]>) -> Parameters<f64> {
        let total = wts.map_or(sums.len() as f64, |w| w.iter().sum());
        let mut average = self.machine.zero_parameters();
        for (r, sum) in sums.into_iter().enumerate() {
            let wt = wts.map_or(1.0, |w| w[r]) / total;
            average.add(wt, &sum.into_moments().stats);
        }
        average
    }

    /// $\mathrm{KL}(\text{data} \Vert \text{model}) = \sum_v p_D(v)\ln\big(p_D(v)/p(v)\big)$ with the weighted
    /// frequencies of the rows as $p_D$.
    ///
    /// # Errors
    /// As for [`log_z`](Self::log_z); [`Error::Undefined`] for real visible units, whose empirical
    /// distribution has no density.
    pub fn kl<T: Real>(&self, v: &States<T>, wts: Option<&[f64]>) -> Result<f64> {
        let real = |&l: &usize| self.machine.layer(l).kind().form() == crate::units::Form::Reals;
        if let Some(l) = self.machine.with_role(Role::Visible).find(real) {
            let why = format!("layer {} holds real numbers", self.machine.members()[l].name);
            return Err(Error::Undefined { what: "KL(data‖model)", why });
        }
        let total = wts.map_or(v.rows() as f64, |w| w.iter().sum());
        let mut frequency = std::collections::BTreeMap::<Vec<u64>, f64>::new();
        for (r, row) in self.rows(v)?.into_iter().enumerate() {
            let bits = row.into_iter().flatten().flatten().map(f64::to_bits).collect();
            *frequency.entry(bits).or_default() += wts.map_or(1.0, |w| w[r]) / total;
        }
        let entropy: f64 = frequency.values().filter(|&&p| p > 0.0).map(|p| -p * p.ln()).sum();
        Ok(-entropy - self.log_likelihood(v, wts)?)
    }
}

fn mean(x: impl Iterator<Item = f64>, wts: Option<&[f64]>) -> f64 {
    let (sum, total) = x.enumerate().fold((0.0, 0.0), |(sum, total), (r, x)| {
        let wt = wts.map_or(1.0, |w| w[r]);
        (sum + wt * x, total + wt)
    });
    sum / total
}
