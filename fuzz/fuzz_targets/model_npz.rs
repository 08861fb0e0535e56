//! The target `model_npz` for libfuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(init: harmonium_fuzz::hush(), |bytes: &[u8]| harmonium_fuzz::model_npz(bytes));
