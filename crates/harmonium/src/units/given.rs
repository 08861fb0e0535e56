//! A layer given its inputs: Γ, means, variances, modes and samples over whole batches.

use super::batch::row_blocks;
use super::{Kind, Layer, ordinal, per_kind, potts, row, rows};
use crate::{Batch, Real};
use harmonium_kernels::{Key, Stream};
use ndarray::Array2;
use rand::Rng;

impl<T: Real> Layer<T> {
    pub(super) fn check_inputs(&self, inputs: &Array2<T>) {
        assert_eq!(inputs.ncols(), self.width(), "inputs have one column per column of the layer");
        assert!(inputs.is_standard_layout());
    }

    /// Γ of each row, summed over units, is added to `out`.
    pub fn add_cgf(&self, inputs: &Array2<T>, out: &mut [f64]) {
        self.check_inputs(inputs);
        assert_eq!(out.len(), inputs.nrows());
        row_blocks(out, 1, |_, first, out| {
            let mut scratch = vec![T::zero(); self.width()];
            for (r, out) in out.iter_mut().enumerate() {
                *out += self.cgf_row(row(inputs, first + r), &mut scratch);
            }
        });
    }

    /// Γ of one row; `scratch` has the width of the layer and is overwritten.
    pub(crate) fn cgf_row(&self, inputs: &[T], scratch: &mut [T]) -> f64 {
        rows::cgf(self.kind(), self.flat(), inputs, scratch).unwrap_or_else(|| {
            let params = self.flat();
            per_kind!(
                self,
                scalar::cgf(params, inputs),
                |_q| unreachable!("Potts rows are vectorised"),
                |n| ordinal::cgf(n, params, inputs)
            )
        })
    }

    /// Conditional means, as a dense matrix (the probabilities of the states for Potts units).
    pub fn mean_into(&self, inputs: &Array2<T>, out: &mut Array2<T>) {
        self.per_row(inputs, out, |inputs, out| self.mean_row(inputs, out));
    }

    pub(crate) fn mean_row(&self, inputs: &[T], out: &mut [T]) {
        if !rows::mean(self.kind(), self.flat(), inputs, out) {
            let params = self.flat();
            per_kind!(
                self,
                scalar::mean(params, inputs, out),
                |_q| unreachable!("Potts rows are vectorised"),
                |n| ordinal::mean(n, params, inputs, out)
            );
        }
    }

    /// Conditional variances of the columns of the dense form.
    pub fn variance_into(&self, inputs: &Array2<T>, out: &mut Array2<T>) {
        self.per_row(inputs, out, |inputs, out| self.variance_row(inputs, out));
    }

    pub(crate) fn variance_row(&self, inputs: &[T], out: &mut [T]) {
        let params = self.flat();
        per_kind!(
            self,
            scalar::variance(params, inputs, out),
            |q| potts::variance(q, params, inputs, out),
            |n| ordinal::variance(n, params, inputs, out)
        );
    }

    fn per_row(
        &self,
        inputs: &Array2<T>,
        out: &mut Array2<T>,
        f: impl Fn(&[T], &mut [T]) + Sync + Send,
    ) {
        self.check_inputs(inputs);
        assert_eq!(out.dim(), inputs.dim());
        let width = self.width();
        let out = out.as_slice_mut().expect("outputs are in standard layout");
        row_blocks(out, width, |_, first, rows| {
            for (r, out) in rows.chunks_exact_mut(width).enumerate() {
                f(row(inputs, first + r), out);
            }
        });
    }

    /// The most probable state of each unit given its input.
    pub fn mode(&self, inputs: &Array2<T>) -> Batch<T> {
        let mut out = self.zeros(inputs.nrows());
        let (no_state, params) = (|_| (), self.flat());
        self.rows_mut(inputs, &mut out, false, no_state, |(), _, inputs, x| {
            per_kind!(
                self,
                scalar::mode(params, inputs, x),
                |q| potts::mode(q, params, inputs, x),
                |n| ordinal::mode(n, params, inputs, x)
            );
        });
        out
    }

    /// Draws every unit given its input. Block `b` of rows draws from the stream of `key` with `block` b.
    pub fn sample_into(&self, inputs: &Array2<T>, key: Key, out: &mut Batch<T>) {
        if let Batch::Bits(bits) = out {
            self.check_inputs(inputs);
            assert_eq!((bits.rows(), bits.cols()), inputs.dim());
            let mut logits = Array2::zeros(inputs.dim());
            self.per_row(inputs, &mut logits, |inputs, out| {
                rows::logits(self.kind(), self.flat(), inputs, out)
            });
            let logits = logits.as_slice().expect("a new array");
            T::sample_bits(logits, self.width(), key, bits.words_mut());
            return;
        }
        let stream = |block| Stream::new(Key { block: block as u32, ..key });
        let params = self.flat();
        self.rows_mut(inputs, out, false, stream, |rng, _, inputs, x| {
            per_kind!(
                self,
                scalar::sample(params, inputs, rng, x),
                |q| potts::sample(q, params, inputs, rng, x),
                |n| ordinal::sample(n, params, inputs, rng, x)
            );
        });
    }

    /// Draws unit `j` alone: `inputs` are the columns of this unit.
    pub(crate) fn sample_unit<R: Rng>(&self, j: usize, inputs: &[T], rng: &mut R) -> f64 {
        let c = self.kind().columns();
        let one = self.flat();
        match self.kind() {
            Kind::Potts { .. } => potts::sample_unit(&one[j * c..(j + 1) * c], inputs, rng),
            Kind::Ordinal { n } => ordinal::sample_unit(n, one, (self.width(), j), inputs[0], rng),
            _ => {
                let mut x = [0.0];
                let k = self.kind().params().len();
                let p: [T; 4] =
                    std::array::from_fn(|i| if i < k { one[i * self.width() + j] } else { T::zero() });
                let p = &p[..k];
                per_kind!(self, scalar::sample(p, inputs, rng, &mut x), |_q| unreachable!(), |_n| {
                    unreachable!()
                });
                x[0]
            }
        }
    }
}
