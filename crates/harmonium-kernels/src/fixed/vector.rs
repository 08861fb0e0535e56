//! 32 columns of 16-bit integers in registers, on each instruction set.
//!
//! The compiler vectorises additions of arrays by itself, but splits them badly as soon as the sums are also
//! widened; intrinsics keep the inner loop at one or two additions from memory per table entry.

use crate::x32::{I16x32, I32x32, Levels};

/// The vector without intrinsics.
pub(crate) type Portable = I16x32;
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) use x86::{Avx2, Avx512};

/// A row in registers.
///
/// # Safety
/// Every method needs the instruction set of the implementing type to be present.
pub(crate) trait Vector: Copy {
    /// All zero.
    unsafe fn zero() -> Self;
    /// The row from memory.
    unsafe fn load(row: &I16x32) -> Self;
    /// To memory.
    unsafe fn store(self, row: &mut I16x32);
    /// The sum with a row in memory, modulo 2^16.
    unsafe fn plus(self, row: &I16x32) -> Self;
    /// The sum with four rows of levels, which add up within a byte.
    unsafe fn plus_levels(self, rows: [&Levels; 4]) -> Self;
    /// The negative.
    unsafe fn negated(self) -> Self;
    /// wide ← wide + self·2^shift.
    unsafe fn add_to(self, wide: &mut I32x32, shift: u32);
}

