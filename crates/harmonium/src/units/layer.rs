//! A layer: units of one kind with their parameters, over whole batches.

use super::batch::{block_sum, row_blocks};
use super::kind::Form;
use super::{Kind, binary, binomial, drelu, gaussian, poisson, potts, relu, scalar, spin};
use crate::{Batch, Bits, Error, Real, Result};
use harmonium_kernels::{Key, Stream, bits};
use ndarray::{Array2, ArrayView2, Zip};
use rand::Rng;

/// Units of one kind and their parameters.
///
/// `inputs` are matrices of one row per configuration and [`width`](Self::width) columns; values of states
/// are one number per unit (a Potts state is its code).
#[derive(Clone, Debug, PartialEq)]
pub struct Layer<T = f32> {
    kind: Kind,
    params: Array2<T>,
}

/// Calls a function of `scalar.rs` with the unit of this kind, or the given expression for Potts units.
macro_rules! per_kind {
    ($layer:expr, scalar::$f:ident($($arg:expr),*), |$q:ident| $potts:expr) => {
        match $layer.kind {
            Kind::Binary => scalar::$f(binary::Binary, $($arg),*),
            Kind::Spin => scalar::$f(spin::Spin, $($arg),*),
            Kind::Gaussian => scalar::$f(gaussian::Gaussian, $($arg),*),
            Kind::Relu => scalar::$f(relu::Relu, $($arg),*),
            Kind::Drelu => scalar::$f(drelu::Drelu, $($arg),*),
            Kind::Binomial { n } => scalar::$f(binomial::Binomial { n }, $($arg),*),
            Kind::Poisson => scalar::$f(poisson::Poisson, $($arg),*),
            Kind::Potts { q } => { let $q = q as usize; $potts }
        }
    };
}

impl<T: Real> Layer<T> {
    /// `n` units with every θ zero and every γ one.
    pub fn new(kind: Kind, n: usize) -> Self {
        let mut params = Array2::zeros((kind.params().len(), n * kind.columns()));
        for (mut row, name) in params.rows_mut().into_iter().zip(kind.params()) {
            if name.starts_with("gamma") {
                row.fill(T::one());
            }
        }
        Self { kind, params }
    }

    /// Units with the given parameters: one row per name in [`Kind::params`], one column per column of a
    /// dense matrix (so n·q for Potts units, the states of a unit side by side).
    ///
    /// # Errors
    /// A wrong number of rows or columns, a number that is not finite, or a γ that is not positive.
    pub fn with_params(kind: Kind, params: Array2<T>) -> Result<Self> {
        if let Kind::Potts { q: 0 } | Kind::Binomial { n: 0 } = kind {
            return Err(Error::value("layer kind", "at least one state", kind));
        }
        let (rows, cols) = params.dim();
        if rows != kind.params().len() {
            let what = format!("parameter arrays of a {kind} layer");
            return Err(Error::shape(what, kind.params().len(), rows));
        }
        if cols % kind.columns() != 0 {
            let what = format!("columns of a {kind} layer");
            return Err(Error::shape(what, format!("a multiple of {}", kind.columns()), cols));
        }
        let layer = Self { kind, params: params.as_standard_layout().into_owned() };
        layer.check()?;
        Ok(layer)
    }

    /// Whether all parameters are finite and all γ positive.
    ///
    /// # Errors
    /// Names the first offending parameter.
    pub fn check(&self) -> Result<()> {
        for (row, name) in self.params.rows().into_iter().zip(self.kind.params()) {
            let gamma = name.starts_with("gamma");
            for (j, &x) in row.iter().enumerate() {
                if !x.is_finite() || gamma && x <= T::zero() {
                    let expected = if gamma { "a positive number" } else { "a finite number" };
                    return Err(Error::value(format!("{name}[{j}]"), expected, x));
                }
            }
        }
        Ok(())
    }

    /// The kind of the units.
    pub fn kind(&self) -> Kind {
        self.kind
    }
    /// Number of units.
    pub fn len(&self) -> usize {
        self.width() / self.kind.columns()
    }
    /// Whether the layer has no units.
    pub fn is_empty(&self) -> bool {
        self.width() == 0
    }
    /// Columns of inputs and dense matrices.
    pub fn width(&self) -> usize {
        self.params.ncols()
    }
    /// The parameters: a row for each name of [`Kind::params`].
    pub fn params(&self) -> &Array2<T> {
        &self.params
    }
    /// The parameters, to be changed; [`check`](Self::check) says whether they still make sense.
    pub fn params_mut(&mut self) -> &mut Array2<T> {
        &mut self.params
    }
    fn flat(&self) -> &[T] {
        self.params.as_slice().expect("parameters are kept in standard layout")
    }

    /// The layer of $e^{-\beta E}$: every parameter times β. Inputs must be scaled by β as well.
    pub fn tempered(&self, beta: f64) -> Self {
        Self { kind: self.kind, params: self.params.mapv(|p| T::of(beta * p.f64())) }
    }

