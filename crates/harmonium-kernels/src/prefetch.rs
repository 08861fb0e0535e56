//! Prefetching of memory.

/// Prefetches the cache line of element `index` of `x`, which may lie beyond its end.
///
/// Strips of columns are read once per call, in steps of a whole row of the matrix: too far apart for the hardware
/// prefetcher.
#[inline(always)]
pub fn prefetch<T>(x: &[T], index: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch reads nothing and takes any address.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(x.as_ptr().wrapping_add(index).cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (x, index);
}
