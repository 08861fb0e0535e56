//! `train`: trains on data into a run directory, or resumes a run.

mod flags;
mod job;
mod prepared;
mod watch;

pub(crate) use flags::TrainArgs;
pub(super) use prepared::{Prepared, is_read_once, keep_input};
