//! Any bytes as the one image of a folder: an error or a table, never a panic.
#![no_main]

use harmonium_data::{ReadOptions, load};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("a.png"), bytes).expect("a temporary file");
    let _ = load(&folder.path().display().to_string(), &ReadOptions::default());
});
