//! Guards of a run: updates that would make Z infinite are shortened, unusable ones are dropped.

use super::optimise::Norms;
use super::{Event, Trainer};
use crate::estimate::Decision;
use crate::machine::Parameters;
use crate::{Real, Result};

/// A gradient this many times the usual norm is considered an explosion.
const EXPLODES: f64 = 30.0;

/// Updates before the usual norm of a gradient is known.
const WARM_UP: u64 = 20;

/// Fraction of its γ that every direction of coupled real units keeps.
const LEAST_MARGIN: f64 = 1e-3;

/// Most halvings of an update that would make Z infinite.
const MOST_HALVINGS: u32 = 40;

/// Updates undone in a row after which other random numbers are not expected to help.
const STUCK: u32 = 3;

impl<T: Real> Trainer<'_, T> {
    /// Shortens the prepared update until the next machine is normalisable with room to spare: no direction of coupled
    /// real units may lose more than three quarters of its precision, nor come so close to zero that rounding matters.
    /// Since the present machine is normalisable, a short enough update always exists, and no update is ever undone for
    /// this reason.
    ///
    /// Returns the margin of the next machine; `None` where no real units are coupled.
    pub(super) fn stay_normalisable(&mut self) -> Option<f64> {
        for c in (0..self.next.couplings().len()).filter(|&c| self.machine.only_repels(c)) {
            self.next.coupling_mut(c).w_mut().mapv_inplace(|w| w.min(T::zero()));
        }
        let now = self.margin?;
        for _ in 0..MOST_HALVINGS {
            let next = self.next.margin();
            if next.is_some_and(|next| next >= (0.25 * now).max(LEAST_MARGIN.min(now))) {
                return next;
            }
            self.next.move_halfway(&self.machine);
        }
        self.next.margin()
    }

    /// Reasons against the prepared update, if there are any.
    pub(super) fn validate_update(
        &mut self,
        norms: Norms,
        margin: Option<f64>,
    ) -> Result<Option<String>> {
        let Norms { gradient, change } = norms;
        if !(gradient.is_finite() && change.is_finite()) {
            return Ok(Some("the update is not finite".into()));
        }
        if !self.is_noiseless() && self.update >= WARM_UP && gradient > EXPLODES * self.usual_norm {
            let times = gradient / self.usual_norm;
            return Ok(Some(format!("the gradient is {times:.0} times as long as usual")));
        }
        if let Some(e) = self.next.members().iter().find_map(|m| m.layer.check().err()) {
            return Ok(Some(e.to_string()));
        }
        // The factorisation behind the margin is the same as that of the full check.
        let sound = match margin {
            Some(margin) if margin.is_nan() || margin <= 0.0 => self.next.check_normalisable(),
            _ => self.next.check_counts(),
        };
        if let Err(e) = sound {
            return Ok(Some(e.to_string()));
        }
        Ok(match self.estimator.updated(&self.machine, &self.next)? {
            Decision::Accept => None,
            Decision::Reject => Some("the chains cannot follow".into()),
        })
    }

    /// Whether the gradient is exact. Then a large one is not an accident that other random numbers could avoid, and
    /// near the optimum the usual norm is so small that any step makes it many times larger.
    fn is_noiseless(&self) -> bool {
        self.is_exact() && self.plan.batch == self.rows.len()
    }

    /// Drops the prepared update, lowers the rate and clears momenta. The update's number is used up, so that the next
    /// attempt uses other rows and other random numbers. If these do not help, the run goes back to the best model.
    pub(super) fn undo(&mut self, update: u64, why: String) -> Result<Event> {
        self.undone_in_a_row += 1;
        self.update = update;
        if self.undone_in_a_row == STUCK {
            self.back_to_best()?;
        }
        Ok(self.lower(update, why))
    }

    /// Restores the parameters of the best model, if there is one.
    pub(super) fn back_to_best(&mut self) -> Result<()> {
        match self.best.parameters().cloned() {
            Some(best) => self.restore(&best),
            None => Ok(()),
        }
    }

    /// Goes on from these parameters.
    pub(super) fn restore(&mut self, parameters: &Parameters<T>) -> Result<()> {
        self.machine.set_parameters(parameters)?;
        self.margin = self.machine.margin();
        self.stepper.restart(parameters);
        Ok(())
    }

    /// Halves the rate and clears momenta.
    pub(super) fn lower(&mut self, update: u64, why: String) -> Event {
        self.rate_factor *= 0.5;
        self.stepper.clear(self.plan.rate * self.rate_factor);
        if let Some(rule) = &mut self.hooks.step_rule {
            rule.clear();
        }
        Event::Undone { update, why, rate_factor: self.rate_factor }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Data, TrainParams, Trainer};
    use crate::estimate::Estimator;
    use crate::machine::FACTORISATIONS;
    use crate::{Kind, Layer, Machine};
    use ndarray::Array2;

    /// The matrix of coupled reals is factorised once for each update, the halvings of long steps aside.
    #[test]
    fn normalisation_is_checked_once_for_each_update() {
        let mut machine = Machine::<f64>::rbm(Layer::new(Kind::Gaussian, 6), Layer::new(Kind::Drelu, 3));
        machine.coupling_mut(0).w_mut().fill(0.05);
        let x = Array2::from_shape_fn((50, 6), |(r, j)| ((7 * r + 3 * j) as f64).sin());
        let data = Data::new(machine.data(vec![crate::Batch::Reals(x)]).unwrap());
        let estimator = Some(Estimator::Pcd { sweeps: Some(2), chains: Some(20) });
        let params = TrainParams { estimator, rate: Some(1e-3), ..TrainParams::default() };
        let plan = params.plan(&machine, &data).unwrap();
        let mut trainer = Trainer::new(machine, plan, &data).unwrap();
        FACTORISATIONS.set(0);
        (0..10).for_each(|_| drop(trainer.update().unwrap()));
        assert_eq!(FACTORISATIONS.get(), 10);
        assert_eq!(trainer.margin, trainer.machine.margin());
    }
}
