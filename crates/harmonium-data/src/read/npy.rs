//! NumPy's `.npy`: the header, and the array behind it.
//!
//! Read here rather than by a crate because the type of the entries is known only from the file, because
//! the header is checked against the file's length before anything is allocated, and because large files
//! are read in blocks.

use super::array::{Array, Dtype, Layout};
use crate::{Error, Place, Result};

/// The longest header that is looked at; NumPy's own limit is 10 000 characters.
pub(crate) const MAX_HEADER: usize = 65_536;

const MAGIC: &[u8] = b"\x93NUMPY";

/// The layout in the header, and where the entries start.
pub(crate) fn header(start: &[u8], place: &Place) -> Result<(Layout, usize)> {
    let bad = |what: &str| Error::corrupt(place, format!("not an npy file: {what}"));
    if !start.starts_with(MAGIC) {
        return Err(bad("it does not start with \\x93NUMPY"));
    }
    let (length, at) = match start.get(6).copied() {
        Some(1) => {
            let bytes = start.get(8..10).ok_or_else(|| bad("the header is cut off"))?;
            (usize::from(u16::from_le_bytes([bytes[0], bytes[1]])), 10)
        }
        Some(2 | 3) => {
            let b = start.get(8..12).ok_or_else(|| bad("the header is cut off"))?;
            (u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize, 12)
        }
        _ => return Err(bad("unknown version")),
    };
    if length > MAX_HEADER {
        return Err(bad("the header is too long"));
    }
    let text = start.get(at..at + length).ok_or_else(|| bad("the header is cut off"))?;
    let text = std::str::from_utf8(text).map_err(|_| bad("the header is not text"))?;
    Ok((parse_dictionary(text, place)?, at + length))
}

/// Reads a whole file that is in memory.
pub(crate) fn parse(bytes: Vec<u8>, place: &Place) -> Result<Array> {
    let (layout, offset) = header(&bytes, place)?;
    Array::new(layout, bytes, offset, place)
}

/// Reads `{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }`.
fn parse_dictionary(text: &str, place: &Place) -> Result<Layout> {
    let bad = |what: &str| Error::corrupt(place, format!("npy header {text:?}: {what}"));
    let value = |key: &str| -> Option<&str> {
        let quoted = [format!("'{key}'"), format!("\"{key}\"")];
        let start = quoted.iter().find_map(|q| Some(text.find(q.as_str())? + q.len()))?;
        text[start..].trim_start().strip_prefix(':').map(str::trim_start)
    };
    let descr = value("descr").ok_or_else(|| bad("no 'descr'"))?;
    if descr.starts_with('[') {
        let what = "a structured array (several named fields)";
        return Err(Error::format(place, what, "save its columns as one plain array, or as csv"));
    }
    let quote = descr.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let descr = quote
        .and_then(|quote| descr[1..].split(quote).next())
        .ok_or_else(|| bad("'descr' is not text"))?;
    let (dtype, big_endian) = parse_descr(descr, place)?;
    let fortran = match value("fortran_order") {
        Some(rest) if rest.starts_with("True") => true,
        Some(rest) if rest.starts_with("False") => false,
        _ => return Err(bad("no 'fortran_order'")),
    };
    let shape = value("shape")
        .and_then(|rest| rest.strip_prefix('('))
        .and_then(|rest| Some(rest.split_once(')')?.0))
        .ok_or_else(|| bad("no 'shape'"))?;
    let shape: Vec<usize> = shape
        .split(',')
        .map(str::trim)
        .filter(|number| !number.is_empty())
        .map(|number| number.trim_end_matches('L').parse().ok())
        .collect::<Option<_>>()
        .ok_or_else(|| bad("'shape' is not a tuple of whole numbers"))?;
    Ok(Layout { dtype, big_endian, fortran, shape })
}

