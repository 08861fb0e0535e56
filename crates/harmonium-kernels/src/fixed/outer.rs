//! Moments Σ_rows v·mᵀ of bits and rounded conditional means, strip by strip of 32 columns.
//!
//! The kernel of the fields with roles swapped: the rows of the batch are the inputs, the units of v the
//! batch. The shift of the means comes back as a multiple of the number of ones of a unit.

#[cfg(all(target_arch = "x86_64", not(miri)))]
use super::bytes;
use super::means::{Means, WORDS_PER_FLUSH};
use super::sparse;
use super::table::{ENTRIES, Mode, add_by_tables};
use super::vector::{Levels, Row, Wide};
use crate::bernoulli::LEVELS;
use crate::bits::{self, Rows, Values};
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::isa::Level;
use crate::isa::{Isa, multiversion};
use crate::prefetch::prefetch;
use crate::scratch::{self, first};
use crate::strip::{Columns, for_each_part, split_columns};
use std::ops::Range;

/// Whether an output is overwritten or added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// out ← …
    Set,
    /// out ← out + …
    Add,
}

/// 32 columns of one row of a sum of products.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Strip(pub [f32; WIDTH]);

/// scale · VᵀM with V (rows × k) of bits read as `values`, M (rows × n) of conditional means.
///
/// The means being rounded without bias, the error of a sum over B rows is below √B/2 of their steps in root mean
/// square. For the exact sum use [`crate::moments::add_bits_outer`].
#[derive(Clone, Copy, Debug)]
pub struct Product<'a> {
    /// V.
    pub v: Rows<'a>,
    /// What its bits stand for.
    pub values: Values,
    /// M.
    pub means: &'a Means,
    /// The factor.
    pub scale: f32,
}

/// Elements of a product up to which nothing need be asked for in advance: those of half a second-level cache.
const SMALL: usize = 1 << 16;

/// Columns of a strip.
pub const WIDTH: usize = 32;

