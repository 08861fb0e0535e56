//! Sums of levels over the rows of a batch by tables that live in registers (AVX-512 with VBMI and VNNI).
//!
//! Sixteen rows are four groups of four, each with a table of its 2⁴ sums; as a level has six bits, the four tables are
//! the 64 bytes of one register. A byte shuffle looks all four up for sixteen units of v at once, and a dot product with
//! ones adds the four bytes of a unit to its 32-bit sum: 256 products in two instructions, where a look-up in
//! memory does 160 and is bound by the loads.

#![cfg(all(target_arch = "x86_64", not(miri)))]

use super::finish::{Affine, Write};
use super::transpose::transpose_16x16;
use crate::scratch::first;
use crate::x32::{F32x32, Levels};
use std::arch::x86_64::*;
use std::ops::Range;

/// Rows of a table, units of a tile.
const SIDE: usize = 16;
/// Most tiles whose sums stay in registers, for two columns.
const TILES: usize = 10;
/// Most units whose sums are computed at once.
pub(crate) const UNITS: usize = SIDE * TILES;
/// Tables of a column that are used in one go: the indices of `TILES` tiles then fill 20 KB of the first-level cache.
const TABLES: usize = 32;

/// For sixteen units, the entries of sixteen rows: byte 4u + g is entry 16g + (rows 4g…4g+3 of unit u).
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Index([u32; SIDE]);

impl Default for Index {
    fn default() -> Self {
        Self([0; SIDE])
    }
}

/// Four tables of four rows.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table([u8; 64]);

impl Default for Table {
    fn default() -> Self {
        Self([0; 64])
    }
}

/// The indices of k units over `rows` rows from their words (`words[r·k + i]`): tile by tile of units, as many for each as
/// there are tables.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn index(words: &[u64], rows: usize, k: usize, out: &mut Vec<Index>) {
    out.clear();
    out.reserve(k.div_ceil(SIDE) * rows.div_ceil(SIDE));
    for first in (0..k).step_by(SIDE) {
        for (r, words) in words.chunks_exact(k).enumerate() {
            let mut tile = [0; SIDE];
            let units = &words[first..k.min(first + SIDE)];
            tile.iter_mut().zip(units).for_each(|(x, unit)| *x = *unit);
            for g in 0..4.min(rows.div_ceil(SIDE) - 4 * r) {
                let mut index = Index::default();
                for (x, unit) in index.0.iter_mut().zip(tile) {
                    let bits = (unit >> (16 * g)) as u32 & 0xffff;
                    let bytes = (bits | bits << 8) & 0x00ff_00ff;
                    let nibbles = (bytes | bytes << 4) & 0x0f0f_0f0f;
                    *x = nibbles | 0x3020_1000;
                }
                out.push(index);
            }
        }
    }
}

/// The tables of the 32 columns: for each 512 rows, `out[32·c + t]` is for rows 16t…16t+15 of column c, those that are absent
/// counting as zero.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn tables(levels: &[Levels], out: &mut Vec<Table>) {
    let chunks = levels.len().div_ceil(SIDE * TABLES);
    let out = first(out, chunks * 32 * TABLES);
    for (levels, out) in levels.chunks(SIDE * TABLES).zip(out.chunks_exact_mut(32 * TABLES)) {
        chunk_tables(levels, out);
    }
}

/// Entry e of group g takes level 4g + b where bit b of e is set; an index of 0x80 gives zero.
static PICK: [[u8; 64]; 4] = {
    let mut pick = [[0x80; 64]; 4];
    let mut k = 0;
    while k < 256 {
        let (b, i) = (k / 64, k % 64);
        if i >> b & 1 == 1 {
            pick[b][i] = (4 * (i / 16) + b) as u8;
        }
        k += 1;
    }
    pick
};

