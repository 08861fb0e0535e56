//! `cargo xtask ci`: the checks, cheapest first.

use crate::exchange::{self, FEATURES};
use crate::step::{Outcome, cargo, run, step, succeeds};
use crate::{browser, doc, examples, formulas, python};
use std::process::Command;
use std::time::Instant;

/// A step's name and what it does.
type Step = (&'static str, fn() -> Outcome);

/// The steps in their order.
const STEPS: [Step; 13] = [
    ("tools", tools),
    ("format", format),
    ("formulas", formulas::check),
    ("clippy", clippy),
    ("tests", tests),
    ("light", light),
    ("doctests", doc_tests),
    ("documentation", doc::build),
    ("examples", examples::all),
    ("python", python::check),
    ("fuzz", fuzz),
    ("browser", browser::check),
    ("exchange", exchange::check),
];

/// Runs the named steps, or all of them when none is named; stops at the first failure.
pub(crate) fn steps(names: &[&str]) -> Outcome {
    if let Some(name) = names.iter().find(|name| STEPS.iter().all(|(step, _)| step != *name)) {
        let known: Vec<_> = STEPS.iter().map(|(step, _)| *step).collect();
        return Err(format!("there is no step '{name}', only {}", known.join(", ")));
    }
    let start = Instant::now();
    let wanted = |name: &str| names.is_empty() || names.contains(&name);
    for (name, run) in STEPS.into_iter().filter(|(name, _)| wanted(name)) {
        step(name, run)?;
    }
    let what = if names.is_empty() { "all steps" } else { "the named steps" };
    println!("\nci: {what} passed in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// rustfmt and clippy come with rustup's default profile, but not with its minimal one.
fn tools() -> Outcome {
    for (subcommand, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if !succeeds(&mut cargo(&[subcommand, "--version"])) {
            run(Command::new("rustup").args(["component", "add", component]))?;
        }
    }
    run(&mut cargo(&["--version"]))
}

fn format() -> Outcome {
    run(&mut cargo(&["fmt", "--all", "--check"]))
}

fn clippy() -> Outcome {
    let args = ["clippy", "--locked", "--workspace", "--all-targets", "--features", FEATURES];
    run(cargo(&args).args(["--", "-D", "warnings"]))
}

/// All failures are worth seeing at once, hence `--no-fail-fast`. The Python extension has no tests in Rust, and a test
/// binary of it would need an interpreter to be linked to.
fn tests() -> Outcome {
    let args = ["test", "--locked", "--workspace", "--exclude", "harmonium-py", "--no-fail-fast"];
    run(cargo(&args).args(["--features", FEATURES, "--lib", "--bins", "--tests"]))
}

/// Without the optional readers: errors must say that they are missing. The other tests have run with them.
fn light() -> Outcome {
    let args = ["test", "--locked", "-p", "harmonium-data", "-p", "harmonium-cli", "--tests"];
    run(cargo(&args).args(["--", "left_out"]))
}

fn doc_tests() -> Outcome {
    let args = ["test", "--locked", "--workspace", "--exclude", "harmonium-py", "--doc"];
    run(cargo(&args).args(["--features", FEATURES]))
}

/// Every fuzz target for some seconds. With random changes on the installed toolchain: `cargo fuzz` would need nightly.
fn fuzz() -> Outcome {
    run(&mut cargo(&["run", "--locked", "-p", "harmonium-fuzz", "--bin", "harmonium-fuzz", "--", "4"]))
}
