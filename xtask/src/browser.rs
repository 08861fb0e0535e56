//! Reports in a real browser: a step that installs Chromium if there is none.

use crate::exchange::FEATURES;
use crate::step::{Outcome, cargo, root, run, succeeds, target};
use crate::venv;
use std::process::Command;

const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Renders reports and looks for console messages and requests; the screenshots stay in `target/report-shots`.
pub(crate) fn check() -> Outcome {
    run(&mut cargo(&["build", "--locked", "-p", "harmonium-cli", "--features", FEATURES]))?;
    let python = venv::python("browser", &[&["playwright"]])?;
    let chromium = chromium()?;
    let script = root().join("crates/harmonium-cli/tests/python/browser.py");
    let mut check = Command::new(python);
    check.arg(script).arg(target().join("debug/harmonium")).arg(chromium);
    run(check.arg(target().join("report-shots")))
}

/// Where Chromium is; Debian's package is installed where we may.
fn chromium() -> Result<String, String> {
    let find = || {
        let found = |name: &&str| succeeds(Command::new(name).arg("--version"));
        NAMES.into_iter().find(found).and_then(|name| {
            let out = Command::new("sh").args(["-c", &format!("command -v {name}")]).output().ok()?;
            Some(String::from_utf8(out.stdout).ok()?.trim().to_owned())
        })
    };
    if let Some(path) = find() {
        return Ok(path);
    }
    let apt = "apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium";
    let _ = run(Command::new("sh").args(["-c", apt]));
    find().ok_or_else(|| "no Chromium; install it, for instance with `apt install chromium`".into())
}
