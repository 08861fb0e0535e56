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

/// `out ← out + scale · x·W` for one packed row read as spins: row `i` of `w` with sign + or − by bit `i`.
pub fn add_rows_of_spins<T: Real>(x: &[u64], w: &[T], n: usize, scale: T, out: &mut [T]) {
    if n == 0 {
        return;
    }
    for (i, w) in w.chunks_exact(n).enumerate() {
        let sign = if bits::get(x, i) { scale } else { -scale };
        for (o, &w) in out.iter_mut().zip(w) {
            *o += sign * w;
        }
    }
}

/// `out ← out + scale · x·W` for one row of codes: row `i·q + code_i` of `w` for every site `i`.
pub fn add_rows_of_codes<T: Real>(codes: &[u32], q: usize, w: &[T], n: usize, scale: T, out: &mut [T]) {
    for (i, &code) in codes.iter().enumerate() {
        let row = i * q + code as usize;
        for (o, &w) in out.iter_mut().zip(&w[row * n..(row + 1) * n]) {
            *o += scale * w;
        }
    }
}
