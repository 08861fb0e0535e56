//! States times weights: what one layer sends to another.

use super::Coupling;
use crate::{Batch, Layer, Real};
use ndarray::Array2;

/// `out ← out + scale · x·W` when `x` are states of the coupling's first layer, `scale · x·Wᵀ` when of its
/// second; `from` is the layer of `x`. (A lateral coupling is symmetric.)
pub(crate) fn add<T: Real>(
    from: usize,
    layer: &Layer<T>,
    x: &Batch<T>,
    coupling: &Coupling<T>,
    scale: T,
    out: &mut Array2<T>,
) {
    let x = layer.dense(x);
    let w = coupling.w();
    let ((rows, k), to) = (x.dim(), out.ncols());
    let strides = if from == coupling.ends().0 { (w.ncols(), 1) } else { (1, w.ncols()) };
    let slice = "arrays of a machine are in standard layout";
    T::gemm(
        (rows, to, k),
        scale,
        (x.as_slice().expect(slice), k, 1),
        (w.as_slice().expect(slice), strides.0, strides.1),
        T::one(),
        (out.as_slice_mut().expect(slice), to, 1),
    );
}
