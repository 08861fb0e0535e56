//! HDF5 in the layout of `rbms`: `samples`, `labels`, `variable_type`; other data sets by their name.

use std::path::Path;

use rust_hdf5::{ByteOrder, DatatypeMessage, H5Dataset, H5File, StorageLayout};

use super::array::{Array, Dtype, Layout};
use super::container::Container;
use super::npz::MAX_RATIO;
use crate::{Error, Kind, Place, Result, shielded};

pub(crate) struct Hdf5 {
    place: Place,
    file: H5File,
    /// Length of the file.
    length: u64,
    arrays: Vec<(String, Vec<usize>)>,
    kind: Option<Kind>,
}

impl Hdf5 {
    pub(crate) fn open(path: &Path, place: &Place) -> Result<Self> {
        let length = std::fs::metadata(path).map_err(Error::io(place, "read"))?.len();
        let (file, mut arrays) = guarded(place, || {
            let file = H5File::options().no_locking().open(path)?;
            let arrays: Vec<(String, Vec<usize>)> = file
                .dataset_names()
                .into_iter()
                .filter_map(|name| Some((file.dataset(&name).ok()?.shape(), name)))
                .map(|(shape, name)| (name, shape))
                .collect();
            Ok((file, arrays))
        })?;
        arrays.sort();
        let mut hdf5 = Self { place: place.clone(), file, length, arrays, kind: None };
        hdf5.kind = hdf5.variable_type()?;
        hdf5.arrays.retain(|(name, _)| name != "variable_type");
        Ok(hdf5)
    }

    /// What `rbms` calls the type of its data.
    fn variable_type(&self) -> Result<Option<Kind>> {
        if !self.arrays.iter().any(|(name, _)| name == "variable_type") {
            return Ok(None);
        }
        let place = self.place.clone().part("variable_type");
        let words = guarded(&place, || self.file.dataset("variable_type")?.read_strings_lossy())?;
        match words.first().map(String::as_str) {
            Some("bernoulli") => Ok(Some(Kind::Binary)),
            Some("ising") => Ok(Some(Kind::Spin)),
            Some("categorical") => Ok(Some(Kind::Categorical)),
            Some("continuous") => Ok(Some(Kind::Real)),
            other => {
                let what = format!("variable_type {:?}", other.unwrap_or_default());
                let hint = "expected bernoulli, ising, categorical or continuous";
                Err(Error::format(&place, what, hint))
            }
        }
    }

    /// Refuses data kept in other files, and sizes that the file cannot hold.
    fn check(&self, dataset: &H5Dataset, layout: &Layout, place: &Place) -> Result<()> {
        let (storage, external) = guarded(place, || {
            let external = dataset.external_files()?;
            Ok((dataset.storage_layout()?, !external.is_empty()))
        })?;
        let available = match storage {
            _ if external => 0,
            StorageLayout::Virtual => 0,
            StorageLayout::Chunked => self.length.saturating_mul(MAX_RATIO),
            _ => self.length,
        };
        if available == 0 {
            let hint = "copy the data into one file, as h5py writes by default";
            return Err(Error::format(place, "the data are kept in another file", hint));
        }
        layout.check(available, place).map(drop)
    }
}

impl Container for Hdf5 {
    fn arrays(&self) -> &[(String, Vec<usize>)] {
        &self.arrays
    }

    fn kind(&self) -> Option<Kind> {
        self.kind
    }

    fn read(&mut self, name: &str) -> Result<Array> {
        let place = self.place.clone().part(name);
        let (dataset, datatype) = guarded(&place, || {
            let dataset = self.file.dataset(name)?;
            let datatype = dataset.datatype()?;
            Ok((dataset, datatype))
        })?;
        let (dtype, big_endian) = stored(&datatype, &place)?;
        let layout = Layout { big_endian, ..Layout::plain(dtype, dataset.shape()) };
        self.check(&dataset, &layout, &place)?;
        let bytes = guarded(&place, || dataset.read_raw_bytes())?;
        Array::new(layout, bytes, 0, &place)
    }
}

/// How entries of an HDF5 type are stored, and whether the most significant byte comes first.
fn stored(datatype: &DatatypeMessage, place: &Place) -> Result<(Dtype, bool)> {
    let unsupported = || {
        let what = format!("entries of type {datatype:?}");
        Error::format(place, what, "save it as bool, an integer, a real type or fixed-length text")
    };
    let is_big = |order: &ByteOrder| *order == ByteOrder::BigEndian;
    Ok(match datatype {
        DatatypeMessage::FixedPoint { size, byte_order, signed, .. } => {
            let dtype = match (size, signed) {
                (1, false) => Dtype::U8,
                (2, false) => Dtype::U16,
                (4, false) => Dtype::U32,
                (8, false) => Dtype::U64,
                (1, true) => Dtype::I8,
                (2, true) => Dtype::I16,
                (4, true) => Dtype::I32,
                (8, true) => Dtype::I64,
                _ => return Err(unsupported()),
            };
            (dtype, is_big(byte_order))
        }
        DatatypeMessage::FloatingPoint { size, byte_order, .. } => {
            let dtype = match size {
                2 => Dtype::F16,
                4 => Dtype::F32,
                8 => Dtype::F64,
                _ => return Err(unsupported()),
            };
            (dtype, is_big(byte_order))
        }
        // h5py writes bool as an enumeration of FALSE and TRUE over one byte.
        DatatypeMessage::Enum { base, .. } if !matches!(**base, DatatypeMessage::Enum { .. }) => {
            stored(base, place)?
        }
        DatatypeMessage::FixedString { size, .. } if *size > 0 => (Dtype::Bytes(*size as usize), false),
        _ => return Err(unsupported()),
    })
}

/// Calls the library; its errors, and its panics on files made to break it, become errors of this crate.
fn guarded<T>(place: &Place, call: impl FnOnce() -> rust_hdf5::Result<T>) -> Result<T> {
    match shielded(call) {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) => Err(Error::corrupt(place, format!("HDF5: {error}"))),
        None => Err(Error::corrupt(place, "not a readable HDF5 file")),
    }
}
