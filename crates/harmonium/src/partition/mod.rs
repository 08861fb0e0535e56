//! The partition function: estimates of ln Z from both sides.
//!
//! All of them walk the straight [path](crate::Machine::between) from a [`Base`] model, whose ln Z is known, to the
//! machine. [`ais`] walks up and falls short of ln Z on average, [`reverse_ais`] walks down from
//! samples of the machine and overshoots: only together do they say how far either can be trusted.

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
mod weights;

pub use ais::{ais, raise, reverse_ais};
pub use base::Base;
pub use bennett::{bennett_ladder, mbar};
pub use given::ais_given;
pub use integrate::integrate;
pub(crate) use result::tell;
pub use result::{Bound, Cost, Interval, LogZ, Method, Observer, Progress, Verdict, silent};
pub use schedule::Schedule;
pub use trips::RoundTrips;
pub use weights::{effective_size, log_mean_exp, normalised, std_err};
