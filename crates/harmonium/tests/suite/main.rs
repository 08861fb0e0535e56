//! The tests of the library in one program: it is compiled once. Tests that count allocations are separate programs.

mod common;

mod architecture;
mod coupled_reals;
mod custom_components;
mod estimators;
mod evaluate;
mod exact;
mod gaps;
mod gauges;
mod identities;
mod low_rank;
mod model_file;
mod moments;
mod oracle;
mod partition;
mod resume;
mod sampler;
mod soft;
mod stationary;
mod tasks;
mod tempering;
mod train_counts;
mod train_deep;
mod train_exact;
mod train_forms;
mod train_safety;
mod tune;
