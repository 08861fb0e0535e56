//! Transposition of a packed bit matrix, 64 × 64 bits at a time.

use super::{Rows, words};

/// Words that [`transpose`] writes for `x`.
pub fn transpose_words(x: Rows<'_>) -> usize {
    x.bits() * words(x.rows())
}

/// Writes the transpose of `x`: `x.bits()` rows of `x.rows()` bits.
///
/// # Panics
/// If `out` is not [`transpose_words`]`(x)` long.
pub fn transpose(x: Rows<'_>, out: &mut [u64]) {
    assert_eq!(out.len(), transpose_words(x), "bit transpose: wrong length");
    let out_stride = words(x.rows());
    if out_stride == 0 {
        return;
    }
    for (q, out) in out.chunks_mut(64 * out_stride).enumerate() {
        for r in 0..out_stride {
            let mut columns = [0; 64];
            tile(x, 64 * r, q, &mut columns);
            for (out, column) in out.iter_mut().skip(r).step_by(out_stride).zip(columns) {
                *out = column;
            }
        }
    }
}

/// The 64 columns of word `q` over the 64 rows from `first` on; absent rows count as zero.
pub(super) fn tile(x: Rows<'_>, first: usize, q: usize, out: &mut [u64; 64]) {
    out.fill(0);
    for (out, row) in out.iter_mut().zip(x.data()[first * x.stride()..].chunks(x.stride())) {
        *out = row[q];
    }
    transpose_64(out);
}

/// Transposes a 64 × 64 tile by swapping ever smaller off-diagonal squares (Hacker's Delight, 7-3).
fn transpose_64(tile: &mut [u64; 64]) {
    let (mut width, mut mask) = (32, 0x0000_0000_ffff_ffff_u64);
    while width != 0 {
        let mut k = 0;
        while k < 64 {
            let swap = ((tile[k] >> width) ^ tile[k + width]) & mask;
            tile[k + width] ^= swap;
            tile[k] ^= swap << width;
            k = (k + width + 1) & !width;
        }
        width >>= 1;
        mask ^= mask << width;
    }
}
