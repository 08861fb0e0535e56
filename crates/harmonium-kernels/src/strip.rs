//! Disjoint strips of the columns of one row-major matrix, written by different threads.

use std::any::TypeId;
use std::marker::PhantomData;
use std::ops::Range;

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

impl<T: 'static> Columns<'_, T> {
    /// Some of the rows, to be read, if they are in single precision.
    ///
    /// # Panics
    /// If there are no such rows.
    #[inline(always)]
    pub(crate) fn singles(&self, rows: Range<usize>) -> Option<Singles<'_>> {
        let Self { n, width, .. } = *self;
        assert!(rows.is_empty() || (rows.end - 1) * n + width <= self.len, "columns: no such rows");
        let data = self.data.cast_const().wrapping_add(rows.start * n).cast();
        let is_single = TypeId::of::<T>() == TypeId::of::<f32>();
        is_single.then_some(Singles { data, n, width, rows: rows.len(), life: PhantomData })
    }
}

/// Some adjacent columns of some rows of a row-major matrix in single precision, to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Singles<'a> {
    data: *const f32,
    n: usize,
    width: usize,
    rows: usize,
    life: PhantomData<&'a f32>,
}

impl<'a> Singles<'a> {
    /// `width` columns from column `j` on of `rows` rows from row `i` on, the matrix having rows of `n` numbers.
    ///
    /// # Panics
    /// If the matrix does not have them.
    pub(crate) fn of(
        matrix: &'a [f32],
        n: usize,
        (i, rows): (usize, usize),
        (j, width): (usize, usize),
    ) -> Self {
        let fits = j + width <= n && (i + rows) * n <= matrix.len();
        assert!(fits, "singles: no such rows and columns");
        Self { data: matrix.as_ptr().wrapping_add(i * n + j), n, width, rows, life: PhantomData }
    }

    /// Columns.
    #[inline(always)]
    pub(crate) fn width(&self) -> usize {
        self.width
    }
    /// Rows.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// Row `r`; nothing beyond the last.
    #[inline(always)]
    pub(crate) fn row(&self, r: usize) -> &'a [f32] {
        if r >= self.rows {
            return &[];
        }
        // SAFETY: by the constructors the elements are there, nobody writes them for this life, and r is one of the rows.
        unsafe { std::slice::from_raw_parts(self.start_of(r, 0), self.width) }
    }

    /// Where column `j` of row `r` is, if they are there.
    #[inline(always)]
    pub(crate) fn start_of(&self, r: usize, j: usize) -> *const f32 {
        self.data.wrapping_add(r * self.n + j)
    }

    /// `rows` rows from row `first` on, or as many as there are.
    #[inline(always)]
    pub(crate) fn part(&self, first: usize, rows: usize) -> Self {
        let first = first.min(self.rows);
        let data = self.data.wrapping_add(first * self.n);
        Self { data, rows: rows.min(self.rows - first), ..*self }
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