/// Plain Rust.
impl Vector for I16x32 {
    #[inline(always)]
    unsafe fn zero() -> Self {
        Self([0; 32])
    }
    #[inline(always)]
    unsafe fn load(row: &I16x32) -> Self {
        *row
    }
    #[inline(always)]
    unsafe fn store(self, row: &mut I16x32) {
        *row = self;
    }
    #[inline(always)]
    unsafe fn plus(mut self, row: &I16x32) -> Self {
        for (a, b) in self.0.iter_mut().zip(&row.0) {
            *a = a.wrapping_add(*b);
        }
        self
    }
    #[inline(always)]
    unsafe fn plus_levels(mut self, rows: [&Levels; 4]) -> Self {
        for (c, sum) in self.0.iter_mut().enumerate() {
            *sum += rows.iter().map(|row| i16::from(row.0[c])).sum::<i16>();
        }
        self
    }
    #[inline(always)]
    unsafe fn negated(mut self) -> Self {
        self.0.iter_mut().for_each(|x| *x = -*x);
        self
    }
    #[inline(always)]
    unsafe fn add_to(self, wide: &mut I32x32, shift: u32) {
        for (a, &b) in wide.0.iter_mut().zip(&self.0) {
            *a = a.wrapping_add(i32::from(b) << shift);
        }
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86 {
    //! AVX2 and AVX-512.
    use super::*;
    use std::arch::x86_64::*;

    /// The sum of four rows of levels, in bytes.
    ///
    /// # Safety
    /// AVX2 must be present.
    #[inline(always)]
    unsafe fn four(rows: [&Levels; 4]) -> __m256i {
        // SAFETY: a row has 32 bytes, aligned to 32; AVX2 by the caller's promise.
        unsafe {
            let [a, b, c, d] = rows.map(|row| _mm256_load_si256(row.0.as_ptr().cast()));
            _mm256_add_epi8(_mm256_add_epi8(a, b), _mm256_add_epi8(c, d))
        }
    }

    /// AVX2: columns 0–15 and 16–31.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx2(__m256i, __m256i);

    impl Vector for Avx2 {
        #[inline(always)]
        unsafe fn zero() -> Self {
            // SAFETY: AVX2 is present by the caller's promise.
            unsafe { Self(_mm256_setzero_si256(), _mm256_setzero_si256()) }
        }
        #[inline(always)]
        unsafe fn load(row: &I16x32) -> Self {
            let p = row.0.as_ptr().cast::<__m256i>();
            // SAFETY: a row is 64 bytes, aligned to 64.
            unsafe { Self(_mm256_load_si256(p), _mm256_load_si256(p.add(1))) }
        }
        #[inline(always)]
        unsafe fn store(self, row: &mut I16x32) {
            let p = row.0.as_mut_ptr().cast::<__m256i>();
            // SAFETY: a row is 64 bytes, aligned to 64.
            unsafe {
                _mm256_store_si256(p, self.0);
                _mm256_store_si256(p.add(1), self.1);
            }
        }
        #[inline(always)]
        unsafe fn plus(self, row: &I16x32) -> Self {
            // SAFETY: AVX2 is present by the caller's promise.
            unsafe {
                let row = Self::load(row);
                Self(_mm256_add_epi16(self.0, row.0), _mm256_add_epi16(self.1, row.1))
            }
        }
        #[inline(always)]
        unsafe fn plus_levels(self, rows: [&Levels; 4]) -> Self {
            // SAFETY: AVX2 is present by the caller's promise.
            unsafe {
                let sum = four(rows);
                let low = _mm256_cvtepu8_epi16(_mm256_castsi256_si128(sum));
                let high = _mm256_cvtepu8_epi16(_mm256_extracti128_si256(sum, 1));
                Self(_mm256_add_epi16(self.0, low), _mm256_add_epi16(self.1, high))
            }
        }
        #[inline(always)]
        unsafe fn negated(self) -> Self {
            // SAFETY: AVX2 is present by the caller's promise.
            unsafe {
                let zero = _mm256_setzero_si256();
                Self(_mm256_sub_epi16(zero, self.0), _mm256_sub_epi16(zero, self.1))
            }
        }
        #[inline(always)]
        unsafe fn add_to(self, wide: &mut I32x32, shift: u32) {
            let p = wide.0.as_mut_ptr().cast::<__m256i>();
            // SAFETY: four aligned quarters of the 128 bytes of `wide`; AVX2 by the caller's promise.
            unsafe {
                let count = _mm_cvtsi32_si128(shift as i32);
                let add = |i: usize, half: __m128i| {
                    let sums = _mm256_sll_epi32(_mm256_cvtepi16_epi32(half), count);
                    _mm256_store_si256(p.add(i), _mm256_add_epi32(_mm256_load_si256(p.add(i)), sums));
                };
                add(0, _mm256_castsi256_si128(self.0));
                add(1, _mm256_extracti128_si256(self.0, 1));
                add(2, _mm256_castsi256_si128(self.1));
                add(3, _mm256_extracti128_si256(self.1, 1));
            }
        }
    }

    /// AVX-512: all 32 columns.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx512(__m512i);

    impl Vector for Avx512 {
        #[inline(always)]
        unsafe fn zero() -> Self {
            // SAFETY: AVX-512 is present by the caller's promise.
            unsafe { Self(_mm512_setzero_si512()) }
        }
        #[inline(always)]
        unsafe fn load(row: &I16x32) -> Self {
            // SAFETY: a row is 64 bytes, aligned to 64.
            unsafe { Self(_mm512_load_si512(row.0.as_ptr().cast())) }
        }
        #[inline(always)]
        unsafe fn store(self, row: &mut I16x32) {
            // SAFETY: a row is 64 bytes, aligned to 64.
            unsafe { _mm512_store_si512(row.0.as_mut_ptr().cast(), self.0) }
        }
        #[inline(always)]
        unsafe fn plus(self, row: &I16x32) -> Self {
            // SAFETY: AVX-512 BW is present by the caller's promise.
            unsafe { Self(_mm512_add_epi16(self.0, Self::load(row).0)) }
        }
        #[inline(always)]
        unsafe fn plus_levels(self, rows: [&Levels; 4]) -> Self {
            // SAFETY: AVX-512 BW is present by the caller's promise.
            unsafe { Self(_mm512_add_epi16(self.0, _mm512_cvtepu8_epi16(four(rows)))) }
        }
        #[inline(always)]
        unsafe fn negated(self) -> Self {
            // SAFETY: AVX-512 BW is present by the caller's promise.
            unsafe { Self(_mm512_sub_epi16(_mm512_setzero_si512(), self.0)) }
        }
        #[inline(always)]
        unsafe fn add_to(self, wide: &mut I32x32, shift: u32) {
            let p = wide.0.as_mut_ptr().cast::<__m512i>();
            // SAFETY: two aligned halves of the 128 bytes of `wide`; AVX-512 by the caller's promise.
            unsafe {
                let count = _mm_cvtsi32_si128(shift as i32);
                let add = |i: usize, half: __m256i| {
                    let sums = _mm512_sll_epi32(_mm512_cvtepi16_epi32(half), count);
                    _mm512_store_si512(
                        p.add(i).cast(),
                        _mm512_add_epi32(_mm512_load_si512(p.add(i).cast()), sums),
                    );
                };
                add(0, _mm512_castsi512_si256(self.0));
                add(1, _mm512_extracti64x4_epi64(self.0, 1));
            }
        }
    }
}
