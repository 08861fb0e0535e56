//! A numeric array as its file stores it, decoded entry by entry.

use std::borrow::Cow;

use crate::cells::{Cell, Cells};
use crate::table::TextColumn;
use crate::{Column, Error, Kind, Place, Result};

/// How an entry is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dtype {
    Bool,
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F16,
    BF16,
    F32,
    F64,
    /// Bytes of a string, padded with zeros to this length.
    Bytes(usize),
    /// Characters of four bytes, padded with zeros to this length.
    Unicode(usize),
}

impl Dtype {
    /// Bytes per entry.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 | Self::BF16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
            Self::Bytes(length) => length,
            Self::Unicode(length) => length.saturating_mul(4),
        }
    }

    pub(crate) fn is_text(self) -> bool {
        matches!(self, Self::Bytes(_) | Self::Unicode(_))
    }
}

/// How an array is laid out in its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) dtype: Dtype,
    pub(crate) big_endian: bool,
    /// Whether the first index runs fastest.
    pub(crate) fortran: bool,
    pub(crate) shape: Vec<usize>,
}

impl Layout {
    /// Little-endian, last index fastest.
    pub(crate) fn plain(dtype: Dtype, shape: Vec<usize>) -> Self {
        Self { dtype, big_endian: false, fortran: false, shape }
    }

    pub(crate) fn rows(&self) -> usize {
        self.shape.first().copied().unwrap_or(1)
    }

    /// Entries per row; cannot overflow once [`Layout::bytes`] has been checked.
    pub(crate) fn cols(&self) -> usize {
        self.shape.iter().skip(1).product()
    }

    /// Bytes of the whole array, `None` when they cannot be counted.
    pub(crate) fn bytes(&self) -> Option<usize> {
        let size = self.dtype.size();
        let all = self.shape.iter().try_fold(size, |n, d| n.checked_mul(*d))?;
        // An empty first axis must not hide an overflow of the others.
        let row = self.shape.iter().skip(1);
        row.filter(|d| **d > 0).try_fold(size, |n, d| n.checked_mul(*d))?;
        Some(all)
    }

    /// Checks that the array fits into `available` bytes, before anything of its size is allocated.
    pub(crate) fn check(&self, available: u64, place: &Place) -> Result<usize> {
        match self.bytes() {
            Some(bytes) if bytes as u64 <= available => Ok(bytes),
            bytes => {
                let needed = bytes.map_or("more than memory can hold".into(), |b| b.to_string());
                let what = format!(
                    "an array of shape {:?} needs {needed} bytes, {available} are there",
                    self.shape
                );
                Err(Error::corrupt(place, what))
            }
        }
    }

    /// Height and width, when every row is an image of one channel.
    pub(crate) fn image(&self) -> Option<[usize; 2]> {
        match self.shape[..] {
            [_, height, width] | [_, 1, height, width] | [_, height, width, 1] => Some([height, width]),
            _ => None,
        }
    }
}

/// An array: its layout and the bytes from `offset` on.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) layout: Layout,
    pub(crate) bytes: Vec<u8>,
    pub(crate) offset: usize,
}

impl Array {
    /// Checks the layout against the bytes.
    pub(crate) fn new(layout: Layout, bytes: Vec<u8>, offset: usize, place: &Place) -> Result<Self> {
        layout.check(bytes.len().saturating_sub(offset) as u64, place)?;
        Ok(Self { layout, bytes, offset })
    }

