//! Any bytes as fasta: an error or a table, never a panic.
#![no_main]

use harmonium_data::{Format, ReadOptions, read_bytes};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = read_bytes(bytes.to_vec(), Format::Fasta, None, &ReadOptions::default());
});
