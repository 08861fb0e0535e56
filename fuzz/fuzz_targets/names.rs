//! Any text as a data name: an error or a source, never a panic.
#![no_main]

use harmonium_data::DataName;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = DataName::parse(text);
});