    /// The entry at (`row`, `col`), `col` counting through all further axes with the last fastest.
    pub(crate) fn cell(&self, row: usize, col: usize) -> Cell<'_> {
        let index = if self.layout.fortran {
            self.fortran_index(row, col)
        } else {
            row * self.layout.cols() + col
        };
        let size = self.layout.dtype.size();
        let start = self.offset + index * size;
        decode(self.layout.dtype, self.layout.big_endian, &self.bytes[start..start + size])
    }

    /// Writes the entries of a row to `out`; false when they do not lie together or are not numbers.
    fn numbers(&self, row: usize, out: &mut Vec<f64>) -> bool {
        let Layout { dtype, big_endian, fortran, .. } = self.layout;
        if fortran || dtype.is_text() {
            return false;
        }
        let length = self.layout.cols() * dtype.size();
        let start = self.offset + row * length;
        let bytes = &self.bytes[start..start + length];
        out.clear();
        // The most common types have a loop of their own.
        match (dtype, big_endian) {
            (Dtype::U8, _) => out.extend(bytes.iter().map(|byte| f64::from(*byte))),
            (Dtype::F32, false) => out.extend(
                bytes.chunks_exact(4).map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]]))),
            ),
            _ => out.extend(bytes.chunks_exact(dtype.size()).map(|entry| {
                match decode(dtype, big_endian, entry) {
                    Cell::Number(value) => value,
                    _ => f64::NAN,
                }
            })),
        }
        true
    }

    /// All entries, the last index fastest, NaN for missing ones; `None` for text.
    pub(crate) fn all_numbers(&self) -> Option<Vec<f64>> {
        let (rows, cols) = (self.layout.rows(), self.layout.cols());
        if self.layout.dtype.is_text() {
            return None;
        }
        // Without entries the number of rows may be anything.
        let rows = if cols == 0 { 0 } else { rows };
        let mut values = Vec::with_capacity(rows * cols);
        let mut line = Vec::new();
        for row in 0..rows {
            if self.numbers(row, &mut line) {
                values.extend_from_slice(&line);
            } else {
                values.extend((0..cols).map(|col| match self.cell(row, col) {
                    Cell::Number(value) => value,
                    _ => f64::NAN,
                }));
            }
        }
        Some(values)
    }

    fn fortran_index(&self, row: usize, mut col: usize) -> usize {
        let shape = &self.layout.shape;
        // Strides of the first axes grow; col is taken apart from its last, fastest axis on.
        let mut stride: usize = shape.iter().product();
        let mut index = 0;
        for &extent in shape.iter().skip(1).rev() {
            stride /= extent;
            index += col % extent * stride;
            col /= extent;
        }
        index + row
    }
}

fn decode(dtype: Dtype, big_endian: bool, bytes: &[u8]) -> Cell<'_> {
    macro_rules! read {
        ($type:ty) => {{
            let mut array = [0; size_of::<$type>()];
            array.copy_from_slice(bytes);
            if big_endian { <$type>::from_be_bytes(array) } else { <$type>::from_le_bytes(array) }
        }};
    }
    match dtype {
        Dtype::Bool => Cell::Number(f64::from(u8::from(bytes[0] != 0))),
        Dtype::U8 => Cell::Number(f64::from(bytes[0])),
        Dtype::I8 => Cell::Number(f64::from(bytes[0] as i8)),
        Dtype::U16 => Cell::Number(f64::from(read!(u16))),
        Dtype::I16 => Cell::Number(f64::from(read!(i16))),
        Dtype::U32 => Cell::Number(f64::from(read!(u32))),
        Dtype::I32 => Cell::Number(f64::from(read!(i32))),
        Dtype::U64 => Cell::Number(read!(u64) as f64),
        Dtype::I64 => Cell::Number(read!(i64) as f64),
        Dtype::F16 => Cell::number(half(read!(u16))),
        Dtype::BF16 => Cell::number(f64::from(f32::from_bits(u32::from(read!(u16)) << 16))),
        Dtype::F32 => Cell::number(f64::from(read!(f32))),
        Dtype::F64 => Cell::number(read!(f64)),
        Dtype::Bytes(_) => {
            let end = bytes.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1);
            text(String::from_utf8_lossy(&bytes[..end]))
        }
        Dtype::Unicode(_) => {
            let words = bytes.chunks_exact(4).map(|bytes| {
                let word = [bytes[0], bytes[1], bytes[2], bytes[3]];
                if big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
            });
            let characters = words.take_while(|word| *word != 0);
            text(Cow::Owned(
                characters
                    .map(|word| char::from_u32(word).unwrap_or(char::REPLACEMENT_CHARACTER))
                    .collect(),
            ))
        }
    }
}

fn text(text: Cow<'_, str>) -> Cell<'_> {
    if text.is_empty() { Cell::Missing } else { Cell::Text(text) }
}

/// IEEE 754 half precision.
pub(crate) fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    sign * match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    }
}

/// The labels that belong to an array.
#[derive(Debug)]
pub(crate) enum LabelSource {
    Array(Array),
    /// Names of folders, for images.
    #[cfg_attr(not(feature = "png"), expect(dead_code))]
    Text(TextColumn),
}

/// An array of data, with its labels, as a grid.
#[derive(Debug)]
pub(crate) struct ArrayCells {
    place: Place,
    data: Array,
    labels: Option<LabelSource>,
    /// The kind of the data columns, where the file declares one.
    pub(crate) kind: Option<Kind>,
    /// Rows of the source before this block.
    pub(crate) first_row: usize,
}

