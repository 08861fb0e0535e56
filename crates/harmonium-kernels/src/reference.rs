//! The slow twins: each kernel as its formula reads, one element at a time.

use crate::{Real, bits};

/// `out ← out + scale · x·W` for one packed row `x` of {0,1}: the sum of the rows of `w` (row length `n`)
/// whose bit is set.
pub fn add_rows_of_bits<T: Real>(x: &[u64], w: &[T], n: usize, scale: T, out: &mut [T]) {
    for i in bits::ones(x) {
        for (o, &w) in out.iter_mut().zip(&w[i * n..(i + 1) * n]) {
            *o += scale * w;
        }
    }
}
