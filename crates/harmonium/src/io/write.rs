//! Writing a machine to a model file.

use super::VERSION;
use super::describe::{CouplingInfo, Description, LayerInfo, Precision, Provenance};
use crate::container::{self, Checked, Dtype, Writer};
use crate::{Error, Machine, Real, Result};
use std::path::Path;

impl<T: Real> Machine<T> {
    /// Writes the machine in place of what `path` held, in one step: a crash leaves the old file or the new.
    ///
    /// The parameters are kept bit for bit in the machine's own precision.
    ///
    /// # Errors
    /// [`Error::Io`] when the file cannot be written; otherwise as [`to_bytes`](Self::to_bytes).
    pub fn save(&self, path: impl AsRef<Path>, provenance: &Provenance) -> Result<()> {
        let path = path.as_ref();
        let bytes = self.model_bytes(provenance).map_err(|why| Error::format(path, why))?;
        container::replace(path, &bytes)
    }

    /// The model file as bytes; equal machines and provenances give equal bytes.
    ///
    /// # Errors
    /// [`Error::Format`] when the machine has more layers than a file may have.
    pub fn to_bytes(&self, provenance: &Provenance) -> Result<Vec<u8>> {
        self.model_bytes(provenance).map_err(|why| Error::format("model", why))
    }

    fn model_bytes(&self, provenance: &Provenance) -> Checked<Vec<u8>> {
        let description = self.describe(provenance);
        description.arrays()?;
        let mut out = Writer::new(description.text());
        for (m, info) in self.members().iter().zip(&description.layers) {
            let (kind, params) = (m.layer.kind(), m.layer.params());
            for (name, row) in kind.params().iter().zip(params.rows()) {
                put(&mut out, info.array(name), &info.shape(), row.iter().copied());
            }
        }
        for (c, info) in self.couplings().iter().zip(&description.couplings) {
            let (rows, cols) = c.w().dim();
            put(&mut out, info.array("w"), &[rows, cols], c.w().iter().copied());
            if let Some(mask) = c.mask() {
                let bits = (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j)));
                let bits = bits.map(|(i, j)| [u8::from(mask.get(i, j))]);
                out.put(info.array("mask"), Dtype::Bool, &[rows, cols], bits);
            }
        }
        out.finish()
    }

    /// What [`save`](Self::save) writes into the header.
    pub fn describe(&self, provenance: &Provenance) -> Description {
        let layers = self.members().iter().map(|m| LayerInfo {
            name: m.name.clone(),
            role: m.role,
            kind: m.layer.kind(),
            units: m.layer.len(),
        });
        let mut couplings: Vec<CouplingInfo> = Vec::new();
        for c in self.couplings() {
            let [a, b] = [c.ends().0, c.ends().1].map(|l| self.members()[l].name.as_str());
            let mut name = format!("{a}-{b}");
            // Layers `a-b` and `c`, `a` and `b-c`: with hyphens in names, two couplings can have the same name.
            while couplings.iter().any(|other| other.name == name) {
                name.push('~');
            }
            couplings.push(CouplingInfo { name, ends: c.ends(), mask: c.mask().is_some() });
        }
        Description {
            version: VERSION,
            precision: precision::<T>(),
            layers: layers.collect(),
            couplings,
            provenance: Provenance {
                library: concat!("harmonium ", env!("CARGO_PKG_VERSION")).into(),
                ..provenance.clone()
            },
        }
    }
}

fn precision<T: Real>() -> Precision {
    match T::NAME {
        "F32" => Precision::F32,
        _ => Precision::F64,
    }
}

fn put<T: Real>(out: &mut Writer, name: String, shape: &[usize], x: impl Iterator<Item = T>) {
    let x = x.map(Real::f64);
    match precision::<T>() {
        Precision::F32 => out.put(name, Dtype::F32, shape, x.map(|x| (x as f32).to_le_bytes())),
        Precision::F64 => out.put(name, Dtype::F64, shape, x.map(f64::to_le_bytes)),
    }
}
