//! HDF5 in the layout of `rbms`: `samples`, `labels`, `variable_type`; other data sets by their name.

use std::path::Path;

use rust_hdf5::{ByteOrder, DatatypeMessage, H5Dataset, H5File, StorageLayout};

use super::array::{Array, Dtype, Layout};
use super::container::Container;
use super::inflate::inflated;
use crate::{Error, Kind, Place, Result, catch_panic};

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
        let claimed = layout.check(u64::MAX, place)? as u64;
        match guarded(place, || holds(dataset, claimed, self.length))? {
            Holds::All => Ok(()),
            Holds::Elsewhere => {
                let hint = "copy the data into one file, as h5py writes by default";
                Err(Error::format(place, "the data are kept in another file", hint))
            }
            Holds::Less => {
                Err(Error::corrupt(place, format!("{claimed} bytes are claimed, and fewer are there")))
            }
        }
    }
}

/// Whether a file holds what the header of a data set claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// It does.
    All,
    /// It holds less: memory must not be taken for it.
    Less,
    /// The data are in other files.
    Elsewhere,
}

/// What other filters than deflate can pack into a byte: lz4's limit.
const PACKED: u64 = 255;

/// Whether a file of `length` bytes holds the `claimed` bytes of one of its data sets. Packed data are unpacked for it,
/// in small pieces, when much is claimed: a header is a few bytes and may claim anything.
///
/// # Errors
/// Errors of the HDF5 library.
pub fn holds(dataset: &H5Dataset, claimed: u64, length: u64) -> rust_hdf5::Result<Holds> {
    let external = !dataset.external_files()?.is_empty();
    match dataset.storage_layout()? {
        _ if external => return Ok(Holds::Elsewhere),
        StorageLayout::Virtual => return Ok(Holds::Elsewhere),
        StorageLayout::Chunked if claimed <= length.saturating_mul(super::inflate::UNCHECKED_RATIO) => {
            return Ok(Holds::All);
        }
        StorageLayout::Chunked => {}
        _ if claimed <= length => return Ok(Holds::All),
        _ => return Ok(Holds::Less),
    }
    let filters = dataset.filters()?;
    let deflated = filters.iter().any(|f| f.id == 1);
    let chunk = dataset.chunk_dims().unwrap_or_default();
    let counts: Vec<usize> =
        dataset.shape().iter().zip(&chunk).map(|(n, c)| n.div_ceil((*c).max(1))).collect();
    let chunks = counts.iter().try_fold(1u64, |n, &k| n.checked_mul(k as u64));
    let Some(chunks) = chunks.filter(|&n| n <= length) else { return Ok(Holds::Less) };
    let mut there = 0u64;
    for mut at in 0..chunks {
        let mut place = vec![0; counts.len()];
        for (p, n) in place.iter_mut().zip(&counts).rev() {
            (*p, at) = ((at % *n as u64) as usize, at / *n as u64);
        }
        // A chunk that was never written holds nothing.
        let Ok((packed, _)) = dataset.read_chunk_raw_at(&place) else { continue };
        there = there.saturating_add(match (deflated, filters.is_empty()) {
            (true, _) => inflated(&packed),
            (_, true) => packed.len() as u64,
            _ => PACKED * packed.len() as u64,
        });
    }
    Ok(if there >= claimed { Holds::All } else { Holds::Less })
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

/// Calls the library; its errors, and its panics on malicious files, become errors of this crate.
fn guarded<T>(place: &Place, call: impl FnOnce() -> rust_hdf5::Result<T>) -> Result<T> {
    match catch_panic(call) {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) => Err(Error::corrupt(place, format!("HDF5: {error}"))),
        None => Err(Error::corrupt(place, "not a readable HDF5 file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A gigabyte is claimed; `written` chunks of a quarter of a megabyte are there, packed.
    fn hollow(path: &Path, written: usize) {
        let file = H5File::create(path).unwrap();
        let set = file.new_dataset::<f32>().shape([1 << 14, 1 << 14]).chunk(&[256, 256]).deflate(9);
        let set = set.create("samples").unwrap();
        (0..written).for_each(|i| set.write_chunk(i, &vec![0; 1 << 18]).unwrap());
    }

    #[test]
    fn claims_are_held_against_what_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let (path, place) = (dir.path().join("a.h5"), Place::default());
        hollow(&path, 3);
        let mut file = Hdf5::open(&path, &place).unwrap();
        let error = file.read("samples").err().unwrap().to_string();
        assert!(error.contains("fewer are there"), "{error}");
        let length = file.length;
        let set = file.file.dataset("samples").unwrap();
        // What the three chunks hold is believed to the byte, although it is many times their length.
        let there = 3 << 18;
        assert!(there > 8 * length);
        assert_eq!(holds(&set, there, length).unwrap(), Holds::All);
        assert_eq!(holds(&set, there + 1, length).unwrap(), Holds::Less);
    }
}
