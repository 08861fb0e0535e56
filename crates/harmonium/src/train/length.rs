//! The length and the rate of a run, by cross-validation.

use super::cost::Cost;
use super::{Control, Data, Event, Observer, StopReason, TrainPlan, Trainer};
use crate::estimate::Estimator;
use crate::{Machine, Real, Result};
use serde::Serialize;
use std::cell::Cell;

/// Into how many parts the rows are cut, and how many of these are left out in turn: fewer where there are enough rows for
/// the scores of few parts to agree, or where gradients are sampled and a run takes longer.
fn folds(rows: usize, exact: bool) -> (usize, usize) {
    match rows {
        0..300 => {
            let parts = if exact { 10 } else { 5 }.min(rows);
            (parts, parts)
        }
        300..1500 => (3, 3),
        _ => (4, 1),
    }
}

/// Evaluations of each run; the fewest where they take long.
const EVALUATIONS: u64 = 80;
const FEWEST_EVALUATIONS: u64 = 20;

/// Seconds on one thread, by estimate, after which no other rate is tried and no more than `ENOUGH` parts are left out. By
/// estimate, because results must not depend on the clock.
const BUDGET: f64 = 20.0;
const ENOUGH: usize = 3;

/// A run stops early if it has not improved for this fraction (one in so many) of its evaluations.
const PATIENCE: usize = 4;

/// Factors on the planned rate that are tried where none is set. One rate does not fit all tables: a rate that
/// quadruples the gain on one overfits another from the start (docs/design/0006-learning.md).
const RATES: [f64; 2] = [0.25, 4.0];

/// Parts after which other settings may be given up.
const RACE: usize = 3;

/// From so many parts on, which few rows are cut into, a part counts with its gain at the length that is best for the others.
/// Fewer parts have more rows each, and less to gain by chance; but where their chains lose and find modes at different
/// updates, two of them say nothing about the third.
const MANY: usize = 5;

/// The rate and the length with the best score on held-out rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Choice {
    /// Learning rate.
    pub(super) rate: f64,
    /// Updates; 0 if the start is the best model.
    pub(super) updates: u64,
    /// What the rows that were left out say of models of this rate and length.
    pub(super) left_out: Option<LeftOut>,
}

/// The log-likelihood of rows that were left out in turn, by models of the other rows with the rate and the length that were
/// chosen: a little too high, because these rows made the choice.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LeftOut {
    /// Mean over the parts, in nats per row.
    pub log_likelihood: f64,
    /// Its standard error by the spread of the parts, where there are several.
    pub std_err: Option<f64>,
    /// What was gained over the start of the run.
    pub gain: f64,
}

/// Scores of left-out rows along a run: the update and the score of each evaluation.
type Scores = Vec<(u64, f64)>;

/// The best length of the planned run, and the best of a few rates if `any_rate`, by cross-validation: the run is repeated without each of the folds, and the mean of their scores decides. `None` if there is
/// no score, or `stopped` returns true.
///
/// # Errors
/// Settings that do not fit the machine or the data.
pub(super) fn choose<T: Real>(
    plan: &TrainPlan,
    machine: &Machine<T>,
    data: &Data<T>,
    any_rate: bool,
    stopped: &dyn Fn() -> bool,
) -> Result<Option<Choice>> {
    let order = shuffled(data.rows(), plan.seed);
    let (parts, folds) = folds(data.rows(), plan.estimator == Estimator::Exact);
    let cost = Cost::new(machine, plan, data);
    let evaluations = (BUDGET / (4.0 * folds as f64 * cost.evaluation)) as u64;
    let evaluations = evaluations.clamp(FEWEST_EVALUATIONS, EVALUATIONS);
    let (spent, likelihoods) = (Cell::new(0.0), Cell::new(true));
    let curve = |fold: usize, rate: f64| -> Result<Scores> {
        let part = |held: bool| -> Vec<usize> {
            let wanted = order.iter().enumerate().filter(|(i, _)| (i % parts == fold) == held);
            wanted.map(|(_, &r)| r).collect()
        };
        let (train, valid) = (data.select(&part(false)), data.select(&part(true)));
        let plan = TrainPlan {
            batch: plan.batch.min(train.positive_weight_rows().len()),
            patience: 0,
            evaluate_every: (plan.updates / evaluations).max(1),
            rate,
            ..plan.clone()
        };
        let mut watch = Curve {
            points: Vec::new(),
            best: (f64::NEG_INFINITY, 0),
            cost,
            spent: &spent,
            likelihoods: &likelihoods,
        };
        let mut trainer = Trainer::new(machine.clone(), plan, &train)?.with_valid(&valid)?;
        let stop = || stopped().then_some(StopReason::Interrupted);
        trainer.run_until(&mut [&mut watch], &stop)?;
        Ok(watch.points)
    };
    let mut curves = Vec::new();
    for fold in 0..folds {
        if fold >= ENOUGH && spent.get() > BUDGET {
            break;
        }
        curves.push(curve(fold, plan.rate)?);
        // Where nothing can be scored all scores are −∞, and the start is kept: no other model is known to be better than it.
        if stopped() || curves[fold].is_empty() {
            return Ok(None);
        }
    }
    let (mut best, mut best_rate) = (gain(&curves), plan.rate);
    for factor in RATES.iter().filter(|_| any_rate) {
        if spent.get() > BUDGET {
            break;
        }
        let rate = factor * plan.rate;
        let Some(found) = race(&curves, |fold| curve(fold, rate))? else { continue };
        if stopped() {
            return Ok(None);
        }
        let found_gain = gain(&found);
        if found_gain.mean > best.mean {
            (best, best_rate, curves) = (found_gain, rate, found);
        }
    }
    let updates = updates(&curves);
    let left_out = likelihoods.get().then(|| left_out(&curves, updates)).flatten();
    Ok(Some(Choice { rate: best_rate, updates, left_out }))
}