#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn chunk_tables(levels: &[Levels], out: &mut [Table]) {
    // SAFETY: loads of 64 bytes each.
    let pick: [__m512i; 4] =
        std::array::from_fn(|b| unsafe { _mm512_loadu_si512(PICK[b].as_ptr().cast()) });
    for (t, rows) in levels.chunks(SIDE).enumerate() {
        let mut padded = [Levels::default(); SIDE];
        let square = rows.try_into().unwrap_or_else(|_| {
            padded[..rows.len()].copy_from_slice(rows);
            &padded
        });
        for (half, columns) in transpose_16x32(square).iter().enumerate() {
            for (c, &levels) in columns.iter().enumerate() {
                let all = _mm512_broadcast_i32x4(levels);
                let [a, b, c_, d] = pick.map(|pick| _mm512_shuffle_epi8(all, pick));
                let sums = _mm512_add_epi8(_mm512_add_epi8(a, b), _mm512_add_epi8(c_, d));
                let out = &mut out[(SIDE * half + c) * TABLES + t];
                // SAFETY: a table has 64 bytes, aligned to 64.
                unsafe { _mm512_store_si512(out.0.as_mut_ptr().cast(), sums) };
            }
        }
    }
}

/// The transpose of sixteen rows of 32 columns: the sixteen levels of each column, in two halves of sixteen columns.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl")]
fn transpose_16x32(square: &[Levels; SIDE]) -> [[__m128i; SIDE]; 2] {
    let half = |h: usize| {
        // SAFETY: sixteen of the 32 bytes of a row, h < 2.
        let mut x: [__m128i; SIDE] =
            std::array::from_fn(|r| unsafe { _mm_loadu_si128(square[r].0.as_ptr().add(16 * h).cast()) });
        // Four rounds of the perfect shuffle of rows r and r + 8 transpose 16 × 16 bytes.
        for _ in 0..4 {
            let y = x;
            for r in 0..8 {
                x[2 * r] = _mm_unpacklo_epi8(y[r], y[r + 8]);
                x[2 * r + 1] = _mm_unpackhi_epi8(y[r], y[r + 8]);
            }
        }
        x
    };
    [half(0), half(1)]
}

/// sums\[c·u + i\] ← \[sums\[c·u + i\]\] ± Σ_r v_ri·level_rc for 32 columns and some units i, counted from the first of them: v by
/// the index of its bits with the number of its rows, the levels by their [`tables`] with whether to subtract and whether to
/// start from zero; u is the number of units, rounded up to whole tiles. Calls `prefetch_hook(step, steps)` between steps.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")]
pub(super) fn add_levels(
    (table, negative, fresh): (&[Table], bool, bool),
    (index, rows): (&[Index], usize),
    units: Range<usize>,
    sums: &mut Vec<i32>,
    mut prefetch_hook: impl FnMut(usize, usize),
) {
    assert!(units.start.is_multiple_of(SIDE) && units.len() <= UNITS);
    let (all, tiles) = (rows.div_ceil(SIDE), units.len().div_ceil(SIDE));
    let index = &index[units.start / SIDE * all..];
    let units = SIDE * tiles;
    let sums = first(sums, 32 * units);
    if rows == 0 && fresh {
        sums.fill(0);
    }
    let sign = if negative { -1 } else { 1 };
    let chunks = all.div_ceil(TABLES);
    for chunk in 0..chunks {
        let here = TABLES.min(all - chunk * TABLES);
        let table = &table[chunk * 32 * TABLES..][..32 * TABLES];
        for c in (0..32).step_by(2) {
            let tables = [&table[c * TABLES..][..here], &table[(c + 1) * TABLES..][..here]];
            let (left, right) = sums[c * units..(c + 2) * units].split_at_mut(units);
            let index = &index[chunk * TABLES..];
            prefetch_hook(16 * chunk + c / 2, 16 * chunks);
            macro_rules! pair_of {
                ($($n:literal)*) => {
                    match tiles {
                        0 => {}
                        $($n => pair::<$n>(tables, index, all, (sign, fresh && chunk == 0), [left, right]),)*
                        _ => unreachable!("at most {TILES} tiles"),
                    }
                };
            }
            pair_of!(1 2 3 4 5 6 7 8 9 10);
        }
    }
}

