//! Python environments of the steps that need one, below `target/`.

use crate::step::{Outcome, run, target};
use std::fs;
use std::path::PathBuf;
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
    let mut venv = Command::new("python3");
    run(venv.args(["-m", "venv", "--clear"]).arg(&folder))?;
    installs.iter().try_for_each(|words| pip(&python, words))?;
    fs::write(&note, words).map_err(|why| format!("{}: {why}", note.display()))?;
    Ok(python)
}

fn pip(python: &PathBuf, words: &[&str]) -> Outcome {
    let flags = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    run(Command::new(python).args(flags).args(words))
}
