//! `complete`.

use crate::args::Common;
use crate::error::{Failure, Result};
use clap::Args;

/// Flags of `complete`.
#[derive(Args, Debug)]
pub(crate) struct CompleteArgs {}

impl CompleteArgs {
    pub(crate) fn run(self, _: &Common) -> Result {
        Err(Failure::new("not there yet"))
    }
}
