//! Products of bits, spins and codes with real weights: sums of rows of W, by table ("four Russians").
//!
//! out ← out + scale · X·W with W row-major (k × n). For every five rows of W the 32 partial sums are
//! tabulated once per strip of columns; each row of X then adds one table entry for five of its bits. A
//! Potts code is a table index already. Within a strip of 64 bytes the 13 tables of a 64-bit word fill
//! 26 KB and stay in the first-level cache.
//!
//! The result of a row does not depend on the other rows of the batch up to the choice between tables and
//! the loop over set bits, a choice made per word for the whole batch; it never depends on the threads.

mod vector;

use crate::bits::BitMatrix;
use crate::codes::Codes;
use crate::isa::{Isa, multiversion};
use crate::prefetch::prefetch;
use crate::scratch::{self, Kept, first};
use crate::strip::{Strips, for_each_task};

/// Bits per table; 2^5 entries of 64 bytes are built in the time of about 60 look-ups.
const K: usize = 5;
/// Tables per 64-bit word: twelve of five bits and one of four.
const GROUPS: usize = 13;
const ENTRIES: usize = GROUPS << K;

/// Whether adding the `set` rows one by one beats building the tables of a word for `rows` look-ups.
///
/// In units of one look-up: a loop over set bits costs about two units per bit and a mispredicted branch
/// (9 units) per row; a table costs 60 units to build and one per row.
fn loop_pays(set: usize, rows: usize) -> bool {
    2 * set + 9 * rows < GROUPS * (rows + 60)
}

