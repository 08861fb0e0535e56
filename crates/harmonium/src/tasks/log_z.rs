//! The task of estimating ln Z.

use super::IntoData;
use crate::evaluate::{Budget, Estimate, LogZParams, log_z};
use crate::partition::{Progress, ProgressFn, silent};
use crate::train::Data;
use crate::{Machine, Real, Result};
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Settings, observer and time budget of an estimate of ln Z.
pub(super) struct Effort<'a> {
    pub(super) params: LogZParams,
    budget: Option<Duration>,
    observer: Box<dyn FnMut(Progress) -> ControlFlow<()> + 'a>,
}

impl<'a> Effort<'a> {
    pub(super) fn new() -> Self {
        Self { params: LogZParams::default(), budget: None, observer: Box::new(silent) }
    }

    /// Calls `work` with the settings, the clock of the budget and the observer.
    pub(super) fn spend<R>(
        &mut self,
        work: impl FnOnce(&LogZParams, Option<Budget<'_>>, &mut ProgressFn<'_>) -> Result<R>,
    ) -> Result<R> {
        let start = Instant::now();
        let clock = || start.elapsed().as_secs_f64();
        let budget = self.budget.map(|b| Budget { seconds: b.as_secs_f64(), clock: &clock });
        work(&self.params, budget, &mut *self.observer)
    }
}

/// The settings that estimates of ln Z share.
macro_rules! effort_settings {
    () => {
        /// Time budget of the estimate of ln Z; by default it takes as long as its precision requires.
        pub fn budget(mut self, budget: std::time::Duration) -> Self {
            self.effort.set_budget(Some(budget));
            self
        }
        /// Standard error of ln Z to aim at, in nats.
        pub fn std_err(mut self, std_err: f64) -> Self {
            self.effort.params.std_err = std_err;
            self
        }
        /// Chains of an annealing run.
        pub fn chains(mut self, chains: usize) -> Self {
            self.effort.params.chains = chains;
            self
        }
        /// Seed of all random numbers.
        pub fn seed(mut self, seed: u64) -> Self {
            self.effort.params.seed = seed;
            self
        }
        /// All settings of the estimate at once; those set before are replaced.
        pub fn params(mut self, params: crate::evaluate::LogZParams) -> Self {
            self.effort.params = params;
            self
        }
        /// Called with the progress of the work, which it may stop.
        pub fn on_progress(
            mut self,
            observer: impl FnMut(crate::partition::Progress) -> std::ops::ControlFlow<()> + 'a,
        ) -> Self {
            self.effort.set_observer(observer);
            self
        }
    };
}
pub(super) use effort_settings;

impl<'a> Effort<'a> {
    pub(super) fn set_budget(&mut self, budget: Option<Duration>) {
        self.budget = budget;
    }
    pub(super) fn set_observer(&mut self, observer: impl FnMut(Progress) -> ControlFlow<()> + 'a) {
        self.observer = Box::new(observer);
    }
}

/// The task of estimating ln Z; [`run`](Self::run) carries it out.
#[must_use = "nothing is estimated until `run` is called"]
pub struct EstimateLogZ<'a, T: Real = f32> {
    machine: &'a Machine<T>,
    base: Option<Result<Cow<'a, Data<T>>>>,
    effort: Effort<'a>,
}

impl<T: Real> Machine<T> {
    /// The task of finding ln Z, with an interval and a verdict: enumerated where that is quick, else estimated from both sides.
    pub fn log_z(&self) -> EstimateLogZ<'_, T> {
        EstimateLogZ { machine: self, base: None, effort: Effort::new() }
    }
}

impl<'a, T: Real> EstimateLogZ<'a, T> {
    effort_settings!();

    /// Rows whose marginals define the base of the annealing path, ideally training rows.
    pub fn base(mut self, rows: impl IntoData<'a, T>) -> Self {
        self.base = Some(rows.into_data(self.machine));
        self
    }

    /// Estimates ln Z.
    ///
    /// # Errors
    /// A machine that cannot be normalised or is conditional; rows that do not fit; an observer that stops.
    pub fn run(mut self) -> Result<Estimate> {
        self.machine.check()?;
        let base = self.base.take().transpose()?;
        // The base is fitted to rows without gaps.
        let base = base.as_deref().and_then(Data::whole);
        let machine = self.machine;
        self.effort
            .spend(|params, budget, observer| log_z(machine, base.as_deref(), params, budget, observer))
    }
}
