//! The target `model_hdf5` for libfuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(init: harmonium_fuzz::hush(), |bytes: &[u8]| harmonium_fuzz::model_hdf5(bytes));
