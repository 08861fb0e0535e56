//! Memory is not taken for the claims of headers, and files read in blocks take that of one block.

use std::alloc::System;
use std::path::Path;

use cap::Cap;
use harmonium_data::{Format, ReadOptions, RowBlocks, Split, load, read_bytes};

#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, usize::MAX);

const MIB: usize = 1 << 20;

/// Runs `job` and says how many bytes it needed beyond what was there before; only larger and larger needs
/// are seen, so that jobs are run in the order of what they may need.
fn peak(job: impl FnOnce()) -> usize {
    let before = MEMORY.allocated();
    job();
    MEMORY.max_allocated().saturating_sub(before)
}

fn npy(descr: &str, shape: &str) -> Vec<u8> {
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    text += &" ".repeat(63 - (10 + text.len()) % 64);
    text.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes
}

fn hostile() -> Vec<(Format, Vec<u8>)> {
    let mut files = Vec::new();
    for shape in [
        "(1000000000, 1000000000)",
        "(1000000000000,)",
        "(0, 1000000000000)",
        "(1000000000000, 0)",
        "(1, 0, 1000000000000)",
    ] {
        files.push((Format::Npy, npy("|u1", shape)));
    }
    files.push((Format::Npy, npy("<U1000000000000", "(1000,)")));
    let mut idx = vec![0, 0, 8, 3];
    idx.extend([0xff; 12]);
    files.push((Format::Idx, idx));
    let header = br#"{"x":{"dtype":"F32","shape":[1000000000,1000],"data_offsets":[0,4000000000000]}}"#;
    let mut tensors = (header.len() as u64).to_le_bytes().to_vec();
    tensors.extend(header);
    files.push((Format::Safetensors, tensors));
    let mut long = u64::MAX.to_le_bytes().to_vec();
    long.extend(b"{}");
    files.push((Format::Safetensors, long));
    files
}

fn write_large_npy(path: &Path, rows: usize, cols: usize) {
    use std::io::Write;
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    file.write_all(&npy("<f4", &format!("({rows}, {cols})"))).unwrap();
    let line: Vec<u8> = (0..cols).flat_map(|col| ((col % 2) as f32).to_le_bytes()).collect();
    (0..rows).for_each(|_| file.write_all(&line).unwrap());
}

/// One test: the peak is that of the whole process.
#[test]
fn memory_is_bounded() {
    let used = peak(|| {
        for (format, bytes) in hostile() {
            let shown = String::from_utf8_lossy(&bytes).into_owned();
            assert!(read_bytes(bytes, format, None, &ReadOptions::default()).is_err(), "{shown}");
        }
    });
    assert!(used < 2 * MIB, "hostile headers: {used}");

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("large.npy");
    write_large_npy(&path, 40_000, 400);
    let name = path.display().to_string();
    let used = peak(|| {
        let mut blocks = RowBlocks::open(&name, 500, &ReadOptions::default()).unwrap();
        let ones: usize =
            blocks.iter().map(|block| block.unwrap().blocks()[0].bits().unwrap().count_ones()).sum();
        assert_eq!(ones, 40_000 * 200);
    });
    // 64 MB on disk; a block is 0.8 MB there and 28 KB as bits.
    assert!(used < 4 * MIB, "blocks of a large file: {used}");

    let used = peak(|| drop(load(&name, &ReadOptions::default()).unwrap()));
    // The file, and a 32nd of it as bits.
    assert!(used < 80 * MIB, "the whole file: {used}");

    // Measured numbers in single precision, split in place: little more than the file.
    let path = dir.path().join("real.npy");
    let (rows, cols) = (100_000, 100);
    let mut bytes = npy("<f4", &format!("({rows}, {cols})"));
    bytes.extend((0..rows * cols).flat_map(|i| (0.25 + (i % 977) as f32).to_le_bytes()));
    std::fs::write(&path, &bytes).unwrap();
    let length = bytes.len();
    drop(bytes);
    let name = path.display().to_string();
    let options = ReadOptions { single: true, ..ReadOptions::default() };
    let used = peak(|| {
        let table = load(&name, &options).unwrap().train;
        let set = Split::Fraction { test: 0.1, seed: 0 }.apply(table).unwrap();
        assert_eq!((set.train.rows(), set.test.unwrap().rows()), (90_000, 10_000));
    });
    // 38 MiB on disk; a block is 16 MiB there and 32 MiB in double precision. The vector that rows are added to may take
    // twice of what it holds, in pages that are never touched.
    assert!(used < 2 * length + 60 * MIB, "reals of a large file: {used}");
    let double = load(&name, &ReadOptions::default()).unwrap().train;
    let single = load(&name, &options).unwrap().train;
    let entry = |t: &harmonium_data::Table, r: usize| t.blocks()[0].number(r, 7);
    assert!((0..rows).step_by(997).all(|r| entry(&double, r) == entry(&single, r)));
}
