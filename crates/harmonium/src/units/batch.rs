//! Fixed blocks of rows in parallel: the unit of work and of randomness.

use super::BLOCK;
use rayon::prelude::*;

/// Calls `f(block, first_row, rows)` for consecutive blocks of [`BLOCK`] rows of `data`, in parallel.
pub(crate) fn row_blocks<A: Send>(
    data: &mut [A],
    per_row: usize,
    f: impl Fn(usize, usize, &mut [A]) + Sync + Send,
) {
    if per_row > 0 {
        data.par_chunks_mut(BLOCK * per_row).enumerate().for_each(|(b, rows)| f(b, b * BLOCK, rows));
    }
}

/// Sums `f(rows of a block, partial sum)` over the blocks of `rows` rows: computed in parallel, added in
/// order, so that the result does not depend on the number of threads.
pub(crate) fn block_sum(
    rows: usize,
    len: usize,
    f: impl Fn(std::ops::Range<usize>, &mut [f64]) + Sync + Send,
) -> Vec<f64> {
    let parts: Vec<Vec<f64>> = (0..rows.div_ceil(BLOCK))
        .into_par_iter()
        .map(|b| {
            let mut part = vec![0.0; len];
            f(b * BLOCK..rows.min((b + 1) * BLOCK), &mut part);
            part
        })
        .collect();
    let mut total = vec![0.0; len];
    for part in parts {
        total.iter_mut().zip(part).for_each(|(t, p)| *t += p);
    }
    total
}
