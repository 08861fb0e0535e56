//! The description in a model file: layers, couplings, precision, provenance.

use super::{FORMAT, MAX_LAYERS, VERSION};
use crate::container::{self, Checked, Dtype};
use crate::{Error, Kind, Result, Role};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The origin of a machine. The library's version is added when a file is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// Version of the library that wrote the file; overwritten when a file is written.
    #[serde(default)]
    pub library: String,
    /// Seed of the training, if one was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Other metadata, by key: data set, command, date …
    #[serde(default)]
    pub details: BTreeMap<String, String>,
}

/// Number type of the parameters in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Precision {
    /// Single.
    F32,
    /// Double.
    F64,
}

impl Precision {
    pub(super) fn dtype(self) -> Dtype {
        match self {
            Self::F32 => Dtype::F32,
            Self::F64 => Dtype::F64,
        }
    }
}

/// A layer in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerInfo {
    /// Name, unique in the machine.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// The kind of its units.
    pub kind: Kind,
    /// Number of units.
    pub units: usize,
}

/// A coupling in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CouplingInfo {
    /// Name, unique in the machine: the names of its layers joined by a hyphen.
    pub name: String,
    /// The two layers, equal for a lateral coupling.
    pub ends: (usize, usize),
    /// Whether a mask says which weights may differ from zero.
    pub mask: bool,
}

/// The description in a model file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Version of the format.
    pub version: u32,
    /// Number type of the parameters.
    pub precision: Precision,
    /// The layers.
    pub layers: Vec<LayerInfo>,
    /// The couplings.
    pub couplings: Vec<CouplingInfo>,
    /// The origin of the machine.
    pub provenance: Provenance,
}

/// Describes a model file from its header alone: quick for any size, but the parameters and the checksum
/// are not looked at.
///
/// # Errors
/// [`Error::Io`] when the file cannot be read, [`Error::Format`] when it is no model file.
pub fn inspect(path: impl AsRef<Path>) -> Result<Description> {
    let path = path.as_ref();
    let header = container::read_header(path)?;
    let arrays = header.infos.iter().filter(|(name, _)| name != container::CHECKSUM);
    let arrays = arrays.map(|(name, info)| (name.as_str(), (info.dtype, &info.shape[..])));
    Description::parse(&header.text, &arrays.collect()).map_err(|why| Error::format(path, why))
}

impl Description {
    /// Number of parameters that may differ from zero, ignoring masks.
    pub fn parameters(&self) -> usize {
        let width = |l: usize| self.layers[l].units * self.layers[l].kind.columns();
        let layers = (0..self.layers.len()).map(|l| width(l) * self.layers[l].kind.params().len());
        let couplings = self.couplings.iter().map(|c| match c.ends {
            (a, b) if a == b => {
                let (units, q) = (self.layers[a].units, self.layers[a].kind.columns());
                units * units.saturating_sub(1) / 2 * q * q
            }
            (a, b) => width(a) * width(b),
        });
        layers.sum::<usize>() + couplings.sum::<usize>()
    }

    /// Reads the metadata and checks that the file has the arrays they speak of and no others.
    pub(super) fn parse(
        text: &BTreeMap<String, String>,
        arrays: &BTreeMap<&str, (Dtype, &[usize])>,
    ) -> Checked<Self> {
        let version = container::check_version(text, FORMAT, VERSION)?;
        let description = Self {
            version,
            precision: json(text, "precision")?,
            layers: json(text, "layers")?,
            couplings: json(text, "couplings")?,
            provenance: match text.contains_key("provenance") {
                true => json(text, "provenance")?,
                false => Provenance::default(),
            },
        };
        let expected = description.arrays()?;
        for (name, (dtype, shape)) in &expected {
            match arrays.get(name.as_str()) {
                None => return Err(format!("the array `{name}` is missing")),
                Some(&got) if got != (*dtype, shape) => {
                    let expected = format!("{dtype:?} {shape:?}");
                    return Err(format!("`{name}` is {:?} {:?}, expected {expected}", got.0, got.1));
                }
                Some(_) => {}
            }
        }
        match arrays.keys().find(|&&name| !expected.contains_key(name)) {
            Some(name) => Err(format!("the array `{name}` belongs to no layer or coupling")),
            None => Ok(description),
        }
    }

    pub(super) fn text(&self) -> BTreeMap<String, String> {
        let entries = [
            ("format", FORMAT.into()),
            ("version", self.version.to_string()),
            ("precision", to_json(&self.precision)),
            ("layers", to_json(&self.layers)),
            ("couplings", to_json(&self.couplings)),
            ("provenance", to_json(&self.provenance)),
        ];
        entries.map(|(key, text)| (key.into(), text)).into()
    }

    /// Types and shapes of all arrays by name. A malicious description is refused before it can cause large
    /// allocations.
    pub(super) fn arrays(&self) -> Checked<BTreeMap<String, (Dtype, Vec<usize>)>> {
        if self.layers.len() > MAX_LAYERS {
            let n = self.layers.len();
            return Err(format!("it has {n} layers; at most {MAX_LAYERS} are allowed"));
        }
        let mut arrays = BTreeMap::new();
        let mut put = |name: String, dtype: Dtype, shape: Vec<usize>| {
            let twice = format!("the array `{name}` would be there twice");
            arrays.insert(name, (dtype, shape)).map_or(Ok(()), |_| Err(twice))
        };
        let dtype = self.precision.dtype();
        let mut widths = Vec::new();
        for l in &self.layers {
            if !l.kind.has_states() {
                return Err(format!("the units of layer `{}` have no state", l.name));
            }
            let width = l.units.checked_mul(l.kind.columns());
            widths.push(width.ok_or_else(|| format!("layer `{}` is too large", l.name))?);
            for name in l.kind.params() {
                put(l.array(name), dtype, l.shape())?;
            }
        }
        for c in &self.couplings {
            let (Some(&a), Some(&b)) = (widths.get(c.ends.0), widths.get(c.ends.1)) else {
                return Err(format!("coupling `{}` joins a layer that is not there", c.name));
            };
            put(c.array("w"), dtype, vec![a, b])?;
            if c.mask {
                put(c.array("mask"), Dtype::Bool, vec![a, b])?;
            }
        }
        Ok(arrays)
    }
}

impl LayerInfo {
    /// Shape of each parameter array: a number per unit, or a row of q for a Potts unit.
    pub(super) fn shape(&self) -> Vec<usize> {
        match self.kind.one_hot() {
            Some(q) => vec![self.units, q as usize],
            None => vec![self.units],
        }
    }
    pub(super) fn array(&self, parameter: &str) -> String {
        format!("layers/{}/{parameter}", self.name)
    }
}

impl CouplingInfo {
    pub(super) fn array(&self, what: &str) -> String {
        format!("couplings/{}/{what}", self.name)
    }
}

fn json<A: DeserializeOwned>(text: &BTreeMap<String, String>, key: &str) -> Checked<A> {
    let text = text.get(key).ok_or_else(|| format!("its metadata have no `{key}`"))?;
    serde_json::from_str(text).map_err(|e| format!("`{key}` in its metadata cannot be read: {e}"))
}

fn to_json<A: Serialize>(x: &A) -> String {
    serde_json::to_string(x).expect("names and numbers have a JSON form")
}
