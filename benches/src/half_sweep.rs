//! A half-sweep (inputs, sigmoid, sample) of a binary machine against SGEMM with vectorised sampling.

use crate::data::{Source, dense};
use crate::machine::Limits;
use crate::measure::{Alternative, on_threads, ratio, times};
use harmonium_kernels::bench_support::dense_bernoulli;
use harmonium_kernels::fixed::{Coupling, Field, Input, Side, States};
use harmonium_kernels::{Key, Real, bits};
use rayon::prelude::*;
use std::time::Duration;

/// (inputs, outputs, rows, goal).
const SIZES: [(usize, usize, usize, f64); 5] = [
    (784, 500, 500, 5.0),
    (4096, 1024, 512, 6.0),
    (784, 500, 100, 4.0),
    (805, 100, 2000, 4.5),
    (64, 64, 2000, 3.0),
];

/// The baseline: one dense product, then bias, sigmoid and sampling in one vectorised pass.
pub fn gemm_half_sweep(a: &[f32], w: &[f32], bias: &[f32], rows: usize, sweep: u64, out: &mut [f32]) {
    let (n, k) = (bias.len(), a.len() / rows);
    f32::gemm((rows, n, k), 1.0, (a, k, 1), (w, n, 1), 0.0, (out, n, 1));
    let part = rows.div_ceil(rayon::current_num_threads());
    out.par_chunks_mut(part * n).enumerate().for_each(|(i, x)| {
        dense_bernoulli(x, bias, Key { seed: 1, purpose: 0, block: i as u32, sweep });
    });
}

/// Runs all sizes with one and two threads.
pub fn run(limits: Limits, budget: Duration) {
    for threads in [1, 2] {
        for (k, n, rows, goal) in SIZES {
            on_threads(threads, || size(limits, budget, threads, (k, n, rows), goal));
        }
    }
}

fn size(
    limits: Limits,
    budget: Duration,
    threads: usize,
    (k, n, rows): (usize, usize, usize),
    goal: f64,
) {
    let mut s = Source::new(7);
    let w = s.weights(k * n, 0.1);
    let bias: Vec<f32> = (0..n).map(|j| -(j as f32 * 0.37).sin().abs()).collect();
    let packed = s.bits(rows, k, 0.3);
    let x = bits::BitMatrix::new(&packed, rows, k);
    let a = dense(x);
    let mut coupling = Coupling::new(Side::Binary(k), Side::Binary(n));
    coupling.refresh(&w);
    assert!(coupling.is_trusted(), "bound {}", coupling.error_bound());
    let inputs = [Input { direction: coupling.forward(), states: States::Bits(x) }];
    let field = Field::new(Side::Binary(n), rows, &bias, 1.0, &inputs);
    let (mut dense_out, mut fields) = (vec![0f32; rows * n], vec![0f32; rows * n]);
    let (mut fixed_out, mut f32_out) = (vec![0; rows * bits::words(n)], vec![0; rows * bits::words(n)]);
    let (mut i, mut j, mut l) = (0, 0, 0);
    let key = |sweep| Key { seed: 1, purpose: 2, block: 0, sweep };
    let all = times(
        &mut [
            Alternative::new("gemm + vectorised sampling", || {
                gemm_half_sweep(&a, &w, &bias, rows, i, &mut dense_out);
                i += 1;
            }),
            Alternative::new("16-bit tables", || {
                field.sample(key(j), &mut fixed_out);
                j += 1;
            }),
            Alternative::new("f32 tables", || {
                for row in fields.chunks_exact_mut(n) {
                    row.copy_from_slice(&bias);
                }
                f32::add_bits(x, &w, n, 1.0, &mut fields);
                f32::sample_bits(&fields, n, key(l), &mut f32_out);
                l += 1;
            }),
        ],
        budget,
    );
    let times: Vec<f64> = all.iter().map(|t| t.median).collect();
    let gigaflops = |t: f64| 2.0 * (k * n * rows) as f64 / t * 1e-9;
    // One 64-byte load per five inputs, 32 columns and row.
    let loads = (k.div_ceil(64) * 13 * n.div_ceil(32) * rows * 64) as f64 / threads as f64;
    let share = |t: f64| 100.0 * loads / limits.l1_load / t;
    println!(
        "half-sweep {k}→{n}, {rows} rows, {threads} threads: gemm {:.3} ms ({:.0} GF), 16-bit {:.3} ms ({:.0} GF-eq, {:.0} % of the L1 loads), f32 tables {:.3} ms ({:.2} ×); step 2^-{}, bound {:.3} nat",
        times[0] * 1e3,
        gigaflops(times[0]),
        times[1] * 1e3,
        gigaflops(times[1]),
        share(times[1]),
        times[2] * 1e3,
        times[0] / times[2],
        coupling.step_exponent(),
        coupling.error_bound(),
    );
    println!(
        "  fastest runs: gemm {:.3} ms, 16-bit {:.3} ms ({:.2} ×, {:.0} % of the L1 loads), f32 tables {:.3} ms ({:.2} ×)",
        all[0].fastest * 1e3,
        all[1].fastest * 1e3,
        all[0].fastest / all[1].fastest,
        share(all[1].fastest),
        all[2].fastest * 1e3,
        all[0].fastest / all[2].fastest,
    );
    ratio(&format!("half-sweep-{k}x{n}x{rows}-t{threads}"), times[0] / times[1], goal);
}
