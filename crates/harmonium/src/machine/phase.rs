//! The moments of one phase of learning.

use super::{Machine, Parameters};
use crate::{Bits, Real};
use harmonium_kernels::bits::Values;
use harmonium_kernels::fixed::{self, Product, Write};
use ndarray::Array2;

/// The moments of one phase of learning, shaped as the parameters.
///
/// Moments of a coupling may stay factored, as the bits and means whose product they are: the optimiser then
/// multiplies both phases of a strip of weights while the strip is in the cache.
#[derive(Clone, Debug)]
pub struct Phase<T = f32> {
    moments: Parameters<T>,
    /// For each coupling, the product that may stand for its moments.
    products: Vec<Outer>,
    /// For each layer, what is computed on the way to its moments.
    work: Vec<Work<T>>,
}

/// scale · VᵀM, M being the rounded means of a layer; where it is not in use, memory for the next.
#[derive(Clone, Debug)]
pub(super) struct Outer {
    in_use: bool,
    v: Bits,
    values: Values,
    layer: usize,
    scale: f32,
}

/// What is computed of a layer on the way to its moments, kept from update to update for its memory.
#[derive(Clone, Debug)]
pub(super) struct Work<T> {
    /// Whether the means are the rounded ones.
    pub(super) is_rounded: bool,
    pub(super) rounded: fixed::Means,
    pub(super) mean: Array2<T>,
    pub(super) inputs: Array2<T>,
    /// Sums of the sufficient statistics.
    pub(super) sums: Array2<f64>,
    pub(super) counts: Vec<u32>,
}

impl<T: Real> Default for Work<T> {
    fn default() -> Self {
        Self {
            is_rounded: false,
            rounded: fixed::Means::default(),
            mean: Array2::default((0, 0)),
            inputs: Array2::default((0, 0)),
            sums: Array2::default((0, 0)),
            counts: Vec::new(),
        }
    }
}

impl Outer {
    fn new() -> Self {
        let v = Bits::zeros(0, 0);
        Self { in_use: false, v, values: Values::Binary, layer: 0, scale: 0.0 }
    }

    /// Represents `scale` times the product of these bits with the rounded means of `layer`.
    pub(super) fn set(&mut self, v: &Bits, values: Values, layer: usize, scale: f32) {
        (self.in_use, self.values, self.layer, self.scale) = (true, values, layer, scale);
        self.v.clone_from(v);
    }

    /// Marks the product as unused.
    pub(super) fn clear(&mut self) {
        self.in_use = false;
    }

    fn product<'a, T>(&'a self, work: &'a [Work<T>]) -> Option<Product<'a>> {
        let v = self.v.view();
        let means = &work[self.layer].rounded;
        self.in_use.then_some(Product { v, values: self.values, means, scale: self.scale })
    }
}

fn write<T: Real>(product: Product<'_>, out: &mut Array2<T>) {
    let out = T::as_f32_mut(super::product::slice_mut(out));
    fixed::bits_means(product, Write::Set, out.expect("fixed point is for single precision"));
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

    /// The moments of layer `l`, mutable.
    pub(crate) fn layer_mut(&mut self, l: usize) -> &mut Array2<T> {
        &mut self.moments.layers[l]
    }

    /// All moments.
    pub fn parameters(&self) -> Parameters<T> {
        let mut moments = self.moments.clone();
        for (outer, out) in self.products.iter().zip(&mut moments.couplings) {
            if let Some(product) = outer.product(&self.work) {
                write(product, out);
            }
        }
        moments
    }

    /// All moments, mutable.
    pub fn parameters_mut(&mut self) -> &mut Parameters<T> {
        (0..self.products.len()).for_each(|c| self.multiply(c));
        &mut self.moments
    }

    /// The product that stands for the moments of coupling `c`.
    pub(crate) fn product(&self, c: usize) -> Option<Product<'_>> {
        self.products[c].product(&self.work)
    }

    /// The moments of coupling `c` where no product stands for them.
    pub(crate) fn array(&self, c: usize) -> Option<&Array2<T>> {
        (!self.products[c].in_use).then(|| &self.moments.couplings[c])
    }

    /// The moments of coupling `c`, multiplied out.
    pub(crate) fn coupling(&mut self, c: usize) -> &Array2<T> {
        self.multiply(c);
        &self.moments.couplings[c]
    }

    fn multiply(&mut self, c: usize) {
        if let Some(product) = self.products[c].product(&self.work) {
            write(product, &mut self.moments.couplings[c]);
        }
        self.products[c].clear();
    }

    /// Mutable access to the arrays, the products and their factors.
    pub(super) fn places(&mut self) -> (&mut Parameters<T>, &mut [Outer], &mut [Work<T>]) {
        (&mut self.moments, &mut self.products, &mut self.work)
    }
}

impl<T: Real> From<Parameters<T>> for Phase<T> {
    fn from(moments: Parameters<T>) -> Self {
        let products = vec![Outer::new(); moments.couplings.len()];
        let work = vec![Work::default(); moments.layers.len()];
        Self { products, work, moments }
    }
}
