//! Any bytes as a parquet file: an error or a table, never a panic.
#![no_main]

use harmonium_data::{ReadOptions, load};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let file = tempfile::Builder::new().suffix(".parquet").tempfile().expect("a temporary file");
    std::fs::write(file.path(), bytes).expect("a temporary file");
    let _ = load(&file.path().display().to_string(), &ReadOptions::default());
});
