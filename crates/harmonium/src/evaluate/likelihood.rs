//! The log-likelihood of data, with errors from ln Z, from coupled hidden layers and from the finite data.

use super::{Budget, Estimate, LogZParams, log_z};
use crate::exact::whole_rows;
use crate::partition::{Base, Interval, ProgressFn, Schedule, Verdict, ais_given};
use crate::{Bits, Error, Machine, Real, Result, Role, States};
use serde::{Deserialize, Serialize};

/// Nats by which a model may lie below independent columns without being called worse: the random initial weights cost
/// some thousandths.
const TOLERANCE: f64 = 0.01;

/// Half width of a 95 % interval in standard errors.
const Z95: f64 = 1.96;
/// Longest enumeration of coupled hidden layers, in seconds.
const PATIENCE: f64 = 10.0;
/// Steps and chains for a row whose hidden layers are coupled and too many to enumerate.
const STEPS: usize = 300;
const COPIES: usize = 8;
/// Half width of a 95 % interval in standard errors that come from so many chains: Student's t with 7 degrees of freedom.
pub(super) const T95: f64 = 2.365;

/// ln p(v) of data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogLikelihood {
    /// Mean over the rows, in nats.
    pub mean: f64,
    /// Range of the expected log-likelihood of a new row, at 95 %: errors of ln Z and of the finite data together.
    pub interval: Interval,
    /// Standard error of the mean from the finite data alone.
    pub sampling_err: f64,
    /// ln p of each row.
    pub rows: Vec<f64>,
    /// The 95 % interval of each, from the errors of ln Z and of the sum over hidden and missing units.
    pub intervals: Vec<Interval>,
    /// The verdict on ln Z, or what is wrong with the model.
    pub verdict: Verdict,
    /// The reasons, in words.
    pub reasons: Vec<String>,
    /// Gain over independent columns, if requested.
    pub gain: Option<Gain>,
}

/// Gain of a machine over independent columns on the same rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// Mean log-likelihood of independent columns, in nats.
    pub floor: f64,
    /// The machine's mean log-likelihood minus that.
    pub value: f64,
    /// Standard error of the gain from the finite data.
    pub std_err: f64,
}

impl LogLikelihood {
    /// From the rows and the distances of ln p from the ends of its interval without the error from finite data.
    pub(super) fn new(
        rows: Vec<f64>,
        intervals: Vec<Interval>,
        wts: Option<&[f64]>,
        (below, above): (f64, f64),
        verdict: Verdict,
        reasons: Vec<String>,
    ) -> Result<Self> {
        let (mean, sampling_err) = summary(&rows, wts)?;
        let wide = |error: f64| error.hypot(Z95 * sampling_err);
        let interval = Interval { lower: mean - wide(below), upper: mean + wide(above) };
        let mut out =
            Self { mean, interval, sampling_err, rows, intervals, verdict, reasons, gain: None };
        if !mean.is_finite() {
            out.verdict = Verdict::Diverged;
            out.reasons.insert(0, "the likelihood is not a finite number".into());
        }
        Ok(out)
    }

    /// The same in the user's units: the log-density of each row is shifted by its offset, see
    /// [`Data::with_offsets`](crate::train::Data::with_offsets).
    ///
    /// # Errors
    /// Another number of offsets than rows.
    pub fn in_units(self, offsets: &[f64], wts: Option<&[f64]>) -> Result<Self> {
        if offsets.len() != self.rows.len() {
            return Err(Error::shape("offsets", self.rows.len(), offsets.len()));
        }
        // The part of the interval that does not come from finite data belongs to ln Z and stays.
        let own = |half: f64| (half * half - (Z95 * self.sampling_err).powi(2)).max(0.0).sqrt();
        let errors = (own(self.mean - self.interval.lower), own(self.interval.upper - self.mean));
        let rows = self.rows.iter().zip(offsets).map(|(x, o)| x + o).collect();
        let shift = |(i, o): (&Interval, &f64)| Interval { lower: i.lower + o, upper: i.upper + o };
        let intervals = self.intervals.iter().zip(offsets).map(shift).collect();
        Self::new(rows, intervals, wts, errors, self.verdict, self.reasons)
    }

