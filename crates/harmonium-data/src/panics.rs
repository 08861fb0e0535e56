//! Calls of libraries that may panic on malicious files.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// The result of `call`, or `None` if it panics.
///
/// The panic hook is called nevertheless. A program that wants to suppress its message asks [`is_catching_panics`] in a
/// hook of its own.
pub fn catch_panic<T>(call: impl FnOnce() -> T) -> Option<T> {
    DEPTH.set(DEPTH.get() + 1);
    let result = catch_unwind(AssertUnwindSafe(call));
    DEPTH.set(DEPTH.get() - 1);
    result.ok()
}

/// Whether this thread is inside a [`catch_panic`] call.
pub fn is_catching_panics() -> bool {
    DEPTH.get() > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_stay_inside() {
        assert_eq!(
            catch_panic(|| (is_catching_panics(), catch_panic(|| 3), is_catching_panics())),
            Some((true, Some(3), true))
        );
        assert_eq!(catch_panic(|| assert!(!is_catching_panics())), None);
        assert!(!is_catching_panics());
    }
}
