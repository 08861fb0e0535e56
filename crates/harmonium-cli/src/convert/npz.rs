//! Binary RBMs as npz: scikit-learn's names, or `w`, `b`, `c`.

use super::{ModelFormat, layer, parts, rbm};
use crate::error::{Failure, Result};
use harmonium::{Kind, Machine};
use harmonium_data::{NumberArray, npz_bytes, read_npz};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use std::collections::BTreeMap;
use std::path::Path;

/// Reads either set of names.
pub(super) fn read(path: &Path) -> Result<Machine<f64>> {
    let arrays = read_npz(path)?;
    let names = |list: [&str; 3]| list.iter().all(|n| arrays.contains_key(*n));
    let bad = |what: String| Failure::new(format!("{}: {what}", path.display()));
    let (w, b, c) = if names(["components_", "intercept_visible_", "intercept_hidden_"]) {
        let w = matrix(&arrays["components_"]).map_err(bad)?;
        (w.reversed_axes(), &arrays["intercept_visible_"], &arrays["intercept_hidden_"])
    } else if names(["w", "b", "c"]) {
        (matrix(&arrays["w"]).map_err(bad)?, &arrays["b"], &arrays["c"])
    } else {
        let found: Vec<&str> = arrays.keys().map(String::as_str).collect();
        return Err(bad(format!(
            "no model in this file: expected the arrays components_, intercept_visible_ and intercept_hidden_, \
             or w, b and c; found {}",
            if found.is_empty() { "none".into() } else { found.join(", ") }
        )));
    };
    let (b, c) = (vector(b).map_err(bad)?, vector(c).map_err(bad)?);
    if w.dim() != (b.len(), c.len()) {
        let (m, n) = w.dim();
        return Err(bad(format!(
            "weights of {m} × {n} do not fit {} visible and {} hidden biases",
            b.len(),
            c.len()
        )));
    }
    rbm(layer(Kind::Binary, b)?, layer(Kind::Binary, c)?, w)
}

fn matrix(x: &NumberArray) -> Result<Array2<f64>, String> {
    match x.shape[..] {
        [m, n] => Array2::from_shape_vec((m, n), x.values.clone()).map_err(|e| e.to_string()),
        _ => Err(format!("weights have {} axes, expected 2", x.shape.len())),
    }
}

fn vector(x: &NumberArray) -> Result<Array1<f64>, String> {
    match x.shape[..] {
        [_] => Ok(Array1::from_vec(x.values.clone())),
        _ => Err(format!("biases have {} axes, expected 1", x.shape.len())),
    }
}

/// Writes one set of names.
pub(super) fn bytes(machine: &Machine<f64>, format: ModelFormat) -> Result<Vec<u8>> {
    let (v, h, w) = parts(machine).map_err(Failure::new)?;
    if (v.kind(), h.kind()) != (Kind::Binary, Kind::Binary) {
        return Err(Failure::new(format!(
            "npz holds RBMs of binary units; this one has {} and {} units",
            v.kind(),
            h.kind()
        )));
    }
    let biases =
        |theta: ArrayView1<'_, f64>| NumberArray { shape: vec![theta.len()], values: theta.to_vec() };
    let weights = |w: ArrayView2<'_, f64>| NumberArray {
        shape: w.shape().to_vec(),
        values: w.iter().copied().collect(),
    };
    let (b, c) = (biases(v.params().row(0)), biases(h.params().row(0)));
    let (names, w) = match format {
        ModelFormat::Sklearn => {
            (["components_", "intercept_visible_", "intercept_hidden_"], weights(w.t()))
        }
        _ => (["w", "b", "c"], weights(w.view())),
    };
    Ok(npz_bytes(&BTreeMap::from_iter(names.map(String::from).into_iter().zip([w, b, c])))?)
}
