//! `evaluate`.

use crate::args::Common;
use crate::error::{Failure, Result};
use clap::Args;

/// Flags of `evaluate`.
#[derive(Args, Debug)]
pub(crate) struct EvaluateArgs {}

impl EvaluateArgs {
    pub(crate) fn run(self, _: &Common) -> Result {
        Err(Failure::new("not there yet"))
    }
}
