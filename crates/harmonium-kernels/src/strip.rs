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
    /// No element of the segment may be reachable through another segment that is alive.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn segment(&self, r: usize, j: usize, width: usize) -> &mut [T] {
        let start = r * self.n + j;
        assert!(j + width <= self.n && start + width <= self.len, "strip out of bounds");
        // SAFETY: in bounds by the assertion, unshared by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.data.add(start), width) }
    }
}

/// Runs `task(0)…task(n−1)`, on the current rayon pool when there is work for more than one thread.
///
/// `work` is a rough count of vector operations: below the cost of waking a thread the caller does all.
pub(crate) fn for_each_task(n: usize, work: usize, task: impl Fn(usize) + Send + Sync) {
    use rayon::prelude::*;
    // About 10 µs: two wake-ups of a sleeping worker.
    const WORTH_A_THREAD: usize = 1 << 15;
    if n > 1 && work > WORTH_A_THREAD && rayon::current_num_threads() > 1 {
        (0..n).into_par_iter().for_each(task);
    } else {
        (0..n).for_each(task);
    }
}