/// The curves of other settings for the same parts; `None` as soon as they gain no more than those of the `best` settings.
fn race(best: &[Scores], curve: impl Fn(usize) -> Result<Scores>) -> Result<Option<Vec<Scores>>> {
    let mut curves = Vec::new();
    for fold in 0..best.len() {
        curves.push(curve(fold)?);
        let enough = curves.len() >= RACE.min(best.len());
        // Also if it is NaN.
        if enough && !(gain(&curves).mean > gain(&best[..curves.len()]).mean) {
            return Ok(None);
        }
    }
    Ok(Some(curves))
}

/// The gain over the start that a choice of the length by other rows brings.
#[derive(Clone, Copy, Debug)]
struct Gain {
    mean: f64,
    error: f64,
}

/// The place of the largest mean over the curves, but for one of them, up to the end of the shortest.
fn highest(curves: &[Scores], but: Option<usize>) -> usize {
    let common = curves.iter().map(Vec::len).min().unwrap_or(0);
    let sum = |i: usize| {
        let others = curves.iter().enumerate().filter(|(k, _)| Some(*k) != but);
        others.map(|(_, c)| c[i].1 - c[0].1).sum::<f64>()
    };
    (0..common).max_by(|&a, &b| sum(a).total_cmp(&sum(b)).then(b.cmp(&a))).unwrap_or(0)
}

/// The place that is best for the other curves, where there are many: the best of many scores is better by chance alone.
fn place_for(curves: &[Scores], k: usize) -> usize {
    highest(curves, (curves.len() >= MANY).then_some(k))
}

/// What each curve gains at its place.
fn gain(curves: &[Scores]) -> Gain {
    let gains = curves.iter().enumerate().map(|(k, c)| c[place_for(curves, k)].1 - c[0].1);
    let (mean, error) = mean_and_error(gains.collect());
    Gain { mean, error: error.unwrap_or(0.0) }
}

/// The mean, and its standard error by the spread of several numbers.
fn mean_and_error(x: Vec<f64>) -> (f64, Option<f64>) {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    let squares = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
    (mean, (n > 1.0).then(|| (squares / (n - 1.0) / n).sqrt()))
}

/// The scores of the left-out rows for models of the chosen length.
fn left_out(curves: &[Scores], updates: u64) -> Option<LeftOut> {
    let place = |k: usize| if updates == 0 { 0 } else { place_for(curves, k) };
    let scores: Vec<f64> = curves.iter().enumerate().map(|(k, c)| c[place(k)].1).collect();
    let starts = curves.iter().map(|c| c[0].1).sum::<f64>() / curves.len() as f64;
    let (log_likelihood, std_err) = mean_and_error(scores);
    log_likelihood.is_finite().then_some(LeftOut {
        log_likelihood,
        std_err,
        gain: log_likelihood - starts,
    })
}

/// The update with the largest mean over the curves; the start, unless the gain is more than two standard errors, or one where
/// there are few curves.
fn updates(curves: &[Scores]) -> u64 {
    let gain = gain(curves);
    let errors = if curves.len() >= MANY { 2.0 } else { 1.0 };
    let best = if gain.mean > errors * gain.error { highest(curves, None) } else { 0 };
    curves.first().map_or(0, |c| c[best].0)
}

/// Scores along a run, which stops early when its best score is long past.
struct Curve<'a> {
    points: Scores,
    best: (f64, usize),
    cost: Cost,
    /// Seconds, by estimate, of this run and those before.
    spent: &'a Cell<f64>,
    /// Whether all scores so far are log-likelihoods, and not a substitute.
    likelihoods: &'a Cell<bool>,
}

