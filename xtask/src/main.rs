//! `cargo xtask`: what CI runs, the documentation and the benches.
//!
//! One file per topic; a step of CI is one line in `ci.rs`.
#![allow(clippy::print_stdout, clippy::print_stderr)] // Talking to the developer is its job.

mod bench;
mod browser;
mod ci;
mod doc;
mod examples;
mod exchange;
mod formulas;
mod python;
mod step;
mod venv;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask <command>

  ci [step …]            everything CI checks, or only the named steps; stops at the first failure
  doc                    the documentation with typeset formulas, in target/doc
  python                 builds the wheel, installs it into an empty environment and tests it there
  examples               builds and runs every example of the workspace
  bench <name> [args]    a bench of the package harmonium-benches, in release: kernels, exact, peers,
                         regret, tables
  refresh exchange       records model files of rbms and adabmDCA anew, for the step exchange; installs torch
  help                   this text
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args[..] {
        ["ci", ref names @ ..] => ci::steps(names),
        ["doc"] => doc::build(),
        ["examples"] => examples::all(),
        ["python"] => python::check(),
        ["refresh", "exchange"] => exchange::refresh(),
        ["bench", name, ref rest @ ..] => bench::run_bench(name, rest),
        ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}
