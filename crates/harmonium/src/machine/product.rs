//! States times weights: what one layer sends to another.

use super::Coupling;
use crate::{Batch, Layer, Real};
use harmonium_kernels::{Codes, transpose};
use ndarray::Array2;
use std::borrow::Cow;

/// `out ← out + scale · x·W` when `x` are states of the coupling's first layer, `scale · x·Wᵀ` when of its
/// second; `from` is the layer of `x`. (A lateral coupling is symmetric.)
///
/// Bits and codes need no multiplication: they choose rows of W, which are added by table.
pub(crate) fn add<T: Real>(
    from: usize,
    layer: &Layer<T>,
    x: &Batch<T>,
    coupling: &Coupling<T>,
    scale: T,
    out: &mut Array2<T>,
) {
    let n = out.ncols();
    let out = slice_mut(out);
    match (x, layer.kind().one_hot()) {
        (Batch::Bits(b), _) => {
            let rows = b.view();
            let w = rows_of(from, coupling);
            match layer.kind().lowest() < 0.0 {
                true => T::add_spins(rows, &w, n, scale, out),
                false => T::add_bits(rows, &w, n, scale, out),
            }
        }
        (Batch::Codes(c), Some(q)) => {
            let codes = Codes::new(c.as_slice().expect(STANDARD), c.ncols(), q as usize);
            T::add_codes(codes, &rows_of(from, coupling), n, scale, out);
        }
        (Batch::Reals(x), _) => add_dense(from, x, coupling, scale, n, out),
        _ => add_dense(from, &layer.dense(x), coupling, scale, n, out),
    }
}

/// As [`add`], for states or means in dense form; `n` is the width of the receiving layer.
pub(super) fn add_dense<T: Real>(
    from: usize,
    x: &Array2<T>,
    coupling: &Coupling<T>,
    scale: T,
    n: usize,
    out: &mut [T],
) {
    let w = coupling.w();
    let strides = if from == coupling.ends().0 { (w.ncols(), 1) } else { (1, w.ncols()) };
    T::gemm(
        (x.nrows(), n, x.ncols()),
        scale,
        (slice(x), x.ncols(), 1),
        (slice(w), strides.0, strides.1),
        T::one(),
        (out, n, 1),
    );
}

const STANDARD: &str = "arrays of a machine are in standard layout";

pub(super) fn slice<T>(a: &Array2<T>) -> &[T] {
    a.as_slice().expect(STANDARD)
}

pub(super) fn slice_mut<T>(a: &mut Array2<T>) -> &mut [T] {
    a.as_slice_mut().expect(STANDARD)
}

/// The weights with a row for each column of layer `from`.
fn rows_of<T: Real>(from: usize, coupling: &Coupling<T>) -> Cow<'_, [T]> {
    let w = slice(coupling.w());
    if from == coupling.ends().0 {
        return Cow::Borrowed(w);
    }
    let (k, n) = coupling.w().dim();
    let mut out = vec![T::zero(); w.len()];
    transpose(w, k, n, &mut out);
    Cow::Owned(out)
}
