//! The target `model_text` for libfuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(init: harmonium_fuzz::hush(), |bytes: &[u8]| harmonium_fuzz::model_text(bytes));
