//! Buffers that a thread keeps between calls, so that nothing is allocated in a loop.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::thread::LocalKey;

/// The buffers of one kind that a thread keeps and that are not on loan: a stack.
pub(crate) type Kept<T> = RefCell<Vec<T>>;

/// A buffer that this thread keeps in `kept`, to be put back when dropped.
///
/// A kernel that calls itself, or a thread that runs another kernel while it waits, takes a second buffer. They go back in
/// the reverse order, so that the next call finds each buffer as large as it has been in the same place.
pub(crate) fn take<T: Default>(kept: &'static LocalKey<Kept<T>>) -> Taken<T> {
    // At the end of a thread its place may be gone already.
    let value = kept.try_with(|kept| kept.borrow_mut().pop()).ok().flatten();
    Taken { value: Some(value.unwrap_or_default()), kept }
}

/// A buffer on loan.
pub(crate) struct Taken<T: 'static> {
    /// Present until dropped.
    value: Option<T>,
    kept: &'static LocalKey<Kept<T>>,
}

impl<T> Deref for Taken<T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.value.as_ref().expect("present until dropped")
    }
}

impl<T> DerefMut for Taken<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("present until dropped")
    }
}

impl<T> Drop for Taken<T> {
    fn drop(&mut self) {
        let value = self.value.take();
        let _ = self.kept.try_with(|kept| kept.borrow_mut().extend(value));
    }
}

/// The first `len` elements of `buffer`, with unspecified contents.
pub(crate) fn first<T: Clone + Default>(buffer: &mut Vec<T>, len: usize) -> &mut [T] {
    if buffer.len() < len {
        buffer.resize(len, T::default());
    }
    &mut buffer[..len]
}
