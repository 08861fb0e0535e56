//! The tasks of a user. Each is a builder: set what should differ from the defaults, then call `run`.
//!
//! ```
//! use harmonium::{Machine, binary};
//! use ndarray::Array2;
//!
//! # fn main() -> harmonium::Result<()> {
//! // Rows in which both halves are equal.
//! let x = Array2::from_shape_fn((400, 6), |(r, j)| (r >> (j % 3)) & 1);
//! let mut rbm = Machine::rbm(binary(6), binary(4));
//! rbm.train(&x).updates(500).seed(1).run()?;
//!
//! let found = rbm.log_likelihood(&x).run()?;
//! assert!(found.gain().is_some_and(|gain| gain.value > 1.5)); // nats per row over independent columns
//!
//! let samples = rbm.sample(100).clamp("v", 0, 1.0).seed(42).run()?;
//! let v = samples.values("v")?;
//! assert!(v.column(0).iter().all(|&x| x == 1.0));
//! # Ok(())
//! # }
//! ```
//!
//! | task | made by | result |
//! |---|---|---|
//! | [`Train`] | [`Machine::train`](crate::Machine::train) | [`Trained`]; the machine has learnt |
//! | [`Sample`] | [`Machine::sample`](crate::Machine::sample) | [`Samples`] |
//! | [`EstimateLogZ`] | [`Machine::log_z`](crate::Machine::log_z) | [`Estimate`](crate::evaluate::Estimate) |
//! | [`Evaluate`] | [`Machine::log_likelihood`](crate::Machine::log_likelihood) | [`Evaluation`] |
//! | [`Complete`] | [`Machine::complete`](crate::Machine::complete) | [`Completed`] |
//! | [`Features`] | [`Machine::features`](crate::Machine::features) | an array for each hidden layer |
//! | [`Classify`] | [`Machine::classify`](crate::Machine::classify) | [`Classes`] |
//! | [`Diagnose`] | [`Machine::diagnose`](crate::Machine::diagnose) | [`Diagnosis`] |
//! | [`Gradient`] | [`Machine::gradient`](crate::Machine::gradient) | [`Parameters`](crate::Parameters) |
//!
//! Rows may be arrays, bits, lists of the units that are on, [`States`](crate::States) or [`Data`](crate::train::Data): see
//! [`IntoData`]. A task checks its machine, its rows and its settings once, in `run`; every error names what is wrong.
//! Equal seeds give equal results; without one the seed is 0.

/// The settings of tasks that run chains.
macro_rules! chain_settings {
    () => {
        /// Seed of all random numbers.
        pub fn seed(mut self, seed: u64) -> Self {
            self.seed = seed;
            self
        }
        /// Called between sweeps; returns true to stop.
        pub fn stop_when(mut self, stopped: impl Fn() -> bool + 'a) -> Self {
            self.stopped = Box::new(stopped);
            self
        }
    };
}

mod classify;
mod complete;
mod diagnose;
mod evaluate;
mod features;
mod gradient;
mod log_z;
mod rows;
mod sample;
mod train;

pub use classify::{Classes, Classify};
pub use complete::{Complete, Completed, Fill};
pub use diagnose::{DIAGNOSE_CHAINS, DIAGNOSE_SWEEPS, Diagnose, Diagnosis};
pub use evaluate::{Evaluate, Evaluation};
pub use features::Features;
pub use gradient::Gradient;
pub use log_z::EstimateLogZ;
pub use rows::{IntoData, Number};
pub use sample::{ExchangeDiagnostics, SWEEPS, SWEEPS_BETWEEN, Sample, Samples};
pub use train::{Train, Trained};
