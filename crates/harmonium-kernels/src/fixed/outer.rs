//! Moments Σ_rows v·mᵀ of bits and rounded conditional means, strip by strip of 32 columns.
//!
//! The kernel of the fields with roles swapped: the rows of the batch are the inputs, the units of v the
//! batch. The shift of the means comes back as a multiple of the number of ones of a unit.

use super::finish::{Affine, Write, finish};
use super::means::{Means, WORDS_PER_FLUSH};
#[cfg(all(target_arch = "x86_64", not(miri)))]
use super::register_tables;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use super::row_dots;
use super::row_lists;
use super::table::{ENTRIES, Mode, add_by_tables};
use crate::bernoulli::LEVELS;
use crate::bits::{self, BitMatrix, Values};
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::isa::Level;
use crate::isa::{Isa, multiversion};
use crate::scratch::{self, Kept, first};
use crate::strip::{Columns, for_each_part, split_columns};
use crate::x32::{F32x32, I16x32, I32x32, Levels, WIDTH};
use std::ops::Range;

/// scale · VᵀM with V (rows × k) of bits read as `values`, M (rows × n) of conditional means.
///
/// The means being rounded without bias, the error of a sum over B rows is below √B/2 of their steps in root mean
/// square. For the exact sum use [`crate::moments::add_bits_outer`].
#[derive(Clone, Copy, Debug)]
pub struct Product<'a> {
    /// V.
    pub v: BitMatrix<'a>,
    /// What its bits stand for.
    pub values: Values,
    /// M.
    pub means: &'a Means,
    /// The factor.
    pub scale: f32,
}

/// Elements of a product up to which nothing is prefetched: those of half a second-level cache.
const SMALL: usize = 1 << 16;

thread_local! {
    static FACTORS: Kept<Factors> = Kept::default();
    /// The integer sums of a piece of a strip, and the piece as reals.
    static PIECE: Kept<(PieceSums, Vec<F32x32>)> = Kept::default();
}

