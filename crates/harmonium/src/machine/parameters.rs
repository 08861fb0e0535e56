//! All numbers of a machine as one vector: parameters, moments, gradients and optimiser states alike.

use super::Machine;
use crate::{Real, Result};
use ndarray::{Array2, Zip};

/// One array per layer and one per coupling, shaped as in the machine.
///
/// The energy is linear in the parameters, $E = -\langle\theta, t(x)\rangle$, so the moments
/// $\langle t\rangle$ have the same shape, and so have the gradient of the mean log-likelihood,
/// `positive − negative`, and whatever an optimiser keeps. The moment of a lateral coupling is
/// $\langle x x^\top\rangle$ without its (block) diagonal: the derivative by a weight and its mirror image,
/// which are one parameter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters<T = f32> {
    /// For each layer, shaped as [`Layer::params`](crate::Layer::params).
    pub layers: Vec<Array2<T>>,
    /// For each coupling, shaped as [`Coupling::w`](super::Coupling::w).
    pub couplings: Vec<Array2<T>>,
}

impl<T: Real> Parameters<T> {
    /// All arrays, layers first.
    pub fn arrays(&self) -> impl Iterator<Item = &Array2<T>> {
        self.layers.iter().chain(&self.couplings)
    }

    /// All arrays, layers first, mutable.
    pub fn arrays_mut(&mut self) -> impl Iterator<Item = &mut Array2<T>> {
        self.layers.iter_mut().chain(&mut self.couplings)
    }

    /// `self ← self + scale · other`.
    pub fn add(&mut self, scale: T, other: &Self) {
        for (a, b) in self.arrays_mut().zip(other.arrays()) {
            Zip::from(a).and(b).for_each(|a, &b| *a += scale * b);
        }
    }

    /// `self ← scale · self`.
    pub fn scale(&mut self, scale: T) {
        for a in self.arrays_mut() {
            a.mapv_inplace(|x| scale * x);
        }
    }

    /// Sets every number to `x`.
    pub fn fill(&mut self, x: T) {
        for a in self.arrays_mut() {
            a.fill(x);
        }
    }

    /// Sum of products of corresponding numbers.
    pub fn dot(&self, other: &Self) -> f64 {
        let products = |(a, b): (&Array2<T>, &Array2<T>)| {
            Zip::from(a).and(b).fold(0.0, |sum, a, b| sum + a.f64() * b.f64())
        };
        self.arrays().zip(other.arrays()).map(products).sum()
    }

    /// Euclidean norm.
    pub fn norm(&self) -> f64 {
        self.dot(self).sqrt()
    }

    /// Whether every number is finite.
    pub fn is_finite(&self) -> bool {
        self.arrays().all(|a| a.iter().all(|x| x.is_finite()))
    }

    /// In the other precision.
    pub fn cast<S: Real>(&self) -> Parameters<S> {
        let cast = |a: &Array2<T>| a.mapv(|x| S::of(x.f64()));
        Parameters {
            layers: self.layers.iter().map(cast).collect(),
            couplings: self.couplings.iter().map(cast).collect(),
        }
    }
}

impl<T: Real> Machine<T> {
    /// A copy of all parameters.
    pub fn parameters(&self) -> Parameters<T> {
        Parameters {
            layers: self.members().iter().map(|m| m.layer.params().clone()).collect(),
            couplings: self.couplings().iter().map(|c| c.w().clone()).collect(),
        }
    }

    /// A vector of zeros in the shape of the parameters, of either precision.
    pub fn zero_parameters<S: Real>(&self) -> Parameters<S> {
        Parameters {
            layers: self.members().iter().map(|m| Array2::zeros(m.layer.params().dim())).collect(),
            couplings: self.couplings().iter().map(|c| Array2::zeros(c.w().dim())).collect(),
        }
    }

    /// Moves all parameters half of the way to those of `other`, a machine of the same shape.
    pub(crate) fn move_halfway(&mut self, other: &Self) {
        let half = T::of(0.5);
        let mid = |a: &mut T, b: &T| *a = half * (*a + *b);
        for (m, o) in self.members.iter_mut().zip(&other.members) {
            m.layer.params_mut().zip_mut_with(o.layer.params(), mid);
        }
        for (c, o) in self.couplings.iter_mut().zip(&other.couplings) {
            c.w_mut().zip_mut_with(o.w(), mid);
        }
    }

    /// Replaces all parameters; weights outside a mask stay zero.
    ///
    /// # Errors
    /// When they are not what [`Machine::new`] accepts; the machine is then unchanged.
    ///
    /// # Panics
    /// If the shapes are those of another machine.
    pub fn set_parameters(&mut self, parameters: &Parameters<T>) -> Result<()> {
        let mut next = self.clone();
        for (m, p) in next.members.iter_mut().zip(&parameters.layers) {
            m.layer.params_mut().assign(p);
        }
        for (c, w) in next.couplings.iter_mut().zip(&parameters.couplings) {
            c.w_mut().assign(w);
            c.apply_mask();
        }
        *self = Self::new(next.members, next.couplings)?;
        Ok(())
    }
}
