//! What is computed from a field: samples, means, logits.

use super::Side;
use super::field::{Field, Sums};
use super::input::Block;
use super::means::{self, Means, Range};
use crate::bernoulli::{Dither, Noise, STEPS_PER_NAT, levels, pack, sample, sampled};
use crate::isa::{Isa, multiversion};
use crate::math;
use crate::scratch::first;
use crate::stream::Key;
use crate::strip::Strips;
use crate::x32::{I16x32, I32x32, WIDTH};

impl Field<'_> {
    /// Samples a Binary or Spin layer into packed rows.
    ///
    /// The block number of `key` is set for every block of 32 columns and 1024 rows, so the samples do not
    /// depend on the number of threads. Every bit is exactly Bernoulli with the probability that follows from
    /// the fixed-point field, up to the resolution of f64.
    ///
    /// # Panics
    /// If the layer is a Potts layer or `out` is not rows × words long.
    pub fn sample(&self, key: Key, out: &mut [u64]) {
        self.sample_on(Isa::detect(), key, out, None);
    }

    /// As [`Field::sample`], and the conditional means for moments as well.
    ///
    /// # Panics
    /// If the layer is a Potts layer or `out` has the wrong length.
    pub fn sample_with_means(&self, key: Key, out: &mut [u64], means: &mut Means) {
        let isa = Isa::detect();
        means.reshape(self.range(), self.rows, self.target.units());
        means.fill(self.chunks(), |means| self.sample_on(isa, key, out, Some(means)));
    }

    /// The conditional means for moments.
    ///
    /// # Panics
    /// If the layer is a Potts layer.
    pub fn rounded_means(&self, means: &mut Means) {
        let isa = Isa::detect();
        means.reshape(self.range(), self.rows, self.target.units());
        means.fill(self.chunks(), |means| {
            self.for_each_block(isa, |block, sums| round(isa, &sums, block, means));
        });
    }

    /// Writes the conditional means, row-major rows × n: σ(field) of a Binary, tanh(field) of a Spin layer.
    ///
    /// # Panics
    /// If the layer is a Potts layer or `out` is not rows × n long.
    pub fn means(&self, out: &mut [f32]) {
        let mean = match self.range() {
            Range::Binary => Output::Sigmoid,
            Range::Spin => Output::Tanh,
        };
        self.reals(Isa::detect(), mean, out);
    }

    /// Writes the fields β·(θ + Σ inputs), row-major rows × n.
    ///
    /// # Panics
    /// If `out` is not rows × n long.
    pub fn fields(&self, out: &mut [f32]) {
        self.reals(Isa::detect(), Output::Field, out);
    }

    fn reals(&self, isa: Isa, output: Output, out: &mut [f32]) {
        let n = self.target.units();
        assert_eq!(out.len(), self.rows * n, "field: output does not fit rows × n");
        let out = Strips::new(out, n);
        let factor = self.field_per_logit();
        self.for_each_block(isa, |block, sums| write(isa, &sums, output, factor, block, n, &out));
    }

    fn field_per_logit(&self) -> f32 {
        if matches!(self.target, Side::Spin(_)) { 0.5 } else { 1.0 }
    }

    fn range(&self) -> Range {
        match self.target {
            Side::Binary(_) => Range::Binary,
            Side::Spin(_) => Range::Spin,
            Side::Potts { .. } => {
                panic!("means and bits: take the logits or the codes of a Potts layer")
            }
        }
    }

    fn sample_on(&self, isa: Isa, key: Key, out: &mut [u64], means: Option<&means::Writer<'_>>) {
        assert!(!matches!(self.target, Side::Potts { .. }), "sample: a Potts layer has codes, not bits");
        let (n, rows) = (self.target.units(), self.rows);
        assert_eq!(out.len(), rows * crate::bits::words(n), "sample: output does not fit rows × words");
        let mut buffer = sampled();
        let sampled = first(&mut buffer, n.div_ceil(WIDTH) * rows);
        {
            let bits = Strips::new(sampled, rows);
            self.for_each_block(isa, |block, sums| {
                // SAFETY: no other task has this block of columns and rows.
                let bits = unsafe { bits.segment(block.column, block.first, block.rows) };
                let mut noise = Noise::new(key, block.column, block.chunk);
                match &sums {
                    Sums::Narrow(sums) => sample(isa, sums, &mut noise, bits),
                    Sums::Wide(sums) => sample(isa, sums, &mut noise, bits),
                }
                if let Some(means) = means {
                    round(isa, &sums, block, means);
                }
            });
        }
        pack(sampled, rows, n, out);
    }
}

/// The means of one block as levels.
fn round(isa: Isa, sums: &Sums<'_>, block: Block, means: &means::Writer<'_>) {
    // SAFETY: no other task has this block of columns and rows.
    let (out, totals) = unsafe { means.block(block.column, block.chunk, block.first, block.rows) };
    let dither = Dither::new(block.column, block.first);
    match sums {
        Sums::Narrow(sums) => levels(isa, sums, &dither, out, totals),
        Sums::Wide(sums) => levels(isa, sums, &dither, out, totals),
    }
}

