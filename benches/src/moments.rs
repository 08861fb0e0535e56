//! ⟨v hᵀ⟩ of bits and means (rounded means as the sampler makes them) against SGEMM, and the cost of rounding new weights.

use crate::data::{Source, dense};
use crate::measure::{Alternative, Times, on_threads, times};
use harmonium_kernels::bits::{BitMatrix, Values};
use harmonium_kernels::fixed::{Coupling, Means, Product, Range, Side, Write, bits_means};
use harmonium_kernels::{Real, moments};
use std::time::Duration;

/// Prints times for the sizes of the half-sweeps, one thread.
pub fn run(budget: Duration) {
    for (k, n, rows) in
        [(784, 500, 500), (784, 500, 100), (4096, 1024, 512), (805, 100, 2000), (64, 64, 2000)]
    {
        // Few bits go by lists, many by tables.
        for p in [0.15, 0.5] {
            on_threads(1, || size(budget, k, n, rows, p));
        }
    }
}

fn size(budget: Duration, k: usize, n: usize, rows: usize, p: f32) {
    let mut s = Source::new(3);
    let (packed, hidden) = (s.bits(rows, k, p), s.bits(rows, n, 0.3));
    let (v, h) = (BitMatrix::new(&packed, rows, k), BitMatrix::new(&hidden, rows, n));
    let a = dense(v);
    let means: Vec<f32> = (0..rows * n).map(|_| s.unit().powi(3)).collect();
    let rounded = Means::new(&means, rows, n, Range::Binary);
    let w = s.weights(k * n, 0.1);
    let mut outs = vec![vec![0f32; k * n]; 4];
    let [o0, o1, o2, o3] = &mut outs[..] else { unreachable!() };
    let mut coupling = Coupling::new(Side::Binary(k), Side::Binary(n));
    let all = times(
        &mut [
            Alternative::new("gemm", || {
                f32::gemm((k, n, rows), 1e-3, (&a, 1, k), (&means, n, 1), 1.0, (o0, n, 1));
            }),
            Alternative::new("16-bit", || {
                let product = Product { v, values: Values::Binary, means: &rounded, scale: 1e-3 };
                bits_means(product, Write::Add, o1);
            }),
            Alternative::new("f32", || moments::add_bits_outer(v, Values::Binary, &means, n, 1e-3, o2)),
            Alternative::new("bits × bits", || {
                moments::add_bits_bits_outer((v, Values::Binary), (h, Values::Binary), 1e-3, o3);
            }),
            Alternative::new("refresh", || coupling.refresh(&w)),
        ],
        budget,
    );
    let line = |name: &str, pick: fn(&Times) -> f64| {
        let t: Vec<f64> = all.iter().map(pick).collect();
        println!(
            "moments {k}×{n}, {rows} rows of density {p}, {name}: gemm {:.3} ms, 16-bit {:.3} ms ({:.1} ×), f32 {:.3} ms ({:.1} ×), bits × bits {:.3} ms ({:.1} ×); new weights {:.3} ms",
            t[0] * 1e3,
            t[1] * 1e3,
            t[0] / t[1],
            t[2] * 1e3,
            t[0] / t[2],
            t[3] * 1e3,
            t[0] / t[3],
            t[4] * 1e3,
        );
    };
    line("medians", |t| t.median);
    line("fastest", |t| t.fastest);
}
