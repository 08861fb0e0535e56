//! A layer: units of one kind with their parameters.

use super::Kind;
use crate::{Error, Real, Result};
use ndarray::{Array2, Zip};

/// Units of one kind and their parameters.
///
/// `inputs` are matrices of one row per configuration and [`width`](Self::width) columns; values of states
/// are one number per unit (a Potts state is its code).
#[derive(Clone, Debug, PartialEq)]
pub struct Layer<T = f32> {
    kind: Kind,
    params: Array2<T>,
}

impl<T: Real> Layer<T> {
    /// `n` units with every θ zero and every γ one.
    ///
    /// # Panics
    /// If the units would have no states: `Potts { q: 0 }`, counts up to `n: 0`, or `shape: 0`.
    pub fn new(kind: Kind, n: usize) -> Self {
        assert!(kind.has_states(), "units of kind {kind} have no states");
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
        if !kind.has_states() {
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
        for (row, name) in self.flat().chunks(self.width().max(1)).zip(self.kind.params()) {
            let gamma = name.starts_with("gamma");
            let is_wrong = |x: T| !x.is_finite() | (gamma & (x <= T::zero()));
            // Every update asks: a loop to the end has vectors, one that stops at the first has not.
            if row.iter().fold(false, |any, &x| any | is_wrong(x)) {
                let (j, x) = row.iter().enumerate().find(|(_, x)| is_wrong(**x)).expect("just seen");
                let expected = if gamma { "a positive number" } else { "a finite number" };
                return Err(Error::value(format!("{name}[{j}]"), expected, *x));
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
    /// The parameters for writing; [`check`](Self::check) says whether they are still valid.
    pub fn params_mut(&mut self) -> &mut Array2<T> {
        &mut self.params
    }
    pub(super) fn flat(&self) -> &[T] {
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
}