/// Computes the sum of the products in strips of 32 columns, on the threads of the current pool, and hands each strip to
/// `f` in pieces: `f(j, i, rows, state)` gets rows i… of columns j…j+31, where `state` is the element of `states` that
/// belongs to the strip. Pieces come in order and have a multiple of 32 rows, except for the last. Columns from n on
/// hold no meaningful values.
///
/// While a piece is being multiplied, `prefetch_hook(state, i)` is called for each of its rows i, to prefetch the memory
/// that `f` will need: the rows of a strip lie too far apart for the hardware prefetcher, and the multiplication itself
/// leaves the memory system idle.
///
/// # Panics
/// If there is no product, the shapes do not fit, or `states` has not one element per strip.
pub fn for_each_strip<S: Send>(
    products: &[Product<'_>],
    states: impl ExactSizeIterator<Item = S>,
    prefetch_hook: impl Fn(&S, usize) + Send + Sync,
    f: impl Fn(usize, usize, &[F32x32], &mut S) + Send + Sync,
) {
    let (k, n) = (products[0].v.bits(), products[0].means.n);
    for p in products {
        assert_eq!((p.v.bits(), p.means.n), (k, n), "moments: products of other shapes");
        assert_eq!(p.means.rows, p.v.rows(), "moments: other numbers of rows");
    }
    assert_eq!(states.len(), n.div_ceil(WIDTH), "moments: one state for each strip");
    let isa = Isa::detect();
    let rows: usize = products.iter().map(|p| p.v.rows()).sum();
    let method = Method::of(isa, products);
    let piece = method.piece(k);
    // Small matrices are in the cache anyway.
    let prefetches = k * n > SMALL;
    let mut factors = scratch::take(&FACTORS);
    factors.prepare(isa, method, products, rows * k / 2);
    let Factors { transposed, combinable, ones } = &*factors;
    for_each_part(states, rows * k * n / 160, |column, mut state| {
        let mut buffers = scratch::take(&PIECE);
        let (sums, strip) = &mut *buffers;
        let strip = first(strip, piece.min(k));
        for (i, (p, v)) in products.iter().zip(transposed).enumerate() {
            v.prepare(p.means.strip(column), i, sums);
        }
        for first in (0..k).step_by(piece) {
            let strip = &mut strip[..piece.min(k - first)];
            let rows = first..first + strip.len();
            let mut write = Write::Set;
            for (set, ones) in combinable.iter().zip(ones.chunks_exact(k)) {
                let affine = affine(&products[set.clone()], column);
                for i in set.clone() {
                    let p = &products[i];
                    let terms = (p.means.strip(column), i, p.scale < 0.0, i == set.start);
                    transposed[i].add_levels(isa, terms, rows.clone(), sums, |step, steps| {
                        if !prefetches {
                            return;
                        }
                        // A share of the rows for each step of each product.
                        let all = products.len() * steps;
                        let at = |step: usize| first + rows.len() * (i * steps + step) / all;
                        (at(step)..at(step + 1)).for_each(|row| prefetch_hook(&state, row));
                    });
                }
                sums.finish(isa, method, &ones[rows.clone()], &affine, write, strip);
                write = Write::Add;
            }
            f(WIDTH * column, first, strip, &mut state);
        }
    });
}

/// Data of some products that all their strips share.
#[derive(Default)]
struct Factors {
    /// The bits of each product; there may be more of them than products.
    transposed: Vec<TransposedBits>,
    /// Sets of neighbouring products that differ in sign only, so that they can be added up as integers.
    combinable: Vec<Range<usize>>,
    /// For each set, the set bits of every unit, those of negative products subtracted.
    ones: Vec<i32>,
}

impl Factors {
    /// The same for other products, reusing the memory.
    fn prepare(&mut self, isa: Isa, method: Method, products: &[Product<'_>], work: usize) {
        let k = products[0].v.bits();
        if self.transposed.len() < products.len() {
            self.transposed.resize_with(products.len(), TransposedBits::default);
        }
        let transposed = products.iter().zip(&mut self.transposed);
        for_each_part(transposed, work, |_, (p, transposed)| transposed.set(isa, method, p.v));
        self.combinable.clear();
        let unit = |p: &Product<'_>| (p.scale.abs(), p.values, p.means.range);
        for (i, p) in products.iter().enumerate() {
            match self.combinable.last_mut() {
                Some(set) if unit(&products[set.start]) == unit(p) => set.end = i + 1,
                _ => self.combinable.push(i..i + 1),
            }
        }
        self.ones.clear();
        self.ones.resize(self.combinable.len() * k, 0);
        for (set, out) in self.combinable.iter().zip(self.ones.chunks_exact_mut(k.max(1))) {
            for (p, v) in products[set.clone()].iter().zip(&self.transposed[set.clone()]) {
                let sign = if p.scale < 0.0 { -1 } else { 1 };
                out.iter_mut().zip(&v.ones).for_each(|(n, &ones)| *n += sign * ones as i32);
            }
        }
    }
}

/// out ← \[out +\] the product, row-major (k × n).
///
/// # Panics
/// If the shapes do not fit.
pub fn bits_means(product: Product<'_>, write: Write, out: &mut [f32]) {
    let n = product.means.n;
    assert_eq!(out.len(), product.v.bits() * n, "moments: output does not fit bits × n");
    if n == 0 {
        return;
    }
    let isa = Isa::detect();
    for_each_strip(
        &[product],
        split_columns(out, n, WIDTH),
        |_, _| (),
        |_, first, strip, out| {
            copy(isa, strip, first, write, out);
        },
    );
}

multiversion! {
    fn copy(isa: Isa, strip: &[F32x32], first: usize, write: Write, out: &mut Columns<'_, f32>) {
        for (i, strip) in strip.iter().enumerate() {
            let out = out.row(first + i);
            match (write, <&mut [f32; WIDTH]>::try_from(&mut *out)) {
                (Write::Set, Ok(out)) => *out = strip.0,
                (Write::Set, Err(_)) => out.copy_from_slice(&strip.0[..out.len()]),
                (Write::Add, Ok(out)) => out.iter_mut().zip(&strip.0).for_each(|(o, x)| *o += x),
                (Write::Add, Err(_)) => out.iter_mut().zip(&strip.0).for_each(|(o, x)| *o += x),
            }
        }
    }
}

/// How products are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// By tables in memory.
    MemoryTables,
    /// By tables in registers.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    RegisterTables,
    /// Four rows at a time by dot products, where there are few rows.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    RowDots,
    /// Row after row, where few bits are set.
    RowLists,
}

impl Method {
    /// The fastest for these products.
    fn of(isa: Isa, products: &[Product<'_>]) -> Self {
        let set: usize = products.iter().map(|p| count_all(isa, p.v.data()) as usize).sum();
        let bits: usize = products.iter().map(|p| p.v.rows() * p.v.bits()).sum();
        let rows = products.iter().map(|p| p.v.rows()).max().unwrap_or(0);
        if 4 * set < bits { Self::RowLists } else { Self::dense(isa, rows) }
    }

    /// The fastest where many bits are set, of up to `rows` rows each.
    fn dense(isa: Isa, rows: usize) -> Self {
        let _ = rows;
        match isa.level() {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Level::Avx512 if rows <= row_dots::MOST_ROWS => Self::RowDots,
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Level::Avx512 => Self::RegisterTables,
            _ => Self::MemoryTables,
        }
    }

    /// Rows of a piece of a strip: few, so that all that is made of them stays in the first two levels of cache, but all
    /// for tables in memory, which are made anew for every piece.
    fn piece(self, k: usize) -> usize {
        match self {
            Self::MemoryTables => k.max(1),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Self::RegisterTables | Self::RowDots => register_tables::UNITS,
            Self::RowLists => row_lists::UNITS,
        }
    }
}

multiversion! {
    /// Set bits.
    fn count_all(isa: Isa, words: &[u64]) -> u32 {
        words.iter().map(|word| word.count_ones()).sum()
    }
}

/// The states with the rows of the batch as inputs, in the layout of one method.
struct TransposedBits {
    rows: usize,
    method: Method,
    /// Set bits of every unit.
    ones: Vec<u32>,
    /// Word r·k + i: unit i over the 64 rows from 64r on.
    words: Vec<u64>,
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    index: Vec<register_tables::Index>,
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    fours: Vec<u32>,
    lists: row_lists::RowLists,
}

impl Default for TransposedBits {
    fn default() -> Self {
        Self {
            rows: 0,
            method: Method::MemoryTables,
            ones: Vec::new(),
            words: Vec::new(),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            index: Vec::new(),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            fours: Vec::new(),
            lists: row_lists::RowLists::default(),
        }
    }
}

/// Buffers for sums over 32 columns: tables and the two accumulators, and those of the tables in registers.
#[derive(Default)]
struct PieceSums {
    table: Vec<I16x32>,
    narrow: Vec<I16x32>,
    wide: Vec<I32x32>,
    /// For each product.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    tables: Vec<Vec<register_tables::Table>>,
    /// By columns.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    columns: Vec<i32>,
    /// For each product.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    fours: Vec<Vec<row_dots::Four>>,
    /// For each product.
    levels: Vec<Vec<Levels>>,
}

impl TransposedBits {
    /// Transposes other states, reusing the memory.
    fn set(&mut self, isa: Isa, method: Method, v: BitMatrix<'_>) {
        let (rows, k) = (v.rows(), v.bits());
        (self.rows, self.method) = (rows, method);
        self.words.clear();
        self.words.resize(bits::transpose_words(v), 0);
        bits::transpose_by_word(v, &mut self.words);
        self.ones.clear();
        self.ones.resize(k, 0);
        count(isa, &self.words, &mut self.ones);
        match method {
            Method::MemoryTables => {}
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            // SAFETY: the method is taken only where an `Isa` of this level exists, hence its features were detected.
            Method::RegisterTables => unsafe {
                register_tables::index(&self.words, rows, k, &mut self.index)
            },
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Method::RowDots => row_dots::spread(&self.words, rows, k, &mut self.fours),
            Method::RowLists => self.lists.set(isa, &self.words, rows, k),
        }
    }

    /// Prepares what all pieces of a strip share, for product `number`; a row of zeros comes before the levels.
    fn prepare(&self, levels: &[Levels], number: usize, sums: &mut PieceSums) {
        match self.method {
            Method::MemoryTables => {}
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            // SAFETY: as in `set`.
            Method::RegisterTables => unsafe {
                register_tables::tables(&levels[1..], nth(&mut sums.tables, number))
            },
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            // SAFETY: as in `set`.
            Method::RowDots => unsafe {
                row_dots::interleave(&levels[1..], nth(&mut sums.fours, number))
            },
            Method::RowLists => row_lists::RowLists::prepare(levels, nth(&mut sums.levels, number)),
        }
    }

    /// sums\[i\] ← \[sums\[i\]\] ± Σ_r v_ri·level_r for some units i, counted from the first of them. The tuple holds the levels
    /// (after a row of zeros; [prepared](Self::prepare) before), the number of the product, whether to subtract, and whether
    /// to start from zero. Calls `prefetch_hook(step, steps)` between steps.
    fn add_levels(
        &self,
        isa: Isa,
        (levels, number, negative, fresh): (&[Levels], usize, bool, bool),
        units: Range<usize>,
        sums: &mut PieceSums,
        mut prefetch_hook: impl FnMut(usize, usize),
    ) {
        match self.method {
            Method::MemoryTables => {}
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Method::RegisterTables => {
                let (tables, columns) = (&sums.tables[number], &mut sums.columns);
                let (tables, index) = ((&tables[..], negative, fresh), (&self.index[..], self.rows));
                // SAFETY: as in `set`.
                return unsafe {
                    register_tables::add_levels(tables, index, units, columns, prefetch_hook)
                };
            }
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Method::RowDots => {
                prefetch_hook(0, 1);
                let (fours, wide) = (&sums.fours[number][..], first(&mut sums.wide, units.len()));
                let bits = &self.fours[units.start * fours.len()..units.end * fours.len()];
                // SAFETY: as in `set`.
                return unsafe { row_dots::add((fours, negative, fresh), bits, wide) };
            }
            Method::RowLists => {
                let (padded, wide) = (&sums.levels[number], first(&mut sums.wide, units.len()));
                let levels = (levels, &padded[..], negative, fresh);
                return self.lists.add(isa, levels, units, wide, prefetch_hook);
            }
        }
        let k = self.ones.len();
        let wide = first(&mut sums.wide, units.len());
        if fresh {
            wide.fill(I32x32::default());
        }
        let sign = if negative { -1 } else { 1 };
        let (table, narrow) = (first(&mut sums.table, ENTRIES), first(&mut sums.narrow, wide.len()));
        for (q, (words, levels)) in
            self.words.chunks_exact(k.max(1)).zip(levels[1..].chunks(64)).enumerate()
        {
            prefetch_hook(q, self.rows.div_ceil(64));
            let last = 64 * (q + 1) >= self.rows;
            let flush = last || q % WORDS_PER_FLUSH == WORDS_PER_FLUSH - 1;
            let mode = Mode { fresh: q % WORDS_PER_FLUSH == 0, flush: flush.then_some(0) };
            let mut wide_levels = [I16x32::default(); 64];
            for (row, levels) in wide_levels.iter_mut().zip(levels) {
                row.0.iter_mut().zip(levels.0).for_each(|(x, level)| *x = sign * i16::from(level));
            }
            let (w, words) = (&wide_levels[..levels.len()], &words[units.clone()]);
            add_by_tables(isa, w, words, mode, table, narrow, wide);
        }
    }
}

multiversion! {
    /// Set bits of every unit.
    fn count(isa: Isa, words: &[u64], ones: &mut [u32]) {
        for words in words.chunks_exact(ones.len().max(1)) {
            ones.iter_mut().zip(words).for_each(|(n, word)| *n += word.count_ones());
        }
    }
}

impl PieceSums {
    /// strip ← \[strip +\] the sums of levels in units of the product.
    fn finish(
        &self,
        isa: Isa,
        method: Method,
        ones: &[i32],
        affine: &Affine,
        write: Write,
        strip: &mut [F32x32],
    ) {
        match method {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            // SAFETY: as in `TransposedBits::set`.
            Method::RegisterTables => unsafe {
                register_tables::finish(&self.columns, ones, affine, write, strip)
            },
            _ => finish(isa, &self.wide, ones, affine, write, strip),
        }
    }
}

/// Element `n` of a vector, which is extended if it is shorter.
fn nth<T: Default>(vector: &mut Vec<T>, n: usize) -> &mut T {
    if vector.len() <= n {
        vector.resize_with(n + 1, T::default);
    }
    &mut vector[n]
}

/// What turns the sums of levels into the sum of products that differ in sign only.
fn affine(products: &[Product<'_>], column: usize) -> Affine {
    let p = &products[0];
    let (shift, size) = p.means.range.affine();
    // A spin is 2·bit − 1.
    let (factor, all) = if p.values == Values::Spin { (2.0, -1.0) } else { (1.0, 0.0) };
    let mut offset = [0.0; 32];
    for p in products {
        let totals = &p.means.sums()[32 * column..];
        offset.iter_mut().zip(totals).for_each(|(o, &sum)| *o += all * p.scale * sum as f32);
    }
    let scale = factor * p.scale.abs();
    Affine { scale: scale * size / f32::from(LEVELS), shift: scale * shift, offset }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::mix;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_method_gives_the_same_products(seed: u64, rows in 0usize..1200, k in 1usize..300) {
            let at = |i: usize| mix(mix(seed) ^ i as u64);
            let mut v: Vec<u64> = (0..rows * bits::words(k)).map(at).collect();
            for row in v.chunks_exact_mut(bits::words(k)) {
                *row.last_mut().unwrap() &= bits::last_mask(k);
            }
            let v = BitMatrix::new(&v, rows, k);
            let levels: Vec<Levels> =
                (0..=rows).map(|r| Levels(std::array::from_fn(|c| if r == 0 { 0 } else { (at(32 * r + c) % 64) as u8 }))).collect();
            let affine = Affine { scale: 0.3, shift: -0.7, offset: std::array::from_fn(|c| c as f32) };
            let mut want = vec![F32x32([-1.0; 32]); k];
            let ones: Vec<i32> = (0..k as i32).map(|i| i % 7 - 3).collect();
            for (i, want) in want.iter_mut().enumerate() {
                let mut sums = [0; 32];
                let rows = (0..rows).filter(|&r| v.row(r)[i / 64] >> (i % 64) & 1 == 1);
                rows.for_each(|r| (0..32).for_each(|c| sums[c] += i32::from(levels[1 + r].0[c])));
                // The levels with their columns reversed are subtracted.
                let sums = std::array::from_fn::<_, 32, _>(|c| sums[c] - sums[31 - c]);
                let constant = affine.shift * ones[i] as f32;
                (0..32).for_each(|c| want.0[c] += affine.scale * sums[c] as f32 + (constant + c as f32));
            }
            let mirrored: Vec<Levels> =
                levels.iter().map(|row| Levels(std::array::from_fn(|c| row.0[31 - c]))).collect();
            for (isa, method) in Isa::all().into_iter().flat_map(|isa| [Method::RowLists, Method::dense(isa, 0), Method::dense(isa, rows), Method::dense(isa, 9999)].map(|method| (isa, method))) {
                let (mut sums, mut transposed) = (PieceSums::default(), TransposedBits::default());
                transposed.set(isa, method, v);
                transposed.prepare(&levels, 1, &mut sums);
                transposed.prepare(&mirrored, 0, &mut sums);
                let mut got = vec![F32x32([-1.0; 32]); k];
                for (i, got) in got.chunks_mut(method.piece(k)).enumerate() {
                    let from = i * method.piece(k);
                    let rows = from..from + got.len();
                    let (first, second) = ((&levels[..], 1, false, true), (&mirrored[..], 0, true, false));
                    transposed.add_levels(isa, first, rows.clone(), &mut sums, |_, _| ());
                    transposed.add_levels(isa, second, rows.clone(), &mut sums, |_, _| ());
                    sums.finish(isa, method, &ones[rows], &affine, Write::Add, got);
                }
                prop_assert!(got == want, "{method:?} on {}", isa.name());
            }
        }
    }
}