    /// The same with the gain over independent columns, whose log-likelihood of each row is `floor`. The verdict
    /// becomes "worse than independent columns" if the gain is negative beyond the errors of the rows and of ln Z.
    ///
    /// # Errors
    /// Another number of rows.
    pub fn above(mut self, floor: &[f64], wts: Option<&[f64]>) -> Result<Self> {
        if floor.len() != self.rows.len() {
            return Err(Error::shape("rows of the floor", self.rows.len(), floor.len()));
        }
        let gains: Vec<f64> = self.rows.iter().zip(floor).map(|(x, f)| x - f).collect();
        let ((value, std_err), (floor, _)) = (summary(&gains, wts)?, summary(floor, wts)?);
        self.gain = Some(Gain { floor, value, std_err });
        let z_err =
            ((self.interval.upper - self.mean).powi(2) - (Z95 * self.sampling_err).powi(2)).max(0.0);
        if self.verdict != Verdict::Diverged && !(value + z_err.sqrt() + Z95 * std_err >= -TOLERANCE) {
            self.verdict = Verdict::WorseThanIndependent;
            let why = format!("independent columns have {floor:.3} nats per row, {:.3} more", -value);
            self.reasons.insert(0, why);
        }
        Ok(self)
    }
}

/// $\ln p(v) = -F(v) - \ln Z$ of each row of `data`, with ln Z as estimated by [`log_z`](super::log_z()). In a layer
/// for which `known` has bits, entries whose bit is not set are missing and summed over, which gives $\ln p(v_K)$ of
/// the known entries. An empty slice means that nothing is missing.
///
/// The interval adds the errors in quadrature: the distance of ln Z from the ends of its interval, 1.96 standard errors
/// of the mean over rows and, where hidden layers are coupled and too many to enumerate, of the AIS estimates of F,
/// which bias the likelihood downwards.
///
/// # Errors
/// Data that do not fit, weights without a positive sum; a conditional machine, whose ln Z differs from row to row.
pub fn log_likelihood<T: Real>(
    machine: &Machine<T>,
    data: &States<T>,
    known: &[Option<Bits>],
    wts: Option<&[f64]>,
    z: &Estimate,
    seed: u64,
    observer: &mut ProgressFn<'_>,
) -> Result<LogLikelihood> {
    if machine.with_role(Role::Condition).next().is_some() {
        let why =
            "it is conditional: ln Z differs from row to row; use `conditional_log_likelihood`".into();
        return Err(Error::Undefined { what: "one ln Z for all rows", why });
    }
    machine.must_be_states("a likelihood", data)?;
    let f = free_energies(machine, data, known, seed, observer)?;
    let rows: Vec<f64> = f.rows.iter().map(|f| -f - z.log_z.value).collect();
    let ends = (z.interval.upper - z.log_z.value, z.log_z.value - z.interval.lower);
    let intervals = rows.iter().zip(&f.errors).map(|(&x, &e)| wide(x, ends, e)).collect();
    let errors = (ends.0.hypot(f.mean_error()), ends.1.hypot(f.mean_error()));
    let mut reasons = z.reasons.clone();
    reasons.extend(f.remark);
    LogLikelihood::new(rows, intervals, wts, errors, z.verdict, reasons)
}

/// The interval of a row, from the distances of ln Z to the ends of its interval and the error of F.
pub(super) fn wide(x: f64, (below, above): (f64, f64), error: f64) -> Interval {
    Interval { lower: x - below.hypot(error), upper: x + above.hypot(error) }
}

/// ln Z and log-likelihood of `data` in one call; `train`, where given, makes the base model.
///
/// # Errors
/// As for [`log_z`](super::log_z()) and [`log_likelihood`].
pub fn evaluate<T: Real>(
    machine: &Machine<T>,
    train: Option<&States<T>>,
    data: &States<T>,
    params: &LogZParams,
    budget: Option<Budget<'_>>,
    observer: &mut ProgressFn<'_>,
) -> Result<(Estimate, LogLikelihood)> {
    let z = log_z(machine, Some(train.unwrap_or(data)), params, budget, observer)?;
    let likelihood = log_likelihood(machine, data, &[], None, &z, params.seed, observer)?;
    Ok((z, likelihood))
}

