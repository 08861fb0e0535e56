//! A request to stop, which long computations ask for between sweeps.

use crate::{Error, Result};
use std::fmt;

/// Whether a computation is to end early. The default never asks for it.
#[derive(Clone, Copy, Default)]
pub struct Stop<'a>(Option<&'a dyn Fn() -> bool>);

impl<'a> Stop<'a> {
    /// Stops as soon as `asked` returns true.
    pub fn when(asked: &'a dyn Fn() -> bool) -> Self {
        Self(Some(asked))
    }

    /// An error after a request to stop.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub fn check(self) -> Result<()> {
        match self.0.is_some_and(|asked| asked()) {
            true => Err(Error::Stopped { what: "sampling" }),
            false => Ok(()),
        }
    }

    /// [`check`](Self::check) before sweep `k` of a loop. The first is never refused, so that loops of one sweep ask nothing.
    pub(crate) fn check_before(self, k: u64) -> Result<()> {
        if k == 0 { Ok(()) } else { self.check() }
    }
}

impl fmt::Debug for Stop<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Stop(when asked)" } else { "Stop(never)" })
    }
}
