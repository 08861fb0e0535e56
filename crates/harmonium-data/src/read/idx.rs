//! IDX, the format of MNIST: a short big-endian header, then the entries.

use std::path::{Path, PathBuf};

use super::array::{Array, Dtype, Layout};
use crate::{Error, Place, Result};

/// Reads a whole file that is in memory.
pub(crate) fn parse(bytes: Vec<u8>, place: &Place) -> Result<Array> {
    let bad = |what: &str| Error::corrupt(place, format!("not an IDX file: {what}"));
    let &[0, 0, code, axes, ref rest @ ..] = &bytes[..] else {
        return Err(bad("it does not start with two zero bytes"));
    };
    let dtype = match code {
        0x08 => Dtype::U8,
        0x09 => Dtype::I8,
        0x0b => Dtype::I16,
        0x0c => Dtype::I32,
        0x0d => Dtype::F32,
        0x0e => Dtype::F64,
        _ => return Err(bad("unknown type of entries")),
    };
    let dims = rest.get(..4 * usize::from(axes));
    let dims = dims.ok_or_else(|| bad("the header is cut off"))?;
    let shape =
        dims.chunks_exact(4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]) as usize).collect();
    let layout = Layout { big_endian: true, ..Layout::plain(dtype, shape) };
    Array::new(layout, bytes, 4 + 4 * usize::from(axes), place)
}

/// Where the labels of an image file are by convention: `train-images-idx3-ubyte` has `train-labels-idx1-ubyte`.
pub(crate) fn labels_beside(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    if !name.contains("images") {
        return None;
    }
    let labels = name.replace("images", "labels").replace("idx3", "idx1");
    // A packed image file may lie beside unpacked labels, and the other way round.
    let stem = labels.strip_suffix(".gz").unwrap_or(&labels);
    [labels.clone(), stem.to_owned(), format!("{stem}.gz")]
        .into_iter()
        .map(|name| path.with_file_name(name))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::Cell;
    use proptest::prelude::*;

    fn example() -> Vec<u8> {
        let mut bytes = vec![0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3];
        bytes.extend([1, 2, 3, 4, 5, 6]);
        bytes
    }

    #[test]
    fn images_are_read() {
        let array = parse(example(), &Place::default()).unwrap();
        assert_eq!(array.layout.image(), Some([1, 3]));
        assert_eq!(array.cell(1, 2), Cell::Number(6.0));
        let mut short = example();
        short.pop();
        let message = parse(short, &Place::new("t")).unwrap_err().to_string();
        assert!(message.contains("needs 6 bytes, 5 are there"), "{message}");
    }

    proptest! {
        #[test]
        fn damaged_files_never_panic(at in 0usize..22, byte: u8, keep in 0usize..23) {
            let mut bytes = example();
            bytes[at] = byte;
            bytes.truncate(keep);
            let _ = parse(bytes, &Place::default());
        }
    }
}
