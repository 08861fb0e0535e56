//! The command line of harmonium: trains, samples and evaluates models. A library, so that the binary and the fuzzer
//! share its code.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod config;
mod convert;
mod data;
mod error;
mod evaluation;
mod figure;
mod linalg;
mod lock;
mod model;
mod output;
mod picture;
mod progress;
mod report;
mod run;
mod signals;

use clap::Parser;
use std::process::ExitCode;

/// The whole program.
pub fn main() -> ExitCode {
    // Libraries that panic on damaged files are caught, and reported as errors of the file.
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !harmonium_data::is_catching_panics() {
            told(panic);
        }
    }));
    match commands::run(commands::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// For the fuzzer: the readers of other programs' models, and files to start from.
#[doc(hidden)]
pub mod foreign {
    use crate::convert::{self, ModelFormat};
    use harmonium::{Kind, Layer, Machine};
    use std::path::Path;

    /// Whether this file is the model of another program.
    pub fn reads(path: &Path) -> bool {
        convert::read(path).is_ok()
    }

    /// Small models as files with this ending, in every layout that there is.
    pub fn seeds(ending: &str) -> Vec<Vec<u8>> {
        let formats: &[ModelFormat] = match ending {
            ".npz" => &[ModelFormat::Sklearn, ModelFormat::Wbc],
            ".dat" => &[ModelFormat::Adabmdca],
            _ => &[ModelFormat::Rbms, ModelFormat::RbmJl],
        };
        let machine = match ending {
            ".dat" => Machine::fully_visible(Layer::new(Kind::Potts { q: 5 }, 3)),
            _ => Machine::rbm(Layer::new(Kind::Binary, 4), Layer::new(Kind::Binary, 3)),
        };
        let schema = harmonium_table::Layout::plain(&machine.cast()).schema;
        let bytes = |f: &ModelFormat| convert::bytes(&machine, &schema, *f, Path::new("seed")).ok();
        formats.iter().filter_map(bytes).collect()
    }
}
