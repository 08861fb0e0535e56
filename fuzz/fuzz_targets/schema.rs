//! Any text as schema, applied to a small table: an error or a table, never a panic.
#![no_main]

use harmonium_data::{Overrides, Place, ReadOptions, read_csv};

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(overrides) = Overrides::from_toml(text, Place::new("schema")) {
        let options = ReadOptions { overrides, ..ReadOptions::default() };
        let table = "a,b,v0,v1,label\n0,1.5,x,3,p\n1,,y,4,q\n0,2,x,-1,p\n";
        let _ = read_csv(table.as_bytes(), "table", &options);
    }
});