/// Reads a type such as `<f8`, `|b1` or `>U12`.
fn parse_descr(descr: &str, place: &Place) -> Result<(Dtype, bool)> {
    let unsupported = || {
        let hint = match descr.contains('O') {
            true => "object arrays are pickles and are never loaded: save numbers",
            false => "save it as bool, an integer or a real type",
        };
        Error::format(place, format!("entries of type {descr:?}"), hint)
    };
    let (order, code) = match descr.as_bytes().first() {
        Some(b'<' | b'>' | b'|' | b'=') => descr.split_at(1),
        _ => ("|", descr),
    };
    let length = |at: usize| code[at..].parse::<usize>().map_err(|_| unsupported());
    let dtype = match code {
        "b1" | "?" => Dtype::Bool,
        "u1" => Dtype::U8,
        "u2" => Dtype::U16,
        "u4" => Dtype::U32,
        "u8" => Dtype::U64,
        "i1" => Dtype::I8,
        "i2" => Dtype::I16,
        "i4" => Dtype::I32,
        "i8" => Dtype::I64,
        "f2" => Dtype::F16,
        "f4" => Dtype::F32,
        "f8" => Dtype::F64,
        _ if code.starts_with('S') => Dtype::Bytes(length(1)?),
        _ if code.starts_with('U') => Dtype::Unicode(length(1)?),
        _ => return Err(unsupported()),
    };
    if dtype.size() == 0 {
        return Err(unsupported());
    }
    Ok((dtype, order == ">"))
}

/// The header that NumPy writes, padded so that entries start at a multiple of 64 bytes.
pub(crate) fn write_header(descr: &str, shape: &[usize]) -> Vec<u8> {
    let dims: String = shape.iter().map(|extent| format!("{extent}, ")).collect();
    let dims = match shape.len() {
        1 => dims.trim_end(),
        _ => dims.trim_end_matches(", "),
    };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({dims}), }}");
    let padding = 63 - (10 + text.len()) % 64;
    text += &" ".repeat(padding);
    text.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::Cell;
    use proptest::prelude::*;

    fn read(descr: &str, shape: &[usize], entries: &[u8]) -> Result<Array> {
        let mut bytes = write_header(descr, shape);
        bytes.extend(entries);
        parse(bytes, &Place::new("t.npy"))
    }

    #[test]
    fn every_type_and_order_is_read() {
        for (descr, bytes, value) in [
            ("|b1", vec![1], 1.0),
            ("|u1", vec![200], 200.0),
            ("|i1", vec![255], -1.0),
            ("<u2", vec![1, 2], 513.0),
            (">u2", vec![1, 2], 258.0),
            ("<i4", (-7i32).to_le_bytes().to_vec(), -7.0),
            (">i8", (-7i64).to_be_bytes().to_vec(), -7.0),
            ("<f4", 0.5f32.to_le_bytes().to_vec(), 0.5),
            (">f8", 0.1f64.to_be_bytes().to_vec(), 0.1),
            ("<f2", vec![0, 0x3c], 1.0),
        ] {
            let array = read(descr, &[1, 1], &bytes).unwrap();
            assert_eq!(array.cell(0, 0), Cell::Number(value), "{descr}");
        }
        let names = read("<U2", &[1], &[b'a', 0, 0, 0, 0, 0, 0, 0]).unwrap();
        assert_eq!(names.cell(0, 0), Cell::Text("a".into()));
        let nan = read("<f4", &[1], &f32::NAN.to_le_bytes()).unwrap();
        assert_eq!(nan.cell(0, 0), Cell::Missing);
    }

    #[test]
    fn what_cannot_be_read_is_explained() {
        for (descr, part) in [("|O", "never loaded"), ("<c16", "real type"), ("<U0", "real type")] {
            let message = read(descr, &[1], &[0; 16]).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
        let message = read("<f8", &[1 << 60, 3], &[0; 16]).unwrap_err().to_string();
        assert!(message.contains("16 are there"), "{message}");
    }

    proptest! {
        #[test]
        fn damaged_files_never_panic(at in 0usize..90, byte: u8, keep in 0usize..100) {
            let mut bytes = write_header("<f4", &[2, 2]);
            bytes.extend([0; 16]);
            let at = at % bytes.len();
            bytes[at] = byte;
            bytes.truncate(keep.max(1));
            if let Ok(array) = parse(bytes, &Place::default()) {
                let rows = array.layout.rows();
                if rows > 0 && array.layout.cols() > 0 {
                    array.cell(rows - 1, array.layout.cols() - 1);
                }
            }
        }
    }
}
