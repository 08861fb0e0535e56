//! Block-Gibbs sampling: sweeps over the layers, with any unit of any row clamped.

mod chains;
mod clamps;
mod gibbs;
pub mod purpose;

pub use chains::Chains;
pub use clamps::{Clamp, Clamps};
pub use gibbs::{Order, sweep};
