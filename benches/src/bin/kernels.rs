//! Kernels against SGEMM: prints the machine's limits, then one line per ratio.

use harmonium_benches::{draws, half_sweep, machine, moments, pcd, potts};
use std::time::Duration;

fn main() {
    let budget = Duration::from_millis(1500);
    // An argument limits the run to one part: `kernels pcd`.
    let only = std::env::args().nth(1);
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    if wanted("half-sweep") {
        half_sweep::run(machine::measure(), budget);
    }
    if wanted("pcd") {
        pcd::run(2 * budget);
    }
    if wanted("potts") {
        potts::run(budget);
    }
    if wanted("moments") {
        moments::run(budget);
    }
    if wanted("draws") {
        draws::run();
    }
}
