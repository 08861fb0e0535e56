//! Buffers that kernels keep between calls, one set per thread, so that nothing is allocated in a loop.

use crate::fixed::{Factors, Room, Row, Squares, Strip, Sums, WIDTH, Wide};
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// The buffers of one call.
#[derive(Default)]
pub(crate) struct Buffers {
    sampled: Vec<u32>,
    words: Room,
    columns: Vec<u64>,
    reals: Vec<f32>,
    sums: Sums,
    strip: Vec<Strip>,
    factors: Factors,
    totals: Vec<[u32; WIDTH]>,
    squares: Squares,
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
    pub(crate) fn reals(&mut self, len: usize) -> &mut [f32] {
        first(&mut self.reals, len)
    }
    /// `rows` rows of a strip, and what its sums need.
    pub(crate) fn strip(&mut self, rows: usize) -> (&mut Sums, &mut [Strip]) {
        (&mut self.sums, first(&mut self.strip, rows))
    }
    /// What is made of the factors of products.
    pub(crate) fn factors(&mut self) -> &mut Factors {
        &mut self.factors
    }
    /// Two squares of weights.
    pub(crate) fn squares(&mut self) -> &mut Squares {
        &mut self.squares
    }
    /// Totals of blocks of columns, all zero.
    pub(crate) fn totals(&mut self, len: usize) -> &mut [[u32; WIDTH]] {
        let totals = first(&mut self.totals, len);
        totals.fill([0; WIDTH]);
        totals
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
    static KEPT: RefCell<Vec<Box<Buffers>>> = const { RefCell::new(Vec::new()) };
}

/// A set of buffers of this thread.
///
/// A kernel that calls another, or a thread that runs another kernel while it waits, takes a second set. They go back in
/// the reverse order, so that the next call finds each set as large as it has been in the same place.
pub(crate) fn take() -> Taken {
    // At the end of a thread the place may be gone already.
    Taken(Some(KEPT.try_with(|kept| kept.borrow_mut().pop()).ok().flatten().unwrap_or_default()))
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
        let _ = KEPT.try_with(|kept| kept.borrow_mut().extend(self.0.take()));
    }
}
