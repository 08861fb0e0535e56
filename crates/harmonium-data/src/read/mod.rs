//! Readers: from a file to grids of cells, one per part of the data set.

pub(crate) mod array;
pub(crate) mod blocks;
pub(crate) mod columns;
mod container;
mod csv;
mod fasta;
#[cfg(feature = "hdf5")]
pub(crate) mod hdf5;
pub(crate) mod idx;
#[cfg(feature = "png")]
mod images;
#[cfg(any(feature = "hdf5", feature = "png"))]
mod inflate;
pub(crate) mod npy;
mod npz;
#[cfg(feature = "parquet")]
mod parquet;
mod safetensors;

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

pub use npz::read_npz;

use self::array::{ArrayCells, LabelSource};
use self::blocks::BlockSource;
use self::csv::{CsvCells, Dialect};
use crate::cells::Cells;
use crate::{Error, Format, Place, ReadOptions, Result};

/// Which part of a data set a grid is: to train, to validate or to test with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subset {
    Train,
    Valid,
    Test,
}

/// One part of a data set, before its columns are typed.
pub(crate) struct Grid {
    pub(crate) subset: Subset,
    pub(crate) cells: Box<dyn Cells>,
    pub(crate) weights: Option<Vec<f64>>,
}

impl Grid {
    pub(crate) fn new(subset: Subset, cells: impl Cells + 'static) -> Self {
        Self { subset, cells: Box::new(cells), weights: None }
    }

    fn whole(cells: impl Cells + 'static) -> Vec<Self> {
        vec![Self::new(Subset::Train, cells)]
    }
}

/// Reads the file at `path`, or only its array `part`.
pub(crate) fn file(
    path: &Path,
    format: Format,
    part: Option<&str>,
    options: &ReadOptions,
) -> Result<Vec<Grid>> {
    let place = Place::file(path);
    let mut grids = match format {
        Format::Csv | Format::Tsv => {
            no_part(part, format, &place)?;
            text_table(open(path, &place)?, format, options, &place)?
        }
        Format::Hdf5 => hdf5(path, part, &place)?,
        Format::Images => return images(path, part, &place),
        Format::Npy
        | Format::Npz
        | Format::Parquet
        | Format::Idx
        | Format::Fasta
        | Format::Safetensors => from_bytes(read_all(path, &place)?, format, part, options, &place)?,
    };
    if format == Format::Idx
        && let Some(labels) = idx::labels_beside(path)
    {
        let place_of_labels = Place::file(&labels);
        let labels = idx::parse(read_all(&labels, &place_of_labels)?, &place_of_labels)?;
        let data = idx::parse(read_all(path, &place)?, &place)?;
        let cells = ArrayCells::new(place, data, Some(LabelSource::Array(labels)))?;
        grids = Grid::whole(cells);
    }
    Ok(grids)
}

/// Reads a file of one of the formats that are read from memory.
pub(crate) fn from_bytes(
    bytes: Vec<u8>,
    format: Format,
    part: Option<&str>,
    options: &ReadOptions,
    place: &Place,
) -> Result<Vec<Grid>> {
    if bytes.is_empty() {
        return Err(Error::empty(place, "the file is empty"));
    }
    match format {
        Format::Npz => container::grids(&mut npz::Npz::open(bytes, place)?, part, place),
        Format::Safetensors => {
            let mut file = safetensors::Tensors::open(bytes, place)?;
            container::grids(&mut file, part, place)
        }
        Format::Npy => {
            no_part(part, format, place).and_then(|()| array(npy::parse(bytes, place)?, place))
        }
        Format::Idx => {
            no_part(part, format, place).and_then(|()| array(idx::parse(bytes, place)?, place))
        }
        Format::Fasta => {
            no_part(part, format, place)?;
            fasta::grids(&bytes, options, place)
        }
        Format::Csv | Format::Tsv => {
            no_part(part, format, place)?;
            text_table(&bytes[..], format, options, place)
        }
        Format::Parquet | Format::Hdf5 | Format::Images => {
            let why = format!("{} is read from a file only", format.name());
            Err(Error::format(place, why, "give the name of the file"))
        }
    }
}