/// Mean free energy of held-out rows minus that of training rows: ln Z cancels, so that it needs no estimate. It
/// grows when a machine begins to overfit.
///
/// # Errors
/// [`Error::Undefined`] when the hidden layers are not independent given the visible ones.
pub fn free_energy_gap<T: Real>(
    machine: &Machine<T>,
    train: &States<T>,
    held_out: &States<T>,
) -> Result<(f64, f64)> {
    let [(a, a_err), (b, b_err)] =
        [summary(&machine.free_energy(train)?, None)?, summary(&machine.free_energy(held_out)?, None)?];
    Ok((b - a, a_err.hypot(b_err)))
}

/// F(v) of rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FreeEnergies {
    /// $F(v) = -\ln\sum_h\nu e^{-E(v,h)}$ of each row.
    pub rows: Vec<f64>,
    /// Half width of the 95 % interval of each; 0 where it is exact.
    pub errors: Vec<f64>,
    /// Notes on how they were computed.
    pub remark: Option<String>,
}

impl FreeEnergies {
    fn exact(rows: Vec<f64>) -> Self {
        Self { errors: vec![0.0; rows.len()], rows, remark: None }
    }

    /// Writes the values of some rows to their places.
    fn put(&mut self, rows: &[usize], part: Self) {
        for (&r, (f, error)) in rows.iter().zip(part.rows.into_iter().zip(part.errors)) {
            (self.rows[r], self.errors[r]) = (f, error);
        }
        self.remark = self.remark.take().or(part.remark);
    }

    /// Half width of the 95 % interval of their mean: the rows are independent.
    pub(super) fn mean_error(&self) -> f64 {
        mean_err(self.errors.iter().copied())
    }
}

/// F(v) of each row of `data`: in closed form where the hidden layers are independent, by enumerating them where that
/// takes seconds, else by AIS with the row clamped, which overestimates F on average. For rows with missing entries
/// (see [`log_likelihood`]) it is $F(v_K)$ of the known entries, with $p(v_K) = e^{-F(v_K)}/Z$: the missing units are
/// summed over like hidden ones, each row by the cheapest of these ways.
///
/// # Errors
/// Data that do not fit, a machine that cannot be normalised.
pub fn free_energies<T: Real>(
    machine: &Machine<T>,
    data: &States<T>,
    known: &[Option<Bits>],
    seed: u64,
    observer: &mut ProgressFn<'_>,
) -> Result<FreeEnergies> {
    let whole = whole_rows(data.rows(), known);
    if whole.len() == data.rows() {
        return of_whole(machine, data, seed, observer);
    }
    let mut all = FreeEnergies::exact(vec![0.0; data.rows()]);
    if !whole.is_empty() {
        all.put(&whole, of_whole(machine, &data.select(&whole), seed, observer)?);
    }
    let gaps: Vec<usize> = (0..data.rows()).filter(|r| whole.binary_search(r).is_err()).collect();
    let (data, known) = (data.select(&gaps), select(known, &gaps));
    let found = machine.exact().within(PATIENCE).free_energy_where_cheap(&data, &known)?;
    let (mut long, mut at) = (Vec::new(), Vec::new());
    for (i, (f, &r)) in found.into_iter().zip(&gaps).enumerate() {
        match f {
            Some(f) => all.rows[r] = f,
            None => (long.push(i), at.push(r)).0,
        }
    }
    if !long.is_empty() {
        let some = select(&known, &long);
        all.put(&at, annealed(machine, &data.select(&long), &some, seed, observer)?);
    }
    Ok(all)
}

/// The masks of some rows.
pub(super) fn select(known: &[Option<Bits>], rows: &[usize]) -> Vec<Option<Bits>> {
    known.iter().map(|k| k.as_ref().map(|k| k.select(rows))).collect()
}