    /// The same layer in the other precision.
    pub fn cast<S: Real>(&self) -> Layer<S> {
        Layer { kind: self.kind, params: self.params.mapv(|p| S::of(p.f64())) }
    }

    /// The layer whose parameters are (1−β) times those of `base` plus β times its own.
    pub(crate) fn mixed(&self, base: &Self, beta: f64) -> Self {
        let mix = |&a: &T, &b: &T| T::of((1.0 - beta) * a.f64() + beta * b.f64());
        let params = Zip::from(&base.params).and(&self.params).map_collect(mix);
        Self { kind: self.kind, params }
    }

    fn check_inputs(&self, inputs: &Array2<T>) {
        assert_eq!(inputs.ncols(), self.width(), "inputs have one column per column of the layer");
        assert!(inputs.is_standard_layout());
    }

    /// Γ of each row, summed over units, is added to `out`.
    pub fn add_cgf(&self, inputs: &Array2<T>, out: &mut [f64]) {
        self.check_inputs(inputs);
        assert_eq!(out.len(), inputs.nrows());
        row_blocks(out, 1, |_, first, out| {
            for (r, out) in out.iter_mut().enumerate() {
                *out += self.cgf_row(row(inputs, first + r));
            }
        });
    }

    pub(crate) fn cgf_row(&self, inputs: &[T]) -> f64 {
        per_kind!(self, scalar::cgf(self.flat(), inputs), |q| potts::cgf(q, self.flat(), inputs))
    }

    /// Conditional means, as a dense matrix (the probabilities of the states for Potts units).
    pub fn mean_into(&self, inputs: &Array2<T>, out: &mut Array2<T>) {
        self.per_row(inputs, out, |inputs, out| self.mean_row(inputs, out));
    }

    pub(crate) fn mean_row(&self, inputs: &[T], out: &mut [T]) {
        per_kind!(self, scalar::mean(self.flat(), inputs, out), |q| {
            potts::mean(q, self.flat(), inputs, out)
        });
    }

    /// Conditional variances of the columns of the dense form.
    pub fn variance_into(&self, inputs: &Array2<T>, out: &mut Array2<T>) {
        self.per_row(inputs, out, |inputs, out| self.variance_row(inputs, out));
    }

    pub(crate) fn variance_row(&self, inputs: &[T], out: &mut [T]) {
        per_kind!(self, scalar::variance(self.flat(), inputs, out), |q| {
            potts::variance(q, self.flat(), inputs, out)
        });
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
        let no_state = |_| ();
        self.rows_mut(inputs, &mut out, false, no_state, |(), _, inputs, x| {
            per_kind!(self, scalar::mode(self.flat(), inputs, x), |q| {
                potts::mode(q, self.flat(), inputs, x)
            });
        });
        out
    }

    /// Draws every unit given its input. Block `b` of rows draws from the stream of `key` with `block` b.
    pub fn sample_into(&self, inputs: &Array2<T>, key: Key, out: &mut Batch<T>) {
        let stream = |block| Stream::new(Key { block: block as u32, ..key });
        self.rows_mut(inputs, out, false, stream, |rng, _, inputs, x| {
            per_kind!(self, scalar::sample(self.flat(), inputs, rng, x), |q| {
                potts::sample(q, self.flat(), inputs, rng, x)
            });
        });
    }

