//! Model files go to other programs and come from them: a step with recorded files, and the command that records them.

use crate::step::{Outcome, cargo, root, run, target};
use crate::venv;
use std::path::Path;
use std::process::Command;

/// Features of the command line that are off by default, so that a newcomer's build is quick.
pub(crate) const FEATURES: &str = "harmonium-cli/hdf5,harmonium-cli/parquet";

/// The other programs, without their plotting and tracking packages; torch brings gigabytes for graphics cards.
const PROGRAMS: [&[&str]; 2] = [
    &["numpy", "h5py", "torch", "tqdm", "pandas", "biopython", "matplotlib"],
    &["--no-deps", "rbms", "adabmDCA"],
];

/// Exchanges files with scikit-learn, and with what the other programs have recorded.
pub(crate) fn check() -> Outcome {
    let python = venv::python("exchange", &[&["numpy", "h5py", "scikit-learn"]])?;
    script(&python, "exchange.py")
}

/// Records the files of the other programs anew, and has them read ours.
pub(crate) fn refresh() -> Outcome {
    let python = venv::python("exchange-programs", &PROGRAMS)?;
    script(&python, "exchange_refresh.py")
}

fn script(python: &Path, name: &str) -> Outcome {
    run(&mut cargo(&["build", "--locked", "-p", "harmonium-cli", "--features", FEATURES]))?;
    let script = root().join("crates/harmonium-cli/tests/python").join(name);
    run(Command::new(python).arg(script).arg(target().join("debug/harmonium")))
}
