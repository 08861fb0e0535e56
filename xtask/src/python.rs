//! `cargo xtask python`: the wheel, built, installed into an empty environment and tested from there.

use crate::exchange::FEATURES;
use crate::step::{Outcome, cargo, root, run, target};
use crate::venv;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The profile of the wheel that is tested. The tests of the workspace have built the dependencies in it, optimised,
/// and the command line that results are compared with is in it too.
const PROFILE: &str = "dev";

/// Builds, installs, tests. The environment with the tools stays for the next time, the one with the wheel is made anew.
pub(crate) fn check() -> Outcome {
    let tools = venv::python("wheel", &[&["maturin"]])?;
    let home = target().join("python");
    remove(&home)?;
    let mut build = Command::new(&tools);
    build.current_dir(root()).args(["-m", "maturin", "build", "--locked", "--profile", PROFILE]);
    run(build.arg("--interpreter").arg(&tools).arg("--out").arg(&home))?;
    run(&mut cargo(&["build", "--locked", "-p", "harmonium-cli", "--features", FEATURES]))?;
    let wheel = only_file(&home)?;
    remove(&target().join("empty-venv"))?;
    let python = venv::python("empty", &[&[&wheel.to_string_lossy()]])?;
    alone(&python, &home)?;
    let requirements = root().join("python/requirements-test.txt");
    venv::pip(&python, &["-r", &requirements.to_string_lossy()])?;
    test(&python, &home)
}

/// Nothing but numpy is needed.
fn alone(python: &Path, home: &Path) -> Outcome {
    let code = "import harmonium as hm\nm = hm.Machine.rbm(3, 2)\nm.train([[0, 1, 1]] * 9, updates=5)\n\
                assert m.sample(2, sweeps=3).shape == (2, 3) and m.log_likelihood([[0, 1, 1]]).verdict == 'exact'";
    run(Command::new(python).current_dir(home).args(["-c", code]))
}

/// Tests, examples in docstrings, types and notebooks; away from the sources, so that the installed package is what is tested.
fn test(python: &Path, home: &Path) -> Outcome {
    let on = |args: &[&str]| {
        let mut command = Command::new(python);
        command.current_dir(home).env("HARMONIUM_CLI", target().join("debug/harmonium")).args(args);
        command
    };
    let config = root().join("pyproject.toml");
    let tests = root().join("python/tests");
    let pytest = ["-m", "pytest", "-c", &config.to_string_lossy(), "-p", "no:cacheprovider"];
    run(on(&pytest).arg(tests))?;
    run(on(&pytest).args(["--doctest-modules", "--pyargs", "harmonium"]))?;
    run(&mut on(&["-m", "mypy.stubtest", "harmonium._core", "--ignore-disjoint-bases"]))?;
    run(&mut on(&["-m", "mypy", "--strict", "-p", "harmonium"]))?;
    notebooks().iter().try_for_each(|script| {
        println!("\n-- {}", script.display());
        run(on(&[]).env("MPLBACKEND", "Agg").arg(script))
    })
}

/// The notebooks are scripts that assert what they claim.
fn notebooks() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("notebooks")).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries.map(|entry| entry.path()).collect();
    found.retain(|path| path.extension().is_some_and(|e| e == "py"));
    found.sort();
    found
}

fn remove(folder: &Path) -> Outcome {
    match fs::remove_dir_all(folder) {
        Err(why) if folder.exists() => Err(format!("{}: {why}", folder.display())),
        _ => Ok(()),
    }
}

fn only_file(folder: &Path) -> Result<PathBuf, String> {
    let found = fs::read_dir(folder).into_iter().flatten().flatten().next();
    found.map(|entry| entry.path()).ok_or_else(|| format!("{}: no wheel", folder.display()))
}
