//! Evaluation: likelihood with error bounds, diagnostics of chains, quality of samples.
//!
//! [`log_z()`] estimates ln Z from both sides, with a verdict, and [`log_likelihood`] the likelihood of data.
//! [`mixing`] tests whether chains agree, [`equilibrium()`] whether Gibbs sampling of a machine forgets its start, and
//! [`verify()`] compares the moments of the sampler with enumeration.

mod chains;
mod conditional;
mod equilibrium;
mod flips;
mod gaps;
mod likelihood;
mod log_z;
mod pca;
mod pseudo;
mod quality;
mod verdict;
mod verify;

pub use chains::{
    Mixing, autocorrelation_time, ess_bulk, ess_mean, ess_tail, mixing, r_hat, split_r_hat,
};
pub use conditional::conditional_log_likelihood;
pub use equilibrium::{Equilibrium, equilibrium};
pub use flips::pseudo_log_likelihood_by_flips;
pub use gaps::{CHAINS, Completion, Filling, SWEEPS, class_probabilities, complete, features};
pub use likelihood::{
    FreeEnergies, Gain, LogLikelihood, evaluate, free_energies, free_energy_gap, log_likelihood,
};
pub use log_z::{Budget, Estimate, Ladder, LogZParams, log_z, log_z_cost};
pub use pca::Pca;
pub use pseudo::pseudo_log_likelihood;
pub use quality::{
    Adversarial, Duplicates, MomentMatch, SampleQuality, adversarial, compared_rows, duplicates,
    moments, sample_quality, visible,
};
pub use verify::{Check, VERIFY_CHAINS, VERIFY_SWEEPS, Verification, verify};
