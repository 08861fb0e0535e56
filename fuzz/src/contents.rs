//! How much files hold when they are unpacked, counted piece by piece: headers are not trusted.

use flate2::read::ZlibDecoder;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::io::{Cursor, Read, Write};

/// Length of a stream, up to its first error.
fn length(mut stream: impl Read) -> usize {
    let (mut piece, mut sum) = ([0; 4096], 0);
    while let Ok(n @ 1..) = stream.read(&mut piece) {
        sum += n;
    }
    sum
}

/// All entries of a zip archive.
pub(crate) fn npz(bytes: &[u8]) -> usize {
    let Ok(mut zip) = zip::ZipArchive::new(Cursor::new(bytes)) else { return 0 };
    (0..zip.len()).map(|i| zip.by_index(i).map_or(0, length)).sum()
}

/// The pixels of a PNG: its IDAT chunks are one zlib stream. A bit may become a byte.
pub(crate) fn png(bytes: &[u8]) -> usize {
    let (mut at, mut stream) = (8, Vec::new());
    while let Some(head) = bytes.get(at..at + 8) {
        let n = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let end = at.saturating_add(8).saturating_add(n).min(bytes.len());
        if &head[4..] == b"IDAT" {
            stream.extend(&bytes[at + 8..end]);
        }
        at = end.saturating_add(4);
    }
    8 * length(ZlibDecoder::new(&stream[..]))
}

/// The chunks of all data sets of an HDF5 file.
pub(crate) fn hdf5(bytes: &[u8]) -> usize {
    let file = tempfile::Builder::new().suffix(".h5").tempfile().expect("a temporary file");
    std::fs::write(file.path(), bytes).expect("a temporary file");
    let count = || -> rust_hdf5::Result<usize> {
        let file = rust_hdf5::H5File::options().no_locking().open(file.path())?;
        let sets = file.dataset_names();
        Ok(sets.iter().filter_map(|name| file.dataset(name).ok()).map(|set| chunks(&set)).sum())
    };
    harmonium_data::catch_panic(count).and_then(Result::ok).unwrap_or(0)
}

fn chunks(set: &rust_hdf5::H5Dataset) -> usize {
    let Some(chunk) = set.chunk_dims() else { return 0 };
    let counts: Vec<usize> =
        set.shape().iter().zip(&chunk).map(|(n, c)| n.div_ceil((*c).max(1))).collect();
    let total = counts.iter().fold(1usize, |n, &k| n.saturating_mul(k)).min(1 << 12);
    let each = |mut at: usize| {
        let mut place = vec![0; counts.len()];
        for (p, n) in place.iter_mut().zip(&counts).rev() {
            (*p, at) = (at % n, at / n);
        }
        let packed = set.read_chunk_raw_at(&place).map_or(Vec::new(), |x| x.0);
        packed.len().max(length(ZlibDecoder::new(&packed[..])))
    };
    (0..total).map(each).sum()
}

/// The entries of a Parquet file that can be decoded, eight bytes for each number.
pub(crate) fn parquet(bytes: &[u8]) -> usize {
    let bytes = bytes::Bytes::copy_from_slice(bytes);
    harmonium_data::catch_panic(|| {
        let Ok(reader) = SerializedFileReader::new(bytes) else { return 0 };
        let groups = (0..reader.num_row_groups()).filter_map(|g| reader.get_row_group(g).ok());
        let columns = |g: Box<dyn parquet::file::reader::RowGroupReader + '_>| -> usize {
            (0..g.num_columns()).filter_map(|c| g.get_column_reader(c).ok()).map(decoded).sum()
        };
        groups.map(columns).sum()
    })
    .unwrap_or(0)
}

fn decoded(reader: ColumnReader) -> usize {
    fn all<T: DataType>(mut reader: ColumnReaderImpl<T>, size: impl Fn(&T::T) -> usize) -> usize {
        let mut sum = 0;
        loop {
            let (mut values, mut levels) = (Vec::new(), Vec::new());
            match reader.read_records(1024, Some(&mut levels), None, &mut values) {
                Ok((records @ 1.., _, _)) => {
                    sum += 8 * records + values.iter().map(&size).sum::<usize>()
                }
                _ => return sum,
            }
        }
    }
    match reader {
        ColumnReader::BoolColumnReader(r) => all(r, |_| 0),
        ColumnReader::Int32ColumnReader(r) => all(r, |_| 0),
        ColumnReader::Int64ColumnReader(r) => all(r, |_| 0),
        ColumnReader::Int96ColumnReader(r) => all(r, |_| 0),
        ColumnReader::FloatColumnReader(r) => all(r, |_| 0),
        ColumnReader::DoubleColumnReader(r) => all(r, |_| 0),
        ColumnReader::ByteArrayColumnReader(r) => all(r, |v| v.len()),
        ColumnReader::FixedLenByteArrayColumnReader(r) => all(r, |v| v.len()),
    }
}

