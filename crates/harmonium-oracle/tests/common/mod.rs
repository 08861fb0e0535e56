//! Short-hands shared by the oracle's own tests.
#![allow(dead_code)] // every test file uses its own part

use harmonium_oracle::{Coupling, Kind, Layer, Machine};

/// Panics unless `got` equals `want` to `tolerance`, absolute below 1 and relative above.
#[track_caller]
pub(crate) fn assert_close(got: f64, want: f64, tolerance: f64) {
    let error = (got - want).abs() / want.abs().max(1.0);
    assert!(error <= tolerance, "got {got}, want {want}: off {error:e}");
}

/// A layer from its parameter arrays.
pub(crate) fn layer(kind: Kind, params: &[&[f64]]) -> Layer {
    Layer { kind, params: params.iter().map(|p| p.to_vec()).collect() }
}

/// A machine of one layer.
pub(crate) fn alone(kind: Kind, params: &[&[f64]], beta: f64) -> Machine {
    Machine { layers: vec![layer(kind, params)], couplings: vec![], beta }
}

/// Two layers and one coupling between them.
pub(crate) fn pair(v: Layer, h: Layer, w: &[&[f64]], beta: f64) -> Machine {
    Machine { layers: vec![v, h], couplings: vec![coupling(0, 1, w)], beta }
}

/// A coupling from the rows of its matrix.
pub(crate) fn coupling(a: usize, b: usize, w: &[&[f64]]) -> Coupling {
    let w = w.iter().map(|row| row.to_vec()).collect();
    Coupling { a, b, w }
}

/// ln(1 + eˣ).
pub(crate) fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// ln √(2π).
pub(crate) const LN_SQRT_2PI: f64 = 0.918_938_533_204_672_7;
