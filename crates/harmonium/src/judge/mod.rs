//! Judging a machine: likelihood with honest errors, chains that mix or do not, samples that resemble the data.

mod chains;

pub use chains::{
    Mixing, autocorrelation_time, ess_bulk, ess_mean, ess_tail, mixing, r_hat, split_r_hat,
};
