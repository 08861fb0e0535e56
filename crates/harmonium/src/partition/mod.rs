//! The partition function: estimates of ln Z from both sides.
//!
//! All of them walk the straight [path](crate::Machine::between) from a [`Base`] model, whose ln Z is known, to the
//! machine. [`ais`] walks up and underestimates ln Z on average, [`reverse_ais`] walks down from samples of the machine
//! and overestimates it: their difference shows how reliable they are.

mod ais;
mod anneal;
mod base;
mod bennett;
mod given;
mod integrate;
mod ladder;
mod path;
mod result;
mod schedule;
pub(crate) mod survey;
mod trips;

use crate::sample::weights;

pub use ais::{ais, raise, reverse_ais};
pub use base::Base;
pub use bennett::{bennett_ladder, mbar};
pub use given::ais_given;
pub use integrate::integrate;
pub(crate) use result::report_progress;
pub use result::{Bound, Cost, Interval, LogZ, Method, Progress, ProgressFn, Verdict, silent};
pub use schedule::Schedule;
pub use trips::RoundTrips;
pub use weights::{effective_size, log_mean_exp, normalised, std_err};
