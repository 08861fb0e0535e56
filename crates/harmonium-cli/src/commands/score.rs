//! `score`.

use crate::args::Common;
use crate::error::{Failure, Result};
use clap::Args;

/// Flags of `score`.
#[derive(Args, Debug)]
pub(crate) struct ScoreArgs {}

impl ScoreArgs {
    pub(crate) fn run(self, _: &Common) -> Result {
        Err(Failure::new("not there yet"))
    }
}
