//! Moments ⟨t(x)⟩ over a batch: the one computation that both phases of learning share.

use super::phase::{Outer, Phase};
use super::product::{slice, slice_mut};
use super::tempered::MeanOf;
use super::{Coupling, Parameters, Tempered};
use crate::{Batch, Bits, Error, Kind, Layer, Real, Result, States};
use harmonium_kernels::bits::{self, BitMatrix, Values};
use harmonium_kernels::fixed::{self, Product, Write};
use harmonium_kernels::{Codes, Key, moments, transpose};
use ndarray::{Array2, ArrayView2};
use std::borrow::Cow;
use std::sync::Arc;

/// The states of a layer as one end of a product over rows.
enum End<'a, T: Real> {
    Bits(&'a Bits, Values),
    Codes(&'a Array2<u32>, u32),
    Dense(Cow<'a, Array2<T>>),
    /// Means in fixed point, opposite bits only.
    Rounded(Arc<fixed::Means>),
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
        let mut out = Phase::new(self.machine());
        self.moments_into(states, averaged, wts, &mut out)?;
        Ok(std::mem::take(out.parameters_mut()))
    }

    /// [`moments`](Self::moments) into the caller's phase, which is overwritten; products are left as they are.
    ///
    /// # Errors
    /// As for [`moments`](Self::moments).
    pub fn moments_into(
        &self,
        states: &States<T>,
        averaged: &[usize],
        wts: Option<&[f64]>,
        out: &mut Phase<T>,
    ) -> Result<()> {
        let mean = |l| self.mean_for_moments(l, states, self.may_round(l, states, wts));
        self.phase_by(states, averaged, wts, mean, out)
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
        let mean = |l| self.mean_for_moments(l, states, self.may_round(l, states, wts));
        let scale = scale / total_weight(states.rows(), wts)?;
        let ends = self.ends(states, averaged, wts, (scale, Write::Add), mean, &mut out.layers)?;
        for (c, out) in self.machine().couplings().iter().zip(&mut out.couplings) {
            self.coupling_moment(c, &ends, wts, (T::of(scale), Write::Add), out);
        }
        Ok(())
    }

    /// Draws the `averaged` layers given the others, the last part of a sweep, and writes the
    /// [`moments`](Self::moments), with the conditional means from the same inputs as the sample: the
    /// product that costs most is made once for both. Layer `l` draws from the stream of `key(l)`.
    ///
    /// # Errors
    /// As for [`moments`](Self::moments).
    pub(crate) fn sample_with_moments(
        &self,
        states: &mut States<T>,
        averaged: &[usize],
        key: impl Fn(usize) -> Key,
        out: &mut Phase<T>,
    ) -> Result<()> {
        let mut drawn = Vec::with_capacity(averaged.len());
        let mean = |l| {
            let mut x = self.layer(l).zeros(states.rows());
            let rounded = self.may_round(l, states, None);
            let mean = self.sample_with_mean(l, states, rounded, key(l), &mut x)?;
            drawn.push((l, x));
            Ok(mean)
        };
        self.phase_by(states, averaged, None, mean, out)?;
        for (l, x) in drawn {
            states.set(l, x);
        }
        Ok(())
    }

    /// Whether means of layer `l` may take the form that has a kernel opposite unweighted bits only.
    fn may_round(&self, l: usize, states: &States<T>, wts: Option<&[f64]>) -> bool {
        let bits = |o: usize| matches!(states.layer(o), Ok(Batch::Bits(_)));
        wts.is_none()
            && self.layer(l).kind().params() == ["theta"]
            && self.machine().couplings().iter().filter_map(|c| c.other(l)).all(bits)
    }

    /// Writes the moments of all layers and couplings, those of bits and rounded means as products.
    fn phase_by(
        &self,
        states: &States<T>,
        averaged: &[usize],
        wts: Option<&[f64]>,
        mean_of: impl FnMut(usize) -> Result<MeanOf<T>>,
        out: &mut Phase<T>,
    ) -> Result<()> {
        let scale = 1.0 / total_weight(states.rows(), wts)?;
        let (moments, products) = out.places();
        let ends =
            self.ends(states, averaged, wts, (scale, Write::Set), mean_of, &mut moments.layers)?;
        let couplings = self.machine().couplings().iter();
        for ((c, product), out) in couplings.zip(products).zip(&mut moments.couplings) {
            let (a, b) = c.ends();
            *product = match (&ends[a], &ends[b]) {
                (End::Bits(v, values), End::Rounded(means)) if c.mask().is_none() => Some(Outer {
                    v: (*v).clone(),
                    values: *values,
                    means: means.clone(),
                    scale: scale as f32,
                }),
                _ => {
                    self.coupling_moment(c, &ends, wts, (T::of(scale), Write::Set), out);
                    None
                }
            };
        }
        Ok(())
    }

    /// The states of every layer as one end of a product; writes or adds the moments of the layers.
    fn ends<'s>(
        &self,
        states: &'s States<T>,
        averaged: &[usize],
        wts: Option<&[f64]>,
        (scale, write): (f64, Write),
        mut mean_of: impl FnMut(usize) -> Result<MeanOf<T>>,
        out: &mut [Array2<T>],
    ) -> Result<Vec<End<'s, T>>> {
        self.must_factorise("the average over these layers", averaged)?;
        let mut ends = Vec::with_capacity(self.machine().len());
        for (l, out) in out.iter_mut().enumerate() {
            let layer = self.layer(l);
            let (end, stats) = if averaged.contains(&l) {
                // Where θ is the only parameter, the mean is the only sufficient statistic.
                match (mean_of(l)?, layer.kind().params()) {
                    (MeanOf::Rounded(means), _) => {
                        let sums = ArrayView2::from_shape((1, layer.width()), means.sums());
                        let sums = sums.expect("one sum per unit").to_owned();
                        (End::Rounded(Arc::new(means)), sums)
                    }
                    (MeanOf::Dense(mean), ["theta"]) => {
                        let sums = column_sums(&mean, wts);
                        (End::Dense(Cow::Owned(mean)), sums)
                    }
                    (MeanOf::Dense(mean), _) => {
                        let stats = layer.mean_stats(&self.inputs(l, states)?, wts);
                        (End::Dense(Cow::Owned(mean)), stats)
                    }
                }
            } else {
                let x = states.layer(l)?;
                (natural(layer, x), stats(layer, x, wts))
            };
            ends.push(end);
            if write == Write::Set {
                out.fill(T::zero());
            }
            out.zip_mut_with(&stats, |o, t| *o += T::of(scale * t));
        }
        Ok(ends)
    }

    /// $\langle x_a x_b^\top\rangle$ of every coupling from the dense form of every layer.
    pub(super) fn coupling_moments(
        &self,
        dense: Vec<Array2<T>>,
        wts: Option<&[f64]>,
        total: f64,
    ) -> Vec<Array2<T>> {
        let ends: Vec<_> = dense.into_iter().map(|x| End::Dense(Cow::Owned(x))).collect();
        let mut out = self.machine().zero_parameters::<T>().couplings;
        for (c, out) in self.machine().couplings().iter().zip(&mut out) {
            self.coupling_moment(c, &ends, wts, (T::of(1.0 / total), Write::Set), out);
        }
        out
    }

    /// `out ← [out +] scale · x_aᵀ x_b` summed over rows, inside the mask and without self-terms.
    fn coupling_moment(
        &self,
        c: &Coupling<T>,
        ends: &[End<'_, T>],
        wts: Option<&[f64]>,
        (scale, write): (T, Write),
        out: &mut Array2<T>,
    ) {
        let (a, b) = c.ends();
        let plain = !c.is_lateral() && c.mask().is_none();
        if plain && outer(&ends[a], &ends[b], wts, (scale, write), out) {
            return;
        }
        let fresh = (scale, Write::Set);
        let mut m = Array2::zeros(out.dim());
        if !outer(&ends[a], &ends[b], wts, fresh, &mut m) {
            let mut turned = Array2::zeros((out.ncols(), out.nrows()));
            if outer(&ends[b], &ends[a], wts, fresh, &mut turned) {
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
        match write {
            Write::Set => *out = m,
            Write::Add => *out += &m,
        }
    }
}

fn natural<'a, T: Real>(layer: &Layer<T>, x: &'a Batch<T>) -> End<'a, T> {
    match (x, layer.kind()) {
        (Batch::Bits(b), Kind::Spin) => End::Bits(b, Values::Spin),
        (Batch::Bits(b), _) => End::Bits(b, Values::Binary),
        (Batch::Codes(c), Kind::Potts { q }) => End::Codes(c, q),
        (Batch::Codes(_), _) => End::Dense(Cow::Owned(layer.dense(x))),
        (Batch::Reals(x), _) => End::Dense(Cow::Borrowed(x)),
    }
}

