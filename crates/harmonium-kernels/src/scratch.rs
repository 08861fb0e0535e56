//! Buffers that a thread keeps between calls, so that nothing is allocated in a loop.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::thread::LocalKey;

/// The buffer that this thread keeps in `kept`, to be put back when dropped.
///
/// A thread that waits for others may run another kernel meanwhile; that one finds the place empty and gets a new
/// buffer.
pub(crate) fn take<T: Default>(kept: &'static LocalKey<Cell<T>>) -> Taken<T> {
    // At the end of a thread its place may be gone already.
    Taken { value: kept.try_with(Cell::take).unwrap_or_default(), kept }
}

/// A buffer on loan.
pub(crate) struct Taken<T: Default + 'static> {
    value: T,
    kept: &'static LocalKey<Cell<T>>,
}

impl<T: Default> Deref for Taken<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Default> DerefMut for Taken<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T: Default> Drop for Taken<T> {
    fn drop(&mut self) {
        let value = std::mem::take(&mut self.value);
        let _ = self.kept.try_with(|kept| kept.set(value));
    }
}

/// The first `len` elements of `buffer`, with whatever they held.
pub(crate) fn first<T: Clone + Default>(buffer: &mut Vec<T>, len: usize) -> &mut [T] {
    if buffer.len() < len {
        buffer.resize(len, T::default());
    }
    &mut buffer[..len]
}
