//! Python environments of the steps that need one, below `target/`, with the versions of `xtask/pins.txt`.

use crate::step::{Outcome, root, run, succeeds, target};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Packages that need no pin: those a new environment comes with, and our own.
const FREE: [&str; 3] = ["pip", "setuptools", "harmonium"];

/// The interpreter of the environment `target/<name>-venv`, which holds these packages.
///
/// `installs` are the words of one `pip install` each. What has been installed is noted in the environment, so
/// that a second run does nothing; other words or other pins start afresh.
pub(crate) fn python(name: &str, installs: &[&[&str]]) -> Result<PathBuf, String> {
    let folder = target().join(format!("{name}-venv"));
    let python = folder.join("bin/python");
    let (note, words) = (folder.join("installed.txt"), format!("{installs:?}\n{}", pins()?));
    if fs::read_to_string(&note).is_ok_and(|noted| noted == words) {
        return Ok(python);
    }
    make(&folder)?;
    installs.iter().try_for_each(|words| pip(&python, words))?;
    fs::write(&note, words).map_err(|why| format!("{}: {why}", note.display()))?;
    Ok(python)
}

/// A new environment; installs Debian's `python3-venv` where Python cannot make one without it.
fn make(folder: &Path) -> Outcome {
    let make = || run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder));
    make().or_else(|_| {
        let mut install = match succeeds(Command::new("sh").args(["-c", "[ $(id -u) = 0 ]"])) {
            true => Command::new("apt-get"),
            false => {
                let mut sudo = Command::new("sudo");
                sudo.arg("apt-get");
                sudo
            }
        };
        run(install.args(["install", "-y", "--no-install-recommends", "python3-venv"]))?;
        make()
    })
}

/// `pip install` with these words, at the pinned versions; a package without a pin is an error.
pub(crate) fn pip(python: &Path, words: &[&str]) -> Outcome {
    let flags = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--constraint"];
    run(Command::new(python).args(flags).arg(file()).args(words))?;
    let mut list = Command::new(python);
    list.args(["-m", "pip", "list", "--disable-pip-version-check", "--format=freeze"]);
    let out = list.output().map_err(|why| format!("pip list: {why}"))?;
    let unpinned = unpinned(&String::from_utf8_lossy(&out.stdout), &pins()?);
    match unpinned[..] {
        [] => Ok(()),
        _ => Err(format!("{}: no version of {}", file().display(), unpinned.join(", "))),
    }
}

fn file() -> PathBuf {
    root().join("xtask/pins.txt")
}

fn pins() -> Result<String, String> {
    fs::read_to_string(file()).map_err(|why| format!("{}: {why}", file().display()))
}

/// The packages of a list `name==version` that another list does not have at the same version.
fn unpinned(installed: &str, pins: &str) -> Vec<String> {
    // Names are equal up to case and the two kinds of dash.
    let key = |line: &str| line.trim().to_lowercase().replace('_', "-");
    let pins: Vec<_> = pins.lines().map(key).collect();
    let name = |line: &str| key(line).split(['=', ' ']).next().unwrap_or_default().to_owned();
    let known = |line: &&str| !FREE.contains(&&*name(line)) && !pins.contains(&key(line));
    installed.lines().filter(known).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::unpinned;

    #[test]
    fn what_has_no_pin_is_named() {
        let pins = "# a remark\nnumpy==2.4.6\nml_dtypes==0.6.0\n";
        assert!(unpinned("numpy==2.4.6\nML-dtypes==0.6.0\npip==23.2.1\n", pins).is_empty());
        assert_eq!(unpinned("numpy==2.4.7\nwheel==0.45\n", pins), ["numpy==2.4.7", "wheel==0.45"]);
    }
}
