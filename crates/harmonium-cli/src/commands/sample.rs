//! `sample`.

use crate::args::Common;
use crate::error::{Failure, Result};
use clap::Args;

/// Flags of `sample`.
#[derive(Args, Debug)]
pub(crate) struct SampleArgs {}

impl SampleArgs {
    pub(crate) fn run(self, _: &Common) -> Result {
        Err(Failure::new("not there yet"))
    }
}
