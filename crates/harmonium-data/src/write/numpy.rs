//! NumPy files from tables.

use std::collections::BTreeMap;
use std::io::{Cursor, Seek, Write};
use std::path::Path;

use zip::write::{SimpleFileOptions, ZipWriter};

use super::{replace_file, replace_seekable};
use crate::read::npy::write_header;
use crate::{Error, Kind, Labels, NumberArray, Place, Result, Table, Values};

/// Writes the data columns of a table as one array, in the order of the schema.
///
/// Binary columns become 0 and 1 (u1), spins −1 and 1 (i1), categories their codes and counts themselves
/// (u4), reals f8, rounded to what their column's form can write. Mixed tables and tables with missing entries (NaN) become f8.
pub fn write_npy(path: &Path, table: &Table) -> Result<()> {
    replace_file(path, |out| data_to(out, table))
}

/// Writes tables as the arrays of an npz archive, each with its labels as `NAME_labels` (`labels` for a
/// table called `samples`).
pub fn write_npz(path: &Path, tables: &[(&str, &Table)]) -> Result<()> {
    replace_seekable(path, |out| {
        let mut zip = ZipWriter::new(out);
        for (name, table) in tables {
            entry(&mut zip, name, |zip| data_to(zip, table))?;
            if let Some(labels) = table.labels() {
                let label_name = match *name {
                    "samples" => "labels".to_owned(),
                    name => format!("{name}_labels"),
                };
                entry(&mut zip, &label_name, |zip| labels_to(zip, labels))?;
            }
        }
        zip.finish().map_err(std::io::Error::other)?;
        Ok(())
    })
}

/// An npz archive with these arrays as f8; equal arrays give equal bytes.
pub fn npz_bytes(arrays: &BTreeMap<String, NumberArray>) -> Result<Vec<u8>> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let place = Place::new("npz");
    for (name, array) in arrays {
        let contents = |out: &mut dyn Write| {
            out.write_all(&write_header("<f8", &array.shape))?;
            array.values.iter().try_for_each(|x| out.write_all(&x.to_le_bytes()))
        };
        entry(&mut zip, name, contents).map_err(Error::io(&place, "write"))?;
    }
    let whole = zip.finish().map_err(std::io::Error::other);
    Ok(whole.map_err(Error::io(&place, "write"))?.into_inner())
}

fn entry<W: Write + Seek>(
    zip: &mut ZipWriter<W>,
    name: &str,
    contents: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> std::io::Result<()> {
    // Without a date, so that equal tables give equal files; large, so that arrays may pass 4 GiB.
    let options = SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Deflated)
        .last_modified_time(zip::DateTime::default())
        .large_file(true);
    zip.start_file(format!("{name}.npy"), options).map_err(std::io::Error::other)?;
    contents(zip)
}

fn data_to(out: &mut dyn Write, table: &Table) -> std::io::Result<()> {
    let shape = [table.rows(), table.cols()];
    let form = |block: &crate::Block, col: usize| &table.schema().columns[block.columns[col]].format;
    let single = match table.blocks() {
        [block] if block.missing.is_none() => Some(block),
        _ => None,
    };
    let Some(block) = single else {
        out.write_all(&write_header("<f8", &shape))?;
        let mut order: Vec<(usize, &crate::Block, usize)> = Vec::new();
        for block in table.blocks() {
            order.extend(block.columns.iter().enumerate().map(|(col, &place)| (place, block, col)));
        }
        order.sort_by_key(|(place, _, _)| *place);
        for row in 0..table.rows() {
            for (_, block, col) in &order {
                let value = block.number(row, *col).map_or(f64::NAN, |x| form(block, *col).nearest(x));
                out.write_all(&value.to_le_bytes())?;
            }
        }
        return Ok(());
    };
    match &block.values {
        Values::Bits(bits) => {
            let (descr, low) = match block.kind {
                Kind::Spin => ("|i1", 255),
                _ => ("|u1", 0),
            };
            out.write_all(&write_header(descr, &shape))?;
            let mut line = vec![0; bits.cols()];
            for row in 0..bits.rows() {
                for (col, byte) in line.iter_mut().enumerate() {
                    *byte = if bits.get(row, col) { 1 } else { low };
                }
                out.write_all(&line)?;
            }
        }
        Values::Codes(codes) => {
            out.write_all(&write_header("<u4", &shape))?;
            for code in codes.values() {
                out.write_all(&code.to_le_bytes())?;
            }
        }
        Values::Reals(reals) => {
            out.write_all(&write_header("<f8", &shape))?;
            for (i, value) in reals.values().iter().enumerate() {
                let value = form(block, i % reals.cols()).nearest(*value);
                out.write_all(&value.to_le_bytes())?;
            }
        }
        Values::Singles(reals) => {
            out.write_all(&write_header("<f4", &shape))?;
            for (i, value) in reals.values().iter().enumerate() {
                let value = form(block, i % reals.cols()).nearest(f64::from(*value)) as f32;
                out.write_all(&value.to_le_bytes())?;
            }
        }
    }
    Ok(())
}

/// Labels as numbers where all classes are whole numbers, otherwise as text; a missing one is −1 or empty.
fn labels_to(out: &mut dyn Write, labels: &Labels) -> std::io::Result<()> {
    let numbers: Option<Vec<i64>> = labels.categories.iter().map(|name| name.parse().ok()).collect();
    let rows = labels.codes.len();
    if let Some(numbers) = numbers {
        out.write_all(&write_header("<i8", &[rows]))?;
        for row in 0..rows {
            let value = labels.get(row).map_or(-1, |code| numbers[code as usize]);
            out.write_all(&value.to_le_bytes())?;
        }
        return Ok(());
    }
    let names = labels.categories.iter();
    let width = names.map(|name| name.chars().count()).max().unwrap_or(1).max(1);
    out.write_all(&write_header(&format!("<U{width}"), &[rows]))?;
    for row in 0..rows {
        let name = labels.name(row).unwrap_or_default();
        let padded = name.chars().map(u32::from).chain(std::iter::repeat(0));
        for word in padded.take(width) {
            out.write_all(&word.to_le_bytes())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_npz;

    #[test]
    fn arrays_of_numbers_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.npz");
        let array =
            |shape: &[usize], values: &[f64]| NumberArray { shape: shape.into(), values: values.into() };
        let arrays = BTreeMap::from([
            ("w".to_owned(), array(&[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, f64::INFINITY])),
            ("b".to_owned(), array(&[4], &[0.1; 4])),
            ("none".to_owned(), array(&[0, 3], &[])),
        ]);
        let whole = npz_bytes(&arrays).unwrap();
        assert_eq!(npz_bytes(&arrays).unwrap(), whole);
        std::fs::write(&path, &whole).unwrap();
        assert_eq!(read_npz(&path).unwrap(), arrays);
        for cut in [0, 10, whole.len() / 2, whole.len() - 5] {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let message = read_npz(&path).unwrap_err().to_string();
            assert!(message.contains("truncated"), "{message}");
        }
    }
}
