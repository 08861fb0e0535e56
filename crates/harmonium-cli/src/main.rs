//! The binary `harmonium`: from a table to a model one can believe.
#![forbid(unsafe_code)]

mod args;
mod build;
mod commands;
mod config;
mod convert;
mod data;
mod error;
mod figure;
mod layout;
mod linalg;
mod model;
mod output;
mod picture;
mod progress;
mod report;
mod run;
mod signals;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Libraries that panic on damaged files are caught, and what is wrong is told in our own words.
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !harmonium_data::is_shielded() {
            told(panic);
        }
    }));
    let cli = args::Cli::parse();
    let quiet = cli.common.quiet;
    match commands::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(quiet),
    }
}
