//! States times weights: what one layer sends to another.

use super::Coupling;
use crate::{Batch, Layer, Real};
use ndarray::Array2;

/// `out ← out + scale · x·W` when `x` are states of the coupling's first layer, `scale · x·Wᵀ` when of its
/// second (a lateral coupling is symmetric).
pub(crate) fn add<T: Real>(
    layer: &Layer<T>,
    x: &Batch<T>,
    coupling: &Coupling<T>,
    scale: T,
    out: &mut Array2<T>,
) {
    add_dense(&layer.dense(x), coupling, out.ncols(), scale, out);
}

/// As [`add`], for states in dense form; `to` is the width of the receiving layer.
pub(crate) fn add_dense<T: Real>(
    x: &Array2<T>,
    coupling: &Coupling<T>,
    to: usize,
    scale: T,
    out: &mut Array2<T>,
) {
    let w = coupling.w();
    let forward = w.dim() == (x.ncols(), to);
    let (rows, k) = x.dim();
    let strides = if forward { (w.ncols(), 1) } else { (1, w.ncols()) };
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
