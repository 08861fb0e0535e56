//! Binary RBMs as npz: scikit-learn's names, or `w`, `b`, `c`.

use super::npy::{self, Arrays};
use super::{Format, layer, parts, rbm};
use crate::error::{Failure, Result};
use harmonium::{Kind, Machine};
use ndarray::{Array1, Array2, ArrayD, Ix1, Ix2};
use std::path::Path;

/// Reads either set of names.
pub(super) fn read(path: &Path) -> Result<Machine<f64>> {
    let arrays = npy::read(path)?;
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

fn matrix(x: &ArrayD<f64>) -> Result<Array2<f64>, String> {
    x.clone()
        .into_dimensionality::<Ix2>()
        .map_err(|_| format!("weights have {} axes, expected 2", x.ndim()))
}

fn vector(x: &ArrayD<f64>) -> Result<Array1<f64>, String> {
    x.clone()
        .into_dimensionality::<Ix1>()
        .map_err(|_| format!("biases have {} axes, expected 1", x.ndim()))
}

/// Writes one set of names.
pub(super) fn bytes(machine: &Machine<f64>, format: Format) -> Result<Vec<u8>> {
    let (v, h, w) = parts(machine).map_err(Failure::new)?;
    if (v.kind(), h.kind()) != (Kind::Binary, Kind::Binary) {
        return Err(Failure::new(format!(
            "npz holds RBMs of binary units; this one has {} and {} units",
            v.kind(),
            h.kind()
        )));
    }
    let theta = |l: &harmonium::Layer<f64>| l.params().row(0).to_owned().into_dyn();
    let arrays = match format {
        Format::Sklearn => Arrays::from([
            ("components_".into(), w.t().to_owned().into_dyn()),
            ("intercept_visible_".into(), theta(v)),
            ("intercept_hidden_".into(), theta(h)),
        ]),
        _ => Arrays::from([
            ("w".into(), w.to_owned().into_dyn()),
            ("b".into(), theta(v)),
            ("c".into(), theta(h)),
        ]),
    };
    npy::bytes(&arrays)
}