/// N tiles of units and two columns.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")]
fn pair<const N: usize>(
    tables: [&[Table]; 2],
    index: &[Index],
    stride: usize,
    (sign, fresh): (i8, bool),
    sums: [&mut [i32]; 2],
) {
    let groups = tables[0].len();
    assert!(tables[1].len() == groups && index.len() >= (N - 1) * stride + groups);
    assert!(sums.iter().all(|s| s.len() == N * SIDE));
    let signs = _mm512_set1_epi8(sign);
    let mut acc = [[_mm512_setzero_si512(); N]; 2];
    if !fresh {
        for (acc, sums) in acc.iter_mut().zip(&sums) {
            for (t, acc) in acc.iter_mut().enumerate() {
                // SAFETY: sixteen of the N·16 sums.
                *acc = unsafe { _mm512_loadu_si512(sums.as_ptr().add(SIDE * t).cast()) };
            }
        }
    }
    for g in 0..groups {
        // SAFETY: g < groups, the length of both; a table has 64 aligned bytes.
        let table = |c: usize| unsafe { _mm512_load_si512(tables[c].as_ptr().add(g).cast()) };
        let (a, b) = (table(0), table(1));
        let [left, right] = &mut acc;
        for (t, (left, right)) in left.iter_mut().zip(right).enumerate() {
            // SAFETY: t·stride + g ≤ (N−1)·stride + groups − 1, within the indices by the assertion above.
            let i = unsafe { _mm512_load_si512(index.as_ptr().add(t * stride + g).cast()) };
            *left = _mm512_dpbusd_epi32(*left, _mm512_permutexvar_epi8(i, a), signs);
            *right = _mm512_dpbusd_epi32(*right, _mm512_permutexvar_epi8(i, b), signs);
        }
    }
    for (acc, sums) in acc.iter().zip(sums) {
        for (t, &acc) in acc.iter().enumerate() {
            // SAFETY: sixteen of the N·16 sums.
            unsafe { _mm512_storeu_si512(sums.as_mut_ptr().add(SIDE * t).cast(), acc) };
        }
    }
}

/// Transposes the sums of `add_levels`, which are by columns, and converts them to reals with the operations of
/// `super::finish::finish`.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn finish(sums: &[i32], ones: &[i32], affine: &Affine, write: Write, strip: &mut [F32x32]) {
    let stride = ones.len().next_multiple_of(SIDE);
    assert!(sums.len() >= 32 * stride && strip.len() == ones.len());
    let scale = _mm512_set1_ps(affine.scale);
    for (tile, (ones, strip)) in ones.chunks(SIDE).zip(strip.chunks_mut(SIDE)).enumerate() {
        for half in 0..2 {
            // SAFETY: sixteen sums of column 16·half + r < 32, from a multiple of sixteen below `stride` on.
            let square: [__m512i; SIDE] = std::array::from_fn(|r| unsafe {
                _mm512_loadu_si512(sums.as_ptr().add((SIDE * half + r) * stride + SIDE * tile).cast())
            });
            // SAFETY: sixteen of 32 columns.
            let offset = unsafe { _mm512_loadu_ps(affine.offset.as_ptr().add(SIDE * half)) };
            for ((row, &ones), column) in strip.iter_mut().zip(ones).zip(transpose_16x16(square)) {
                let constant = _mm512_set1_ps(affine.shift * ones as f32);
                let x = _mm512_mul_ps(scale, _mm512_cvtepi32_ps(column));
                let x = _mm512_add_ps(x, _mm512_add_ps(constant, offset));
                // SAFETY: as above.
                unsafe {
                    let to = row.0.as_mut_ptr().add(SIDE * half);
                    let x = match write {
                        Write::Set => x,
                        Write::Add => _mm512_add_ps(_mm512_loadu_ps(to), x),
                    };
                    _mm512_storeu_ps(to, x);
                }
            }
        }
    }
}
