//! Measurements: alternatives run in turn, round after round, and medians are compared; students against their teachers.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout)]

pub mod data;
pub mod draws;
pub mod half_sweep;
pub mod machine;
pub mod measure;
pub mod moments;
pub mod pcd;
pub mod potts;
pub mod regret;
