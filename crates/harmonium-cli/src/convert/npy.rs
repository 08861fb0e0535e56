//! Arrays of NumPy's npz files, for models: numbers of any width become f64.

use crate::error::{Failure, Result};
use ndarray::{ArrayD, IxDyn};
use std::collections::BTreeMap;
use std::io::{Cursor, Read, Seek, Write};
use std::path::Path;
use zip::write::{SimpleFileOptions, ZipWriter};

/// Named arrays.
pub(crate) type Arrays = BTreeMap<String, ArrayD<f64>>;

/// Most bytes that an array of a model may take when unpacked.
const LARGEST: u64 = 1 << 33;

/// All arrays of an npz file.
pub(crate) fn read(path: &Path) -> Result<Arrays> {
    let bad = |what: String| {
        Failure::new(format!(
            "{}: {what}; the file is truncated or damaged, or no npz file: write it again",
            path.display()
        ))
    };
    let file = std::fs::File::open(path).map_err(|e| Failure::io("read", path, &e))?;
    let mut zip = zip::ZipArchive::new(std::io::BufReader::new(file)).map_err(|e| bad(e.to_string()))?;
    let mut arrays = Arrays::new();
    for i in 0..zip.len() {
        let entry = zip.by_index(i).map_err(|e| bad(e.to_string()))?;
        let name = entry.name().map_err(|e| bad(e.to_string()))?.trim_end_matches(".npy").to_owned();
        let mut bytes = Vec::new();
        entry.take(LARGEST).read_to_end(&mut bytes).map_err(|e| bad(format!("array {name:?}: {e}")))?;
        arrays.insert(name.clone(), parse(&bytes).map_err(|e| bad(format!("array {name:?}: {e}")))?);
    }
    Ok(arrays)
}

/// The array of an npy file's bytes.
fn parse(bytes: &[u8]) -> Result<ArrayD<f64>, String> {
    let short = || "it ends too early".to_owned();
    if bytes.get(..6) != Some(b"\x93NUMPY") {
        return Err("this is no npy array".into());
    }
    let (start, length): (usize, usize) = match bytes.get(6) {
        Some(1) => (
            10,
            u16::from_le_bytes(bytes.get(8..10).ok_or_else(short)?.try_into().expect("two")) as usize,
        ),
        _ => (
            12,
            u32::from_le_bytes(bytes.get(8..12).ok_or_else(short)?.try_into().expect("four")) as usize,
        ),
    };
    let header = bytes.get(start..start.saturating_add(length)).ok_or_else(short)?;
    let header = std::str::from_utf8(header).map_err(|e| e.to_string())?;
    let value = |key: &str| {
        let rest = &header[header.find(&format!("'{key}'"))? + key.len() + 2..];
        Some(rest.trim_start().strip_prefix(':')?.trim_start())
    };
    let descr =
        value("descr").and_then(|v| v.strip_prefix('\'')?.split('\'').next()).ok_or("no descr")?;
    let fortran = value("fortran_order").ok_or("no fortran_order")?.starts_with("True");
    let shape = value("shape").and_then(|v| v.strip_prefix('(')?.split(')').next()).ok_or("no shape")?;
    let shape: Vec<usize> = shape
        .split(',')
        .map(str::trim)
        .filter(|s| !s.is_empty())
        .map(|s| s.parse().map_err(|_| format!("shape {s:?}")))
        .collect::<Result<_, String>>()?;
    let numbers = numbers(descr, &bytes[start + length..])?;
    let count =
        shape.iter().try_fold(1usize, |n, &k| n.checked_mul(k)).ok_or("the shape is too large")?;
    if numbers.len() < count {
        return Err(format!("{} numbers, {count} expected", numbers.len()));
    }
    let numbers = numbers[..count].to_vec();
    let dim = IxDyn(&shape);
    let array = match fortran {
        true => ArrayD::from_shape_vec(ndarray::ShapeBuilder::f(dim), numbers),
        false => ArrayD::from_shape_vec(dim, numbers),
    };
    array.map_err(|e| e.to_string())
}

fn numbers(descr: &str, bytes: &[u8]) -> Result<Vec<f64>, String> {
    fn all<const N: usize>(bytes: &[u8], f: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        bytes.chunks_exact(N).map(|c| f(c.try_into().expect("N bytes"))).collect()
    }
    Ok(match descr {
        "<f8" => all(bytes, f64::from_le_bytes),
        "<f4" => all(bytes, |b| f32::from_le_bytes(b).into()),
        "<i8" => all(bytes, |b| i64::from_le_bytes(b) as f64),
        "<i4" => all(bytes, |b| i32::from_le_bytes(b).into()),
        "<u4" => all(bytes, |b| u32::from_le_bytes(b).into()),
        "|u1" | "|b1" => all(bytes, |[b]: [u8; 1]| b.into()),
        "|i1" => all(bytes, |b| i8::from_le_bytes(b).into()),
        _ => return Err(format!("numbers of type {descr:?} are not understood, expected <f8 or <f4")),
    })
}

/// An npz file of arrays of f8; equal arrays give equal bytes.
pub(crate) fn bytes(arrays: &Arrays) -> Result<Vec<u8>> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let fail = |e: String| Failure::new(format!("npz: {e}"));
    for (name, array) in arrays {
        put(&mut zip, name, array).map_err(|e| fail(e.to_string()))?;
    }
    Ok(zip.finish().map_err(|e| fail(e.to_string()))?.into_inner())
}

fn put<W: Write + Seek>(zip: &mut ZipWriter<W>, name: &str, array: &ArrayD<f64>) -> std::io::Result<()> {
    let options =
        SimpleFileOptions::default().last_modified_time(zip::DateTime::default()).large_file(true);
    zip.start_file(format!("{name}.npy"), options).map_err(std::io::Error::other)?;
    let shape: Vec<String> = array.shape().iter().map(|n| format!("{n},")).collect();
    let mut header =
        format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({}), }}", shape.join(" "));
    // The data start on a multiple of 64 bytes.
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    zip.write_all(b"\x93NUMPY\x01\x00")?;
    zip.write_all(&(header.len() as u16).to_le_bytes())?;
    zip.write_all(header.as_bytes())?;
    for x in array {
        zip.write_all(&x.to_le_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.npz");
        let w = ArrayD::from_shape_vec(IxDyn(&[2, 3]), (0..6).map(f64::from).collect()).unwrap();
        let arrays = Arrays::from([("w".into(), w), ("b".into(), ArrayD::from_elem(IxDyn(&[4]), 0.1))]);
        let whole = bytes(&arrays).unwrap();
        std::fs::write(&path, &whole).unwrap();
        assert_eq!(read(&path).unwrap(), arrays);
        for cut in [0, 10, whole.len() / 2, whole.len() - 5] {
            std::fs::write(&path, &whole[..cut]).unwrap();
            assert!(matches!(read(&path), Err(Failure::Failed(m)) if m.contains("truncated")));
        }
    }
}
