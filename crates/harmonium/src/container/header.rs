//! The JSON header of a safetensors file: text, and the type, shape and place of every array.

use super::{Checked, MAX_HEADER};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

const TEXT: &str = "__metadata__";

/// The number types of arrays in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Dtype {
    /// Double precision.
    F64,
    /// 64-bit integers.
    U64,
    /// Single precision.
    F32,
    /// 32-bit integers.
    U32,
    /// Bytes.
    U8,
    /// Truth values, a byte each.
    Bool,
}

impl Dtype {
    /// Bytes of one number.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::F64 | Self::U64 => 8,
            Self::F32 | Self::U32 => 4,
            Self::U8 | Self::Bool => 1,
        }
    }
}

/// Type, shape and place of one array.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Info {
    /// Type of the numbers.
    pub(crate) dtype: Dtype,
    /// Shape, row-major.
    pub(crate) shape: Vec<usize>,
    /// First byte and the byte after the last, from the end of the header.
    pub(crate) data_offsets: (usize, usize),
}

/// The contents of the header.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Header {
    /// Free text by key.
    pub(crate) text: BTreeMap<String, String>,
    /// The arrays in the order of their bytes.
    pub(crate) infos: Vec<(String, Info)>,
}

impl Header {
    /// Reads a header and checks that the arrays fill `data` bytes without gap or overlap.
    pub(super) fn parse(json: &[u8], data: usize) -> Checked<Self> {
        let mut header: Self =
            serde_json::from_slice(json).map_err(|e| format!("its header cannot be read: {e}"))?;
        let mut names = BTreeSet::new();
        for (name, info) in &header.infos {
            if !names.insert(name) {
                return Err(format!("the array `{name}` is there twice"));
            }
            let count = info.shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
            let size = count.and_then(|n| n.checked_mul(info.dtype.size()));
            let (start, end) = info.data_offsets;
            if size.is_none() || end.checked_sub(start) != size {
                return Err(format!(
                    "the array `{name}` of shape {:?} does not fit its bytes {start}..{end}",
                    info.shape
                ));
            }
        }
        header.infos.sort_by_key(|(_, info)| info.data_offsets);
        let mut end = 0;
        for (name, info) in &header.infos {
            if info.data_offsets.0 != end {
                return Err(format!(
                    "the array `{name}` starts at byte {} where {end} was expected",
                    info.data_offsets.0
                ));
            }
            end = info.data_offsets.1;
        }
        if end != data {
            return Err(format!("its arrays take {end} bytes, but it has {data}"));
        }
        Ok(header)
    }

    /// The header's bytes, padded with spaces so that the data start at a multiple of eight.
    pub(super) fn to_json(&self) -> Checked<Vec<u8>> {
        let mut names = BTreeSet::new();
        for (name, _) in &self.infos {
            if name == TEXT || !names.insert(name) {
                return Err(format!("the name `{name}` is taken"));
            }
        }
        let mut json = serde_json::to_vec(self).map_err(|e| e.to_string())?;
        json.resize(json.len().next_multiple_of(8), b' ');
        if json.len() > MAX_HEADER {
            return Err(format!("the names of its arrays exceed {MAX_HEADER} bytes"));
        }
        Ok(json)
    }
}

impl Serialize for Header {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(1 + self.infos.len()))?;
        map.serialize_entry(TEXT, &self.text)?;
        for (name, info) in &self.infos {
            map.serialize_entry(name, info)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Entries)
    }
}

/// Text whose keys occur once.
struct Text(BTreeMap<String, String>);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Texts).map(Text)
    }
}

struct Texts;

impl<'de> Visitor<'de> for Texts {
    type Value = BTreeMap<String, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("texts by key")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut text = BTreeMap::new();
        while let Some((key, value)) = map.next_entry::<String, String>()? {
            if text.contains_key(&key) {
                return Err(M::Error::custom(format!("the text `{key}` is there twice")));
            }
            text.insert(key, value);
        }
        Ok(text)
    }
}

struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Header;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("arrays by name")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut text = None;
        let mut infos = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            if name != TEXT {
                infos.push((name, map.next_value()?));
            } else if text.replace(map.next_value::<Text>()?.0).is_some() {
                return Err(M::Error::custom(format!("`{TEXT}` is there twice")));
            }
        }
        let text = text.unwrap_or_default();
        Ok(Header { text, infos })
    }
}
