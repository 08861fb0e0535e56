//! `cargo xtask bench <name>`: programs of the package `harmonium-benches`, always in release, and its script
//! that times peers.

use crate::step::{Outcome, cargo, root, run, target};
use std::process::Command;

/// Runs one bench; the remaining arguments are its own.
pub(crate) fn run_bench(name: &str, args: &[&str]) -> Outcome {
    if name == "peers" {
        return peers(args);
    }
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

/// The peers are Python: a script sets up their environment and times them and our own program in turn.
fn peers(args: &[&str]) -> Outcome {
    run(&mut cargo(&["build", "--release", "-p", "harmonium-benches", "--bin", "updates"]))?;
    let mut script = Command::new("python3");
    script.current_dir(root()).arg("benches/peers/peers.py");
    run(script.arg(target().join("peers-venv")).arg(target().join("release/updates")).args(args))
}
