//! `cargo xtask`: what CI runs, and the benches.
fn main() {}
