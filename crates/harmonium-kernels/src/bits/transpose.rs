//! Transposition of a packed bit matrix, 64 × 64 bits at a time.

use super::{BitMatrix, words};
use crate::isa::{Isa, multiversion};

/// Words that [`transpose`] writes for `x`.
pub(crate) fn transpose_words(x: BitMatrix<'_>) -> usize {
    x.bits() * words(x.rows())
}

/// Writes the transpose of `x`: `x.bits()` rows of `x.rows()` bits.
///
/// # Panics
/// If `out` is not [`transpose_words`]`(x)` long.
pub(crate) fn transpose(x: BitMatrix<'_>, out: &mut [u64]) {
    assert_eq!(out.len(), transpose_words(x), "bit transpose: wrong length");
    let stride = words(x.rows());
    for_each_tile(Isa::detect(), x, |r, q, columns| {
        let out = out[64 * q * stride..].iter_mut().skip(r).step_by(stride);
        out.zip(columns).for_each(|(out, column)| *out = *column);
    });
}

/// Writes the transpose of `x` with the words of 64 rows side by side: word `r·bits + j` holds column j over the rows
/// from 64r on.
///
/// # Panics
/// If `out` is not [`transpose_words`]`(x)` long.
pub(crate) fn transpose_by_word(x: BitMatrix<'_>, out: &mut [u64]) {
    assert_eq!(out.len(), transpose_words(x), "bit transpose: wrong length");
    let n = x.bits();
    for_each_tile(Isa::detect(), x, |r, q, columns| {
        let width = 64.min(n - 64 * q);
        out[r * n + 64 * q..][..width].copy_from_slice(&columns[..width]);
    });
}

/// Calls `f(r, q, columns)` with the 64 columns of word q over the 64 rows from 64r on, for all r and q.
pub(super) fn for_each_tile(isa: Isa, x: BitMatrix<'_>, mut f: impl FnMut(usize, usize, &[u64; 64])) {
    let mut tile = [0; 64];
    for r in 0..words(x.rows()) {
        for q in 0..x.stride() {
            tile.fill(0);
            let rows = x.data()[64 * r * x.stride()..].chunks(x.stride());
            tile.iter_mut().zip(rows).for_each(|(out, row)| *out = row[q]);
            transpose_64(isa, &mut tile);
            f(r, q, &tile);
        }
    }
}

multiversion! {
    /// Transposes a 64 × 64 tile by swapping ever smaller off-diagonal squares (Hacker's Delight, 7-3).
    fn transpose_64(isa: Isa, tile: &mut [u64; 64]) {
        swap::<32>(tile, 0x0000_0000_ffff_ffff);
        swap::<16>(tile, 0x0000_ffff_0000_ffff);
        swap::<8>(tile, 0x00ff_00ff_00ff_00ff);
        swap::<4>(tile, 0x0f0f_0f0f_0f0f_0f0f);
        swap::<2>(tile, 0x3333_3333_3333_3333);
        swap::<1>(tile, 0x5555_5555_5555_5555);
    }
}

/// Swaps the off-diagonal squares of `WIDTH` rows.
#[inline(always)]
fn swap<const WIDTH: usize>(tile: &mut [u64; 64], mask: u64) {
    for pair in tile.chunks_exact_mut(2 * WIDTH) {
        let (upper, lower) = pair.split_at_mut(WIDTH);
        for (upper, lower) in upper.iter_mut().zip(lower) {
            let swap = ((*upper >> WIDTH) ^ *lower) & mask;
            *lower ^= swap;
            *upper ^= swap << WIDTH;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{bits, stream::mix};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_bit_changes_places(seed: u64, rows in 0usize..200, n in 0usize..200) {
            let stride = words(n);
            let mut x: Vec<u64> = (0..rows * stride).map(|i| mix(seed ^ mix(i as u64))).collect();
            x.chunks_exact_mut(stride.max(1)).for_each(|row| row[stride - 1] &= bits::last_mask(n));
            let x = BitMatrix::new(&x, rows, n);
            let (mut by_unit, mut by_word) = (vec![0; transpose_words(x)], vec![0; transpose_words(x)]);
            transpose(x, &mut by_unit);
            transpose_by_word(x, &mut by_word);
            let by_unit = BitMatrix::new(&by_unit, n, rows);
            for r in 0..rows {
                for j in 0..n {
                    let bit = bits::get(x.row(r), j);
                    prop_assert_eq!(bit, bits::get(by_unit.row(j), r));
                    prop_assert_eq!(bit, by_word[r / 64 * n + j] >> (r % 64) & 1 == 1);
                }
            }
        }
    }
}
