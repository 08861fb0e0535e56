//! The moments of one phase of learning.

use super::{Machine, Parameters};
use crate::{Bits, Real};
use harmonium_kernels::bits::{BitMatrix, Values};
use harmonium_kernels::fixed::{self, Product, Write};
use ndarray::Array2;
use std::sync::Arc;

/// The moments of one phase of learning, shaped as the parameters.
///
/// What two layers have in common may be left as the product of bits and means that it is made from: the optimiser then
/// multiplies both phases of a strip of weights while the strip is in the cache.
#[derive(Clone, Debug)]
pub struct Phase<T = f32> {
    moments: Parameters<T>,
    /// For each coupling, the product that stands for its moments.
    products: Vec<Option<Outer>>,
}

/// scale · VᵀM.
#[derive(Clone, Debug)]
pub(super) struct Outer {
    pub(super) v: Bits,
    pub(super) values: Values,
    pub(super) means: Arc<fixed::Means>,
    pub(super) scale: f32,
}

impl Outer {
    fn product(&self) -> Product<'_> {
        let v = BitMatrix::new(self.v.words(), self.v.rows(), self.v.cols());
        Product { v, values: self.values, means: &self.means, scale: self.scale }
    }

    fn write<T: Real>(&self, out: &mut Array2<T>) {
        let out = T::as_f32_mut(super::product::slice_mut(out));
        fixed::bits_means(self.product(), Write::Set, out.expect("fixed point is for single precision"));
    }
}

impl<T: Real> Phase<T> {
    /// All zero.
    pub fn new(machine: &Machine<T>) -> Self {
        machine.zero_parameters().into()
    }

    /// The moments of the layers.
    pub fn layers(&self) -> &[Array2<T>] {
        &self.moments.layers
    }

    /// The moments of layer `l`, to be changed.
    pub(crate) fn layer_mut(&mut self, l: usize) -> &mut Array2<T> {
        &mut self.moments.layers[l]
    }

    /// All moments.
    pub fn parameters(&self) -> Parameters<T> {
        let mut moments = self.moments.clone();
        for (outer, out) in self.products.iter().zip(&mut moments.couplings) {
            if let Some(outer) = outer {
                outer.write(out);
            }
        }
        moments
    }

    /// All moments, to be changed.
    pub fn parameters_mut(&mut self) -> &mut Parameters<T> {
        (0..self.products.len()).for_each(|c| self.multiply(c));
        &mut self.moments
    }

    /// The product that stands for the moments of coupling `c`.
    pub(crate) fn product(&self, c: usize) -> Option<Product<'_>> {
        self.products[c].as_ref().map(Outer::product)
    }

    /// The moments of coupling `c` where no product stands for them.
    pub(crate) fn array(&self, c: usize) -> Option<&Array2<T>> {
        self.products[c].is_none().then(|| &self.moments.couplings[c])
    }

    /// The moments of coupling `c`, multiplied out.
    pub(crate) fn coupling(&mut self, c: usize) -> &Array2<T> {
        self.multiply(c);
        &self.moments.couplings[c]
    }

    fn multiply(&mut self, c: usize) {
        if let Some(outer) = self.products[c].take() {
            outer.write(&mut self.moments.couplings[c]);
        }
    }

    /// The arrays and the products, to be written.
    pub(super) fn places(&mut self) -> (&mut Parameters<T>, &mut [Option<Outer>]) {
        (&mut self.moments, &mut self.products)
    }
}

impl<T: Real> From<Parameters<T>> for Phase<T> {
    fn from(moments: Parameters<T>) -> Self {
        Self { products: vec![None; moments.couplings.len()], moments }
    }
}
