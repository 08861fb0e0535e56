//! `tune`: searches for the best settings on data into a run directory, or resumes a search.

mod flags;
mod job;
mod watch;

pub(crate) use flags::TuneArgs;
