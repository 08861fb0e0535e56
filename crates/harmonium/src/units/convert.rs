//! States of a layer from and to numbers: values, dense rows, and batches in their natural form.

use super::batch::row_blocks;
use super::kind::Form;
use super::{Kind, Layer, row};
use crate::{Batch, Bits, Error, Real, Result};
use harmonium_kernels::{Key, bits};
use ndarray::{Array2, ArrayView2};

impl<T: Real> Layer<T> {
    /// Calls `f(state of the block, row, inputs, values)` for every row of a batch and keeps the values that
    /// `f` leaves; they are the row's own before the call only when `read` is set.
    pub(crate) fn rows_mut<S>(
        &self,
        inputs: &Array2<T>,
        out: &mut Batch<T>,
        read: bool,
        start: impl Fn(usize) -> S + Sync + Send,
        f: impl Fn(&mut S, usize, &[T], &mut [f64]) + Sync + Send,
    ) {
        self.check_inputs(inputs);
        assert_eq!((out.rows(), out.cols()), (inputs.nrows(), self.len()));
        let n = self.len();
        let kind = self.kind();
        match out {
            Batch::Bits(b) => {
                let stride = b.stride();
                row_blocks(b.words_mut(), stride, |block, first, rows| {
                    let (mut state, mut x) = (start(block), vec![0.0; n]);
                    for (r, words) in rows.chunks_exact_mut(stride).enumerate() {
                        if read {
                            read_bits(kind, words, &mut x);
                        }
                        f(&mut state, first + r, row(inputs, first + r), &mut x);
                        words.fill(0);
                        for (j, &x) in x.iter().enumerate() {
                            bits::set(words, j, x > 0.0);
                        }
                    }
                });
            }
            Batch::Codes(c) => {
                let data = c.as_slice_mut().expect("codes are in standard layout");
                row_blocks(data, n, |block, first, rows| {
                    let (mut state, mut x) = (start(block), vec![0.0; n]);
                    for (r, codes) in rows.chunks_exact_mut(n).enumerate() {
                        if read {
                            x.iter_mut().zip(&*codes).for_each(|(x, &c)| *x = f64::from(c));
                        }
                        f(&mut state, first + r, row(inputs, first + r), &mut x);
                        codes.iter_mut().zip(&x).for_each(|(c, &x)| *c = x as u32);
                    }
                });
            }
            Batch::Reals(m) => {
                let data = m.as_slice_mut().expect("reals are in standard layout");
                row_blocks(data, n, |block, first, rows| {
                    let (mut state, mut x) = (start(block), vec![0.0; n]);
                    for (r, reals) in rows.chunks_exact_mut(n).enumerate() {
                        if read {
                            x.iter_mut().zip(&*reals).for_each(|(x, r)| *x = r.f64());
                        }
                        f(&mut state, first + r, row(inputs, first + r), &mut x);
                        reals.iter_mut().zip(&x).for_each(|(c, &x)| *c = T::of(x));
                    }
                });
            }
        }
    }

    /// The values of the units of one row.
    pub(crate) fn read_row(&self, x: &Batch<T>, r: usize, out: &mut [f64]) {
        match x {
            Batch::Bits(b) => {
                read_bits(self.kind(), b.row(r), out);
            }
            Batch::Codes(c) => {
                out.iter_mut().zip(c.row(r)).for_each(|(o, &c)| *o = f64::from(c));
            }
            Batch::Reals(m) => out.iter_mut().zip(m.row(r)).for_each(|(o, x)| *o = x.f64()),
        }
    }

    /// A batch of zeros (spins: −1) in the natural form of the kind.
    pub fn zeros(&self, rows: usize) -> Batch<T> {
        let n = self.len();
        match self.kind().form() {
            Form::Bits => Batch::Bits(Bits::zeros(rows, n)),
            Form::Codes => Batch::Codes(Array2::zeros((rows, n))),
            Form::Reals => Batch::Reals(Array2::zeros((rows, n))),
        }
    }

    /// A batch from one number per unit, in any number type.
    ///
    /// # Errors
    /// A wrong number of columns, or a value that the kind does not allow, named by row and column.
    pub fn batch<S: Real>(&self, values: ArrayView2<'_, S>) -> Result<Batch<T>> {
        if values.ncols() != self.len() {
            return Err(Error::shape("columns of the data", self.len(), values.ncols()));
        }
        let domain = self.kind().domain();
        if let Some(((r, j), x)) = values.indexed_iter().find(|(_, x)| !domain.contains(x.f64())) {
            let what = format!("row {r}, column {j}");
            return Err(Error::value(what, self.kind().allowed(), x));
        }
        Ok(match self.kind().form() {
            Form::Bits => {
                Batch::Bits(Bits::from_fn(values.nrows(), self.len(), |r, j| values[[r, j]] > S::zero()))
            }
            Form::Codes => {
                Batch::Codes(values.mapv(|x| x.f64() as u32).as_standard_layout().into_owned())
            }
            Form::Reals => {
                Batch::Reals(values.mapv(|x| T::of(x.f64())).as_standard_layout().into_owned())
            }
        })
    }