macro_rules! inputs {
    ($t:ident) => {
        pub(crate) mod $t {
            use super::vector::$t::{Entry, L, Vector};
            use super::*;

            thread_local! {
                /// The sums of all rows over one strip.
                static SUMS: Kept<Vec<Entry>> = Kept::default();
            }

            /// scale · w, padded with zeros.
            #[inline(always)]
            fn scaled(w: &[$t], scale: $t) -> Entry {
                let mut e = Entry::default();
                // A copy of constant length needs no call.
                match <&[$t; L]>::try_from(w) {
                    Ok(w) => e.0 = *w,
                    Err(_) => e.0[..w.len()].copy_from_slice(w),
                }
                e.0.iter_mut().for_each(|e| *e *= scale);
                e
            }

            /// out += sum.
            #[inline(always)]
            unsafe fn add_to<V: Vector>(sum: V, out: &mut [$t]) {
                // SAFETY: the caller promises the instruction set.
                unsafe {
                    if let Ok(out) = <&mut [$t; L]>::try_from(&mut *out) {
                        sum.plus(out).store(out);
                    } else {
                        let mut e = Entry::default();
                        sum.store(&mut e.0);
                        out.iter_mut().zip(&e.0).for_each(|(out, e)| *out += e);
                    }
                }
            }

            /// out += scale·X·W, X of 0/1 (`SPIN` false) or −1/+1 (`SPIN` true).
            pub(crate) fn add_bits<const SPIN: bool>(isa: Isa, x: BitMatrix<'_>, w: &[$t], n: usize, scale: $t, out: &mut [$t]) {
                assert_eq!(w.len(), x.bits() * n, "inputs: weights do not fit bits × n");
                assert_eq!(out.len(), x.rows() * n, "inputs: output does not fit rows × n");
                if x.rows() == 0 {
                    return;
                }
                let out = Strips::new(out, n);
                for_each_task(n.div_ceil(L), x.rows() * x.bits() * n / (K * L), |b| {
                    let width = L.min(n - b * L);
                    let mut sums = scratch::take(&SUMS);
                    let sums = first(&mut sums, x.rows());
                    strip::<SPIN>(isa, x, w, n, scale, b * L, width, sums, &out);
                });
            }

            multiversion! {
                fn strip[const SPIN: bool](isa: Isa, x: BitMatrix<'_>, w: &[$t], n: usize, scale: $t, j: usize, width: usize, sums: &mut [Entry], out: &Strips<'_, $t>) => strip_of with vector::$t
            }

            #[inline(always)]
            #[allow(clippy::too_many_arguments)]
            unsafe fn strip_of<V: Vector, const SPIN: bool>(x: BitMatrix<'_>, w: &[$t], n: usize, scale: $t, j: usize, width: usize, sums: &mut [Entry], out: &Strips<'_, $t>) {
                let mut table = [Entry::default(); ENTRIES];
                let mut rows = [Entry::default(); K * GROUPS];
                // The sums stay side by side: rows of the output may lie a power of two apart, where a cache
                // keeps only a few of them.
                sums.fill(Entry::default());
                for q in 0..x.stride() {
                    let first = 64 * q;
                    let bits = 64.min(x.bits() - first);
                    // The last word of a layer may be shorter than the one before.
                    rows[bits..].fill(Entry::default());
                    for (i, row) in rows[..bits].iter_mut().enumerate() {
                        prefetch(w, (first + 64 + i) * n + j);
                        *row = scaled(&w[(first + i) * n + j..][..width], scale);
                    }
                    // SAFETY: the caller promises the instruction set.
                    unsafe {
                        if !SPIN && loop_pays(x.count_in_word(q), x.rows()) {
                            set_bits::<V>(x, q, &rows, sums);
                            continue;
                        }
                        let groups = bits.div_ceil(K);
                        for (rows, table) in rows.chunks_exact(K).zip(table.chunks_exact_mut(1 << K)).take(groups) {
                            build::<V, SPIN>(rows, table);
                        }
                        if groups == GROUPS {
                            look_up::<V, GROUPS>(x, q, GROUPS, &table, sums);
                        } else {
                            look_up::<V, 0>(x, q, groups, &table, sums);
                        }
                    }
                }
                for (r, sum) in sums.iter().enumerate() {
                    // SAFETY: this task alone writes the columns j..j+width; the caller promises the instruction set.
                    unsafe {
                        let out = out.segment(r, j, width);
                        prefetch(out, 12 * n);
                        add_to(V::load(&sum.0), out);
                    }
                }
            }

            /// All 2^K sums of K rows with values 0/1 or −1/+1.
            #[inline(always)]
            unsafe fn build<V: Vector, const SPIN: bool>(rows: &[Entry], table: &mut [Entry]) {
                // SAFETY: the caller promises the instruction set.
                unsafe {
                    let mut lowest = V::zero();
                    if SPIN {
                        for row in rows {
                            lowest = lowest.minus(&row.0);
                        }
                    }
                    lowest.store(&mut table[0].0);
                    for (m, row) in rows.iter().enumerate() {
                        let mut step = V::load(&row.0);
                        if SPIN {
                            step = step.plus(&row.0);
                        }
                        let (old, new) = table[..2 << m].split_at_mut(1 << m);
                        for (old, new) in old.iter().zip(new) {
                            step.plus(&old.0).store(&mut new.0);
                        }
                    }
                }
            }

            /// `G` is the number of tables if it is known (then the look-ups unroll), else 0.
            #[inline(always)]
            unsafe fn look_up<V: Vector, const G: usize>(x: BitMatrix<'_>, q: usize, groups: usize, table: &[Entry; ENTRIES], sums: &mut [Entry]) {
                let groups = if G == 0 { groups } else { G };
                assert!(groups <= GROUPS);
                for (sum, &word) in sums.iter_mut().zip(x.data()[q..].iter().step_by(x.stride())) {
                    // SAFETY: entries have 64 bytes, their numbers are below GROUPS·2^K by the assertion; the caller
                    // promises the instruction set.
                    unsafe {
                        let mut s = V::load(&sum.0);
                        for g in 0..groups {
                            let entry = crate::bits::field_times_64::<K>(word, g);
                            s = s.plus(&(*table.as_ptr().add(g << K).byte_add(entry)).0);
                        }
                        s.store(&mut sum.0);
                    }
                }
            }

            #[inline(always)]
            unsafe fn set_bits<V: Vector>(x: BitMatrix<'_>, q: usize, rows: &[Entry], sums: &mut [Entry]) {
                for (sum, &word) in sums.iter_mut().zip(x.data()[q..].iter().step_by(x.stride())) {
                    let mut rest = word;
                    // SAFETY: the caller promises the instruction set.
                    unsafe {
                        let mut s = V::load(&sum.0);
                        while rest != 0 {
                            s = s.plus(&rows[rest.trailing_zeros() as usize].0);
                            rest &= rest - 1;
                        }
                        s.store(&mut sum.0);
                    }
                }
            }

            /// out += scale·X·W with X one-hot by `codes`.
            pub(crate) fn add_codes(isa: Isa, codes: Codes<'_>, w: &[$t], n: usize, scale: $t, out: &mut [$t]) {
                assert_eq!(w.len(), codes.sites() * codes.q() * n, "inputs: weights do not fit (sites·q) × n");
                if codes.sites() == 0 {
                    return;
                }
                assert_eq!(out.len(), codes.rows() * n, "inputs: output does not fit rows × n");
                let out = Strips::new(out, n);
                for_each_task(n.div_ceil(L), codes.data().len() * n / L, |b| {
                    let width = L.min(n - b * L);
                    code_strip(isa, codes, w, n, scale, b * L, width, &out);
                });
            }

            multiversion! {
                fn code_strip(isa: Isa, codes: Codes<'_>, w: &[$t], n: usize, scale: $t, j: usize, width: usize, out: &Strips<'_, $t>) => code_strip_of with vector::$t
            }

            #[inline(always)]
            #[allow(clippy::too_many_arguments)]
            unsafe fn code_strip_of<V: Vector>(codes: Codes<'_>, w: &[$t], n: usize, scale: $t, j: usize, width: usize, out: &Strips<'_, $t>) {
                let (sites, q) = (codes.sites(), codes.q());
                let mut table = [Entry::default(); ENTRIES];
                // As many sites as fit the table; if not even one does, read W where it lies.
                let block = ENTRIES / q;
                for first in (0..sites).step_by(block.max(1)) {
                    let here = block.max(1).min(sites - first);
                    if block > 0 {
                        for (i, e) in table[..here * q].iter_mut().enumerate() {
                            *e = scaled(&w[(first * q + i) * n + j..][..width], scale);
                        }
                    }
                    for (r, codes) in codes.data().chunks_exact(sites).enumerate() {
                        // SAFETY: this task alone writes the columns j..j+width; the caller promises the
                        // instruction set.
                        unsafe {
                            let mut sum = V::zero();
                            for (i, &code) in codes[first..first + here].iter().enumerate() {
                                let row = i * q + code as usize;
                                if block > 0 {
                                    sum = sum.plus(&table[row].0);
                                } else {
                                    sum = sum.plus(&scaled(&w[(first * q + row) * n + j..][..width], scale).0);
                                }
                            }
                            add_to(sum, out.segment(r, j, width));
                        }
                    }
                }
            }
        }
    };
}
inputs!(f32);
inputs!(f64);
