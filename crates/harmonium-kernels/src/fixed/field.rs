//! The field on a layer, and the loop over strips and chunks of rows that sums it.

use super::Side;
use super::input::{Block, Input, States};
use super::plan::{EMPTY, FLUSH, LAST};
use super::table::{ENTRIES, Mode, add_by_tables, add_codes, add_lists};
use super::words::{Word, WordBuffers, Words};
use crate::bernoulli::{STEPS_PER_NAT, STREAM_ROWS, Sums16, Sums32};
use crate::isa::{Isa, multiversion};
use crate::scratch::{self, Kept, first};
use crate::strip::for_each_task;
use crate::x32::{I16x32, I32x32, WIDTH};

/// β·(θ + Σ inputs) for a batch: the logits of a Binary or Potts layer, half the logits of a Spin layer.
#[derive(Clone, Copy, Debug)]
pub struct Field<'a> {
    pub(super) target: Side,
    pub(super) rows: usize,
    theta: &'a [f32],
    beta: f32,
    inputs: &'a [Input<'a>],
}

thread_local! {
    static WORDS: Kept<WordBuffers> = Kept::default();
    /// Tables, 16-bit and 32-bit sums.
    static SUMS: Kept<(Vec<I16x32>, Vec<I16x32>, Vec<I32x32>)> = Kept::default();
}

