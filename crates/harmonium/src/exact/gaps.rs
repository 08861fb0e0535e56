//! Rows with missing entries: missing units are summed over like hidden ones.

use super::gaussian::integrated;
use super::{Exact, Moments};
use crate::machine::{Known, Pattern, Rest};
use crate::{Bits, Error, Machine, Real, Result, Role, States};
use rayon::prelude::*;

/// The known units of each layer: none of hidden layers, of visible ones those in `known`.
fn of_data<'a, T: Real>(
    machine: &Machine<f64>,
    v: &States<T>,
    known: &'a [Option<Bits>],
) -> Result<Vec<Known<'a>>> {
    let of = |l: usize| match (machine.role(l), known.get(l)) {
        (Role::Hidden, _) => Ok(Known::Nothing),
        (Role::Visible, Some(Some(bits))) => {
            let (expected, got) = ((v.rows(), machine.layer(l).len()), (bits.rows(), bits.cols()));
            match expected == got {
                true => Ok(Known::Units(bits)),
                false => Err(Error::shape("known entries", format!("{expected:?}"), format!("{got:?}"))),
            }
        }
        (Role::Condition, Some(Some(bits))) if (0..bits.rows()).any(|r| !full(bits, r)) => {
            let what = format!("known entries of the conditioning layer {}", machine.members()[l].name);
            Err(Error::value(what, "all", "some"))
        }
        _ => Ok(Known::All),
    };
    (0..machine.len()).map(of).collect()
}

fn full(bits: &Bits, r: usize) -> bool {
    (0..bits.cols()).all(|j| bits.get(r, j))
}

/// The rows without missing entries.
pub fn whole_rows(rows: usize, known: &[Option<Bits>]) -> Vec<usize> {
    (0..rows).filter(|&r| known.iter().flatten().all(|bits| full(bits, r))).collect()
}

impl Exact {
    /// $F(v_K) = -\ln\sum_{v_M,h}\nu e^{-\beta E}$ of each row, with the known entries $v_K$ given and the missing ones
    /// $v_M$ summed (or integrated) over like hidden units, so that $p(v_K) = e^{-F(v_K)}/Z$. `known` has the mask of
    /// known entries for each layer; `None` means all.
    ///
    /// Of hidden and missing units the cheaper set is walked and the other traced out; Gaussian units that are coupled to
    /// each other are integrated in closed form.
    ///
    /// # Errors
    /// As for [`log_z`](Self::log_z), for the sums of all rows together.
    pub fn free_energy_known<T: Real>(&self, v: &States<T>, known: &[Option<Bits>]) -> Result<Vec<f64>> {
        let rows = self.free_energy_where_cheap(v, known)?;
        let too_many = || Error::TooManyStates { states: f64::INFINITY, seconds: f64::INFINITY };
        rows.into_iter().map(|f| f.ok_or_else(too_many)).collect()
    }

    /// $\ln p(v_K)$ of each row: see [`free_energy_known`](Self::free_energy_known).
    ///
    /// # Errors
    /// As for [`log_z`](Self::log_z).
    pub fn log_probability_known<T: Real>(
        &self,
        v: &States<T>,
        known: &[Option<Bits>],
    ) -> Result<Vec<f64>> {
        let log_z = self.log_z_of_rows(v)?;
        Ok(self.free_energy_known(v, known)?.into_iter().zip(log_z).map(|(f, z)| -f - z).collect())
    }

    /// [`free_energy_known`](Self::free_energy_known) of the rows whose sums are cheap: if every row cost as much, the
    /// total would stay within the limit.
    pub(crate) fn free_energy_where_cheap<T: Real>(
        &self,
        v: &States<T>,
        known: &[Option<Bits>],
    ) -> Result<Vec<Option<f64>>> {
        let seconds = |machine: Machine<f64>| match integrated(machine, self.beta)?.0 {
            Some(machine) => self.seconds_of(&machine),
            None => Ok(0.0),
        };
        self.where_cheap(v, known, seconds, |rest, i| {
            let Some(machine) = rest.row(i) else { return Ok(-rest.log_weight[i]) };
            let (machine, constant) = integrated(machine, self.beta)?;
            let sum = match machine {
                Some(machine) => self.of(machine).log_z()?,
                None => 0.0,
            };
            Ok(-(rest.log_weight[i] + constant + sum))
        })
    }

    /// $\langle x\rangle$ of the free units of each row given its known entries, where the sums are cheap.
    pub(crate) fn moments_where_cheap<T: Real>(
        &self,
        v: &States<T>,
        known: &[Option<Bits>],
    ) -> Result<Vec<Option<Means>>> {
        // Moments take some ten times as long as the sum alone.
        let seconds = |machine: Machine<f64>| Ok(10.0 * self.seconds_of(&machine)?);
        self.where_cheap(v, known, seconds, |rest, i| {
            let Some(machine) = rest.row(i) else { return Ok(Vec::new()) };
            let Moments { means, .. } = self.of(machine).moments()?;
            let named = means.into_iter().enumerate();
            Ok(named
                .map(|(p, m)| (rest.parts[p].0, rest.columns(&self.machine, p), m.to_vec()))
                .collect())
        })
    }

    /// `f` of the machine of the free units of each row, where the limit would allow every row the `seconds` that it
    /// takes.
    fn where_cheap<T: Real, R: Send>(
        &self,
        v: &States<T>,
        known: &[Option<Bits>],
        seconds: impl Fn(Machine<f64>) -> Result<f64> + Sync,
        f: impl Fn(&Rest, usize) -> Result<R> + Sync,
    ) -> Result<Vec<Option<R>>> {
        let known = of_data(&self.machine, v, known)?;
        let patterns = Pattern::of(&self.machine, &known, v.rows());
        let of_pattern = |pattern: &Pattern| -> Result<Vec<(usize, Option<R>)>> {
            let rest = Rest::new(&self.machine, self.beta, v, pattern)?;
            let each = rest.row(0).map_or(Ok(0.0), &seconds)?;
            let cheap = each * v.rows() as f64 <= self.patience;
            let of = |(i, &r): (usize, &usize)| Ok((r, if cheap { Some(f(&rest, i)?) } else { None }));
            pattern.rows.par_iter().enumerate().map(of).collect()
        };
        let parts: Vec<Vec<_>> = patterns.par_iter().map(of_pattern).collect::<Result<_>>()?;
        let mut out: Vec<Option<R>> = (0..v.rows()).map(|_| None).collect();
        parts.into_iter().flatten().for_each(|(r, x)| out[r] = x);
        Ok(out)
    }

    /// Seconds of the sum over all states of a machine; infinite where no plan is known.
    fn seconds_of(&self, machine: &Machine<f64>) -> Result<f64> {
        match self.of(machine.clone()).cost() {
            Ok((_, seconds)) => Ok(seconds),
            Err(Error::Undefined { .. }) => Ok(f64::INFINITY),
            Err(e) => Err(e),
        }
    }

    fn of(&self, machine: Machine<f64>) -> Self {
        Self { machine, beta: self.beta, patience: f64::INFINITY, log_z: None }
    }
}

/// Layer, columns of its dense form, and their means.
pub(crate) type Means = Vec<(usize, Vec<usize>, Vec<f64>)>;
