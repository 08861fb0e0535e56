//! Moments ⟨t(x)⟩ over a batch: the one computation that both phases of learning share.

use super::product::{slice, slice_mut};
use super::{Coupling, Parameters, Tempered};
use crate::{Batch, Bits, Error, Kind, Layer, Real, Result, States};
use harmonium_kernels::bits::{Rows, Values};
use harmonium_kernels::{Codes, Key, fixed, moments, transpose};
use ndarray::Array2;
use std::borrow::Cow;

/// The states of a layer as one end of a product over rows.
enum End<'a, T: Real> {
    Bits(&'a Bits, Values),
    Codes(&'a Array2<u32>, u32),
    /// Numbers; means of Binary or Spin units in fixed point name their range.
    Dense(Cow<'a, Array2<T>>, Option<fixed::Means>),
}

impl<T: Real> Tempered<'_, T> {
    /// Weighted averages over the rows of the sufficient statistics of every layer and coupling,
    /// $\langle t_k(x)\rangle$ and $\langle x_a x_b^\top\rangle$.
    ///
    /// The states of the `averaged` layers are not read: their conditional expectation given the others
    /// takes their place, which has the same mean as a sample and less variance. With data in the visible
    /// layers and the hidden ones averaged this is the positive phase; with chains, the negative one.
    ///
    /// # Errors
    /// Averaged layers that are coupled to each other, states that are not held, weights of another length
    /// or without a positive sum.
    pub fn moments(
        &self,
        states: &States<T>,
        averaged: &[usize],
        wts: Option<&[f64]>,
    ) -> Result<Parameters<T>> {
        let mut out = self.machine().zero_parameters();
        self.add_moments(states, averaged, wts, 1.0, &mut out)?;
        Ok(out)
    }

    /// `out ← out + scale ·` [`moments`](Self::moments).
    ///
    /// # Errors
    /// As for [`moments`](Self::moments).
    pub fn add_moments(
        &self,
        states: &States<T>,
        averaged: &[usize],
        wts: Option<&[f64]>,
        scale: f64,
        out: &mut Parameters<T>,
    ) -> Result<()> {
        let mean = |l| self.mean_for_moments(l, states);
        self.add_moments_by(states, averaged, wts, scale, mean, out)
    }

    /// Draws the `averaged` layers given the others, the last part of a sweep, and adds `scale` times the
    /// [`moments`](Self::moments), with the conditional means from the same inputs as the sample: the
    /// product that costs most is made once for both. Layer `l` draws from the stream of `key(l)`.
    ///
    /// # Errors
    /// As for [`moments`](Self::moments).
    pub(crate) fn sample_and_add_moments(
        &self,
        states: &mut States<T>,
        averaged: &[usize],
        key: impl Fn(usize) -> Key,
        scale: f64,
        out: &mut Parameters<T>,
    ) -> Result<()> {
        let mut drawn = Vec::with_capacity(averaged.len());
        let mean = |l| {
            let mut x = self.layer(l).zeros(states.rows());
            let mean = self.sample_with_mean(l, states, key(l), &mut x)?;
            drawn.push((l, x));
            Ok(mean)
        };
        self.add_moments_by(states, averaged, None, scale, mean, out)?;
        for (l, x) in drawn {
            states.set(l, x);
        }
        Ok(())
    }

    fn add_moments_by(
        &self,
        states: &States<T>,
        averaged: &[usize],
        wts: Option<&[f64]>,
        scale: f64,
        mut mean_of: impl FnMut(usize) -> Result<(Array2<T>, Option<fixed::Means>)>,
        out: &mut Parameters<T>,
    ) -> Result<()> {
        self.must_factorise("the average over these layers", averaged)?;
        let scale = scale / total_weight(states.rows(), wts)?;
        let mut ends = Vec::with_capacity(self.machine().len());
        for l in 0..self.machine().len() {
            let layer = self.layer(l);
            let (end, stats) = if averaged.contains(&l) {
                let (mean, range) = mean_of(l)?;
                let stats = match layer.kind().params() {
                    // The mean is the only sufficient statistic.
                    ["theta"] => column_sums(&mean, wts),
                    _ => layer.mean_stats(&self.inputs(l, states)?, wts),
                };
                (End::Dense(Cow::Owned(mean), range), stats)
            } else {
                let x = states.layer(l)?;
                (natural(layer, x), stats(layer, x, wts))
            };
            ends.push(end);
            out.layers[l].zip_mut_with(&stats, |o, t| *o += T::of(scale * t));
        }
        for (c, out) in self.machine().couplings().iter().zip(&mut out.couplings) {
            self.add_coupling(c, &ends, wts, T::of(scale), out);
        }
        Ok(())
    }

    /// $\langle x_a x_b^\top\rangle$ of every coupling from the dense form of every layer.
    pub(super) fn coupling_moments(
        &self,
        dense: Vec<Array2<T>>,
        wts: Option<&[f64]>,
        total: f64,
    ) -> Vec<Array2<T>> {
        let ends: Vec<_> = dense.into_iter().map(|x| End::Dense(Cow::Owned(x), None)).collect();
        let mut out = self.machine().zero_parameters::<T>().couplings;
        for (c, out) in self.machine().couplings().iter().zip(&mut out) {
            self.add_coupling(c, &ends, wts, T::of(1.0 / total), out);
        }
        out
    }

    /// `out ← out + scale · x_aᵀ x_b` summed over rows, inside the mask and without self-terms.
    fn add_coupling(
        &self,
        c: &Coupling<T>,
        ends: &[End<'_, T>],
        wts: Option<&[f64]>,
        scale: T,
        out: &mut Array2<T>,
    ) {
        let (a, b) = c.ends();
        let plain = !c.is_lateral() && c.mask().is_none();
        if plain && add_outer(&ends[a], &ends[b], wts, scale, out) {
            return;
        }
        let mut m = Array2::zeros(out.dim());
        if !add_outer(&ends[a], &ends[b], wts, scale, &mut m) {
            let mut turned = Array2::zeros((out.ncols(), out.nrows()));
            if add_outer(&ends[b], &ends[a], wts, scale, &mut turned) {
                transpose(slice(&turned), turned.nrows(), turned.ncols(), slice_mut(&mut m));
            } else {
                let [x, y] = [a, b].map(|l| dense(self.layer(l), &ends[l]));
                add_dense(&weighted(&x, wts), &y, scale, &mut m);
            }
        }
        if c.is_lateral() {
            clear_self(&mut m, self.layer(a).kind());
        }
        if let Some(mask) = c.mask() {
            m.indexed_iter_mut()
                .filter(|((i, j), _)| !mask.get(*i, *j))
                .for_each(|(_, x)| *x = T::zero());
        }
        *out += &m;
    }
}

fn natural<'a, T: Real>(layer: &Layer<T>, x: &'a Batch<T>) -> End<'a, T> {
    match (x, layer.kind()) {
        (Batch::Bits(b), Kind::Spin) => End::Bits(b, Values::Spin),
        (Batch::Bits(b), _) => End::Bits(b, Values::Binary),
        (Batch::Codes(c), Kind::Potts { q }) => End::Codes(c, q),
        (Batch::Codes(_), _) => End::Dense(Cow::Owned(layer.dense(x)), None),
        (Batch::Reals(x), _) => End::Dense(Cow::Borrowed(x), None),
    }
}

