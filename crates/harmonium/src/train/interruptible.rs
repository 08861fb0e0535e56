//! Updates that a request to stop can interrupt: they are undone as if they had never begun.

use super::{Event, StopReason, Trainer};
use crate::sample::Stop;
use crate::{Archive, Error, Real, Result};
use std::time::Instant;

/// Seconds that an update may take without being interruptible: a request to stop then waits for its end.
const QUICK: f64 = 0.25;

/// Most updates between two looks at the clock, which takes as long as a tenth of the quickest updates.
const LOOK_EVERY: u32 = 256;

/// Makes updates. The chains are copied before an update only if those before it were slow, or if there were none: quick updates
/// cost nothing more.
pub(super) struct Interruptible {
    slow: bool,
    /// The last look at the clock, the updates since, and those until the next.
    looked: Instant,
    since: u32,
    wait: u32,
}

impl Interruptible {
    pub(super) fn new() -> Self {
        Self { slow: true, looked: Instant::now(), since: 0, wait: 1 }
    }

    /// One update; `None` if `stop` gave a reason while it was made.
    pub(super) fn update<T: Real>(
        &mut self,
        run: &mut Trainer<'_, T>,
        stop: &dyn Fn() -> Option<StopReason>,
    ) -> Result<Option<Event>> {
        let asked = || stop().is_some();
        let (before, stop) = match self.slow {
            true => (Some(run.save_chains()), Stop::when(&asked)),
            false => (None, Stop::default()),
        };
        let event = match (run.update_until(stop), before) {
            // A component of the caller may stop for reasons of its own.
            (Err(Error::Stopped { .. }), Some(before)) if asked() => {
                run.load_chains(&before)?;
                return Ok(None);
            }
            (event, _) => event?,
        };
        self.measure();
        Ok(Some(event))
    }

    /// Finds out whether updates are slow: evaluations in between count as well, which does no harm.
    fn measure(&mut self) {
        self.since += 1;
        if self.since < self.wait {
            return;
        }
        let now = Instant::now();
        self.slow = (now - self.looked).as_secs_f64() > QUICK * f64::from(self.since);
        self.wait = if self.slow { 1 } else { (2 * self.wait).min(LOOK_EVERY) };
        (self.looked, self.since) = (now, 0);
    }
}

impl<T: Real> Trainer<'_, T> {
    /// The chains of both phases, as a checkpoint has them.
    fn save_chains(&self) -> [Archive; 2] {
        let mut saved = [Archive::default(), Archive::default()];
        self.positive.save(&mut saved[0]);
        self.estimator.save(&mut saved[1]);
        saved
    }

    fn load_chains(&mut self, saved: &[Archive; 2]) -> Result<()> {
        self.positive.load(&saved[0])?;
        self.estimator.load(&saved[1])
    }
}
