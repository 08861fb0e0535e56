//! `transform`.

use crate::args::Common;
use crate::error::{Failure, Result};
use clap::Args;

/// Flags of `transform`.
#[derive(Args, Debug)]
pub(crate) struct TransformArgs {}

impl TransformArgs {
    pub(crate) fn run(self, _: &Common) -> Result {
        Err(Failure::new("not there yet"))
    }
}