fn of_whole<T: Real>(
    machine: &Machine<T>,
    data: &States<T>,
    seed: u64,
    observer: &mut ProgressFn<'_>,
) -> Result<FreeEnergies> {
    let hidden: Vec<usize> = machine.with_role(Role::Hidden).collect();
    if machine.independent(&hidden) {
        return Ok(FreeEnergies::exact(machine.free_energy(data)?));
    }
    match machine.exact().within(PATIENCE).free_energy(data) {
        Err(Error::TooManyStates { .. }) => annealed(machine, data, &[], seed, observer),
        f => Ok(FreeEnergies::exact(f?)),
    }
}

/// F(v) of each row by AIS.
fn annealed<T: Real>(
    machine: &Machine<T>,
    data: &States<T>,
    known: &[Option<Bits>],
    seed: u64,
    observer: &mut ProgressFn<'_>,
) -> Result<FreeEnergies> {
    let (base, schedule) = (Base::own(machine), Schedule::uniform(STEPS));
    let sums = ais_given(machine, &base, &schedule, data, known, COPIES, seed, observer)?;
    let what = if known.is_empty() { "coupled hidden layers" } else { "hidden and missing units" };
    let remark =
        format!("the sums over {what} come from AIS: the likelihood is a lower bound in this respect");
    Ok(FreeEnergies {
        rows: sums.iter().map(|s| -s.0).collect(),
        errors: sums.iter().map(|s| T95 * s.1).collect(),
        remark: Some(remark),
    })
}

/// Standard error of the mean of independent estimates.
fn mean_err(errors: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = errors.len().max(1) as f64;
    errors.map(|e| e * e).sum::<f64>().sqrt() / n
}

/// Weighted mean and its standard error from the spread of the rows.
pub(super) fn summary(rows: &[f64], wts: Option<&[f64]>) -> Result<(f64, f64)> {
    if wts.is_some_and(|w| w.len() != rows.len()) {
        return Err(Error::shape("weights", rows.len(), wts.map_or(0, <[f64]>::len)));
    }
    let wt = |r: usize| wts.map_or(1.0, |w| w[r]);
    let total: f64 = (0..rows.len()).map(wt).sum();
    if total.is_nan() || total <= 0.0 {
        return Err(Error::value("sum of the weights of the rows", "positive", total));
    }
    let mean = rows.iter().enumerate().map(|(r, x)| wt(r) * x).sum::<f64>() / total;
    let square: f64 = rows.iter().enumerate().map(|(r, x)| (wt(r) * (x - mean) / total).powi(2)).sum();
    let n = rows.len() as f64;
    Ok((mean, (square * n / (n - 1.0).max(1.0)).sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::silent;
    use crate::{Chains, Kind, Layer, sample::purpose};

    /// Intervals of single rows of a machine with strong weights contain the enumerated value about as often as they
    /// claim: at least 184 of 200 (with 190 expected, fewer have a probability of 2 %).
    #[test]
    fn intervals_of_annealed_rows_hold() {
        let layers = vec![Layer::new(Kind::Binary, 10), Layer::new(Kind::Binary, 8)];
        let mut machine = Machine::<f64>::deep(Layer::new(Kind::Binary, 12), layers);
        let mut x = 0.5f64;
        for c in 0..2 {
            machine.coupling_mut(c).w_mut().mapv_inplace(|_| {
                x = (x * 3.9 * (1.0 - x)).clamp(0.01, 0.99);
                4.0 * (x - 0.5)
            });
        }
        let mut chains = Chains::independent(&machine, 200, 3, purpose::EVALUATE).unwrap();
        chains.sweep(&machine.at(1.0), &crate::Clamps::none(&machine), 50).unwrap();
        let mut data = chains.states().clone();
        machine.with_role(Role::Hidden).for_each(|l| drop(data.take(l)));
        let exact = free_energies(&machine, &data, &[], 1, &mut silent).unwrap();
        assert!(exact.errors.iter().all(|&e| e == 0.0));
        let got = annealed(&machine, &data, &[], 1, &mut silent).unwrap();
        let rows = got.rows.iter().zip(&exact.rows).zip(&got.errors);
        let held = rows.filter(|((a, b), e)| (*a - *b).abs() <= **e).count();
        assert!((184..200).contains(&held), "{held} of 200");
        let widest = got.errors.iter().copied().fold(0.0, f64::max);
        assert!(widest < 2.0, "{widest}");
    }
}
