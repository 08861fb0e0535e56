//! Products of bits, spins and codes with real weights: sums of rows of W, by table ("four Russians").
//!
//! out ← out + scale · X·W with W row-major (k × n). For every five rows of W the 32 partial sums are
//! tabulated once per strip of columns; each row of X then adds one table entry for five of its bits. A
//! Potts code is a table index already. Within a strip of 64 bytes the 13 tables of a 64-bit word fill
//! 26 KB and stay in the first-level cache.
//!
//! The result of a row does not depend on the other rows of the batch up to the choice between tables and
//! the loop over set bits, which is made per word for the whole batch; it never depends on the threads.

use crate::bits::Rows;
use crate::codes::Codes;
use crate::isa::{Isa, multiversion};
use crate::strip::{Strips, for_each_task};

/// Bits per table; 2^5 entries of 64 bytes are built in the time of about 60 look-ups.
const K: usize = 5;
/// Tables per 64-bit word: twelve of five bits and one of four.
const GROUPS: usize = 13;
const ENTRIES: usize = GROUPS << K;

/// Whether adding the `set` rows one by one beats building the tables of a word for `rows` look-ups.
///
/// In units of one look-up: a loop over set bits costs about one unit per bit and a mispredicted branch
/// (12 units) per row; a table costs 50 units to build and one per row.
fn loop_pays(set: usize, rows: usize) -> bool {
    set + 12 * rows < GROUPS * (rows + 50)
}

