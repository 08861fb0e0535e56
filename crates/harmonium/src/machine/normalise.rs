//! Whether Z is finite: which couplings of unbounded units can be normalised.

use super::Machine;
use crate::units::Tail;
use crate::{Error, Kind, Real, Result};
use ndarray::Array2;

impl<T: Real> Machine<T> {
    /// Whether $Z = \sum\nu e^{-\beta E}$ is finite for every β > 0; whatever samples, enumerates or trains
    /// asks this first.
    ///
    /// Bounded units never matter. Two rules decide the others.
    ///
    /// - A Poisson unit meets $-\ln x! \sim -x\ln x$, which loses against any $+x^2$: it may not be coupled to a
    ///   Gaussian or dReLU unit at all, nor with a positive weight to a Poisson or ReLU unit.
    /// - Real units need $\sum\gamma x^2/2 - \sum w x x'$ to grow in every direction they can go. Without ReLU
    ///   units this is a positive definite matrix. The ReLU units are taken last in a Cholesky
    ///   factorisation; where two of them repel, dropping the repulsion can only make the test stricter.
    ///   A dReLU unit counts with its smaller γ. So the test is exact for Gaussian units and for
    ///   attracting ReLU units, and otherwise may refuse a machine that is normalisable by a narrow margin.
    ///
    /// # Errors
    /// [`Error::NotNormalisable`] with the coupling or the bound that fails.
    pub fn check_normalisable(&self) -> Result<()> {
        self.check_poisson()?;
        self.check_reals()
    }

    fn check_poisson(&self) -> Result<()> {
        for c in self.couplings() {
            let (a, b) = c.ends();
            let kinds = [self.layer(a).kind(), self.layer(b).kind()];
            let Some(slow) = kinds.iter().position(|k| k.tail() == Tail::Factorial) else { continue };
            let (kind, other) = (kinds[slow], kinds[1 - slow]);
            let fatal = match other.tail() {
                Tail::Bounded => None,
                _ if other.lowest() < 0.0 => c.w().iter().find(|w| **w != T::zero()),
                _ => c.w().iter().find(|w| **w > T::zero()),
            };
            if let Some(w) = fatal {
                let [a, b] = [a, b].map(|l| &self.members()[l].name);
                let why = format!(
                    "the weight {w} of {a}-{b} couples a {kind} unit to a {other} unit, and {}",
                    "their joint energy falls faster than 1/x! can hold it"
                );
                return Err(Error::NotNormalisable { why });
            }
        }
        Ok(())
    }

    /// Whether the weights of coupling `c` may not be positive: two units that grow without bound and of which at least one
    /// is a Poisson unit.
    pub(crate) fn only_repels(&self, c: usize) -> bool {
        let (a, b) = self.couplings()[c].ends();
        let kinds = [self.layer(a).kind(), self.layer(b).kind()];
        let grows = |kind: Kind| kind.tail() != Tail::Bounded && kind.lowest() == 0.0;
        kinds.iter().any(|k| k.tail() == Tail::Factorial) && kinds.into_iter().all(grows)
    }

    /// How far the machine is from losing its normalisation: the smallest pivot of the matrix that
    /// [`check_normalisable`](Self::check_normalisable) factorises, as a part of the γ in its place; not positive where it
    /// fails; `None` when no real units are coupled to each other.
    pub(crate) fn margin(&self) -> Option<f64> {
        let (mut a, boundary, _) = self.real_precision()?;
        let scale = a.diag().mapv(f64::sqrt);
        a.indexed_iter_mut().for_each(|((i, j), a)| *a /= scale[i] * scale[j]);
        Some(smallest_pivot(a, boundary))
    }

    fn check_reals(&self) -> Result<()> {
        let Some((a, boundary, order)) = self.real_precision() else { return Ok(()) };
        match smallest_pivot(a, boundary) {
            pivot if pivot > 0.0 => Ok(()),
            pivot => {
                let names: Vec<_> = order.iter().map(|&l| self.members()[l].name.as_str()).collect();
                let why = format!(
                    "the weights among the real units of {} outgrow their γ (smallest pivot {pivot:.3e} ≤ 0)",
                    names.join(", ")
                );
                Err(Error::NotNormalisable { why })
            }
        }
    }

    /// The matrix of $\sum\gamma x^2/2 - \sum w x x'$ over the real units with the ReLU units last, where these begin, and
    /// the layers in that order; `None` when no real units are coupled to each other.
    fn real_precision(&self) -> Option<(Array2<f64>, usize, Vec<usize>)> {
        let real = |l: usize| self.layer(l).kind().tail() == Tail::Quadratic;
        if !self.couplings().iter().any(|c| real(c.ends().0) && real(c.ends().1)) {
            return None;
        }
        let is_relu = |l: &usize| self.layer(*l).kind().is_half_line();
        let (last, first): (Vec<_>, Vec<_>) = (0..self.len()).filter(|&l| real(l)).partition(is_relu);
        let order: Vec<usize> = first.iter().chain(&last).copied().collect();
        let start = |l: usize| {
            order.iter().take_while(|&&k| k != l).map(|&k| self.layer(k).len()).sum::<usize>()
        };
        let n = order.iter().map(|&l| self.layer(l).len()).sum();
        let mut a = Array2::<f64>::zeros((n, n));
        for &l in &order {
            let params = self.layer(l).params();
            for j in 0..self.layer(l).len() {
                let gammas = self.layer(l).kind().gamma_rows().map(|k| params[[k, j]].f64());
                a[[start(l) + j, start(l) + j]] = gammas.fold(f64::INFINITY, f64::min);
            }
        }
        for c in self.couplings() {
            let (p, q) = c.ends();
            if real(p) && real(q) {
                for ((i, j), w) in c.w().indexed_iter() {
                    let (i, j) = (start(p) + i, start(q) + j);
                    if i != j {
                        (a[[i, j]], a[[j, i]]) = (-w.f64(), -w.f64());
                    }
                }
            }
        }
        let first_relu = last.first().map_or(n, |&l| start(l));
        Some((a, first_relu, order))
    }
}

/// The smallest pivot of a Cholesky factorisation, or the first that is not positive. When the columns
/// before `boundary` are eliminated, positive off-diagonal elements of the rest are dropped.
fn smallest_pivot(mut a: Array2<f64>, boundary: usize) -> f64 {
    let n = a.nrows();
    let mut smallest = f64::INFINITY;
    for k in 0..n {
        if k == boundary {
            for i in k..n {
                for j in k..n {
                    if i != j {
                        a[[i, j]] = a[[i, j]].min(0.0);
                    }
                }
            }
        }
        let pivot = a[[k, k]];
        smallest = smallest.min(pivot);
        if pivot.is_nan() || pivot <= 0.0 {
            return pivot.min(0.0);
        }
        for i in k + 1..n {
            let f = a[[i, k]] / pivot;
            if f != 0.0 {
                for j in k + 1..n {
                    let x = a[[k, j]];
                    a[[i, j]] -= f * x;
                }
            }
        }
    }
    smallest
}
