//! ln Z with some units given: the sum over coupled hidden layers or missing entries of a row, or Z of a condition.

use super::ais::at_least_two;
use super::anneal::{self, RunSeed};
use super::path::Path;
use super::result::{ProgressFn, report_progress};
use super::{Base, Schedule, weights};
use crate::{Bits, Clamp, Clamps, Machine, Real, Result, States};

/// AIS with the layers that `given` holds clamped to each row in turn: $\ln\sum\nu e^{-E}$ over all other units, with
/// its standard error, from `copies` chains for each row. Of a layer for which `known` has bits, only the entries whose
/// bit is set are given; an empty slice says that all are.
///
/// With the visible layers given this is −F(v), also where the hidden layers are coupled or entries are missing; with the
/// conditioning layers given it is the ln Z of each condition. On average the values are too small.
///
/// # Errors
/// A machine that cannot be normalised, a conditioning layer that is not given, fewer than two copies.
#[allow(clippy::too_many_arguments)]
pub fn ais_given<T: Real>(
    machine: &Machine<T>,
    base: &Base<T>,
    schedule: &Schedule,
    given: &States<T>,
    known: &[Option<Bits>],
    copies: usize,
    seed: u64,
    observer: &mut ProgressFn<'_>,
) -> Result<Vec<(f64, f64)>> {
    at_least_two("copies of each row", copies)?;
    let rows: Vec<usize> = (0..given.rows()).flat_map(|r| std::iter::repeat_n(r, copies)).collect();
    let mut clamps = Clamps::none(machine);
    for l in 0..machine.len() {
        if let Some(x) = given.get(l) {
            machine.layer(l).check_batch(x)?;
            let clamp = match known.get(l) {
                Some(Some(bits)) => Clamp::Units(bits.select(&rows)),
                _ => Clamp::All,
            };
            clamps = clamps.with(l, clamp);
        }
    }
    let path = Path::new(machine, base.clone(), &clamps)?;
    let log_z0 = path.log_z0_given(given, known)?;
    let mut states = given.select(&rows);
    let run = RunSeed { seed, number: 4 };
    path.start(&mut states, run.key(0));
    let total = schedule.steps();
    let each = |k: usize, _, _: &[f64], _: &States<T>| {
        report_progress(observer, "annealing given rows", k + 1, total)
    };
    let log_w = anneal::anneal(&path, schedule.betas(), &mut states, run, each)?;
    let of = |(w, z0): (&[f64], f64)| (z0 + weights::log_mean_exp(w), weights::std_err(w, 1));
    Ok(log_w.chunks(copies).zip(log_z0).map(of).collect())
}