macro_rules! inputs {
    ($t:ident, $lanes:literal) => {
        pub(crate) mod $t {
            use super::*;
            const L: usize = $lanes;

            #[repr(C, align(64))]
            #[derive(Clone, Copy)]
            struct Entry([$t; L]);
            const ZERO: Entry = Entry([0.0; L]);

            impl Entry {
                #[inline(always)]
                fn add(&mut self, other: &Self) {
                    for (a, b) in self.0.iter_mut().zip(&other.0) {
                        *a += b;
                    }
                }
                /// scale · w, padded with zeros.
                #[inline(always)]
                fn scaled(w: &[$t], scale: $t) -> Self {
                    let mut e = ZERO;
                    for (e, &w) in e.0.iter_mut().zip(w) {
                        *e = scale * w;
                    }
                    e
                }
                #[inline(always)]
                fn add_to(&self, out: &mut [$t]) {
                    if let Ok(out) = <&mut [$t; L]>::try_from(&mut *out) {
                        for (o, s) in out.iter_mut().zip(&self.0) {
                            *o += s;
                        }
                    } else {
                        for (o, s) in out.iter_mut().zip(&self.0) {
                            *o += s;
                        }
                    }
                }
            }

            /// out += scale·X·W, X of 0/1 (`SPIN` false) or −1/+1 (`SPIN` true).
            pub(crate) fn add_bits<const SPIN: bool>(
                isa: Isa,
                x: Rows<'_>,
                w: &[$t],
                n: usize,
                scale: $t,
                out: &mut [$t],
            ) {
                assert_eq!(w.len(), x.bits() * n, "inputs: weights do not fit bits × n");
                assert_eq!(out.len(), x.rows() * n, "inputs: output does not fit rows × n");
                if x.rows() == 0 {
                    return;
                }
                let out = Strips::new(out, n);
                for_each_task(n.div_ceil(L), x.rows() * x.bits() * n / (K * L), |b| {
                    let width = L.min(n - b * L);
                    strip::<SPIN>(isa, x, w, n, scale, b * L, width, &out);
                });
            }

            multiversion! {
                fn strip[const SPIN: bool](x: Rows<'_>, w: &[$t], n: usize, scale: $t, j: usize, width: usize, out: &Strips<'_, $t>) {
                    let mut table = [ZERO; ENTRIES];
                    for q in 0..x.stride() {
                        let first = 64 * q;
                        let bits = 64.min(x.bits() - first);
                        let entry = |i: usize| {
                            if i < bits {
                                Entry::scaled(&w[(first + i) * n + j..][..width], scale)
                            } else {
                                ZERO
                            }
                        };
                        if !SPIN && loop_pays(x.count_in_word(q), x.rows()) {
                            for i in 0..bits {
                                table[i] = entry(i);
                            }
                            set_bits(x, q, &table, j, width, out);
                            continue;
                        }
                        let groups = bits.div_ceil(K);
                        for g in 0..groups {
                            // The thirteenth table has four bits: its upper half is never looked up.
                            let rows: [Entry; K] = std::array::from_fn(|i| if K * g + i < 64 { entry(K * g + i) } else { ZERO });
                            build::<SPIN>(&rows, (&mut table[g << K..(g + 1) << K]).try_into().unwrap());
                        }
                        if groups == GROUPS {
                            look_up(x, q, GROUPS, &table, j, width, out);
                        } else {
                            look_up(x, q, groups, &table, j, width, out);
                        }
                    }
                }
            }

            /// All 2^K sums of K rows with values 0/1 or −1/+1.
            #[inline(always)]
            fn build<const SPIN: bool>(rows: &[Entry; K], table: &mut [Entry; 1 << K]) {
                table[0] = ZERO;
                if SPIN {
                    for row in rows {
                        for (a, b) in table[0].0.iter_mut().zip(&row.0) {
                            *a -= b;
                        }
                    }
                }
                for (m, row) in rows.iter().enumerate() {
                    let mut row = *row;
                    if SPIN {
                        let once = row;
                        row.add(&once);
                    }
                    for i in 0..1 << m {
                        let mut sum = table[i];
                        sum.add(&row);
                        table[i + (1 << m)] = sum;
                    }
                }
            }

            #[inline(always)]
            fn look_up(x: Rows<'_>, q: usize, groups: usize, table: &[Entry; ENTRIES], j: usize, width: usize, out: &Strips<'_, $t>) {
                for (r, &word) in x.data()[q..].iter().step_by(x.stride()).enumerate() {
                    let mut sum = table[word as usize & 31];
                    for g in 1..groups {
                        sum.add(&table[(g << K) + ((word >> (K * g)) as usize & 31)]);
                    }
                    // SAFETY: this task alone writes the columns j..j+width.
                    sum.add_to(unsafe { out.segment(r, j, width) });
                }
            }

            #[inline(always)]
            fn set_bits(x: Rows<'_>, q: usize, rows: &[Entry; ENTRIES], j: usize, width: usize, out: &Strips<'_, $t>) {
                for (r, &word) in x.data()[q..].iter().step_by(x.stride()).enumerate() {
                    if word == 0 {
                        continue;
                    }
                    let mut sum = ZERO;
                    let mut rest = word;
                    while rest != 0 {
                        sum.add(&rows[rest.trailing_zeros() as usize]);
                        rest &= rest - 1;
                    }
                    // SAFETY: this task alone writes the columns j..j+width.
                    sum.add_to(unsafe { out.segment(r, j, width) });
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
                fn code_strip(codes: Codes<'_>, w: &[$t], n: usize, scale: $t, j: usize, width: usize, out: &Strips<'_, $t>) {
                    let (sites, q) = (codes.sites(), codes.q());
                    let mut table = [ZERO; ENTRIES];
                    // As many sites as fit the table; if not even one does, read W where it lies.
                    let block = ENTRIES / q;
                    for first in (0..sites).step_by(block.max(1)) {
                        let here = block.max(1).min(sites - first);
                        if block > 0 {
                            for (i, e) in table[..here * q].iter_mut().enumerate() {
                                *e = Entry::scaled(&w[(first * q + i) * n + j..][..width], scale);
                            }
                        }
                        for (r, codes) in codes.data().chunks_exact(sites).enumerate() {
                            let mut sum = ZERO;
                            for (i, &code) in codes[first..first + here].iter().enumerate() {
                                if block > 0 {
                                    sum.add(&table[i * q + code as usize]);
                                } else {
                                    let row = first * q + code as usize;
                                    sum.add(&Entry::scaled(&w[row * n + j..][..width], scale));
                                }
                            }
                            // SAFETY: this task alone writes the columns j..j+width.
                            sum.add_to(unsafe { out.segment(r, j, width) });
                        }
                    }
                }
            }
        }
    };
}
inputs!(f32, 16);
inputs!(f64, 8);
