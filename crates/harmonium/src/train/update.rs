//! One update: minibatch, two phases, gradient, step.

use super::optimise::{Source, Stage, Step};
use super::trainer::AVERAGE_EVERY;
use super::{Event, Gradient, Trainer, Updated};
use crate::estimate::{Context, Info};
use crate::sample::{Stop, purpose};
use crate::{Key, Real, Result};
use harmonium_kernels::Stream;
use rand::RngExt;

impl<T: Real> Trainer<'_, T> {
    /// One update.
    ///
    /// # Errors
    /// Errors of sampling or enumeration.
    pub fn update(&mut self) -> Result<Event> {
        self.update_until(Stop::default())
    }

    /// One update, which may `stop` between sweeps; its chains are then neither those before the update nor those after it.
    pub(super) fn update_until(&mut self, stop: Stop<'_>) -> Result<Event> {
        let update = self.update + 1;
        self.select_minibatch(update);
        let info = self.phases(update, stop)?;
        let (rows, wts) = (&self.batch.0, &self.batch.1);
        let wt = || if wts.is_empty() { rows.len() as f64 } else { wts.iter().sum() };
        self.hooks.on_gradient(&mut self.gradient, &self.machine, rows.len(), wt)?;
        let step = self.step(update)?;
        let rate = (self.plan.offset_rate * step.wt).min(1.0);
        self.coordinates.follow(&self.machine, self.gradient.positive.layers(), rate);
        let mut source = Source { gradient: &mut self.gradient, coordinates: &self.coordinates };
        self.next.inherit(&mut self.machine);
        let (old, new, own) = (&self.machine, &mut self.next, self.hooks.step_rule.as_deref_mut());
        let norms = self.stepper.apply(old, new, &mut source, step, own)?;
        let margin = self.stay_normalisable();
        if let Some(why) = self.validate_update(norms, margin)? {
            return self.undo(update, why);
        }
        std::mem::swap(&mut self.machine, &mut self.next);
        self.margin = margin;
        self.undone_in_a_row = 0;
        let slide = 1.0 / (update.min(100) as f64);
        self.usual_norm += slide * (norms.gradient - self.usual_norm);
        self.update = update;
        Ok(Event::Updated(Updated {
            update,
            epoch: self.epoch(),
            rate: step.rate,
            gradient_norm: norms.gradient,
            update_norm: norms.change,
            metrics: info.metrics,
        }))
    }

    /// Both phases of the minibatch, into the gradient. This is the only place that creates the view of the model used
    /// for sampling and averaging.
    fn phases(&mut self, update: u64, stop: Stop<'_>) -> Result<Info> {
        let model = self.machine.at(1.0);
        let rows = &self.batch.0;
        let wts = self.data.wts().map(|_| &self.batch.1[..]);
        let seed = self.plan.seed;
        let all = self.data.states();
        let Gradient { positive, negative, wt } = &mut self.gradient;
        // The gradient of Σ wt·ln p weights each minibatch by its total weight.
        *wt = wts.map_or(1.0, |w| w.iter().sum::<f64>() / w.len() as f64 / self.mean_weight);
        let batch = self.positive.estimate(&model, all, rows, wts, seed, update, stop, positive)?;
        for (l, gap) in &self.smoothing {
            *positive.layer_mut(*l) += gap;
        }
        let context = Context { model: &model, data: batch, wts, positive, seed, update, stop };
        self.estimator.estimate(&context, negative)
    }

    fn step(&mut self, update: u64) -> Result<Step> {
        let done = (update - 1) as f64 / self.plan.updates as f64;
        let planned = || self.plan.rate * self.plan.schedule.factor(done);
        let rate = self.hooks.rate_of(update)?.unwrap_or_else(planned) * self.rate_factor;
        let average = self.average_step(update);
        Ok(Step { rate, wt: self.gradient.wt, average, stage: Stage::Fused })
    }

    /// The fraction by which the average moves. It is updated every [`AVERAGE_EVERY`] updates only, because it costs a
    /// pass over the parameters, and is a plain mean until it spans its full window.
    fn average_step(&self, update: u64) -> f64 {
        if self.plan.average == 0 || !update.is_multiple_of(AVERAGE_EVERY) {
            return 0.0;
        }
        let every = AVERAGE_EVERY as f64;
        (every / self.plan.average as f64).max(every / update as f64).min(1.0)
    }

    /// The rows of a minibatch: the data in a random order for each epoch, cut into equal pieces.
    fn select_minibatch(&mut self, update: u64) {
        let (n, batch) = (self.rows.len() as u64, self.plan.batch as u64);
        self.batch.0.clear();
        if n == batch {
            self.batch.0.extend_from_slice(&self.rows);
        } else {
            let first = (update - 1) * batch;
            for p in first..first + batch {
                if self.order.0 != p / n {
                    self.shuffle(p / n);
                }
                self.batch.0.push(self.order.1[(p % n) as usize]);
            }
        }
        if let Some(wts) = self.data.wts() {
            self.batch.1.clear();
            self.batch.1.extend(self.batch.0.iter().map(|&r| wts[r]));
        }
    }

    /// Puts the rows into the order of an epoch.
    fn shuffle(&mut self, epoch: u64) {
        let key = Key { seed: self.plan.seed, purpose: purpose::DATA, block: 0, sweep: epoch };
        let mut rng = Stream::new(key);
        let (number, order) = &mut self.order;
        *number = epoch;
        order.clone_from(&self.rows);
        for i in (1..order.len()).rev() {
            order.swap(i, rng.random_range(0..=i));
        }
    }
}
