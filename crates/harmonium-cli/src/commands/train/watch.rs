//! Observers of a run that belong to the command: checkpoints, the log, messages.

use crate::output::{grouped, say};
use crate::run::RunDirectory;
use crate::signals::Stop;
use harmonium::io::Provenance;
use harmonium::train::{Control, Event, Observer, Trainer};
use harmonium::{Error, Result};
use std::time::Instant;

/// Saves a run from time to time and at its end, and keeps its log.
pub(super) struct Keeper<'a> {
    pub(super) run: &'a RunDirectory,
    pub(super) start: Instant,
    pub(super) every: f64,
    pub(super) saved: Instant,
    pub(super) provenance: &'a Provenance,
}

impl Keeper<'_> {
    /// Path of the checkpoint from which a run resumes.
    pub(super) fn path(run: &RunDirectory) -> std::path::PathBuf {
        run.checkpoints().join("last.safetensors")
    }

    fn save(&mut self, trainer: &Trainer<'_, f32>) -> Result<()> {
        trainer.checkpoint().save(Self::path(self.run))?;
        trainer.result().save(self.run.model(), self.provenance)?;
        self.saved = Instant::now();
        Ok(())
    }

    fn note(&self, line: &str) -> Result<()> {
        let path = self.run.log();
        let fail = |e: crate::error::Failure| match e {
            crate::error::Failure::Failed(why) => Error::Format { path, why },
            _ => Error::Format { path, why: "cannot write".into() },
        };
        self.run.note(&format!("{:>9.2} s  {line}", self.start.elapsed().as_secs_f64())).map_err(fail)
    }
}

impl Observer<f32> for Keeper<'_> {
    fn on_event(&mut self, event: &Event, trainer: &Trainer<'_, f32>) -> Result<Control> {
        match event {
            Event::Started { update } => self.note(&format!("training from update {update}"))?,
            Event::UpdateFinished { .. } if self.saved.elapsed().as_secs_f64() > self.every => {
                self.save(trainer)?;
            }
            Event::Undone { update, why, rate_factor } => {
                self.note(&format!("update {update} undone: {why}; learning rate × {rate_factor}"))?;
            }
            Event::Stopped { update, reason } => {
                self.save(trainer)?;
                self.note(&format!("stopped at update {update}: {reason}"))?;
            }
            _ => {}
        }
        Ok(Control::Continue)
    }
}

/// Reports the pretraining of the levels of a deep machine.
pub(super) struct Levels<'a> {
    pub(super) stop: &'a Stop,
    pub(super) quiet: bool,
    pub(super) levels: usize,
    pub(super) level: usize,
}

impl Observer<f32> for Levels<'_> {
    fn on_event(&mut self, event: &Event, run: &Trainer<'_, f32>) -> Result<Control> {
        if matches!(event, Event::Started { .. }) {
            self.level += 1;
            if !self.quiet && !self.stop.asked() {
                let updates = grouped(run.plan().updates());
                say!("level {} of {} on its own: {updates} updates", self.level, self.levels);
            }
        }
        Ok(Control::Continue)
    }
}
