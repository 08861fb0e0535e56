//! `classify`.

use crate::args::Common;
use crate::error::{Failure, Result};
use clap::Args;

/// Flags of `classify`.
#[derive(Args, Debug)]
pub(crate) struct ClassifyArgs {}

impl ClassifyArgs {
    pub(crate) fn run(self, _: &Common) -> Result {
        Err(Failure::new("not there yet"))
    }
}