impl Curve<'_> {
    fn spend(&self, seconds: f64) {
        self.spent.set(self.spent.get() + seconds);
    }
}

impl<T: Real> Observer<T> for Curve<'_> {
    fn on_event(&mut self, event: &Event, run: &Trainer<'_, T>) -> Result<Control> {
        if let Event::Evaluated(e) = event {
            let score = e.score.filter(|s| s.is_finite()).unwrap_or(f64::NEG_INFINITY);
            if !e.metrics.iter().any(|(name, _)| name.starts_with("valid_log_likelihood")) {
                self.likelihoods.set(false);
            }
            self.points.push((e.update, score));
            if score > self.best.0 {
                self.best = (score, self.points.len());
            }
            self.spend(self.cost.evaluation);
            let all = run.plan.updates / run.plan.evaluate_every.max(1);
            if (self.points.len() - self.best.1) * PATIENCE > all as usize {
                return Ok(Control::Stop(StopReason::Requested(
                    "the held-out score no longer rises".into(),
                )));
            }
        }
        if matches!(event, Event::UpdateFinished { .. }) {
            self.spend(self.cost.update(&run.plan.estimator));
        }
        Ok(Control::Continue)
    }
}

/// The numbers below `n` in an order that depends on the seed alone.
pub(crate) fn shuffled(n: usize, seed: u64) -> Vec<usize> {
    let key = |r: usize| {
        // The finaliser of SplitMix64: a random order of the rows.
        let x = (r as u64 ^ seed.rotate_left(32)).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    };
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|&r| key(r));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_the_curves_decides() {
        let a = vec![(0, 0.0), (10, 2.0), (20, 3.0), (30, 9.0)];
        let b = vec![(0, 0.0), (10, 2.0), (20, 0.5)];
        assert_eq!(highest(&[a.clone(), b.clone()], None), 1);
        let found = gain(&[a.clone(), b.clone()]);
        assert_eq!((found.mean, found.error), (2.0, 0.0));
        // So it is for any four of these.
        let found = gain(&[b.clone(), b.clone(), b, a.clone(), a]);
        assert_eq!((found.mean, found.error), (2.0, 0.0));
        // Gains of 3, −2 and 0.5: 0.5 on average, with a standard error of 1.44; then 1.5 with one of 0.76.
        let by = |gain: f64| vec![(0, 1.0), (10, 1.0 + gain)];
        assert_eq!(updates(&[by(3.0), by(-2.0), by(0.5)]), 0);
        assert_eq!(updates(&[by(3.0), by(0.5), by(1.0)]), 10);
        assert_eq!(updates(&[vec![(0, 1.0), (5, 1.0)]]), 0);
        assert_eq!(updates(&[]), 0);
    }

    /// Each of ten curves has one place, its own, where chance lifts it by 5: the mean at any place is above the start, and
    /// what one sees at the places of the others is not.
    #[test]
    fn the_best_of_many_scores_is_no_gain() {
        let score = |k: usize, i: usize| match i {
            0 => 0.0,
            _ if i == k + 1 => 5.0,
            _ => -0.1,
        };
        let curves: Vec<Scores> =
            (0..10).map(|k| (0..11).map(|i| (i as u64, score(k, i))).collect()).collect();
        assert!(highest(&curves, None) > 0);
        assert_eq!(updates(&curves), 0);
    }

    #[test]
    fn settings_that_fall_behind_are_given_up() {
        let planned: Vec<Scores> = [2.0, 3.0, 1.0, 2.0].map(|x| vec![(0, 0.0), (10, x)]).into();
        let other = |gains: [f64; 4]| {
            let runs = std::cell::Cell::new(0);
            let curves = race(&planned, |fold| {
                runs.set(runs.get() + 1);
                Ok(vec![(0, 0.0), (10, gains[fold]), (20, 0.5)])
            });
            (curves.unwrap().map(|c| gain(&c).mean), runs.get())
        };
        assert_eq!(other([1.9, 2.0, 2.0, 9.0]), (None, 3));
        assert_eq!(other([f64::NAN; 4]), (None, 3));
        assert_eq!(other([9.0, 2.0, 2.0, -9.0]), (None, 4));
        assert_eq!(other([2.5, 3.5, 3.0, 3.0]), (Some(3.0), 4));
    }

    #[test]
    fn rows_are_shuffled_by_the_seed() {
        let (a, b) = (shuffled(50, 1), shuffled(50, 2));
        assert_ne!(a, b);
        let mut sorted = a;
        sorted.sort_unstable();
        assert_eq!(sorted, (0..50).collect::<Vec<_>>());
    }
}
