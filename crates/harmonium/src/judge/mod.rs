//! Judging a machine: likelihood with honest errors, chains that mix or do not, samples that resemble the data.

mod chains;
mod log_z;
mod verdict;

pub use chains::{
    Mixing, autocorrelation_time, ess_bulk, ess_mean, ess_tail, mixing, r_hat, split_r_hat,
};
pub use log_z::{Budget, Estimate, Ladder, LogZParams, log_z, log_z_cost};
