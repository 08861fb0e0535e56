//! Helpers of all topics: the workspace's root, running a command, steps with headers and times.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The error is a message for the developer.
pub(crate) type Outcome = Result<(), String>;

/// The workspace's root directory.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace")
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |d| root().join(d))
}

/// The cargo that runs this program, in the workspace's root.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(args);
    command
}

/// Runs a command to its end; anything but success is an error that shows the command.
pub(crate) fn run(command: &mut Command) -> Outcome {
    let shown = show(command);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{shown}: {status}")),
        Err(why) => Err(format!("{shown}: {why}")),
    }
}

/// Whether a command can be run at all and succeeds, without showing what it prints.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|s| s.success())
}

/// Runs one step under a header and says how long it took.
pub(crate) fn step(name: &str, f: impl FnOnce() -> Outcome) -> Outcome {
    println!("\n==== {name}");
    let start = Instant::now();
    let outcome = f();
    let seconds = start.elapsed().as_secs_f64();
    match outcome {
        Ok(()) => println!("==== {name}: ok, {seconds:.1} s"),
        Err(_) => println!("==== {name}: FAILED after {seconds:.1} s"),
    }
    outcome.map_err(|why| format!("step '{name}' failed: {why}"))
}

fn show(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    let words = std::iter::once(name).chain(command.get_args());
    let words: Vec<_> = words.map(|w| w.to_string_lossy().into_owned()).collect();
    words.join(" ")
}
