//! Buffers that kernels keep between calls, one set per thread, so that nothing is allocated in a loop.

use crate::fixed::{Levels, Room, Row, Strip, Sums, Wide};
use std::cell::Cell;
use std::ops::{Deref, DerefMut};

/// The buffers of one call.
#[derive(Default)]
pub(crate) struct Buffers {
    sampled: Vec<u32>,
    words: Room,
    columns: Vec<u64>,
    sums: Sums,
    strip: Vec<Strip>,
    levels: Vec<Levels>,
}

/// The first `len` elements of `buffer`, with whatever they held.
pub(crate) fn first<T: Clone + Default>(buffer: &mut Vec<T>, len: usize) -> &mut [T] {
    if buffer.len() < len {
        buffer.resize(len, T::default());
    }
    &mut buffer[..len]
}

impl Buffers {
    pub(crate) fn sampled(&mut self, len: usize) -> &mut [u32] {
        first(&mut self.sampled, len)
    }
    pub(crate) fn words(&mut self) -> &mut Room {
        &mut self.words
    }
    pub(crate) fn columns(&mut self, len: usize) -> &mut [u64] {
        first(&mut self.columns, len)
    }
    /// `rows` rows of a strip, and what its sums need.
    pub(crate) fn strip(&mut self, rows: usize) -> (&mut Sums, &mut [Strip]) {
        (&mut self.sums, first(&mut self.strip, rows))
    }
    /// Where means leave their memory.
    pub(crate) fn levels(&mut self) -> &mut Vec<Levels> {
        &mut self.levels
    }
    /// Cache lines for sums of any type.
    pub(crate) fn lines(&mut self, len: usize) -> &mut [Row] {
        first(&mut self.sums.narrow, len)
    }
    /// A table and the two accumulators of `rows` rows.
    pub(crate) fn sums(&mut self, table: usize, rows: usize) -> (&mut [Row], &mut [Row], &mut [Wide]) {
        let Sums { table: tables, narrow, wide, .. } = &mut self.sums;
        (first(tables, table), first(narrow, rows), first(wide, rows))
    }
}

thread_local! {
    static KEPT: Cell<Option<Box<Buffers>>> = const { Cell::new(None) };
}

/// The buffers of this thread, taken out of their place.
///
/// A thread that waits for others may run another kernel meanwhile; it then finds the place empty and gets
/// a set of its own.
pub(crate) fn take() -> Taken {
    // At the end of a thread its place may be gone already.
    Taken(Some(KEPT.try_with(Cell::take).ok().flatten().unwrap_or_default()))
}

/// Buffers on loan; they go back when dropped.
pub(crate) struct Taken(Option<Box<Buffers>>);

impl Deref for Taken {
    type Target = Buffers;
    fn deref(&self) -> &Buffers {
        self.0.as_deref().expect("present until dropped")
    }
}

impl DerefMut for Taken {
    fn deref_mut(&mut self) -> &mut Buffers {
        self.0.as_deref_mut().expect("present until dropped")
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let _ = KEPT.try_with(|kept| kept.set(self.0.take()));
    }
}
