//! Moments ⟨t(x)⟩ over a batch: the one computation that both phases of learning share.

use super::phase::{Phase, Work};
use super::product::{slice, slice_mut};
use super::{Coupling, Parameters, Tempered};
use crate::{Batch, Bits, Error, Kind, Layer, Real, Result, States};
use harmonium_kernels::bits::{self, Values};
use harmonium_kernels::fixed::{self, Product, Write};
use harmonium_kernels::{Codes, Key, moments, transpose};
use ndarray::Array2;
use std::borrow::Cow;

/// The states of a layer as one end of a product over rows.
enum End<'a, T: Real> {
    Bits(&'a Bits, Values),
    Codes(&'a Array2<u32>, u32),
    Dense(Cow<'a, Array2<T>>),
    /// Means in fixed point, opposite bits only.
    Rounded(&'a fixed::Means),
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
        let (_, _, work) = out.places();
        self.means_for_moments(states, averaged, wts, work)?;
        self.phase_from_means(states, averaged, wts, out)
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
        let scale = scale / total_weight(states.rows(), wts)?;
        let mut work = vec![Work::default(); self.machine().len()];
        self.means_for_moments(states, averaged, wts, &mut work)?;
        self.layer_moments(states, averaged, wts, (scale, Write::Add), &mut work, &mut out.layers)?;
        for (c, out) in self.machine().couplings().iter().zip(&mut out.couplings) {
            let (a, b) = c.ends();
            let ends = (self.end(a, states, averaged, &work)?, self.end(b, states, averaged, &work)?);
            self.coupling_moment(c, (&ends.0, &ends.1), wts, (T::of(scale), Write::Add), out);
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
        self.must_factorise("the average over these layers", averaged)?;
        for &l in averaged {
            let layer = self.layer(l);
            let old = states.take(l).filter(|x| !layer.is_soft(x));
            let mut x = old.unwrap_or_else(|| layer.zeros(states.rows()));
            let rounded = self.may_round(l, states, None);
            let work = &mut out.places().2[l];
            let made = self.sample_with_mean(l, states, rounded, key(l), &mut x, work);
            states.set(l, x);
            made?;
        }
        self.phase_from_means(states, averaged, None, out)
    }

    /// Whether means of layer `l` may be rounded: the kernel for rounded means needs unweighted bits at the other end.
    fn may_round(&self, l: usize, states: &States<T>, wts: Option<&[f64]>) -> bool {
        let bits = |o: usize| matches!(states.layer(o), Ok(Batch::Bits(_)));
        wts.is_none()
            && self.layer(l).kind().params() == ["theta"]
            && self.machine().couplings().iter().filter_map(|c| c.other(l)).all(bits)
    }

    /// The conditional means of the averaged layers.
    fn means_for_moments(
        &self,
        states: &States<T>,
        averaged: &[usize],
        wts: Option<&[f64]>,
        work: &mut [Work<T>],
    ) -> Result<()> {
        self.must_factorise("the average over these layers", averaged)?;
        for &l in averaged {
            self.mean_for_moments(l, states, self.may_round(l, states, wts), &mut work[l])?;
        }
        Ok(())
    }

    /// Writes the moments of all layers and couplings, those of bits and rounded means as products, from the means of the
    /// averaged layers.
    fn phase_from_means(
        &self,
        states: &States<T>,
        averaged: &[usize],
        wts: Option<&[f64]>,
        out: &mut Phase<T>,
    ) -> Result<()> {
        let scale = 1.0 / total_weight(states.rows(), wts)?;
        let (moments, products, work) = out.places();
        self.layer_moments(states, averaged, wts, (scale, Write::Set), work, &mut moments.layers)?;
        let couplings = self.machine().couplings().iter();
        for ((c, product), out) in couplings.zip(products).zip(&mut moments.couplings) {
            let (a, b) = c.ends();
            let ends = (self.end(a, states, averaged, work)?, self.end(b, states, averaged, work)?);
            match &ends {
                (End::Bits(v, values), End::Rounded(_)) if c.mask().is_none() => {
                    product.set(v, *values, b, scale as f32);
                }
                _ => {
                    product.clear();
                    self.coupling_moment(c, (&ends.0, &ends.1), wts, (T::of(scale), Write::Set), out);
                }
            }
        }
        Ok(())
    }

    /// The states or the means of layer `l` as one end of a product.
    fn end<'s>(
        &self,
        l: usize,
        states: &'s States<T>,
        averaged: &[usize],
        work: &'s [Work<T>],
    ) -> Result<End<'s, T>> {
        Ok(match averaged.contains(&l) {
            true if work[l].is_rounded => End::Rounded(&work[l].rounded),
            true => End::Dense(Cow::Borrowed(&work[l].mean)),
            false => natural(self.layer(l), states.layer(l)?),
        })
    }

    /// Writes or adds the moments of the layers.
    fn layer_moments(
        &self,
        states: &States<T>,
        averaged: &[usize],
        wts: Option<&[f64]>,
        (scale, write): (f64, Write),
        work: &mut [Work<T>],
        out: &mut [Array2<T>],
    ) -> Result<()> {
        for (l, (work, out)) in work.iter_mut().zip(out).enumerate() {
            let layer = self.layer(l);
            if !averaged.contains(&l) {
                stats(layer, states.layer(l)?, wts, work);
            } else if !work.is_rounded {
                // Where θ is the only parameter, the mean is the only sufficient statistic.
                match layer.kind().params() {
                    ["theta"] => column_sums(&work.mean, wts, &mut work.sums),
                    _ => work.sums = layer.mean_stats(&self.inputs(l, states)?, wts),
                }
            }
            let is_rounded = averaged.contains(&l) && work.is_rounded;
            let sums = if is_rounded { work.rounded.sums() } else { slice(&work.sums) };
            let out = slice_mut(out);
            assert_eq!(out.len(), sums.len(), "one sum for each statistic");
            if write == Write::Set {
                out.fill(T::zero());
            }
            out.iter_mut().zip(sums).for_each(|(o, t)| *o += T::of(scale * t));
        }
        Ok(())
    }

    /// $\langle x_a x_b^\top\rangle$ of every coupling from the dense form of every layer.
    pub(super) fn coupling_moments(
        &self,
        dense: &[Array2<T>],
        wts: Option<&[f64]>,
        total: f64,
    ) -> Vec<Array2<T>> {
        let mut out = self.machine().zero_parameters::<T>().couplings;
        for (c, out) in self.machine().couplings().iter().zip(&mut out) {
            let end = |l: usize| End::Dense(Cow::Borrowed(&dense[l]));
            let ends = (&end(c.ends().0), &end(c.ends().1));
            self.coupling_moment(c, ends, wts, (T::of(1.0 / total), Write::Set), out);
        }
        out
    }

    /// `out ← [out +] scale · x_aᵀ x_b` summed over rows, inside the mask and without self-terms.
    fn coupling_moment(
        &self,
        c: &Coupling<T>,
        (left, right): (&End<'_, T>, &End<'_, T>),
        wts: Option<&[f64]>,
        (scale, write): (T, Write),
        out: &mut Array2<T>,
    ) {
        let (a, b) = c.ends();
        let plain = !c.is_lateral() && c.mask().is_none();
        if plain && outer(left, right, wts, (scale, write), out) {
            return;
        }
        let fresh = (scale, Write::Set);
        let mut m = Array2::zeros(out.dim());
        if !outer(left, right, wts, fresh, &mut m) {
            let mut turned = Array2::zeros((out.ncols(), out.nrows()));
            if outer(right, left, wts, fresh, &mut turned) {
                transpose(slice(&turned), turned.nrows(), turned.ncols(), slice_mut(&mut m));
            } else {
                let [x, y] = [(a, left), (b, right)].map(|(l, end)| dense(self.layer(l), end));
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
    match (x, layer.kind().one_hot()) {
        (Batch::Bits(b), _) => End::Bits(b, bit_values(layer)),
        (Batch::Codes(c), Some(q)) => End::Codes(c, q),
        (Batch::Codes(_), None) => End::Dense(Cow::Owned(layer.dense(x))),
        (Batch::Reals(x), _) => End::Dense(Cow::Borrowed(x)),
    }
}

/// The values that the two states of a bit stand for.
fn bit_values<T: Real>(layer: &Layer<T>) -> Values {
    if layer.kind().lowest() < 0.0 { Values::Spin } else { Values::Binary }
}

/// Writes or adds by the kernel for these two ends, with bits or codes first; returns whether there is one.
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
        let product = Product { v: x.view(), values: *values, means, scale: scale.f64() as f32 };
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
            moments::add_bits_outer(x.view(), *values, slice(&weighted(h, wts)), n, scale, out);
        }
        (End::Codes(x, q), End::Dense(h)) => {
            ready(out);
            let codes =
                Codes::new(x.as_slice().expect("codes are in standard layout"), x.ncols(), *q as usize);
            moments::add_codes_outer(codes, slice(&weighted(h, wts)), n, scale, out);
        }
        (End::Bits(x, vx), End::Bits(y, vy)) if wts.is_none() => {
            ready(out);
            moments::add_bits_bits_outer((x.view(), *vx), (y.view(), *vy), scale, out);
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
fn stats<T: Real>(layer: &Layer<T>, x: &Batch<T>, wts: Option<&[f64]>, work: &mut Work<T>) {
    let b = match x {
        Batch::Bits(b) => b,
        Batch::Reals(x) if layer.kind().takes_soft_data() => {
            return column_sums(x, wts, &mut work.sums);
        }
        _ => {
            work.sums = layer.stats(x, wts);
            return;
        }
    };
    zeros(&mut work.sums, b.cols());
    let values = bit_values(layer);
    if let Some(wts) = wts {
        // The kernel of the moments with a single column of weights.
        moments::add_bits_outer(b.view(), values, wts, 1, 1.0, slice_mut(&mut work.sums));
        return;
    }
    work.counts.clear();
    work.counts.resize(b.cols(), 0);
    bits::add_counts(b.view(), &mut work.counts);
    let of_count = |c: u32| match values {
        Values::Binary => f64::from(c),
        Values::Spin => 2.0 * f64::from(c) - b.rows() as f64,
    };
    slice_mut(&mut work.sums).iter_mut().zip(&work.counts).for_each(|(s, &c)| *s = of_count(c));
}

/// One row of zeros.
fn zeros(sums: &mut Array2<f64>, n: usize) {
    match sums.dim() == (1, n) {
        true => sums.fill(0.0),
        false => *sums = Array2::zeros((1, n)),
    }
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
fn column_sums<T: Real>(x: &Array2<T>, wts: Option<&[f64]>, sums: &mut Array2<f64>) {
    zeros(sums, x.ncols());
    T::add_column_sums(slice(x), wts, slice_mut(sums));
}

/// `out ← out + scale · xᵀy`.
fn add_dense<T: Real>(x: &Array2<T>, y: &Array2<T>, scale: T, out: &mut Array2<T>) {
    let ((rows, m), n) = (x.dim(), y.ncols());
    T::gemm((m, n, rows), scale, (slice(x), 1, m), (slice(y), n, 1), T::one(), (slice_mut(out), n, 1));
}

/// Zeroes the block diagonal: no unit is coupled to itself.
pub(crate) fn clear_self<T: Real>(m: &mut Array2<T>, kind: Kind) {
    let c = kind.columns();
    for ((i, j), x) in m.indexed_iter_mut() {
        if i / c == j / c {
            *x = T::zero();
        }
    }
}
