//! Centred and standardised coordinates: other parameters of the same model.

use super::init::{Marginals, spare_variance};
use super::{Coordinates, Data};
use crate::machine::Parameters;
use crate::{Archive, Kind, Machine, Real, Result, Role, units};
use ndarray::Array2;
use std::ops::Range;

/// Variance added to that of every unit before scales are computed, for units that are constant.
const PSEUDO_VARIANCE: f64 = 0.02;

/// Offsets and scales of every column of every layer, in which couplings read
/// $-\big((x-\mu)/s\big)^\top \tilde W \big((y-\lambda)/s'\big)$.
///
/// A machine always keeps its plain parameters; the coordinates only affect the direction of an update. A change of
/// offsets therefore never changes the model. With $\tilde W = s W s'$ the layers' parameters are $\tilde b = b +
/// W\lambda$ and $\tilde c = c + W^\top\mu$.
#[derive(Clone, Debug, PartialEq)]
pub struct OffsetsAndScales<T = f32> {
    form: Coordinates,
    centre: Vec<Vec<T>>,
    scale: Vec<Vec<T>>,
    /// Whether hidden offsets have seen data yet.
    started: bool,
}

/// The units in which the columns of a layer are measured: with mean μ and scale s, a layer of any kind has
/// $\tilde\theta = s\theta$ or, where it has a γ, $\tilde\gamma = s^2\gamma$ and $\tilde\theta = s(\theta -
/// \mu\gamma)$, in which one learning rate fits columns of any unit.
pub(super) struct Units<'a, T> {
    kind: Kind,
    centre: &'a [T],
    scale: &'a [T],
}

impl<T: Real> Units<'_, T> {
    /// The gradient for row `row` of the parameters of unit `j` in these units, from that for the `plain` parameters.
    pub(super) fn gradient(&self, row: usize, j: usize, plain: impl Fn(usize) -> f64) -> f64 {
        let s = self.scale[j].f64();
        match linear_of(self.kind, row) {
            Some(theta) => (plain(row) + self.centre_of(theta, j).f64() * plain(theta)) / (s * s),
            None if self.kind.linear_rows().contains(&row) => plain(row) / s,
            // Frequencies have no unit.
            None => plain(row),
        }
    }

    /// The change of the plain parameter from that in these units, where its own γ has `moved`.
    pub(super) fn change(&self, row: usize, j: usize, by: T, moved: T) -> T {
        let s = self.scale[j];
        match linear_of(self.kind, row) {
            Some(_) => by / (s * s),
            None if self.kind.linear_rows().contains(&row) => by / s + self.centre_of(row, j) * moved,
            None => by,
        }
    }

    /// The mean that row `theta` is centred at: each side of a dReLU unit has values of its own sign.
    fn centre_of(&self, theta: usize, j: usize) -> T {
        let mu = self.centre[j];
        match (self.kind.has_sides(), theta) {
            (true, 0) => mu.max(T::zero()),
            (true, _) => mu.min(T::zero()),
            (false, _) => mu,
        }
    }
}

impl<T: Real> OffsetsAndScales<T> {
    /// Visible offsets and scales from the data, which stay fixed; hidden ones are updated by [`follow`](Self::follow).
    ///
    /// # Errors
    /// Data that do not hold the visible layers.
    pub fn new(form: Coordinates, machine: &Machine<T>, data: &Data<T>) -> Result<Self> {
        let mut out = Self::blank(form, machine);
        if form != Coordinates::Plain {
            for l in (0..machine.len()).filter(|&l| machine.role(l) != Role::Hidden) {
                let m = Marginals::new(machine, data, l)?;
                let measured = machine.layer(l).kind().form() == units::Form::Reals;
                for j in 0..m.sum.len() {
                    let (mean, variance) = (m.mean(j), m.variance(j));
                    out.set(l, j, mean, variance);
                    if form == Coordinates::Standardised && measured {
                        // Columns may have any unit of measurement, so the added variance scales with the column.
                        out.scale[l][j] = T::of((variance + spare_variance(mean)).sqrt());
                    }
                }
            }
        }
        Ok(out)
    }

    /// Offsets of 0 and scales of 1, for [`load`](Self::load).
    pub(super) fn blank(form: Coordinates, machine: &Machine<T>) -> Self {
        let all = |x: T| (0..machine.len()).map(|l| vec![x; machine.layer(l).width()]).collect();
        Self { form, centre: all(T::zero()), scale: all(T::one()), started: false }
    }

    /// Plain, centred or standardised.
    pub fn form(&self) -> Coordinates {
        self.form
    }
    /// Offsets of layer `l`.
    pub fn centre(&self, l: usize) -> &[T] {
        &self.centre[l]
    }
    /// Scales of layer `l`.
    pub fn scale(&self, l: usize) -> &[T] {
        &self.scale[l]
    }

