//! `cargo xtask ci`: the checks, cheapest first.

use crate::step::{Outcome, cargo, run, step, succeeds};
use crate::{doc, examples, formulas};
use std::process::Command;
use std::time::Instant;

/// Everything CI checks; stops at the first failure.
pub(crate) fn all() -> Outcome {
    let start = Instant::now();
    step("tools", tools)?;
    step("format", || run(&mut cargo(&["fmt", "--all", "--check"])))?;
    step("formulas", formulas::check)?;
    step("clippy", clippy)?;
    step("tests", tests)?;
    step("doc tests", doc_tests)?;
    step("documentation", doc::build)?;
    step("examples", examples::all)?;
    let seconds = start.elapsed().as_secs_f64();
    println!("\nci: all steps passed in {seconds:.0} s");
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

fn clippy() -> Outcome {
    let args = ["clippy", "--locked", "--workspace", "--all-targets"];
    run(cargo(&args).args(["--", "-D", "warnings"]))
}

/// All failures are worth seeing at once, hence `--no-fail-fast`.
fn tests() -> Outcome {
    let args = ["test", "--locked", "--workspace", "--no-fail-fast"];
    run(cargo(&args).args(["--lib", "--bins", "--tests"]))
}

fn doc_tests() -> Outcome {
    run(&mut cargo(&["test", "--locked", "--workspace", "--doc"]))
}