    /// Draws unit `j` alone: `inputs` are the columns of this unit.
    pub(crate) fn sample_unit<R: Rng>(&self, j: usize, inputs: &[T], rng: &mut R) -> f64 {
        let c = self.kind.columns();
        let one = self.flat();
        match self.kind {
            Kind::Potts { .. } => potts::sample_unit(&one[j * c..(j + 1) * c], inputs, rng),
            _ => {
                let mut x = [0.0];
                let k = self.kind.params().len();
                let p: [T; 4] =
                    std::array::from_fn(|i| if i < k { one[i * self.width() + j] } else { T::zero() });
                let p = &p[..k];
                per_kind!(self, scalar::sample(p, inputs, rng, &mut x), |_q| unreachable!());
                x[0]
            }
        }
    }

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
        let kind = self.kind;
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
                read_bits(self.kind, b.row(r), out);
            }
            Batch::Codes(c) => {
                out.iter_mut().zip(c.row(r)).for_each(|(o, &c)| *o = f64::from(c));
            }
            Batch::Reals(m) => out.iter_mut().zip(m.row(r)).for_each(|(o, x)| *o = x.f64()),
        }
    }

    /// Adds the base energy of each row, $-\sum_k \eta_k t_k(x)$, to `out`.
    pub fn add_energy(&self, x: &Batch<T>, out: &mut [f64]) {
        assert_eq!((x.rows(), x.cols()), (out.len(), self.len()));
        row_blocks(out, 1, |_, first, out| {
            let mut values = vec![0.0; self.len()];
            let mut t = vec![0.0; self.flat().len()];
            for (r, out) in out.iter_mut().enumerate() {
                self.read_row(x, first + r, &mut values);
                t.fill(0.0);
                self.stats_row(&values, 1.0, &mut t);
                *out -= t.iter().zip(self.flat()).map(|(t, p)| t * p.f64()).sum::<f64>();
            }
        });
    }

    /// Adds $\ln\nu(x)$ of each row to `out`: zero but for Binomial and Poisson units.
    pub fn add_log_measure(&self, x: &Batch<T>, out: &mut [f64]) {
        if !matches!(self.kind, Kind::Binomial { .. } | Kind::Poisson) {
            return;
        }
        row_blocks(out, 1, |_, first, out| {
            let mut values = vec![0.0; self.len()];
            for (r, out) in out.iter_mut().enumerate() {
                self.read_row(x, first + r, &mut values);
                *out += self.log_measure_row(&values);
            }
        });
    }

    pub(crate) fn log_measure_row(&self, values: &[f64]) -> f64 {
        per_kind!(self, scalar::log_measure(values), |_q| 0.0)
    }

    pub(crate) fn stats_row(&self, values: &[f64], wt: f64, out: &mut [f64]) {
        per_kind!(self, scalar::stats(values, wt, out), |q| potts::stats(q, values, wt, out));
    }

    pub(crate) fn mean_stats_row(&self, inputs: &[T], wt: f64, out: &mut [f64]) {
        per_kind!(self, scalar::mean_stats(self.flat(), inputs, wt, out), |q| potts::mean_stats(
            q,
            self.flat(),
            inputs,
            wt,
            out
        ));
    }

    /// Sufficient moments $\sum_r w_r t_k(x_r)$ of sampled or observed states, shaped like the parameters.
    pub fn stats(&self, x: &Batch<T>, wts: Option<&[f64]>) -> Array2<f64> {
        let sum = block_sum(x.rows(), self.flat().len(), |rows, part| {
            let mut values = vec![0.0; self.len()];
            for r in rows {
                self.read_row(x, r, &mut values);
                self.stats_row(&values, wts.map_or(1.0, |w| w[r]), part);
            }
        });
        Array2::from_shape_vec(self.params.dim(), sum).expect("one number per parameter")
    }

    /// Expected sufficient moments $\sum_r w_r \langle t_k\rangle$ given the inputs, shaped like the
    /// parameters: what a sampled state would give on average, with less variance.
    pub fn mean_stats(&self, inputs: &Array2<T>, wts: Option<&[f64]>) -> Array2<f64> {
        self.check_inputs(inputs);
        let sum = block_sum(inputs.nrows(), self.flat().len(), |rows, part| {
            for r in rows {
                self.mean_stats_row(row(inputs, r), wts.map_or(1.0, |w| w[r]), part);
            }
        });
        Array2::from_shape_vec(self.params.dim(), sum).expect("one number per parameter")
    }

    /// A batch of zeros (spins: −1) in the natural form of the kind.
    pub fn zeros(&self, rows: usize) -> Batch<T> {
        let n = self.len();
        match self.kind.form() {
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
        if let Some(((r, j), x)) = values.indexed_iter().find(|(_, x)| !self.kind.allows(x.f64())) {
            let what = format!("row {r}, column {j}");
            return Err(Error::value(what, self.kind.allowed(), x));
        }
        Ok(match self.kind.form() {
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
        match self.kind {
            Kind::Potts { q } => {
                out.fill(T::zero());
                for (i, &a) in values.iter().enumerate() {
                    out[i * q as usize + a as usize] = T::one();
                }
            }
            _ => out.iter_mut().zip(values).for_each(|(o, &x)| *o = T::of(x)),
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
        if form != self.kind.form() {
            let what = format!("states of a {} layer", self.kind);
            return Err(Error::shape(what, format!("{:?}", self.kind.form()), format!("{form:?}")));
        }
        if x.cols() != self.len() {
            return Err(Error::shape("units in a batch", self.len(), x.cols()));
        }
        if let (Batch::Codes(c), Some(states)) = (x, self.kind.states()) {
            if let Some(((r, j), a)) = c.indexed_iter().find(|&(_, &a)| a >= states) {
                return Err(Error::value(format!("row {r}, unit {j}"), self.kind.allowed(), a));
            }
        }
        Ok(())
    }
}

fn row<T>(x: &Array2<T>, r: usize) -> &[T] {
    let n = x.ncols();
    &x.as_slice().expect("inputs are in standard layout")[r * n..(r + 1) * n]
}

fn read_bits(kind: Kind, words: &[u64], out: &mut [f64]) {
    let (off, on) = (kind.value(0), kind.value(1));
    for (j, x) in out.iter_mut().enumerate() {
        *x = if bits::get(words, j) { on } else { off };
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
