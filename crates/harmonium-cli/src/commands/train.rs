//! `train`.

use crate::args::Common;
use crate::error::{Failure, Result};
use clap::Args;

/// Flags of `train`.
#[derive(Args, Debug)]
pub(crate) struct TrainArgs {}

impl TrainArgs {
    pub(crate) fn run(self, _: &Common) -> Result {
        Err(Failure::new("not there yet"))
    }
}