/// The sums of one block of columns and rows.
pub(super) enum Sums<'a> {
    Narrow(Sums16<'a>),
    Wide(Sums32<'a>),
}

impl<'a> Field<'a> {
    /// The field on `rows` rows of a layer with own field `theta`, at inverse temperature `beta`.
    ///
    /// # Panics
    /// If a shape, a kind of states or a number of rows does not fit.
    pub fn new(target: Side, rows: usize, theta: &'a [f32], beta: f32, inputs: &'a [Input<'a>]) -> Self {
        assert_eq!(theta.len(), target.units(), "field: θ does not fit the layer");
        for input in inputs {
            assert_eq!(input.direction.target(), target, "field: a coupling leads to another layer");
            let source = input.direction.source();
            let fits = match (source, input.states) {
                (Side::Binary(n) | Side::Spin(n), States::Bits(x)) => x.bits() == n,
                (Side::Potts { sites, q }, States::Codes(x)) => x.sites() == sites && x.q() == q,
                _ => false,
            };
            assert!(fits, "field: the states do not fit {source:?}");
            assert!(input.states.rows() == rows || source.units() == 0, "field: wrong number of rows");
        }
        Self { target, rows, theta, beta, inputs }
    }

    /// Bound on the error of a logit, in nats: that of the couplings, and the rounding of θ.
    pub fn error_bound(&self) -> f32 {
        let couplings: f32 = self.inputs.iter().map(|i| i.direction.error_bound()).sum();
        let theta = self.factor().abs() as f32 * (-1.0 - self.finest() as f32).exp2();
        self.beta.abs() * couplings + theta.max((-12f32).exp2())
    }

    /// The finest step of the couplings, which 32-bit sums and θ are held in.
    fn finest(&self) -> i32 {
        self.inputs.iter().map(|i| i.direction.s).max().unwrap_or(14)
    }

    /// Chunks of rows that one task handles.
    pub(super) fn chunks(&self) -> usize {
        self.rows.div_ceil(STREAM_ROWS)
    }

    /// What turns a field into a logit.
    fn factor(&self) -> f64 {
        f64::from(self.beta) * if matches!(self.target, Side::Spin(_)) { 2.0 } else { 1.0 }
    }

    /// Calls `finish` with the sums of every block of columns and rows, on the threads of the current pool.
    pub(super) fn for_each_block(&self, isa: Isa, finish: impl Fn(Block, Sums<'_>) + Send + Sync) {
        let (n, rows) = (self.target.units(), self.rows);
        let (columns, chunks) = (n.div_ceil(WIDTH), self.chunks());
        let mut buffers = scratch::take(&WORDS);
        let prepared = Words::prepare(isa, self.inputs, rows, columns, &mut buffers);
        let units: usize = self.inputs.iter().map(|i| i.direction.half.source.units()).sum();
        for_each_task(columns * chunks, columns * rows * (2 + units / 5), |task| {
            let (column, chunk) = (task % columns, task / columns);
            let start = chunk * STREAM_ROWS;
            let block = Block { column, chunk, first: start, rows: STREAM_ROWS.min(rows - start) };
            let mut sums = scratch::take(&SUMS);
            let (table, narrow, wide) = &mut *sums;
            let table = first(table, ENTRIES);
            let (narrow, wide) = (first(narrow, block.rows), first(wide, block.rows));
            if let Some(bias) = self.narrow_bias(isa, column) {
                self.sum(isa, block, &prepared, None, table, narrow, wide);
                finish(block, Sums::Narrow(Sums16 { sums: narrow, bias }));
            } else {
                let s = self.finest();
                wide.fill(self.wide_bias(column, s));
                self.sum(isa, block, &prepared, Some(s), table, narrow, wide);
                let scale = self.factor() * f64::from(-s).exp2();
                finish(block, Sums::Wide(Sums32 { sums: wide, scale }));
            }
        });
    }

    /// Adds all inputs: to the 16-bit sums, or to 32-bit sums in steps of 2^-s.
    #[allow(clippy::too_many_arguments)]
    fn sum(
        &self,
        isa: Isa,
        block: Block,
        words: &Words<'_>,
        s: Option<i32>,
        table: &mut [I16x32],
        narrow: &mut [I16x32],
        wide: &mut [I32x32],
    ) {
        let mut fresh = true;
        for (i, input) in self.inputs.iter().enumerate() {
            let half = input.direction.half;
            let spin = u32::from(matches!(half.source, Side::Spin(_)));
            let shift = s.map(|s| (s - input.direction.s) as u32 + spin);
            let mut site = 0;
            for (q, (flags, w)) in half.blocks(block.column).enumerate() {
                let here = match half.source {
                    Side::Potts { q, .. } => w.len() / q,
                    _ => 0,
                };
                let first_site = site;
                site += here;
                if flags & EMPTY != 0 {
                    continue;
                }
                let flush = if flags & (FLUSH | LAST) != 0 { shift } else { None };
                let mode = Mode { fresh, flush };
                match input.states {
                    States::Bits(_) => match words.of(i, q, block) {
                        Word::Whole(words) => add_by_tables(isa, w, words, mode, table, narrow, wide),
                        Word::Lists(lists) => add_lists(isa, w, lists, mode, narrow, wide),
                    },
                    States::Codes(x) => {
                        let codes = &x.data()[block.first * x.sites()..][..block.rows * x.sites()];
                        add_codes(isa, w, x.q(), codes, x.sites(), first_site, mode, narrow, wide);
                    }
                }
                fresh = flush.is_some();
            }
        }
        if s.is_none() && fresh {
            narrow.fill(I16x32::default());
        }
    }

    /// The constant of 32 columns in the sampler's unit, if 16-bit sums can serve as logits directly.
    fn narrow_bias(&self, isa: Isa, column: usize) -> Option<I16x32> {
        let [input] = self.inputs else { return None };
        let half = input.direction.half;
        let spin = matches!(half.source, Side::Spin(_));
        let step = f64::from(-input.direction.s).exp2();
        let step_in_nats = self.factor() * step * if spin { 2.0 } else { 1.0 };
        if step_in_nats * STEPS_PER_NAT != 1.0 || !half.is_narrow(column) {
            return None;
        }
        let totals = spin.then(|| half.totals(column));
        let theta = &self.theta[column * WIDTH..];
        narrow_bias(isa, &theta[..theta.len().min(WIDTH)], totals, self.factor(), step)
    }

    /// The constant of 32 columns in steps of 2^-s.
    fn wide_bias(&self, column: usize, s: i32) -> I32x32 {
        let mut bias = I32x32::default();
        let limit = f64::from(1 << 29);
        for (c, (bias, &theta)) in bias.0.iter_mut().zip(&self.theta[column * WIDTH..]).enumerate() {
            *bias = (f64::from(theta) * f64::from(s).exp2()).round().clamp(-limit, limit) as i32;
            for input in self.inputs {
                if let Side::Spin(_) = input.direction.half.source {
                    let total = input.direction.half.totals(column)[c];
                    *bias = bias.wrapping_sub(total << (s - input.direction.s));
                }
            }
        }
        bias
    }
}

multiversion! {
    /// factor · (θ − Σŵ·step) in the sampler's unit, rounded, if all of them fit 16 bits; Σŵ are the sums of the weights of spins.
    fn narrow_bias(isa: Isa, theta: &[f32], totals: Option<&[i32; WIDTH]>, factor: f64, step: f64) -> Option<I16x32> {
        let (mut field, mut spins) = ([0.0; WIDTH], [0.0; WIDTH]);
        field.iter_mut().zip(theta).for_each(|(to, &theta)| *to = f64::from(theta));
        if let Some(totals) = totals {
            spins.iter_mut().zip(&totals[..theta.len()]).for_each(|(to, &total)| *to = f64::from(total) * step);
        }
        let (mut bias, mut fits) = (I16x32::default(), true);
        for ((bias, field), spins) in bias.0.iter_mut().zip(&field).zip(&spins) {
            let value = factor * (field - spins) * STEPS_PER_NAT;
            // Not so for a NaN either.
            fits &= value.abs() < 32767.5;
            // Rounded as by `round`, which is a call.
            let whole = value as i32;
            let rest = value - f64::from(whole);
            *bias = (whole + i32::from(rest >= 0.5) - i32::from(rest <= -0.5)) as i16;
        }
        fits.then_some(bias)
    }
}
