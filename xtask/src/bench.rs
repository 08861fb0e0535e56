//! `cargo xtask bench <name>`: programs of the package `harmonium-benches`, always in release.

use crate::step::{Outcome, cargo, root, run};

/// Runs one bench; the remaining arguments are its own.
pub(crate) fn run_bench(name: &str, args: &[&str]) -> Outcome {
    let benches = root().join("benches");
    let listed = std::fs::read_to_string(benches.join("Cargo.toml"))
        .is_ok_and(|manifest| manifest.contains(&format!("name = \"{name}\"")));
    let file = benches.join("src/bin").join(name);
    if !listed && !file.with_extension("rs").exists() && !file.join("main.rs").exists() {
        return Err(format!("there is no bench '{name}' in benches/ yet"));
    }
    let cargo_args = ["run", "--release", "-p", "harmonium-benches", "--bin", name];
    run(cargo(&cargo_args).arg("--").args(args))
}
