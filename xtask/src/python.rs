//! `cargo xtask python`: the wheel, built, installed into an empty environment and tested from there.

use crate::step::{Outcome, cargo, root, run, succeeds, target};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The profile of the wheel that is tested. The tests of the workspace have built the dependencies in it, optimised,
/// and the command line that results are compared with is in it too.
const PROFILE: &str = "dev";

/// Builds, installs, tests. The environments are in `target/python`; the one with the tools stays for the next time.
pub(crate) fn check() -> Outcome {
    let home = target().join("python");
    let (tools, empty, wheels) = (home.join("tools"), home.join("empty"), home.join("wheels"));
    if !succeeds(Command::new(bin(&tools, "maturin")).arg("--version")) {
        environment(&tools)?;
        pip(&tools, &["maturin>=1.9.4,<2"])?;
    }
    remove(&wheels)?;
    let mut build = Command::new(bin(&tools, "maturin"));
    build.current_dir(root()).args(["build", "--locked", "--profile", PROFILE]);
    run(build.arg("--interpreter").arg(bin(&tools, "python")).arg("--out").arg(&wheels))?;
    run(&mut cargo(&["build", "--locked", "-p", "harmonium-cli"]))?;
    let wheel = only_file(&wheels)?;
    remove(&empty)?;
    environment(&empty)?;
    pip(&empty, &[&wheel.to_string_lossy()])?;
    alone(&empty, &home)?;
    let requirements = root().join("python/requirements-test.txt");
    pip(&empty, &["-r", &requirements.to_string_lossy()])?;
    test(&empty, &home)
}

/// Nothing but numpy is needed.
fn alone(environment: &Path, home: &Path) -> Outcome {
    let code = "import harmonium as hm\nm = hm.Machine.rbm(3, 2)\nm.train([[0, 1, 1]] * 9, updates=5)\n\
                assert m.sample(2, sweeps=3).shape == (2, 3) and m.log_likelihood([[0, 1, 1]]).verdict == 'exact'";
    run(Command::new(bin(environment, "python")).current_dir(home).args(["-c", code]))
}

/// Tests, examples in docstrings, and types; away from the sources, so that the installed package is what is tested.
fn test(environment: &Path, home: &Path) -> Outcome {
    let python = |args: &[&str]| {
        let mut command = Command::new(bin(environment, "python"));
        command.current_dir(home).env("HARMONIUM_CLI", target().join("debug/harmonium")).args(args);
        command
    };
    let config = root().join("pyproject.toml");
    let tests = root().join("python/tests");
    let pytest = ["-m", "pytest", "-c", &config.to_string_lossy(), "-p", "no:cacheprovider"];
    run(python(&pytest).arg(tests))?;
    run(python(&pytest).args(["--doctest-modules", "--pyargs", "harmonium"]))?;
    run(&mut python(&["-m", "mypy.stubtest", "harmonium._core", "--ignore-disjoint-bases"]))?;
    run(&mut python(&["-m", "mypy", "--strict", "-p", "harmonium"]))
}

/// A new environment. Debian's Python comes without the means to make one; where that is so, they are installed.
fn environment(path: &Path) -> Outcome {
    let make = || run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(path));
    if make().is_ok() {
        return Ok(());
    }
    let root = succeeds(Command::new("sh").args(["-c", "[ $(id -u) = 0 ]"]));
    let mut install = Command::new(if root { "apt-get" } else { "sudo" });
    if !root {
        install.arg("apt-get");
    }
    run(install.args(["install", "-y", "--no-install-recommends", "python3-venv"]))?;
    make()
}

fn pip(environment: &Path, what: &[&str]) -> Outcome {
    let mut command = Command::new(bin(environment, "python"));
    run(command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(what))
}

fn bin(environment: &Path, program: &str) -> PathBuf {
    environment.join(if cfg!(windows) { "Scripts" } else { "bin" }).join(program)
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
