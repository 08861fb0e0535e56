//! Runs computations in a thread pool of the requested size, without the GIL, while the calling thread handles signals and callbacks.
//!
//! The calling thread waits for the result, looks for signals and makes the calls into Python: callbacks and progress
//! bars run where Python expects them, and Ctrl-C reaches a computation that no Python code interrupts.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

/// Time between two checks for signals.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

thread_local! {
    /// How many computations this thread waits for: those that a callback begins run while another waits for the callback.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

type Call = Box<dyn FnOnce(Python<'_>) -> PyResult<()> + Send>;

/// A computation's connection to the thread that waits for it.
pub(crate) struct Link<'a> {
    stop: &'a AtomicBool,
    calls: Sender<Call>,
}

impl Link<'_> {
    /// Whether the computation should end.
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Calls into Python from the waiting thread and waits in turn. An exception stops the computation.
    pub(crate) fn call<R: Send + 'static>(
        &self,
        f: impl FnOnce(Python<'_>) -> PyResult<R> + Send + 'static,
    ) -> Option<R> {
        let (answer, result) = mpsc::channel();
        let call = move |py: Python<'_>| f(py).map(|r| drop(answer.send(r)));
        let answered = self.calls.send(Box::new(call)).ok().and_then(|()| result.recv().ok());
        if answered.is_none() {
            // The waiting thread will say so too, but perhaps only after this one has looked.
            self.stop.store(true, Ordering::Relaxed);
        }
        answered
    }
}

/// Carries out `job` on `threads` threads; the exception, if any, is what stopped it (Ctrl-C, or a callback's own).
pub(crate) fn run<R: Send>(
    py: Python<'_>,
    threads: usize,
    job: impl FnOnce(&Link<'_>) -> R + Send,
) -> PyResult<(R, Option<PyErr>)> {
    let pool = pool(threads)?;
    let stop = AtomicBool::new(false);
    let (mut result, mut raised) = (None, None);
    py.detach(|| {
        let (calls, received) = mpsc::channel::<Call>();
        let link = Link { stop: &stop, calls };
        pool.in_place_scope(|scope| {
            let slot = &mut result;
            // The link is dropped when the job is done, which ends the loop below.
            scope.spawn(move |_| {
                let link = link;
                *slot = Some(job(&link));
            });
            loop {
                let outcome = match received.recv_timeout(SIGNALS_EVERY) {
                    Ok(call) => {
                        DEPTH.set(DEPTH.get() + 1);
                        let outcome = Python::attach(call);
                        DEPTH.set(DEPTH.get() - 1);
                        outcome
                    }
                    Err(RecvTimeoutError::Timeout) => Python::attach(|py| py.check_signals()),
                    Err(RecvTimeoutError::Disconnected) => break,
                };
                if let Err(e) = outcome {
                    stop.store(true, Ordering::Relaxed);
                    raised.get_or_insert(e);
                }
            }
        });
    });
    let result = result.ok_or_else(|| PyRuntimeError::new_err("the computation gave no result"))?;
    Ok((result, raised))
}

/// [`run`] for computations that are of no use when they were stopped early.
pub(crate) fn compute<R: Send>(
    py: Python<'_>,
    threads: usize,
    job: impl FnOnce(&Link<'_>) -> harmonium::Result<R> + Send,
) -> PyResult<R> {
    match run(py, threads, job)? {
        (_, Some(raised)) => Err(raised),
        (result, None) => result.map_err(crate::error::raise),
    }
}

/// The pool of this size; it is created at the first request and kept.
///
/// rayon's own pool is never used: its threads do not survive a fork, and a child would wait for them forever. Hence
/// pools belong to a process. Calls from several Python threads share a pool, so that they do not ask for more cores. What a
/// callback computes has a pool of its own: a thread of the outer one waits for the callback, and may be its only one.
fn pool(threads: usize) -> PyResult<&'static ThreadPool> {
    type Size = (u32, usize, usize);
    static POOLS: Mutex<Vec<(Size, &'static ThreadPool)>> = Mutex::new(Vec::new());
    let mut pools = POOLS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let size = (std::process::id(), threads, DEPTH.get());
    if let Some(known) = pools.iter().find(|p| p.0 == size) {
        return Ok(known.1);
    }
    let built = ThreadPoolBuilder::new().num_threads(threads).build();
    let pool: &'static ThreadPool =
        Box::leak(Box::new(built.map_err(|e| crate::error::value("threads", e))?));
    pools.push((size, pool));
    Ok(pool)
}
