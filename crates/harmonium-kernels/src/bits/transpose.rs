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
    let (stride, out_stride) = (x.stride(), words(x.rows()));
    if out_stride == 0 {
        return;
    }
    for (q, out) in out.chunks_mut(64 * out_stride).enumerate() {
        for r in 0..out_stride {
            let mut tile = [0; 64];
            for (tile, row) in tile.iter_mut().zip(x.data()[64 * r * stride..].chunks(stride)) {
                *tile = row[q];
            }
            transpose_64(&mut tile);
            for (out, tile) in out.iter_mut().skip(r).step_by(out_stride).zip(tile) {
                *out = tile;
            }
        }
    }
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