/// The weights that a text of so many lines may describe: all pairs of its fields, which are as many as lines but for some
/// that may be left out.
pub(crate) fn adabm(bytes: &[u8]) -> usize {
    let lines = bytes.split(|&b| b == b'\n').count();
    (64 + 8 * lines).pow(2) / 8
}

/// Zeros that deflate packs as far as it can.
pub(crate) fn zeros_npz(n: usize) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({}, 256), }}", n / 256);
    let header = format!("{header:<117}\n");
    zip.start_file("train.npy", options).expect("an entry");
    let mut put = |bytes: &[u8]| zip.write_all(bytes).expect("memory");
    put(b"\x93NUMPY\x01\x00");
    put(&(header.len() as u16).to_le_bytes());
    put(header.as_bytes());
    put(&vec![0; n / 256 * 256]);
    zip.finish().expect("memory").into_inner()
}

/// A black image of so many pixels on each side.
pub(crate) fn zeros_png(side: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, side, side);
    encoder.set_color(png::ColorType::Grayscale);
    let mut writer = encoder.write_header().expect("memory");
    writer.write_image_data(&vec![0; (side * side) as usize]).expect("memory");
    drop(writer);
    bytes
}

/// An HDF5 file of a data set that claims a gigabyte and holds the packed zeros of one chunk of it.
pub(crate) fn hollow_hdf5(model: bool) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.h5");
    let write = || -> rust_hdf5::Result<()> {
        let file = rust_hdf5::H5File::create(&path)?;
        let (n, side) = (1 << 14, 1 << 8);
        let set = match model {
            true => {
                let kind = rust_hdf5::DatatypeMessage::fixed_string(6);
                let text = file.new_dataset::<u8>().datatype(kind).scalar().create("model_type")?;
                text.write_raw_bytes(b"BBRBM\0")?;
                let group = file.create_group("update_1")?.create_group("params")?;
                group
                    .new_dataset::<f32>()
                    .shape([n, n])
                    .chunk(&[side, side])
                    .deflate(9)
                    .create("weight_matrix")?
            }
            false => file
                .new_dataset::<f32>()
                .shape([n, n])
                .chunk(&[side, side])
                .deflate(9)
                .create("samples")?,
        };
        set.write_chunk(0, &vec![0; 4 * side * side])
    };
    write().expect("a file");
    std::fs::read(&path).expect("a file")
}

/// A Parquet file of one column that repeats a number, with `rows` of them in truth and `claimed` in its footer.
pub(crate) fn constant_parquet(rows: usize, claimed: usize) -> Vec<u8> {
    use parquet::data_type::DoubleType;
    use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataWriter};
    use parquet::file::writer::SerializedFileWriter;
    let schema = parquet::schema::parser::parse_message_type("message m { required double x; }");
    let schema = std::sync::Arc::new(schema.expect("a schema"));
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Default::default()).expect("memory");
    let mut group = writer.next_row_group().expect("memory");
    let mut column = group.next_column().expect("memory").expect("a column");
    column.typed::<DoubleType>().write_batch(&vec![0.5; rows], None, None).expect("memory");
    column.close().expect("memory");
    group.close().expect("memory");
    let truth: ParquetMetaData = writer.close().expect("memory");
    let end = bytes.len() - 8 - u32::from_le_bytes(footer(&bytes)) as usize;
    bytes.truncate(end);
    let groups = truth
        .row_groups()
        .iter()
        .map(|g| g.clone().into_builder().set_num_rows(claimed as i64).build().expect("a group"));
    let lie = truth.clone().into_builder().set_row_groups(groups.collect()).build();
    let mut footer = Vec::new();
    ParquetMetaDataWriter::new(&mut footer, &lie).finish().expect("memory");
    bytes.extend(footer);
    bytes
}

fn footer(bytes: &[u8]) -> [u8; 4] {
    let at = bytes.len() - 8;
    [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]
}

/// The PNG with the checksums that its chunks should have: else a wrong header would never be read.
pub(crate) fn mended_png(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let mut at = 8;
    while let Some(head) = bytes.get(at..at + 4) {
        let n = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let end = at.saturating_add(8).saturating_add(n);
        if end.saturating_add(4) > bytes.len() {
            break;
        }
        let mut sum = flate2::Crc::new();
        sum.update(&bytes[at + 4..end]);
        bytes[end..end + 4].copy_from_slice(&sum.sum().to_be_bytes());
        at = end + 4;
    }
    bytes
}
