//! `inspect`.

use crate::args::Common;
use crate::error::{Failure, Result};
use clap::Args;

/// Flags of `inspect`.
#[derive(Args, Debug)]
pub(crate) struct InspectArgs {}

impl InspectArgs {
    pub(crate) fn run(self, _: &Common) -> Result {
        Err(Failure::new("not there yet"))
    }
}
