//! The sampler in detail: every decision, and χ² of 10^8 draws.

use harmonium_kernels::bench_support::check_every_decision;
use harmonium_kernels::{Key, Real, bits};
use std::time::Instant;

/// Prints the outcome of both checks.
pub fn run() {
    let t = Instant::now();
    let (wrong, open) = check_every_decision();
    println!(
        "draws all 2^16 logits × 2^16 random numbers: {wrong} wrong decisions, {:.2e} left to f64 ({:.1} s)",
        open as f64 / 2f64.powi(32),
        t.elapsed().as_secs_f64()
    );
    let (rows, n, sweeps) = (1 << 16, 64, 24);
    let logit = |j: usize| (j as f32 - 31.5) * 0.29;
    let logits: Vec<f32> = (0..rows * n).map(|i| logit(i % n)).collect();
    let mut out = vec![0; rows];
    let mut ones = vec![0u32; n];
    for sweep in 0..sweeps {
        f32::sample_bits(&logits, n, Key { seed: 99, purpose: 0, block: 0, sweep }, &mut out);
        bits::add_counts(bits::BitMatrix::new(&out, rows, n), &mut ones);
    }
    let draws = rows as f64 * sweeps as f64;
    let chi2: f64 = (0..n)
        .map(|j| {
            let p = 1.0 / (1.0 + (-f64::from(logit(j))).exp());
            (f64::from(ones[j]) - draws * p).powi(2) / (draws * p * (1.0 - p))
        })
        .sum();
    println!(
        "draws {:.1e} draws: χ² = {chi2:.1} for {n} degrees of freedom (99.9 % below {:.0})",
        draws * n as f64,
        // Wilson and Hilferty.
        n as f64 * (1.0 - 2.0 / (9.0 * n as f64) + 3.09 * (2.0 / (9.0 * n as f64)).sqrt()).powi(3)
    );
}