    /// The units that the parameters of layer `l` are to be learned in, where they are not plain.
    pub(super) fn units(&self, l: usize, machine: &Machine<T>) -> Option<Units<'_, T>> {
        let kind = machine.layer(l).kind();
        let standard = self.form == Coordinates::Standardised;
        standard.then(|| Units { kind, centre: &self.centre[l], scale: &self.scale[l] })
    }

    fn set(&mut self, l: usize, j: usize, mean: f64, variance: f64) {
        self.centre[l][j] = T::of(mean);
        if self.form == Coordinates::Standardised {
            self.scale[l][j] = T::of((variance + PSEUDO_VARIANCE).sqrt());
        }
    }

    /// Moves the hidden offsets and scales towards the moments of a positive phase, by the fraction `rate` of the
    /// distance; the first time all the way.
    pub fn follow(&mut self, machine: &Machine<T>, positive: &[Array2<T>], rate: f64) {
        if self.form == Coordinates::Plain {
            return;
        }
        let rate = if self.started { rate } else { 1.0 };
        self.started = true;
        for l in machine.with_role(Role::Hidden) {
            let stats = &positive[l];
            let kind = machine.layer(l).kind();
            let linear = kind.linear_rows();
            for j in 0..self.centre[l].len() {
                let slide = |old: T, new: f64| old.f64() + rate * (new - old.f64());
                let seen = mean(linear.clone(), stats, j).f64();
                let scale = self.scale[l][j].f64();
                let old = T::of(scale * scale - PSEUDO_VARIANCE);
                let variance = slide(old, kind.variance(seen, |row| stats[[row, j]].f64()));
                self.set(l, j, slide(self.centre[l][j], seen), variance.max(0.0));
            }
        }
    }

    /// The parameters in these coordinates, $\tilde W = s W s'$ and $\tilde b = b + W\lambda$.
    pub fn express(&self, machine: &Machine<T>) -> Parameters<T> {
        self.convert(machine, machine.parameters(), true)
    }

    /// The plain parameters from those in these coordinates.
    pub fn restore(&self, machine: &Machine<T>, expressed: &Parameters<T>) -> Parameters<T> {
        self.convert(machine, expressed.clone(), false)
    }

    fn convert(&self, machine: &Machine<T>, mut p: Parameters<T>, into: bool) -> Parameters<T> {
        for (c, w) in machine.couplings().iter().zip(&mut p.couplings) {
            let (a, b) = c.ends();
            let sign = if into { T::one() } else { -T::one() };
            let scale = |i: usize, j: usize| self.scale[a][i] * self.scale[b][j];
            if !into {
                w.indexed_iter_mut().for_each(|((i, j), w)| *w /= scale(i, j));
            }
            let mut shift = |l: usize, k: usize, x: T| {
                let kind = machine.layer(l).kind();
                kind.linear_rows().for_each(|row| p.layers[l][[row, k]] += sign * x);
            };
            for ((i, j), &w) in w.indexed_iter() {
                shift(a, i, w * self.centre[b][j]);
                if a != b {
                    shift(b, j, w * self.centre[a][i]);
                }
            }
            if into {
                w.indexed_iter_mut().for_each(|((i, j), w)| *w *= scale(i, j));
            }
        }
        p
    }

    pub(super) fn save(&self, archive: &mut Archive) {
        archive.put_u64s("started", &[u64::from(self.started)]);
        for (l, (c, s)) in self.centre.iter().zip(&self.scale).enumerate() {
            let rows = [c.as_slice(), s.as_slice()].concat();
            let rows = Array2::from_shape_vec((2, c.len()), rows).expect("two rows");
            archive.put_reals(format!("{l}"), &rows);
        }
    }

    pub(super) fn load(&mut self, archive: &Archive) -> Result<()> {
        self.started = archive.u64s("started")?.first() == Some(&1);
        for l in 0..self.centre.len() {
            let rows = archive.reals::<T>(&format!("{l}"))?;
            let n = self.centre[l].len();
            if rows.dim() != (2, n) {
                let what = format!("offsets of layer {l} in the checkpoint");
                let got = format!("{:?}", rows.dim());
                return Err(crate::Error::shape(what, format!("(2, {n})"), got));
            }
            self.centre[l] = rows.row(0).to_vec();
            self.scale[l] = rows.row(1).to_vec();
        }
        Ok(())
    }
}

/// The row of the θ that belongs to the γ of row `row`; `None` where that is no γ.
pub(super) fn linear_of(kind: Kind, row: usize) -> Option<usize> {
    kind.gamma_rows().contains(&row).then(|| row - kind.gamma_rows().start)
}

/// $\langle x\rangle$ of column `j` from the moments of a layer, whose statistics in the `linear` rows add up to x.
pub(super) fn mean<T: Real>(linear: Range<usize>, stats: &Array2<T>, j: usize) -> T {
    linear.map(|row| stats[[row, j]]).sum()
}
