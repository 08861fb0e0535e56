//! NumPy's `.npz`: a zip archive of npy files.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::path::Path;

use zip::ZipArchive;

use super::array::Array;
use super::container::Container;
use super::{npy, read_all};
use crate::{Error, NumberArray, Place, Result};

/// Deflate cannot pack more than so many bytes into one.
const MAX_RATIO: u64 = 1032;

pub(crate) struct Npz {
    place: Place,
    archive: ZipArchive<Cursor<Vec<u8>>>,
    arrays: Vec<(String, Vec<usize>)>,
}

impl Npz {
    pub(crate) fn open(bytes: Vec<u8>, place: &Place) -> Result<Self> {
        let archive = ZipArchive::new(Cursor::new(bytes))
            .map_err(|e| Error::corrupt(place, format!("not an npz file: {e}")))?;
        let mut npz = Self { place: place.clone(), archive, arrays: Vec::new() };
        for index in 0..npz.archive.len() {
            let mut entry = npz.entry(index)?;
            let name = entry.name().map_or_else(|_| String::new(), |n| n.into_owned());
            let Some(name) = name.strip_suffix(".npy").map(str::to_owned) else {
                continue;
            };
            let mut start = Vec::new();
            entry
                .by_ref()
                .take(npy::MAX_HEADER as u64 + 12)
                .read_to_end(&mut start)
                .map_err(|e| Error::corrupt(&place.clone().part(&name), e.to_string()))?;
            drop(entry);
            // Arrays that cannot be read (objects) are listed all the same; asking for them tells why.
            let shape = npy::header(&start, place).map_or(Vec::new(), |(layout, _)| layout.shape);
            npz.arrays.push((name, shape));
        }
        Ok(npz)
    }

    fn entry(&mut self, index: usize) -> Result<zip::read::ZipFile<'_, Cursor<Vec<u8>>>> {
        let place = self.place.clone();
        self.archive
            .by_index(index)
            .map_err(|e| Error::corrupt(&place, format!("npz entry {index}: {e}")))
    }
}

impl Container for Npz {
    fn arrays(&self) -> &[(String, Vec<usize>)] {
        &self.arrays
    }

    fn read(&mut self, name: &str) -> Result<Array> {
        let place = self.place.clone().part(name);
        let wanted = format!("{name}.npy");
        let index = self.archive.index_for_name(&wanted);
        let index = index.ok_or_else(|| Error::corrupt(&place, "the array has disappeared"))?;
        let entry = self.entry(index)?;
        // The directory may claim any size: memory is taken as bytes arrive, never beyond what deflate
        // can pack into the bytes that are there.
        let limit = entry.compressed_size().saturating_mul(MAX_RATIO).saturating_add(1);
        let mut bytes = Vec::new();
        entry.take(limit).read_to_end(&mut bytes).map_err(|e| Error::corrupt(&place, e.to_string()))?;
        npy::parse(bytes, &place)
    }
}

/// The arrays of an npz file by their names, when all of them are numbers: a model of another program, say.
pub fn read_npz(path: &Path) -> Result<BTreeMap<String, NumberArray>> {
    let place = Place::file(path);
    let mut npz = Npz::open(read_all(path, &place)?, &place)?;
    let names: Vec<String> = npz.arrays.iter().map(|(name, _)| name.clone()).collect();
    let read = |name: String| {
        let array = npz.read(&name)?;
        let values = array.all_numbers().ok_or_else(|| {
            Error::format(&place.clone().part(&name), "an array of text", "expected numbers")
        })?;
        Ok((name, NumberArray { shape: array.layout.shape, values }))
    };
    names.into_iter().map(read).collect()
}
