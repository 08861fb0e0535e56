//! A coupling: the weights between two layers, or among the units of one.

use super::Member;
use super::fixed::Tables;
use crate::{Bits, Error, Real, Result};
use ndarray::Array2;

/// The weights of $-x_a^\top W x_b$, or of $-\frac12 x_a^\top U x_a$ when both ends are one layer.
///
/// `W` has a row per column of the dense form of layer `a` and a column per column of layer `b`. A lateral
/// `U` is symmetric and couples no unit with itself. A mask, where there is one, says which weights may
/// differ from zero.
#[derive(Clone, Debug)]
pub struct Coupling<T = f32> {
    a: usize,
    b: usize,
    pub(super) w: Array2<T>,
    mask: Option<Bits>,
    pub(super) tables: Tables,
}

impl<T> Coupling<T> {
    /// The two layers, smaller index first; equal for a lateral coupling.
    pub fn ends(&self) -> (usize, usize) {
        (self.a, self.b)
    }
}

/// Tables are computed from the weights, so they need no comparison.
impl<T: PartialEq> PartialEq for Coupling<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.ends(), &self.mask) == (other.ends(), &other.mask) && self.w == other.w
    }
}

impl<T: Real> Coupling<T> {
    /// Weights between layers `a` < `b`, or among the units of layer `a` = `b`.
    ///
    /// # Errors
    /// When a > b.
    pub fn new(a: usize, b: usize, w: Array2<T>) -> Result<Self> {
        if a > b {
            return Err(Error::value("ends of a coupling", "first layer ≤ second", format!("{a}, {b}")));
        }
        Ok(Self { a, b, w: w.as_standard_layout().into_owned(), mask: None, tables: Tables::default() })
    }

    /// The same coupling with only the weights whose bit is set; the others are set to zero and stay there.
    ///
    /// # Errors
    /// When the mask has another shape, or a lateral mask is not symmetric.
    pub fn with_mask(mut self, mask: Bits) -> Result<Self> {
        if (mask.rows(), mask.cols()) != self.w.dim() {
            let got = format!("{}×{}", mask.rows(), mask.cols());
            let (m, n) = self.w.dim();
            return Err(Error::shape("mask of a coupling", format!("{m}×{n}"), got));
        }
        if self.is_lateral() {
            for i in 0..mask.rows() {
                if let Some(j) = (0..i).find(|&j| mask.get(i, j) != mask.get(j, i)) {
                    let got = format!("({i},{j}) and ({j},{i}) differ");
                    return Err(Error::value("mask of a lateral coupling", "symmetric", got));
                }
            }
        }
        self.mask = Some(mask);
        self.apply_mask();
        Ok(self)
    }

    /// Whether it couples the units of one layer.
    pub fn is_lateral(&self) -> bool {
        self.a == self.b
    }
    /// The weights.
    pub fn w(&self) -> &Array2<T> {
        &self.w
    }
    /// The weights for writing. Call [`apply_mask`](Self::apply_mask) afterwards.
    pub fn w_mut(&mut self) -> &mut Array2<T> {
        self.tables.invalidate();
        &mut self.w
    }
    /// Which weights may differ from zero; all when `None`.
    pub fn mask(&self) -> Option<&Bits> {
        self.mask.as_ref()
    }
    /// Sets the weights outside the mask to zero.
    pub fn apply_mask(&mut self) {
        if let Some(mask) = &self.mask {
            self.tables.invalidate();
            for ((i, j), w) in self.w.indexed_iter_mut() {
                if !mask.get(i, j) {
                    *w = T::zero();
                }
            }
        }
    }

    /// The layer at the other end, when `l` is one end.
    pub fn other(&self, l: usize) -> Option<usize> {
        match (self.a == l, self.b == l) {
            (true, _) => Some(self.b),
            (_, true) => Some(self.a),
            _ => None,
        }
    }

    pub(super) fn cast<S: Real>(&self) -> Coupling<S> {
        Coupling {
            a: self.a,
            b: self.b,
            w: self.w.mapv(|w| S::of(w.f64())),
            mask: self.mask.clone(),
            tables: Tables::default(),
        }
    }

    pub(super) fn check(&self, a: &Member<T>, b: &Member<T>) -> Result<()> {
        let what = || format!("weights of {}-{}", a.name, b.name);
        let shape = (a.layer.width(), b.layer.width());
        if self.w.dim() != shape {
            let (m, n) = self.w.dim();
            return Err(Error::shape(what(), format!("{}×{}", shape.0, shape.1), format!("{m}×{n}")));
        }
        if let Some(((i, j), w)) = self.w.indexed_iter().find(|(_, w)| !w.is_finite()) {
            return Err(Error::value(format!("{}[{i},{j}]", what()), "a finite number", w));
        }
        if self.is_lateral() {
            let c = a.layer.kind().columns();
            for ((i, j), &w) in self.w.indexed_iter() {
                if w != self.w[[j, i]] {
                    let got = format!("{w} at ({i},{j}), {} at ({j},{i})", self.w[[j, i]]);
                    return Err(Error::value(what(), "a symmetric matrix", got));
                }
                if i / c == j / c && w != T::zero() {
                    let got = format!("{w} at ({i},{j})");
                    return Err(Error::value(what(), "no weight of a unit on itself", got));
                }
            }
        }
        Ok(())
    }
}
