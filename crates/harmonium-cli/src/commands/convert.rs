//! `convert`.

use crate::args::Common;
use crate::error::{Failure, Result};
use clap::Args;

/// Flags of `convert`.
#[derive(Args, Debug)]
pub(crate) struct ConvertArgs {}

impl ConvertArgs {
    pub(crate) fn run(self, _: &Common) -> Result {
        Err(Failure::new("not there yet"))
    }
}
