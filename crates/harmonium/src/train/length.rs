//! The length and the rate of a run, by cross-validation.

use super::cost::Cost;
use super::{Control, Data, Event, Observer, StopReason, TrainPlan, Trainer};
use crate::estimate::Estimator;
use crate::{Machine, Real, Result};
use std::cell::Cell;

/// Into how many parts the rows are cut, and how many of these are left out in turn: fewer where there are enough rows for
/// the scores of few parts to agree, or where gradients are sampled and a run takes longer.
fn folds(rows: usize, exact: bool) -> (usize, usize) {
    match rows {
        0..300 if exact => (10, 10),
        0..300 => (5, 5),
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
const FACTORS: [f64; 2] = [0.25, 4.0];

/// The rate and the length with the best score on held-out rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Choice {
    /// Learning rate.
    pub(super) rate: f64,
    /// Updates; 0 if the start is the best model.
    pub(super) updates: u64,
}

/// Scores of left-out rows along a run: the update and the score of each evaluation.
type Scores = Vec<(u64, f64)>;

/// The best length of the planned run, and the best of a few rates if `any_rate`, by cross-validation: the run is
/// repeated without each of the folds, and the mean of their scores decides. `None` if there is no score, or `stopped`
/// returns true.
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
    let spent = Cell::new(0.0);
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
        let mut watch =
            Curve { points: Vec::new(), best: (f64::NEG_INFINITY, 0), cost, spent: &spent, stopped };
        let mut trainer = Trainer::new(machine.clone(), plan, &train)?.with_valid(&valid)?;
        trainer.run(&mut [&mut watch])?;
        Ok(watch.points)
    };
    let mut planned = Vec::new();
    for fold in 0..folds {
        if fold >= ENOUGH && spent.get() > BUDGET {
            break;
        }
        planned.push(curve(fold, plan.rate)?);
        // Where nothing can be scored all scores are −∞, and the start is kept: no other model is known to be better than it.
        if stopped() || planned[fold].is_empty() {
            return Ok(None);
        }
    }
    let (updates, mut best) = highest(&planned);
    let mut choice = Choice { rate: plan.rate, updates };
    for factor in FACTORS.iter().filter(|_| any_rate) {
        if spent.get() > BUDGET {
            break;
        }
        let rate = factor * plan.rate;
        let Some(curves) = race(&planned, |fold| curve(fold, rate))? else { continue };
        if stopped() {
            return Ok(None);
        }
        let (updates, gain) = highest(&curves);
        if gain > best {
            (choice, best) = (Choice { rate, updates }, gain);
        }
    }
    Ok(Some(choice))
}

/// The curves of another rate for the same parts; `None` as soon as their best scores add up to no more than those of the
/// `planned` rate.
fn race(planned: &[Scores], curve: impl Fn(usize) -> Result<Scores>) -> Result<Option<Vec<Scores>>> {
    let top = |c: &[(u64, f64)]| c.iter().map(|p| p.1).fold(f64::NEG_INFINITY, f64::max);
    let (mut curves, mut lead) = (Vec::new(), 0.0);
    for (fold, planned) in planned.iter().enumerate() {
        let other = curve(fold)?;
        lead += top(&other) - top(planned);
        // Also if it is NaN.
        if lead.is_nan() || lead <= 0.0 {
            return Ok(None);
        }
        curves.push(other);
    }
    Ok(Some(curves))
}

/// The update with the largest mean over the curves, up to the end of the shortest, and its gain over the start. The
/// start is preferred if the gain is within three standard errors (one for fewer than ten curves, which have more rows
/// each): of few rows, the best of many scores is better by chance alone.
fn highest(curves: &[Scores]) -> (u64, f64) {
    let (n, common) = (curves.len() as f64, curves.iter().map(Vec::len).min().unwrap_or(0));
    let mean = |i: usize| curves.iter().map(|c| c[i].1).sum::<f64>();
    let best = (0..common).max_by(|&a, &b| mean(a).total_cmp(&mean(b)).then(b.cmp(&a)));
    let Some(best) = best else { return (0, 0.0) };
    let gain = || curves.iter().map(|c| c[best].1 - c[0].1);
    let average = gain().sum::<f64>() / n;
    let variance = gain().map(|g| (g - average).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    let errors = if curves.len() < 10 { 1.0 } else { 3.0 };
    if average > errors * (variance / n).sqrt() {
        (curves[0][best].0, average)
    } else {
        (curves[0][0].0, 0.0)
    }
}

/// Scores along a run, which stops early when its best score is long past.
struct Curve<'a> {
    points: Scores,
    best: (f64, usize),
    cost: Cost,
    /// Seconds, by estimate, of this run and those before.
    spent: &'a Cell<f64>,
    stopped: &'a dyn Fn() -> bool,
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
        Ok(if (self.stopped)() { Control::Stop(StopReason::Interrupted) } else { Control::Continue })
    }
}

/// The numbers below `n` in an order that depends on the seed alone.
fn shuffled(n: usize, seed: u64) -> Vec<usize> {
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
        assert_eq!(highest(&[a, b]), (10, 2.0));
        // Gains of 3, −2 and 0.5: 0.5 on average, with a standard error of 1.44; then 1.5 with one of 0.76.
        let by = |gain: f64| vec![(0, 1.0), (10, 1.0 + gain)];
        assert_eq!(highest(&[by(3.0), by(-2.0), by(0.5)]), (0, 0.0));
        assert_eq!(highest(&[by(3.0), by(0.5), by(1.0)]), (10, 1.5));
        // Ten gains of 1.5 on average with standard errors of 0.51 and 0.49.
        let ten =
            |d: f64| (0..10).map(|i| by(if i % 2 == 0 { 1.5 + d } else { 1.5 - d })).collect::<Vec<_>>();
        assert_eq!(highest(&ten(1.53)), (0, 0.0));
        assert_eq!(highest(&ten(1.47)).0, 10);
        assert_eq!(highest(&[vec![(0, 1.0), (5, 1.0)]]), (0, 0.0));
    }

    #[test]
    fn a_rate_that_falls_behind_is_given_up() {
        let planned = [vec![(0, 0.0), (10, 2.0)], vec![(0, 0.0), (10, 3.0)], vec![(0, 0.0), (10, 1.0)]];
        let other = |gains: [f64; 3]| {
            let runs = std::cell::Cell::new(0);
            let curves = race(&planned, |fold| {
                runs.set(runs.get() + 1);
                Ok(vec![(0, 0.0), (10, gains[fold]), (20, 0.5)])
            });
            (curves.unwrap().map(|c| highest(&c)), runs.get())
        };
        assert_eq!(other([1.9, 9.0, 9.0]), (None, 1));
        assert_eq!(other([2.5, 2.4, 9.0]), (None, 2));
        assert_eq!(other([f64::NAN, 9.0, 9.0]), (None, 1));
        let (chosen, runs) = other([2.5, 3.5, 3.0]);
        assert_eq!((chosen, runs), (Some((10, 3.0)), 3));
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
