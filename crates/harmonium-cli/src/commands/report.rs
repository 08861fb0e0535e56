//! `report`.

use crate::args::Common;
use crate::error::{Failure, Result};
use clap::Args;

/// Flags of `report`.
#[derive(Args, Debug)]
pub(crate) struct ReportArgs {}

impl ReportArgs {
    pub(crate) fn run(self, _: &Common) -> Result {
        Err(Failure::new("not there yet"))
    }
}