fn rows(b: &Bits) -> Rows<'_> {
    Rows::new(b.words(), b.rows(), b.cols())
}

/// Adds by the kernel for these two ends, with bits or codes first; says whether there is one.
fn add_outer<T: Real>(
    a: &End<'_, T>,
    b: &End<'_, T>,
    wts: Option<&[f64]>,
    scale: T,
    out: &mut Array2<T>,
) -> bool {
    let n = out.ncols();
    let out = slice_mut(out);
    match (a, b) {
        (End::Bits(x, Values::Binary), End::Dense(h, Some(range))) if wts.is_none() => {
            let (Some(h), Some(out)) = (T::as_f32(slice(h)), T::as_f32_mut(out)) else { return false };
            fixed::add_bits_means(rows(x), h, *range, n, scale.f64() as f32, out);
        }
        (End::Bits(x, values), End::Dense(h, _)) => {
            moments::add_bits_outer(rows(x), *values, slice(&weighted(h, wts)), n, scale, out);
        }
        (End::Codes(x, q), End::Dense(h, _)) => {
            let codes =
                Codes::new(x.as_slice().expect("codes are in standard layout"), x.ncols(), *q as usize);
            moments::add_codes_outer(codes, slice(&weighted(h, wts)), n, scale, out);
        }
        (End::Bits(x, vx), End::Bits(y, vy)) if wts.is_none() => {
            moments::add_bits_bits_outer((rows(x), *vx), (rows(y), *vy), scale, out);
        }
        _ => return false,
    }
    true
}

