//! Any bytes as a h5 file: an error or a table, never a panic.
#![no_main]

use harmonium_data::{ReadOptions, load};

// The library underneath may panic, which the reader turns into an error: only a panic that leaves the
// reader counts, and libfuzzer notices that without its hook.
fn quiet() {
    std::panic::set_hook(Box::new(|_| {}));
}

libfuzzer_sys::fuzz_target!(init: quiet(), |bytes: &[u8]| {
    let file = tempfile::Builder::new().suffix(".h5").tempfile().expect("a temporary file");
    std::fs::write(file.path(), bytes).expect("a temporary file");
    let _ = load(&file.path().display().to_string(), &ReadOptions::default());
});
