//! Block-Gibbs sampling with clamps, and exchanges between ensembles.

mod bennett;
mod chains;
mod clamps;
mod coupled;
mod density;
mod exchange;
mod gaussian;
mod gibbs;
pub mod purpose;
mod replicas;
mod sampler;
mod start_dependence;
mod stop;
mod tempering;
mod trajectory;
pub(crate) mod weights;

pub use bennett::{LogRatio, bennett};
pub use chains::Chains;
pub use clamps::{Clamp, Clamps};
pub use coupled::coupled_sweep;
pub use density::{hidden_traced, log_density};
pub use exchange::{Exchange, acceptance, exchange, log_ratio};
pub(crate) use gibbs::layer_key;
pub use gibbs::{Order, sweep};
pub use replicas::Replicas;
pub use sampler::{Sampler, SamplingMethod, TEMPERATURES};
pub use start_dependence::StartDependence;
pub use stop::Stop;
pub use tempering::Tempering;
pub use trajectory::{Equilibration, Trajectory};
pub(crate) use trajectory::{between, log_z_uncoupled, mean_acceptance, uncoupled};
