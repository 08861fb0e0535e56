//! Keeps the best model of a run and detects collapse and lack of improvement.

use crate::machine::Parameters;
use crate::{Archive, Real, Result};

/// How many nats below the best score counts as a collapse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slack {
    /// More than the noise of a score, and more than a held-out score loses by overfitting.
    Wide,
    /// The score is the likelihood of training rows and the gradient is that of it: it falls only when steps are too
    /// long.
    Narrow,
}

impl Slack {
    fn nats(self, best: f64) -> f64 {
        match self {
            Self::Wide => (0.5 * best.abs()).max(5.0),
            Self::Narrow => 0.3,
        }
    }
}

fn collapsed(score: f64, best: f64, slack: Slack) -> bool {
    !score.is_finite() || score < best - slack.nats(best)
}

/// The best model so far.
#[derive(Clone, Debug)]
pub(super) struct Best<T> {
    /// Its score, its update and its parameters.
    found: Option<(f64, u64, Parameters<T>)>,
    /// Evaluations since.
    pub(super) stale: u64,
    /// The first and the last score.
    ends: Option<(f64, f64)>,
}

/// The consequence of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    Better,
    Worse,
    Collapsed,
}

impl<T: Real> Best<T> {
    pub(super) fn new() -> Self {
        Self { found: None, stale: 0, ends: None }
    }

    pub(super) fn parameters(&self) -> Option<&Parameters<T>> {
        self.found.as_ref().map(|f| &f.2)
    }
    pub(super) fn update(&self) -> Option<u64> {
        self.found.as_ref().map(|f| f.1)
    }

    /// Whether there was no score yet.
    pub(super) fn is_blank(&self) -> bool {
        self.ends.is_none()
    }

    /// Whether the last score is not finite, or worse than the first by more than `margin`.
    pub(super) fn is_below_start(&self, margin: f64) -> bool {
        self.ends.is_some_and(|(first, last)| !(last >= first - margin))
    }

    /// Compares a score with the best one; a better model is kept.
    pub(super) fn see(
        &mut self,
        score: f64,
        update: u64,
        slack: Slack,
        parameters: impl FnOnce() -> Parameters<T>,
    ) -> Finding {
        self.ends = Some((self.ends.map_or(score, |e| e.0), score));
        match &self.found {
            Some((best, ..)) if collapsed(score, *best, slack) => Finding::Collapsed,
            Some((best, ..)) if score <= *best => {
                self.stale += 1;
                Finding::Worse
            }
            None if !score.is_finite() => Finding::Collapsed,
            _ => {
                self.found = Some((score, update, parameters()));
                self.stale = 0;
                Finding::Better
            }
        }
    }

    /// Forgets models that lost modes of the data: the best is the one that `safe` kept, whose score is taken to be that of
    /// the start.
    pub(super) fn restart(&mut self, safe: &Self) {
        if let (Some((_, update, parameters)), Some((first, _))) = (&safe.found, self.ends) {
            self.found = Some((first, *update, parameters.clone()));
        }
    }

    pub(super) fn save(&self, archive: &mut Archive) {
        archive.put_u64s("stale", &[self.stale, self.update().unwrap_or(0)]);
        if let Some((first, last)) = self.ends {
            archive.put_f64s("ends", &[first, last]);
        }
        if let Some((score, _, p)) = &self.found {
            archive.put_f64s("score", &[*score]);
            archive.put_parameters("parameters", p);
        }
    }

    pub(super) fn load(archive: &Archive, like: &Parameters<T>) -> Result<Self> {
        let counts = archive.u64s("stale")?;
        let count = |i: usize| counts.get(i).copied().unwrap_or(0);
        let mut best = Self { found: None, stale: count(0), ends: None };
        if let Ok([first, last]) = archive.f64s("ends").as_deref() {
            best.ends = Some((*first, *last));
        }
        if archive.tensors().contains_key("score") {
            let score = archive.f64s("score")?.first().copied().unwrap_or(f64::NAN);
            best.found = Some((score, count(1), archive.parameters("parameters", like)?));
        }
        Ok(best)
    }
}
