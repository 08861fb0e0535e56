//! The binary `harmonium`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    harmonium_cli::main()
}