/// What to write for each unit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Output {
    /// The field itself.
    Field,
    /// σ of the field.
    Sigmoid,
    /// tanh of the field.
    Tanh,
}

fn write(
    isa: Isa,
    sums: &Sums<'_>,
    output: Output,
    field_per_logit: f32,
    block: Block,
    n: usize,
    out: &Strips<'_, f32>,
) {
    match sums {
        Sums::Narrow(narrow) => {
            let scale = field_per_logit / STEPS_PER_NAT as f32;
            narrow_rows(isa, narrow.sums, &narrow.bias, scale, output, block, n, out);
        }
        Sums::Wide(wide) => {
            let scale = (wide.scale * f64::from(field_per_logit)) as f32;
            wide_rows(isa, wide.sums, scale, output, block, n, out);
        }
    }
}

multiversion! {
    fn narrow_rows(isa: Isa, sums: &[I16x32], bias: &I16x32, scale: f32, output: Output, block: Block, n: usize, out: &Strips<'_, f32>) {
        for (r, sums) in sums.iter().enumerate() {
            let mut field = [0.0; WIDTH];
            for ((field, &sum), &bias) in field.iter_mut().zip(&sums.0).zip(&bias.0) {
                *field = (i32::from(sum) + i32::from(bias)) as f32 * scale;
            }
            write_row(field, output, block, r, n, out);
        }
    }
}

multiversion! {
    fn wide_rows(isa: Isa, sums: &[I32x32], scale: f32, output: Output, block: Block, n: usize, out: &Strips<'_, f32>) {
        for (r, sums) in sums.iter().enumerate() {
            let mut field = [0.0; WIDTH];
            for (field, &sum) in field.iter_mut().zip(&sums.0) {
                *field = sum as f32 * scale;
            }
            write_row(field, output, block, r, n, out);
        }
    }
}

#[inline(always)]
fn write_row(
    mut field: [f32; WIDTH],
    output: Output,
    block: Block,
    r: usize,
    n: usize,
    out: &Strips<'_, f32>,
) {
    match output {
        Output::Field => {}
        Output::Sigmoid => field.iter_mut().for_each(|x| *x = math::f32::sigmoid(*x)),
        Output::Tanh => field.iter_mut().for_each(|x| *x = math::f32::tanh(*x)),
    }
    let j = WIDTH * block.column;
    let width = WIDTH.min(n - j);
    // SAFETY: no other task has this block of columns and rows.
    let out = unsafe { out.segment(block.first + r, j, width) };
    if let Ok(out) = <&mut [f32; WIDTH]>::try_from(&mut *out) {
        *out = field;
    } else {
        out.copy_from_slice(&field[..width]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::{BitMatrix, words};
    use crate::fixed::{Coupling, Input, States};
    use crate::stream::mix;

    /// 16-bit and 32-bit sums, words with many and with few set bits, small and large batches.
    #[test]
    fn the_same_samples_on_every_instruction_set() {
        for (k, n, rows, size, density) in
            [(64, 40, 300, 0.1, 2), (200, 70, 90, 2.0, 2), (150, 33, 20, 0.5, 30)]
        {
            let at = |i: usize| mix(i as u64) as f64 / 2f64.powi(64);
            let w: Vec<f32> = (0..k * n).map(|i| (size * (at(i) - 0.4)) as f32).collect();
            let theta: Vec<f32> = (0..n).map(|j| at(j + 999_999) as f32).collect();
            let mut x = vec![0; rows * words(k)];
            for (i, x) in x.iter_mut().enumerate() {
                *x = (0..density - 1).fold(mix(i as u64 + 5), |x, d| x & mix(i as u64 ^ mix(d)));
            }
            for row in x.chunks_exact_mut(words(k)) {
                row[words(k) - 1] &= crate::bits::last_mask(k);
            }
            let mut coupling = Coupling::new(Side::Binary(k), Side::Spin(n));
            coupling.refresh(&w);
            let inputs = [Input {
                direction: coupling.forward(),
                states: States::Bits(BitMatrix::new(&x, rows, k)),
            }];
            for beta in [1.0, 0.3] {
                let field = Field::new(Side::Spin(n), rows, &theta, beta, &inputs);
                let key = Key { seed: 3, purpose: 1, block: 0, sweep: 8 };
                let run = |isa| {
                    let mut out = vec![0; rows * words(n)];
                    let mut means = Means::default();
                    means.reshape(Range::Spin, rows, n);
                    means.fill(field.chunks(), |m| field.sample_on(isa, key, &mut out, Some(m)));
                    let sums = means.sums().to_vec();
                    (out, means.rounded.clone(), sums)
                };
                let portable = run(Isa::all()[0]);
                for isa in Isa::all() {
                    assert_eq!(run(isa), portable, "{}", isa.name());
                }
            }
        }
    }
}