/// Rows times their weights.
fn weighted<'a, T: Real>(x: &'a Array2<T>, wts: Option<&[f64]>) -> Cow<'a, Array2<T>> {
    let Some(wts) = wts else { return Cow::Borrowed(x) };
    let mut x = x.clone();
    for (mut row, &wt) in x.rows_mut().into_iter().zip(wts) {
        row.mapv_inplace(|x| x * T::of(wt));
    }
    Cow::Owned(x)
}

fn dense<'a, T: Real>(layer: &Layer<T>, end: &'a End<'_, T>) -> Cow<'a, Array2<T>> {
    match end {
        End::Dense(x, _) => Cow::Borrowed(x.as_ref()),
        End::Bits(b, _) => Cow::Owned(layer.dense(&Batch::Bits((*b).clone()))),
        End::Codes(c, _) => Cow::Owned(layer.dense(&Batch::Codes((*c).clone()))),
    }
}

/// Sufficient statistics of states, summed with weights.
fn stats<T: Real>(layer: &Layer<T>, x: &Batch<T>, wts: Option<&[f64]>) -> Array2<f64> {
    let Batch::Bits(b) = x else { return layer.stats(x, wts) };
    // Counts of ones, by the kernel of the moments with a single column of weights.
    let values = if layer.kind() == Kind::Spin { Values::Spin } else { Values::Binary };
    let wts: Vec<f64> = wts.map_or_else(|| vec![1.0; b.rows()], <[f64]>::to_vec);
    let mut sums = Array2::zeros((1, b.cols()));
    moments::add_bits_outer(rows(b), values, &wts, 1, 1.0, slice_mut(&mut sums));
    sums
}

/// Sum of the weights, or the number of rows.
pub(super) fn total_weight(rows: usize, wts: Option<&[f64]>) -> Result<f64> {
    let total = match wts {
        None => rows as f64,
        Some(w) if w.len() != rows => return Err(Error::shape("weights", rows, w.len())),
        Some(w) => match w.iter().position(|w| !w.is_finite() || *w < 0.0) {
            Some(r) => return Err(Error::value(format!("weight of row {r}"), "a number ≥ 0", w[r])),
            None => w.iter().sum(),
        },
    };
    if total > 0.0 { Ok(total) } else { Err(Error::value("sum of the weights", "positive", total)) }
}

/// Weighted sums of the columns, as one row.
fn column_sums<T: Real>(x: &Array2<T>, wts: Option<&[f64]>) -> Array2<f64> {
    let mut sums = Array2::zeros((1, x.ncols()));
    for (r, row) in x.rows().into_iter().enumerate() {
        let wt = wts.map_or(1.0, |w| w[r]);
        sums.iter_mut().zip(row).for_each(|(s, x)| *s += wt * x.f64());
    }
    sums
}

/// `out ← out + scale · xᵀy`.
fn add_dense<T: Real>(x: &Array2<T>, y: &Array2<T>, scale: T, out: &mut Array2<T>) {
    let ((rows, m), n) = (x.dim(), y.ncols());
    T::gemm((m, n, rows), scale, (slice(x), 1, m), (slice(y), n, 1), T::one(), (slice_mut(out), n, 1));
}

/// Zeroes what a unit has in common with itself.
pub(crate) fn clear_self<T: Real>(m: &mut Array2<T>, kind: Kind) {
    let c = kind.columns();
    for ((i, j), x) in m.indexed_iter_mut() {
        if i / c == j / c {
            *x = T::zero();
        }
    }
}
