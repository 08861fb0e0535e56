//! Files cut off or changed in a byte give an error or a table, never a panic.

use std::path::Path;

use harmonium_data::{Format, ReadOptions, load, read_bytes};

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)).unwrap()
}

/// Every truncation at a multiple of `stride`, and every such byte changed in three ways.
fn damaged(bytes: &[u8], stride: usize) -> impl Iterator<Item = Vec<u8>> {
    let cut = (0..bytes.len()).step_by(stride).map(|end| bytes[..end].to_vec());
    let changed = (0..bytes.len()).step_by(stride).flat_map(|at| {
        [0x00, 0xff, 0x80].map(|mask| {
            let mut copy = bytes.to_vec();
            copy[at] = if mask == 0x80 { copy[at] ^ mask } else { mask };
            copy
        })
    });
    cut.chain(changed)
}

#[test]
fn formats_read_from_memory() {
    for (name, format) in [
        ("version2.npy", Format::Npy),
        ("split.npz", Format::Npz),
        ("types.npz", Format::Npz),
        ("tensors.safetensors", Format::Safetensors),
    ] {
        let bytes = fixture(name);
        for copy in damaged(&bytes, 11) {
            let _ = read_bytes(copy, format, None, &ReadOptions::default());
        }
        let half = bytes[..bytes.len() / 2].to_vec();
        let message = read_bytes(half, format, None, &ReadOptions::default()).unwrap_err().to_string();
        assert!(message.contains("truncated or damaged"), "{name}: {message}");
    }
}

/// Formats that are read from a path.
#[cfg(any(feature = "hdf5", feature = "parquet"))]
fn check_paths(names: &[&str], stride: usize) {
    let dir = tempfile::tempdir().unwrap();
    for name in names {
        let path = dir.path().join(name);
        let bytes = fixture(name);
        for copy in damaged(&bytes, stride) {
            std::fs::write(&path, copy).unwrap();
            let _ = load(&path.display().to_string(), &ReadOptions::default());
        }
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        let message =
            load(&path.display().to_string(), &ReadOptions::default()).unwrap_err().to_string();
        assert!(message.contains("truncated or damaged"), "{name}: {message}");
    }
}

#[cfg(feature = "hdf5")]
#[test]
fn hdf5() {
    check_paths(&["rbms.h5", "packed.h5", "bool.h5"], 29);
}

#[cfg(feature = "parquet")]
#[test]
fn parquet() {
    check_paths(&["snappy.parquet", "zstd.parquet", "lz4.parquet", "none.parquet"], 17);
}

#[test]
fn gzip_streams() {
    use std::io::Write;
    let dir = tempfile::tempdir().unwrap();
    let mut idx = vec![0, 0, 8, 2, 0, 0, 0, 40, 0, 0, 0, 5];
    idx.extend((0..200).map(|i| i as u8 % 2));
    let fasta = b">a\nACDEFGH\n>b\nAC-EFGH\n".to_vec();
    let csv = b"a,b\n1,0\n0,1\n1,1\n".to_vec();
    for (name, contents) in [("x-idx2-ubyte.gz", idx), ("x.fasta.gz", fasta), ("x.csv.gz", csv)] {
        let path = dir.path().join(name);
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packed.write_all(&contents).unwrap();
        let packed = packed.finish().unwrap();
        let text = path.display().to_string();
        std::fs::write(&path, &packed).unwrap();
        let whole = load(&text, &ReadOptions::default()).unwrap();
        assert!(whole.train.rows() >= 2, "{name}");
        for copy in damaged(&packed, 1) {
            std::fs::write(&path, copy).unwrap();
            let _ = load(&text, &ReadOptions::default());
        }
        std::fs::write(&path, &packed[..packed.len() - 9]).unwrap();
        assert!(load(&text, &ReadOptions::default()).is_err(), "{name}");
    }
}

#[test]
fn labels_lie_beside_idx_images() {
    let dir = tempfile::tempdir().unwrap();
    let mut images = vec![0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2];
    images.extend([0, 1, 1, 0, 1, 1, 1, 1]);
    std::fs::write(dir.path().join("train-images-idx3-ubyte"), &images).unwrap();
    std::fs::write(dir.path().join("train-labels-idx1-ubyte"), [0, 0, 8, 1, 0, 0, 0, 2, 7, 3]).unwrap();
    let name = dir.path().join("train-images-idx3-ubyte").display().to_string();
    let table = load(&name, &ReadOptions::default()).unwrap().train;
    assert_eq!(table.shape(), Some([2, 2]));
    assert_eq!(table.labels().unwrap().name(0), Some("7"));
}
