//! The limits of this computer that bound the kernels.

use crate::measure::{Clock, median, on_threads};
use harmonium_kernels::bench_support::{CacheLine, dependent_chain, load_and_add, store};
use harmonium_kernels::{Isa, Real};
use std::hint::black_box;

/// Measured limits of one core.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Clock in Hz.
    pub clock: f64,
    /// Bytes per second loaded (and added) from 16 KB.
    pub l1_load: f64,
    /// The same from 256 KB.
    pub l2_load: f64,
    /// Bytes per second stored to 16 KB.
    pub l1_store: f64,
    /// Operations per second of SGEMM at its best.
    pub sgemm: f64,
}

fn seconds(mut f: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..31)
        .map(|_| {
            let t = Clock::start();
            f();
            t.seconds()
        })
        .collect();
    median(&mut times)
}

/// Measures and prints the limits of one core.
pub fn measure() -> Limits {
    on_threads(1, measure_here)
}

fn measure_here() -> Limits {
    let chain = 500_000;
    let clock = 4.0 * chain as f64
        / seconds(|| {
            black_box(dependent_chain(black_box(chain)));
        });
    let mut lines = vec![CacheLine([1; 32]); 256 * 16];
    let load = |lines: &[CacheLine], repeats: usize| {
        let t = seconds(|| {
            black_box(load_and_add(black_box(lines), repeats));
        });
        (lines.len() * 64 * repeats) as f64 / t
    };
    let (l1_load, l2_load) = (load(&lines[..256], 1000), load(&lines, 60));
    let t = seconds(|| store(black_box(&mut lines[..256]), 1000));
    let l1_store = 256.0 * 64.0 * 1000.0 / t;
    let (m, n, k) = (512, 768, 768);
    let (a, b, mut c) = (vec![0.5f32; m * k], vec![0.25f32; k * n], vec![0f32; m * n]);
    let t = seconds(|| f32::gemm((m, n, k), 1.0, (&a, k, 1), (&b, n, 1), 0.0, (&mut c, n, 1)));
    let sgemm = 2.0 * (m * n * k) as f64 / t;
    let limits = Limits { clock, l1_load, l2_load, l1_store, sgemm };
    println!("machine instruction set {}", Isa::detect().name());
    println!("machine clock {:.2} GHz", clock * 1e-9);
    for (name, x) in [("L1 load+add", l1_load), ("L2 load+add", l2_load), ("L1 store", l1_store)] {
        println!("machine {name} {:.0} GB/s = {:.1} B/cycle", x * 1e-9, x / clock);
    }
    println!(
        "machine SGEMM {:.1} GFLOP/s = {:.1} flop/cycle (one core, {m}×{k}×{n})",
        sgemm * 1e-9,
        sgemm / clock
    );
    limits
}