impl ArrayCells {
    pub(crate) fn new(place: Place, data: Array, mut labels: Option<LabelSource>) -> Result<Self> {
        if data.layout.shape.is_empty() {
            let what = "a single number, not an array";
            return Err(Error::format(&place, what, "expected rows and columns"));
        }
        if data.layout.dtype.is_text() {
            let what = "an array of text";
            return Err(Error::format(&place, what, "save it as codes, or use a csv file"));
        }
        let rows = data.layout.rows();
        // Without entries the other extents may be anything: nothing may be allocated or counted by them.
        if rows == 0 || data.layout.cols() == 0 {
            return Err(Error::empty(&place, format!("the array has shape {:?}", data.layout.shape)));
        }
        let count = match &mut labels {
            Some(LabelSource::Array(array)) => {
                let count = array.layout.shape.iter().product();
                array.layout.shape = vec![count];
                array.layout.fortran = false;
                count
            }
            Some(LabelSource::Text(column)) => column.len(),
            None => rows,
        };
        if count != rows {
            let what = format!("{count} labels for {rows} rows");
            return Err(Error::format(&place, what, "there must be one label per row"));
        }
        Ok(Self { place, data, labels, kind: None, first_row: 0 })
    }
}

impl Cells for ArrayCells {
    fn place(&self) -> &Place {
        &self.place
    }

    fn rows(&self) -> usize {
        self.data.layout.rows()
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = (0..self.uniform()).map(|i| format!("v{i}")).collect();
        names.extend(self.labels.as_ref().map(|_| "label".to_owned()));
        names
    }

    fn uniform(&self) -> usize {
        self.data.layout.cols()
    }

    fn declared(&self, col: usize) -> Option<Column> {
        if col >= self.uniform() {
            Some(Column::new("label", Kind::Label))
        } else {
            self.kind.map(|kind| Column::new(format!("v{col}"), kind))
        }
    }

    fn shape(&self) -> Option<[usize; 2]> {
        self.data.layout.image()
    }

    fn cell(&self, row: usize, col: usize) -> Cell<'_> {
        if col < self.uniform() {
            return self.data.cell(row, col);
        }
        match &self.labels {
            Some(LabelSource::Array(array)) => array.cell(row, 0),
            Some(LabelSource::Text(column)) => text(Cow::Borrowed(column.get(row))),
            None => Cell::Missing,
        }
    }

    fn numbers(&self, row: usize, out: &mut Vec<f64>) -> bool {
        self.data.numbers(row, out)
    }

    fn first_row(&self) -> usize {
        self.first_row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_decoded() {
        for (bits, value) in [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_953_125),
            (0x0001, 5.960_464_477_539_063e-8),
            (0x7bff, 65504.0),
            (0x7c00, f64::INFINITY),
        ] {
            assert_eq!(half(bits), value);
        }
        assert!(half(0x7e00).is_nan());
    }

    #[test]
    fn fortran_order_is_followed_through_all_axes() {
        let layout = Layout { fortran: true, ..Layout::plain(Dtype::U8, vec![2, 3, 4]) };
        // Entry (i, j, k) stands at i + 2 j + 6 k.
        let array = Array::new(layout, (0..24).collect(), 0, &Place::default()).unwrap();
        for (i, j, k) in [(0, 0, 0), (1, 2, 3), (0, 1, 2), (1, 0, 3)] {
            let expected = Cell::Number((i + 2 * j + 6 * k) as f64);
            assert_eq!(array.cell(i, 4 * j + k), expected);
        }
        let all = array.all_numbers().unwrap();
        assert_eq!((all.len(), all[12 + 2 * 4 + 3]), (24, (1 + 2 * 2 + 6 * 3) as f64));
    }

    #[test]
    fn numbers_of_arrays_without_entries_or_of_text() {
        let array = |dtype, shape: &[usize]| {
            Array::new(Layout::plain(dtype, shape.into()), vec![b'a'; 8], 0, &Place::default()).unwrap()
        };
        assert_eq!(array(Dtype::F64, &[1 << 60, 0]).all_numbers(), Some(Vec::new()));
        assert_eq!(array(Dtype::F64, &[]).all_numbers().map(|x| x.len()), Some(1));
        assert_eq!(array(Dtype::Bytes(4), &[2]).all_numbers(), None);
    }

    #[test]
    fn absurd_shapes_are_refused() {
        for shape in [vec![usize::MAX, 2], vec![1 << 40, 1], vec![0, usize::MAX, 3]] {
            let layout = Layout::plain(Dtype::F64, shape);
            assert!(layout.check(1 << 20, &Place::default()).is_err());
        }
    }
}
