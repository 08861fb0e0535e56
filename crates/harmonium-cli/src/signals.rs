//! Ctrl-C: the first asks the run to stop, the second ends the program.

use crate::error::{Failure, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set once a signal has asked for a stop.
#[derive(Clone, Debug)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens to SIGINT and SIGTERM.
    pub(crate) fn listen() -> Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // The order matters: the second signal finds the flag set and quits, the first sets it.
            let quit = signal_hook::flag::register_conditional_shutdown(signal, 130, asked.clone());
            quit.and_then(|_| signal_hook::flag::register(signal, asked.clone()))
                .map_err(|e| Failure::new(format!("cannot listen to signals: {e}")))?;
        }
        Ok(Self(asked))
    }

    /// From now on a signal ends the program at once: nothing is left to be saved.
    pub(crate) fn quit_when_asked(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether to stop.
    pub(crate) fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
