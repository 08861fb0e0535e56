//! Model files go to other programs and come from them: a step with the real programs in an environment of its own.

use crate::step::{Outcome, cargo, root, run, target};
use crate::venv;
use std::process::Command;

/// Features of the command line that are off by default, so that a newcomer's build is quick.
pub(crate) const FEATURES: &str = "harmonium-cli/hdf5,harmonium-cli/parquet";

/// The programs, their plots and trackers left out.
const INSTALLS: [&[&str]; 2] = [
    &["numpy", "h5py", "scikit-learn", "torch", "tqdm", "pandas", "biopython", "matplotlib"],
    &["--no-deps", "rbms", "adabmDCA"],
];

/// Runs the script that exchanges files.
pub(crate) fn check() -> Outcome {
    run(&mut cargo(&["build", "--locked", "-p", "harmonium-cli", "--features", FEATURES]))?;
    let python = venv::python("exchange", &INSTALLS)?;
    let script = root().join("crates/harmonium-cli/tests/python/exchange.py");
    run(Command::new(python).arg(script).arg(target().join("debug/harmonium")))
}
