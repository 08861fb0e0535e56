//! `verify`.

use crate::args::Common;
use crate::error::{Failure, Result};
use clap::Args;

/// Flags of `verify`.
#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {}

impl VerifyArgs {
    pub(crate) fn run(self, _: &Common) -> Result {
        Err(Failure::new("not there yet"))
    }
}
