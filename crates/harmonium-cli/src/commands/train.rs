//! `train`: from data to a run directory with a model in it, or on from where a run stopped.

mod flags;
mod job;
mod watch;

pub(crate) use flags::TrainArgs;
