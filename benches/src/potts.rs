//! A half-sweep from a Potts layer (53 sites, q = 21) to 200 hidden units against SGEMM on one-hot rows.

use crate::data::Source;
use crate::half_sweep::gemm_half_sweep;
use crate::measure::{Alternative, on_threads, ratio, times};
use harmonium_kernels::fixed::{Coupling, Field, Input, Side, States};
use harmonium_kernels::{Codes, Key, bits};
use std::time::Duration;

/// Runs with one and two threads.
pub fn run(budget: Duration) {
    for threads in [1, 2] {
        on_threads(threads, || half_sweep(budget, threads));
    }
}

fn half_sweep(budget: Duration, threads: usize) {
    let (sites, q, n, rows) = (53, 21, 200, 2000);
    let mut s = Source::new(11);
    let w = s.weights(sites * q * n, 0.3);
    let bias = s.weights(n, 0.5);
    let codes = s.codes(rows * sites, q as u32);
    let mut one_hot = vec![0f32; rows * sites * q];
    for (i, &code) in codes.iter().enumerate() {
        one_hot[i * q + code as usize] = 1.0;
    }
    let potts = Side::Potts { sites, q };
    let mut coupling = Coupling::new(potts, Side::Binary(n));
    coupling.refresh(&w);
    assert!(coupling.is_trusted(), "bound {}", coupling.error_bound());
    let (mut dense_out, mut out) = (vec![0f32; rows * n], vec![0; rows * bits::words(n)]);
    let (mut i, mut j) = (0, 0);
    let all = times(
        &mut [
            Alternative::new("one-hot gemm", || {
                gemm_half_sweep(&one_hot, &w, &bias, rows, i, &mut dense_out);
                i += 1;
            }),
            Alternative::new("16-bit rows", || {
                let states = States::Codes(Codes::new(&codes, sites, q));
                let inputs = [Input { direction: coupling.forward(), states }];
                let field = Field::new(Side::Binary(n), rows, &bias, 1.0, &inputs);
                field.sample(Key { seed: 1, purpose: 2, block: 0, sweep: j }, &mut out);
                j += 1;
            }),
        ],
        budget,
    );
    println!(
        "potts {sites}×{q}→{n}, {rows} rows, {threads} threads: one-hot gemm {:.3} ms, 16-bit {:.3} ms (fastest runs {:.3} and {:.3} ms)",
        all[0].median * 1e3,
        all[1].median * 1e3,
        all[0].fastest * 1e3,
        all[1].fastest * 1e3,
    );
    ratio(&format!("potts-53x21-200x2000-t{threads}"), all[0].median / all[1].median, 5.0);
}
