//! What the command does while a search runs: signals, time, a line for every stage, the best model so far.

use crate::args::Common;
use crate::error::Failure;
use crate::output::{duration, grouped, say, score, setting};
use crate::run::RunDirectory;
use crate::signals::Stop;
use harmonium::io::Provenance;
use harmonium::train::StopReason;
use harmonium::tune::{Record, Watch};
use harmonium::{Error, Machine, Result};
use std::time::Instant;

pub(super) struct Reporter<'a> {
    pub(super) run: &'a RunDirectory,
    pub(super) provenance: &'a Provenance,
    pub(super) stop: Stop,
    pub(super) start: Instant,
    /// Seconds after the start when the search must end.
    pub(super) deadline: Option<f64>,
    pub(super) common: &'a Common,
}

impl Watch<f32> for Reporter<'_> {
    fn stopped(&mut self) -> Option<StopReason> {
        StopReason::due(self.stop.asked(), self.start, self.deadline)
    }

    fn finished(&mut self, r: &Record) -> Result<()> {
        let updates = grouped(r.updates);
        let line = format!(
            "stage {} · trial {} · {} · {updates} updates · {} · {}",
            r.stage,
            r.trial,
            setting(&r.setting),
            score(r),
            duration(r.seconds)
        );
        if !self.common.quiet {
            say!("{line}");
        }
        let path = self.run.log();
        self.run.note(&line).map_err(|e| match e {
            Failure::Failed(why) => Error::Format { path, why },
            _ => Error::Format { path, why: "cannot write".into() },
        })
    }

    fn best(&mut self, _: &Record, machine: &Machine) -> Result<()> {
        machine.save(self.run.model(), self.provenance)
    }
}
