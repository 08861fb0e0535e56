//! Kernels against SGEMM: prints the machine's limits, then one line per ratio.

use harmonium_benches::{draws, half_sweep, machine, moments, pcd, potts};
use std::time::Duration;

fn main() {
    let budget = Duration::from_millis(1500);
    let limits = machine::measure();
    half_sweep::run(limits, budget);
    pcd::run(2 * budget);
    potts::run(budget);
    moments::run(budget);
    draws::run();
}