/// Gives `f(j, i, strip, part)` rows i… of columns j…j+31 of the sum of the products, a strip in pieces of some whole
/// multiples of 32 rows (but for the last) from the first on, with one of the `parts` for each strip; columns from n on
/// mean nothing. Strips are made on the threads of the current pool.
///
/// While a piece is being multiplied, `soon(part, i)` may ask for the memory that `f` will need for its row i: the rows of a
/// strip lie too far apart for the processor to see them coming, and asking in between costs no time.
///
/// # Panics
/// If there is no product, the shapes do not fit, or there are more or fewer parts than strips.
pub fn for_each_strip<S: Send>(
    products: &[Product<'_>],
    parts: impl ExactSizeIterator<Item = S>,
    soon: impl Fn(&S, usize) + Send + Sync,
    f: impl Fn(usize, usize, &[Strip], &mut S) + Send + Sync,
) {
    let (k, n) = (products[0].v.bits(), products[0].means.n);
    for p in products {
        assert_eq!((p.v.bits(), p.means.n), (k, n), "moments: products of other shapes");
        assert_eq!(p.means.rows, p.v.rows(), "moments: other numbers of rows");
    }
    assert_eq!(parts.len(), n.div_ceil(WIDTH), "moments: one part for each strip");
    let isa = Isa::detect();
    let rows: usize = products.iter().map(|p| p.v.rows()).sum();
    let form = Form::of(isa, products);
    let piece = form.piece(k);
    // What is small is in the cache anyway.
    let ask = k * n > SMALL;
    let mut shared = scratch::take();
    shared.factors().prepare(isa, form, products, rows * k / 2);
    let Factors { turned, joined, ones } = &*shared.factors();
    for_each_part(parts, rows * k * n / 160, |column, mut part| {
        let mut scratch = scratch::take();
        let (sums, strip) = scratch.strip(piece.min(k));
        for (i, (p, v)) in products.iter().zip(turned).enumerate() {
            v.prepare(p.means.strip(column), i, sums);
        }
        for first in (0..k).step_by(piece) {
            let strip = &mut strip[..piece.min(k - first)];
            let rows = first..first + strip.len();
            let mut write = Write::Set;
            for (set, ones) in joined.iter().zip(ones.chunks_exact(k)) {
                let line = Line::new(&products[set.clone()], column);
                for i in set.clone() {
                    let p = &products[i];
                    let terms = (p.means.strip(column), i, p.scale < 0.0, i == set.start);
                    turned[i].add_levels(isa, terms, rows.clone(), sums, |step, steps| {
                        if !ask {
                            return;
                        }
                        // A share of the rows for each step of each product.
                        let all = products.len() * steps;
                        let at = |step: usize| first + rows.len() * (i * steps + step) / all;
                        (at(step)..at(step + 1)).for_each(|row| soon(&part, row));
                    });
                }
                sums.finish(isa, form, &ones[rows.clone()], &line, write, strip);
                write = Write::Add;
            }
            f(WIDTH * column, first, strip, &mut part);
        }
    });
}

/// What all strips of some products share.
#[derive(Default)]
pub(crate) struct Factors {
    /// The bits of each product; there may be more of them than products.
    turned: Vec<Turned>,
    /// Sets of neighbouring products that differ in sign only, so that they can be added up as integers.
    joined: Vec<Range<usize>>,
    /// For each set the set bits of every unit, those of negative products subtracted.
    ones: Vec<i32>,
}

impl Factors {
    fn prepare(&mut self, isa: Isa, form: Form, products: &[Product<'_>], work: usize) {
        let k = products[0].v.bits();
        if self.turned.len() < products.len() {
            self.turned.resize_with(products.len(), Turned::default);
        }
        let turned = products.iter().zip(&mut self.turned);
        for_each_part(turned, work, |_, (p, turned)| turned.set(isa, form, p.v));
        self.joined.clear();
        let unit = |p: &Product<'_>| (p.scale.abs(), p.values, p.means.range);
        for (i, p) in products.iter().enumerate() {
            match self.joined.last_mut() {
                Some(set) if unit(&products[set.start]) == unit(p) => set.end = i + 1,
                _ => self.joined.push(i..i + 1),
            }
        }
        self.ones.clear();
        self.ones.resize(self.joined.len() * k, 0);
        for (set, out) in self.joined.iter().zip(self.ones.chunks_exact_mut(k.max(1))) {
            for (p, v) in products[set.clone()].iter().zip(&self.turned[set.clone()]) {
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
    fn copy(strip: &[Strip], first: usize, write: Write, out: &mut Columns<'_, f32>) {
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
enum Form {
    /// By tables in memory.
    Tables,
    /// By tables in registers.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    Bytes,
    /// Row after row, where few bits are set.
    Lists,
}

impl Form {
    /// The fastest.
    fn of(isa: Isa, products: &[Product<'_>]) -> Self {
        let set: usize = products.iter().map(|p| count_all(isa, p.v.data()) as usize).sum();
        let bits: usize = products.iter().map(|p| p.v.rows() * p.v.bits()).sum();
        if 4 * set < bits { Self::Lists } else { Self::dense(isa) }
    }

    /// The fastest where many bits are set.
    fn dense(isa: Isa) -> Self {
        match isa.level() {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Level::Avx512 => Self::Bytes,
            _ => Self::Tables,
        }
    }

    /// Rows of a piece of a strip: few, so that all that is made of them stays in the first two levels of cache, but all
    /// for tables in memory, which are made anew for every piece.
    fn piece(self, k: usize) -> usize {
        match self {
            Self::Tables => k.max(1),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Self::Bytes => bytes::UNITS,
            Self::Lists => sparse::UNITS,
        }
    }
}

multiversion! {
    /// Set bits.
    fn count_all(words: &[u64]) -> u32 {
        words.iter().map(|word| word.count_ones()).sum()
    }
}

/// The states with the rows of the batch as inputs, in one of the forms.
struct Turned {
    rows: usize,
    form: Form,
    /// Set bits of every unit.
    ones: Vec<u32>,
    /// Word r·k + i: unit i over the 64 rows from 64r on.
    words: Vec<u64>,
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    index: Vec<bytes::Index>,
    lists: sparse::Lists,
}

impl Default for Turned {
    fn default() -> Self {
        Self {
            rows: 0,
            form: Form::Tables,
            ones: Vec::new(),
            words: Vec::new(),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            index: Vec::new(),
            lists: sparse::Lists::default(),
        }
    }
}

/// Buffers for sums over 32 columns: tables and the two accumulators, and those of the tables in registers.
#[derive(Default)]
pub(crate) struct Sums {
    pub(crate) table: Vec<Row>,
    pub(crate) narrow: Vec<Row>,
    pub(crate) wide: Vec<Wide>,
    /// For each product.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    tables: Vec<Vec<bytes::Table>>,
    /// By columns.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    columns: Vec<i32>,
    /// For each product.
    levels: Vec<Vec<Levels>>,
}

impl Turned {
    /// Takes over other states, in the memory of those before.
    fn set(&mut self, isa: Isa, form: Form, v: Rows<'_>) {
        let (rows, k) = (v.rows(), v.bits());
        (self.rows, self.form) = (rows, form);
        self.words.clear();
        self.words.resize(bits::transpose_words(v), 0);
        bits::transpose_by_word(v, &mut self.words);
        self.ones.clear();
        self.ones.resize(k, 0);
        count(isa, &self.words, &mut self.ones);
        match form {
            Form::Tables => {}
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            // SAFETY: the form is taken only where an `Isa` of this level exists, hence its features were detected.
            Form::Bytes => unsafe { bytes::index(&self.words, rows, k, &mut self.index) },
            Form::Lists => self.lists.set(isa, &self.words, rows, k),
        }
    }

    /// Makes what all pieces of a strip share, for the product of this number; a row of zeros comes before the levels.
    fn prepare(&self, levels: &[Levels], number: usize, sums: &mut Sums) {
        match self.form {
            Form::Tables => {}
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            // SAFETY: as in `set`.
            Form::Bytes => unsafe { bytes::tables(&levels[1..], nth(&mut sums.tables, number)) },
            Form::Lists => sparse::Lists::prepare(levels, nth(&mut sums.levels, number)),
        }
    }

    /// sums\[i\] ← \[sums\[i\]\] ± Σ_r v_ri·level_r for some units i, counted from the first of them; the levels after a row of zeros,
    /// which have been [prepared](Self::prepare) for the product of this number, come with whether to subtract and whether to start from
    /// zero. Calls `now_and_then(step, steps)` on its way.
    fn add_levels(
        &self,
        isa: Isa,
        (levels, number, negative, fresh): (&[Levels], usize, bool, bool),
        units: Range<usize>,
        sums: &mut Sums,
        mut now_and_then: impl FnMut(usize, usize),
    ) {
        match self.form {
            Form::Tables => {}
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Form::Bytes => {
                let (tables, columns) = (&sums.tables[number], &mut sums.columns);
                let (tables, index) = ((&tables[..], negative, fresh), (&self.index[..], self.rows));
                // SAFETY: as in `set`.
                return unsafe { bytes::add_levels(tables, index, units, columns, now_and_then) };
            }
            Form::Lists => {
                let (apart, wide) = (&sums.levels[number], first(&mut sums.wide, units.len()));
                let levels = (levels, &apart[..], negative, fresh);
                return self.lists.add(isa, levels, units, wide, now_and_then);
            }
        }
        let k = self.ones.len();
        let wide = first(&mut sums.wide, units.len());
        if fresh {
            wide.fill(Wide::default());
        }
        let sign = if negative { -1 } else { 1 };
        let (table, narrow) = (first(&mut sums.table, ENTRIES), first(&mut sums.narrow, wide.len()));
        for (q, (words, levels)) in
            self.words.chunks_exact(k.max(1)).zip(levels[1..].chunks(64)).enumerate()
        {
            now_and_then(q, self.rows.div_ceil(64));
            let last = 64 * (q + 1) >= self.rows;
            let flush = last || q % WORDS_PER_FLUSH == WORDS_PER_FLUSH - 1;
            let mode = Mode { fresh: q % WORDS_PER_FLUSH == 0, flush: flush.then_some(0) };
            let mut wide_levels = [Row::default(); 64];
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
    fn count(words: &[u64], ones: &mut [u32]) {
        for words in words.chunks_exact(ones.len().max(1)) {
            ones.iter_mut().zip(words).for_each(|(n, word)| *n += word.count_ones());
        }
    }
}

impl Sums {
    /// strip ← \[strip +\] the sums of levels in units of the product.
    fn finish(
        &self,
        isa: Isa,
        form: Form,
        ones: &[i32],
        line: &Line,
        write: Write,
        strip: &mut [Strip],
    ) {
        match form {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            // SAFETY: as in `Turned::new`.
            Form::Bytes => unsafe { bytes::finish(&self.columns, ones, line, write, strip) },
            Form::Tables | Form::Lists => finish(isa, &self.wide, ones, line, write, strip),
        }
    }
}

/// Element `n` of a vector that is made longer if need be.
fn nth<T: Default>(vector: &mut Vec<T>, n: usize) -> &mut T {
    if vector.len() <= n {
        vector.resize_with(n + 1, T::default);
    }
    &mut vector[n]
}

/// What turns the sums of levels in 32 columns into the product: scale · Σ levels + shift · ones + offset.
pub(super) struct Line {
    pub(super) scale: f32,
    pub(super) shift: f32,
    pub(super) offset: [f32; 32],
}

impl Line {
    /// Of the sum of products that differ in sign only.
    fn new(products: &[Product<'_>], column: usize) -> Self {
        let p = &products[0];
        let (shift, size) = p.means.range.line();
        // A spin is 2·bit − 1.
        let (factor, all) = if p.values == Values::Spin { (2.0, -1.0) } else { (1.0, 0.0) };
        let mut offset = [0.0; 32];
        for p in products {
            let totals = &p.means.sums()[32 * column..];
            offset.iter_mut().zip(totals).for_each(|(o, &sum)| *o += all * p.scale * sum as f32);
        }
        let scale = factor * p.scale.abs();
        Self { scale: scale * size / f32::from(LEVELS), shift: scale * shift, offset }
    }
}

multiversion! {
    fn finish(sums: &[Wide], ones: &[i32], line: &Line, write: Write, strip: &mut [Strip]) {
        for (i, (&ones, strip)) in ones.iter().zip(strip).enumerate() {
            // Not for the processor, but for the compiler, which else takes eight rows at a time, by gathering.
            prefetch(sums, i);
            let sums = &sums[i];
            let constant = line.shift * ones as f32;
            let mut x = Strip::default();
            for ((x, &sum), offset) in x.0.iter_mut().zip(&sums.0).zip(&line.offset) {
                *x = line.scale * sum as f32 + (constant + offset);
            }
            match write {
                Write::Set => *strip = x,
                Write::Add => strip.0.iter_mut().zip(x.0).for_each(|(out, x)| *out += x),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::mix;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_form_gives_the_same_products(seed: u64, rows in 0usize..1200, k in 1usize..300) {
            let at = |i: usize| mix(mix(seed) ^ i as u64);
            let mut v: Vec<u64> = (0..rows * bits::words(k)).map(at).collect();
            for row in v.chunks_exact_mut(bits::words(k)) {
                *row.last_mut().unwrap() &= bits::last_mask(k);
            }
            let v = Rows::new(&v, rows, k);
            let levels: Vec<Levels> =
                (0..=rows).map(|r| Levels(std::array::from_fn(|c| if r == 0 { 0 } else { (at(32 * r + c) % 64) as u8 }))).collect();
            let line = Line { scale: 0.3, shift: -0.7, offset: std::array::from_fn(|c| c as f32) };
            let mut want = vec![Strip([-1.0; 32]); k];
            let ones: Vec<i32> = (0..k as i32).map(|i| i % 7 - 3).collect();
            for (i, want) in want.iter_mut().enumerate() {
                let mut sums = [0; 32];
                let rows = (0..rows).filter(|&r| v.row(r)[i / 64] >> (i % 64) & 1 == 1);
                rows.for_each(|r| (0..32).for_each(|c| sums[c] += i32::from(levels[1 + r].0[c])));
                // The levels once more, in columns that have changed places, are subtracted.
                let sums = std::array::from_fn::<_, 32, _>(|c| sums[c] - sums[31 - c]);
                let constant = line.shift * ones[i] as f32;
                (0..32).for_each(|c| want.0[c] += line.scale * sums[c] as f32 + (constant + c as f32));
            }
            let mirrored: Vec<Levels> =
                levels.iter().map(|row| Levels(std::array::from_fn(|c| row.0[31 - c]))).collect();
            for (isa, form) in Isa::all().into_iter().flat_map(|isa| [Form::Lists, Form::dense(isa)].map(|form| (isa, form))) {
                let (mut sums, mut turned) = (Sums::default(), Turned::default());
                turned.set(isa, form, v);
                turned.prepare(&levels, 1, &mut sums);
                turned.prepare(&mirrored, 0, &mut sums);
                let mut got = vec![Strip([-1.0; 32]); k];
                for (i, got) in got.chunks_mut(form.piece(k)).enumerate() {
                    let from = i * form.piece(k);
                    let rows = from..from + got.len();
                    let (first, second) = ((&levels[..], 1, false, true), (&mirrored[..], 0, true, false));
                    turned.add_levels(isa, first, rows.clone(), &mut sums, |_, _| ());
                    turned.add_levels(isa, second, rows.clone(), &mut sums, |_, _| ());
                    sums.finish(isa, form, &ones[rows], &line, Write::Add, got);
                }
                prop_assert!(got == want, "{form:?} on {}", isa.name());
            }
        }
    }
}