fn array(array: array::Array, place: &Place) -> Result<Vec<Grid>> {
    Ok(Grid::whole(ArrayCells::new(place.clone(), array, None)?))
}

/// Reads a text table.
pub(crate) fn text_table(
    input: impl Read,
    format: Format,
    options: &ReadOptions,
    place: &Place,
) -> Result<Vec<Grid>> {
    let dialect = Dialect {
        delimiter: options.delimiter.or((format == Format::Tsv).then_some(b'\t')),
        header: options.header,
        missing: options.overrides.missing.clone(),
    };
    Ok(Grid::whole(CsvCells::read(input, &dialect, place)?))
}

pub(crate) fn no_part(part: Option<&str>, format: Format, place: &Place) -> Result<()> {
    match part {
        None => Ok(()),
        Some(part) => Err(Error::format(
            place,
            format!("{} holds one table, there is no part {part:?}", format.name()),
            "leave out the colon and what follows it",
        )),
    }
}

/// Opens a file; a gzip stream is unpacked on the way.
pub(crate) fn open(path: &Path, place: &Place) -> Result<Box<dyn Read>> {
    let mut file = File::open(path).map_err(Error::io(place, "read"))?;
    let mut magic = Vec::new();
    file.by_ref().take(2).read_to_end(&mut magic).map_err(Error::io(place, "read"))?;
    let packed = magic == [0x1f, 0x8b];
    let whole = std::io::Cursor::new(magic).chain(BufReader::new(file));
    Ok(match packed {
        true => Box::new(flate2::read::MultiGzDecoder::new(whole)),
        false => Box::new(whole),
    })
}

/// The contents of a file; a gzip stream is unpacked.
///
/// Memory grows as bytes arrive, whatever lengths the file claims.
pub(crate) fn read_all(path: &Path, place: &Place) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path, place)?.read_to_end(&mut bytes).map_err(|source| match source.kind() {
        std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::InvalidInput => {
            Error::corrupt(place, format!("gzip: {source}"))
        }
        _ => Error::io(place, "read")(source),
    })?;
    Ok(bytes)
}

/// A Parquet file, to be read in blocks.
#[cfg(feature = "parquet")]
pub(crate) fn parquet_source(path: &Path, place: &Place) -> Result<Box<dyn BlockSource>> {
    Ok(Box::new(parquet::ParquetSource::open(path, place)?))
}

/// A Parquet file, to be read in blocks.
#[cfg(not(feature = "parquet"))]
pub(crate) fn parquet_source(_: &Path, place: &Place) -> Result<Box<dyn BlockSource>> {
    Err(missing_feature(place, "Parquet", "parquet"))
}

#[cfg(feature = "hdf5")]
fn hdf5(path: &Path, part: Option<&str>, place: &Place) -> Result<Vec<Grid>> {
    container::grids(&mut hdf5::Hdf5::open(path, place)?, part, place)
}

#[cfg(not(feature = "hdf5"))]
fn hdf5(_: &Path, _: Option<&str>, place: &Place) -> Result<Vec<Grid>> {
    Err(missing_feature(place, "HDF5", "hdf5"))
}

#[cfg(feature = "png")]
fn images(path: &Path, part: Option<&str>, place: &Place) -> Result<Vec<Grid>> {
    no_part(part, Format::Images, place)?;
    Ok(Grid::whole(images::folder(path, place)?))
}

#[cfg(not(feature = "png"))]
fn images(_: &Path, _: Option<&str>, place: &Place) -> Result<Vec<Grid>> {
    Err(missing_feature(place, "PNG images", "png"))
}

#[cfg(not(all(feature = "parquet", feature = "hdf5", feature = "png")))]
fn missing_feature(place: &Place, format: &'static str, feature: &'static str) -> Error {
    Error::Feature { place: Box::new(place.clone()), format, feature }
}
