//! Calls into code of others that may panic on files made to break it.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Calls `call`; a panic inside is nothing.
///
/// The panic hook is called all the same. A program that does not want to see its message asks
/// [`is_shielded`] in a hook of its own.
pub fn shielded<T>(call: impl FnOnce() -> T) -> Option<T> {
    DEPTH.set(DEPTH.get() + 1);
    let result = catch_unwind(AssertUnwindSafe(call));
    DEPTH.set(DEPTH.get() - 1);
    result.ok()
}

/// Whether this thread is inside a [`shielded`] call.
pub fn is_shielded() -> bool {
    DEPTH.get() > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_stay_inside() {
        assert_eq!(
            shielded(|| (is_shielded(), shielded(|| 3), is_shielded())),
            Some((true, Some(3), true))
        );
        assert_eq!(shielded(|| assert!(!is_shielded())), None);
        assert!(!is_shielded());
    }
}
