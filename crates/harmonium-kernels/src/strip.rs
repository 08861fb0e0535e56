//! Disjoint strips of the columns of one row-major matrix, written by different threads.

use std::marker::PhantomData;

/// A row-major matrix with rows of `n` elements that several threads write in disjoint strips of columns.
pub(crate) struct Strips<'a, T> {
    data: *mut T,
    len: usize,
    n: usize,
    life: PhantomData<&'a mut [T]>,
}

// SAFETY: the only access is `segment`, whose callers promise that no two threads hold the same element.
unsafe impl<T: Send> Sync for Strips<'_, T> {}

impl<'a, T> Strips<'a, T> {
    pub(crate) fn new(matrix: &'a mut [T], n: usize) -> Self {
        Self { data: matrix.as_mut_ptr(), len: matrix.len(), n, life: PhantomData }
    }

    /// Elements `j..j+width` of row `r`.
    ///
    /// # Safety
    /// No element of the segment may be reachable through another live segment.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn segment(&self, r: usize, j: usize, width: usize) -> &mut [T] {
        let start = r * self.n + j;
        assert!(j + width <= self.n && start + width <= self.len, "strip out of bounds");
        // SAFETY: in bounds by the assertion, unshared by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.data.add(start), width) }
    }
}

/// Some adjacent columns of a row-major matrix, which one thread writes while other threads write other columns.
#[derive(Debug)]
pub struct Columns<'a, T> {
    data: *mut T,
    len: usize,
    n: usize,
    width: usize,
    life: PhantomData<&'a mut [T]>,
}

// SAFETY: no two values reach the same element, and `split_columns` holds the only reference to the matrix.
unsafe impl<T: Send> Send for Columns<'_, T> {}

impl<T> Columns<'_, T> {
    /// Prefetches the cache lines of row `i`, if there is one.
    #[inline(always)]
    pub fn prefetch(&self, i: usize) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // A row that does not start with a line reaches into one more than it fills.
        for j in
            (0..self.width).step_by((64 / size_of::<T>().max(1)).max(1)).chain([self.width.max(1) - 1])
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: a prefetch reads nothing and takes any address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(self.data.wrapping_add(i * self.n + j).cast()) };
        }
        let _ = i;
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Row `i`, to be read.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline(always)]
    pub fn get(&self, i: usize) -> &[T] {
        let start = i * self.n;
        assert!(start + self.width <= self.len, "columns: no such row");
        // SAFETY: in bounds by the assertion; `split_columns` gave these columns to this value alone.
        unsafe { std::slice::from_raw_parts(self.data.add(start), self.width) }
    }

    /// Row `i`, to be written.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline(always)]
    pub fn row(&mut self, i: usize) -> &mut [T] {
        let start = i * self.n;
        assert!(start + self.width <= self.len, "columns: no such row");
        // SAFETY: in bounds by the assertion; `split_columns` gave these columns to this value alone.
        unsafe { std::slice::from_raw_parts_mut(self.data.add(start), self.width) }
    }
}

/// Cuts a row-major matrix with rows of `n` elements into strips of `width` columns; the last may be narrower.
///
/// # Panics
/// If the matrix has no whole number of rows.
pub fn split_columns<T>(
    matrix: &mut [T],
    n: usize,
    width: usize,
) -> impl ExactSizeIterator<Item = Columns<'_, T>> {
    assert!(n > 0 && width > 0 && matrix.len().is_multiple_of(n), "split_columns: rows of {n} elements");
    let (data, len) = (matrix.as_mut_ptr(), matrix.len());
    let strip = move |j: usize| Columns {
        // Of an empty matrix this is beyond its end, but there are no rows to reach it by.
        data: data.wrapping_add(j),
        len: len.saturating_sub(j),
        n,
        width: width.min(n - j),
        life: PhantomData,
    };
    (0..n).step_by(width).map(strip)
}

/// Calls `task(i, part)` for every part i, on the current rayon pool when there is work for more than one thread.
///
/// `work` is a rough count of vector operations: below the cost of waking a thread the caller does all, and nothing is
/// allocated.
pub fn for_each_part<S: Send>(
    parts: impl ExactSizeIterator<Item = S>,
    work: usize,
    task: impl Fn(usize, S) + Send + Sync,
) {
    use rayon::prelude::*;
    if parts.len() > 1 && is_worth_a_thread(work) {
        let parts: Vec<S> = parts.collect();
        parts.into_par_iter().enumerate().for_each(|(i, part)| task(i, part));
    } else {
        parts.enumerate().for_each(|(i, part)| task(i, part));
    }
}

/// Whether so many vector operations take longer than waking a thread.
fn is_worth_a_thread(work: usize) -> bool {
    // About 10 µs: two wake-ups of a sleeping worker.
    const WORTH_A_THREAD: usize = 1 << 15;
    work > WORTH_A_THREAD && rayon::current_num_threads() > 1
}

/// Runs `task(0)…task(n−1)`, on the current rayon pool when there is work for more than one thread.
///
/// `work` is a rough count of vector operations: below the cost of waking a thread the caller does all.
pub(crate) fn for_each_task(n: usize, work: usize, task: impl Fn(usize) + Send + Sync) {
    use rayon::prelude::*;
    if n > 1 && is_worth_a_thread(work) {
        (0..n).into_par_iter().for_each(task);
    } else {
        (0..n).for_each(task);
    }
}