    /// One number per unit.
    pub fn values(&self, x: &Batch<T>) -> Array2<f64> {
        let mut out = Array2::zeros((x.rows(), self.len()));
        for (r, mut row) in out.rows_mut().into_iter().enumerate() {
            self.read_row(x, r, row.as_slice_mut().expect("a row is contiguous"));
        }
        out
    }

    /// The dense form that couplings multiply: the values, or one-hot rows for Potts units.
    pub fn dense(&self, x: &Batch<T>) -> Array2<T> {
        let mut out = Array2::zeros((x.rows(), self.width()));
        let width = self.width();
        let data = out.as_slice_mut().expect("new arrays are in standard layout");
        row_blocks(data, width, |_, first, rows| {
            let mut values = vec![0.0; self.len()];
            for (r, out) in rows.chunks_exact_mut(width).enumerate() {
                self.read_row(x, first + r, &mut values);
                self.dense_row(&values, out);
            }
        });
        out
    }

    pub(crate) fn dense_row(&self, values: &[f64], out: &mut [T]) {
        match self.kind() {
            Kind::Potts { q } => {
                out.fill(T::zero());
                for (i, &a) in values.iter().enumerate() {
                    out[i * q as usize + a as usize] = T::one();
                }
            }
            _ => out.iter_mut().zip(values).for_each(|(o, &x)| *o = T::of(x)),
        }
    }

    /// Whether a batch holds values between 0 and 1 in place of bits: see [`check_data`](Self::check_data).
    pub fn is_soft(&self, x: &Batch<T>) -> bool {
        self.kind().takes_soft_data() && matches!(x, Batch::Reals(_))
    }

    /// Whether a batch can be data of this layer: states, or *soft bits*.
    ///
    /// Data of Binary units may be [`Batch::Reals`] with values from 0 to 1, such as the grey values of a picture. They
    /// replace the bits in the averages over the data: training then lowers the free energy F(v) of the soft rows
    /// relative to its average over the model, whose states are bits. This is not a likelihood, nor is it the same as
    /// drawing bits with these probabilities, because F is not linear in v. Values that are all 0 or 1 give the same
    /// results as bits. States of chains are never soft.
    ///
    /// # Errors
    /// As for [`check_batch`](Self::check_batch); a soft value that is not a number from 0 to 1.
    pub fn check_data(&self, x: &Batch<T>) -> Result<()> {
        let Batch::Reals(values) = x else { return self.check_batch(x) };
        if !self.is_soft(x) {
            return self.check_batch(x);
        }
        self.check_columns(x.cols())?;
        let inside = |x: &T| (T::zero()..=T::one()).contains(x);
        // Row by row without a branch for each number: the loop vectorises.
        let all = |row: &[T]| row.iter().fold(true, |all, x| all & inside(x));
        let columns = x.cols().max(1);
        if values.as_slice().is_some_and(|values| values.chunks(columns).all(all)) {
            return Ok(());
        }
        match values.indexed_iter().find(|(_, x)| !inside(x)) {
            Some(((r, j), x)) => {
                Err(Error::value(format!("row {r}, unit {j}"), "a number from 0 to 1", x))
            }
            None => Ok(()),
        }
    }

    /// Bits that are 1 with the probabilities `p`.
    pub(crate) fn drawn(&self, p: &Array2<T>, key: Key) -> Batch<T> {
        let logits = p.mapv(|p| (p / (T::one() - p)).ln());
        let mut out = self.zeros(p.nrows());
        Self::new(Kind::Binary, self.len()).sample_into(&logits, key, &mut out);
        out
    }

    fn check_columns(&self, columns: usize) -> Result<()> {
        match columns == self.len() {
            true => Ok(()),
            false => Err(Error::shape("units in a batch", self.len(), columns)),
        }
    }

    /// Whether a batch has this layer's form and columns.
    ///
    /// # Errors
    /// Says what differs; also when a Potts or binomial code is too large.
    pub fn check_batch(&self, x: &Batch<T>) -> Result<()> {
        let form = match x {
            Batch::Bits(_) => Form::Bits,
            Batch::Codes(_) => Form::Codes,
            Batch::Reals(_) => Form::Reals,
        };
        if form != self.kind().form() {
            let what = format!("states of a {} layer", self.kind());
            let got = match self.is_soft(x) {
                true => "Reals: values between 0 and 1 are data to train on, no states".into(),
                false => format!("{form:?}"),
            };
            return Err(Error::shape(what, format!("{:?}", self.kind().form()), got));
        }
        self.check_columns(x.cols())?;
        if let (Batch::Codes(c), Some(states)) = (x, self.kind().states())
            && let Some(((r, j), a)) = c.indexed_iter().find(|&(_, &a)| a >= states)
        {
            return Err(Error::value(format!("row {r}, unit {j}"), self.kind().allowed(), a));
        }
        Ok(())
    }
}

fn read_bits(kind: Kind, words: &[u64], out: &mut [f64]) {
    let (off, on) = (kind.value(0), kind.value(1));
    for (j, x) in out.iter_mut().enumerate() {
        *x = if bits::get(words, j) { on } else { off };
    }
}
