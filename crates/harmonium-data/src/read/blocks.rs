//! Sources that are read some rows at a time.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use super::array::{Array, ArrayCells, Layout};
use super::npy;
use crate::cells::Cells;
use crate::{Error, Place, Result};

/// A source that gives any range of its rows without reading the others into memory.
pub(crate) trait BlockSource {
    /// Where the rows come from.
    fn place(&self) -> &Place;

    /// Number of rows.
    fn rows(&self) -> usize;

    /// Some of the rows.
    fn read(&mut self, rows: Range<usize>) -> Result<Box<dyn Cells>>;
}

/// An npy file as a source of blocks of rows.
pub(crate) struct NpySource {
    place: Place,
    file: File,
    layout: Layout,
    offset: u64,
}

impl NpySource {
    pub(crate) fn open(path: &Path, place: &Place) -> Result<Self> {
        let mut file = File::open(path).map_err(Error::io(place, "read"))?;
        let length = file.metadata().map_err(Error::io(place, "read"))?.len();
        let mut start = Vec::new();
        file.by_ref()
            .take(npy::MAX_HEADER as u64 + 12)
            .read_to_end(&mut start)
            .map_err(Error::io(place, "read"))?;
        let (layout, offset) = npy::header(&start, place)?;
        layout.check(length.saturating_sub(offset as u64), place)?;
        if layout.fortran && layout.shape.len() > 1 {
            let hint = "save it with numpy.ascontiguousarray, or read it into memory";
            return Err(Error::format(place, "the rows are not contiguous (Fortran order)", hint));
        }
        Ok(Self { place: place.clone(), file, layout, offset: offset as u64 })
    }

    /// Bytes of a row as the file stores it.
    pub(crate) fn row_bytes(&self) -> usize {
        self.layout.cols() * self.layout.dtype.size()
    }
}

impl BlockSource for NpySource {
    fn place(&self) -> &Place {
        &self.place
    }

    fn rows(&self) -> usize {
        self.layout.rows()
    }

    fn read(&mut self, rows: Range<usize>) -> Result<Box<dyn Cells>> {
        let row_bytes = self.row_bytes();
        let mut bytes = vec![0; rows.len() * row_bytes];
        let at = self.offset + (rows.start * row_bytes) as u64;
        self.file
            .seek(SeekFrom::Start(at))
            .and_then(|_| self.file.read_exact(&mut bytes))
            .map_err(Error::io(&self.place, "read"))?;
        let mut layout = self.layout.clone();
        if let Some(count) = layout.shape.first_mut() {
            *count = rows.len();
        }
        let array = Array::new(layout, bytes, 0, &self.place)?;
        let mut cells = ArrayCells::new(self.place.clone(), array, None)?;
        cells.first_row = rows.start;
        Ok(Box::new(cells))
    }
}
