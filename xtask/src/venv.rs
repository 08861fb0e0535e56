//! Python environments of the steps that need one, below `target/`.

use crate::step::{Outcome, run, succeeds, target};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The interpreter of the environment `target/<name>-venv`, which holds these packages.
///
/// `installs` are the words of one `pip install` each. What has been installed is noted in the environment, so
/// that a second run does nothing; other words start afresh.
pub(crate) fn python(name: &str, installs: &[&[&str]]) -> Result<PathBuf, String> {
    let folder = target().join(format!("{name}-venv"));
    let python = folder.join("bin/python");
    let (note, words) = (folder.join("installed.txt"), format!("{installs:?}"));
    if fs::read_to_string(&note).is_ok_and(|noted| noted == words) {
        return Ok(python);
    }
    make(&folder)?;
    installs.iter().try_for_each(|words| pip(&python, words))?;
    fs::write(&note, words).map_err(|why| format!("{}: {why}", note.display()))?;
    Ok(python)
}

/// A new environment. Debian's Python comes without the means to make one; where that is so, they are installed.
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

/// `pip install` with these words.
pub(crate) fn pip(python: &Path, words: &[&str]) -> Outcome {
    let flags = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    run(Command::new(python).args(flags).args(words))
}