fn rows(b: &Bits) -> BitMatrix<'_> {
    BitMatrix::new(b.words(), b.rows(), b.cols())
}

/// Writes or adds by the kernel for these two ends, with bits or codes first; says whether there is one.
fn outer<T: Real>(
    a: &End<'_, T>,
    b: &End<'_, T>,
    wts: Option<&[f64]>,
    (scale, write): (T, Write),
    out: &mut Array2<T>,
) -> bool {
    let n = out.ncols();
    let out = slice_mut(out);
    if let (End::Bits(x, values), End::Rounded(means)) = (a, b) {
        let out = T::as_f32_mut(out).expect("fixed point is for single precision");
        let product = Product { v: rows(x), values: *values, means, scale: scale.f64() as f32 };
        fixed::bits_means(product, write, out);
        return true;
    }
    let ready = |out: &mut [T]| {
        if write == Write::Set {
            out.fill(T::zero());
        }
    };
    match (a, b) {
        (End::Bits(x, values), End::Dense(h)) => {
            ready(out);
            moments::add_bits_outer(rows(x), *values, slice(&weighted(h, wts)), n, scale, out);
        }
        (End::Codes(x, q), End::Dense(h)) => {
            ready(out);
            let codes =
                Codes::new(x.as_slice().expect("codes are in standard layout"), x.ncols(), *q as usize);
            moments::add_codes_outer(codes, slice(&weighted(h, wts)), n, scale, out);
        }
        (End::Bits(x, vx), End::Bits(y, vy)) if wts.is_none() => {
            ready(out);
            moments::add_bits_bits_outer((rows(x), *vx), (rows(y), *vy), scale, out);
        }
        (End::Dense(x), End::Dense(y)) => {
            let old = if write == Write::Set { T::zero() } else { T::one() };
            let (x, m) = (weighted(x, wts), x.ncols());
            let (x, rows) = (slice(&x), x.nrows());
            T::gemm((m, n, rows), scale, (x, 1, m), (slice(y), n, 1), old, (out, n, 1));
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
        End::Dense(x) => Cow::Borrowed(x.as_ref()),
        End::Rounded(_) => unreachable!("rounded means are opposite bits, which have a kernel"),
        End::Bits(b, _) => Cow::Owned(layer.dense(&Batch::Bits((*b).clone()))),
        End::Codes(c, _) => Cow::Owned(layer.dense(&Batch::Codes((*c).clone()))),
    }
}

/// Sufficient statistics of states, summed with weights.
fn stats<T: Real>(layer: &Layer<T>, x: &Batch<T>, wts: Option<&[f64]>) -> Array2<f64> {
    let b = match x {
        Batch::Bits(b) => b,
        Batch::Reals(x) if layer.kind() == Kind::Binary => return column_sums(x, wts),
        _ => return layer.stats(x, wts),
    };
    let mut sums = Array2::zeros((1, b.cols()));
    let values = if layer.kind() == Kind::Spin { Values::Spin } else { Values::Binary };
    if let Some(wts) = wts {
        // The kernel of the moments with a single column of weights.
        moments::add_bits_outer(rows(b), values, wts, 1, 1.0, slice_mut(&mut sums));
        return sums;
    }
    let mut counts = vec![0; b.cols()];
    bits::add_counts(rows(b), &mut counts);
    let of_count = |c: u32| match values {
        Values::Binary => f64::from(c),
        Values::Spin => 2.0 * f64::from(c) - b.rows() as f64,
    };
    sums.iter_mut().zip(counts).for_each(|(s, c)| *s = of_count(c));
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
    T::add_column_sums(slice(x), wts, slice_mut(&mut sums));
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
