//! 64 bytes of reals in registers, on each instruction set.

macro_rules! real_vector {
    ($t:ident, $lanes:literal, $m256:ident, $m512:ident,
     [$zero256:ident $load256:ident $store256:ident $add256:ident $sub256:ident],
     [$zero512:ident $load512:ident $store512:ident $add512:ident $sub512:ident]) => {
        pub(crate) mod $t {
            /// Reals per cache line.
            pub(crate) const L: usize = $lanes;

            /// One cache line.
            #[repr(C, align(64))]
            #[derive(Clone, Copy, Default)]
            pub(crate) struct Entry(pub(crate) [$t; L]);

            /// The vector without intrinsics.
            pub(crate) type Portable = Entry;
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            pub(crate) use x86::{Avx2, Avx512};

            /// An entry in registers.
            ///
            /// # Safety
            /// Every method needs the instruction set of the implementing type to be present.
            pub(crate) trait Vector: Copy {
                unsafe fn zero() -> Self;
                unsafe fn load(e: &[$t; L]) -> Self;
                unsafe fn store(self, e: &mut [$t; L]);
                unsafe fn plus(self, e: &[$t; L]) -> Self;
                unsafe fn minus(self, e: &[$t; L]) -> Self;
            }

            /// Plain Rust.
            impl Vector for Entry {
                #[inline(always)]
                unsafe fn zero() -> Self {
                    Self([0.0; L])
                }
                #[inline(always)]
                unsafe fn load(e: &[$t; L]) -> Self {
                    Self(*e)
                }
                #[inline(always)]
                unsafe fn store(self, e: &mut [$t; L]) {
                    *e = self.0;
                }
                #[inline(always)]
                unsafe fn plus(mut self, e: &[$t; L]) -> Self {
                    for (a, b) in self.0.iter_mut().zip(e) {
                        *a += b;
                    }
                    self
                }
                #[inline(always)]
                unsafe fn minus(mut self, e: &[$t; L]) -> Self {
                    for (a, b) in self.0.iter_mut().zip(e) {
                        *a -= b;
                    }
                    self
                }
            }

            #[cfg(all(target_arch = "x86_64", not(miri)))]
            mod x86 {
                //! AVX2 and AVX-512.
                use super::*;
                use std::arch::x86_64::*;

                #[derive(Clone, Copy)]
                pub(crate) struct Avx2($m256, $m256);

                // In all methods: AVX2 is present by the caller's promise, and the two unaligned accesses
                // cover the 64 bytes of the array.
                impl Vector for Avx2 {
                    #[inline(always)]
                    unsafe fn zero() -> Self {
                        // SAFETY: see above.
                        unsafe { Self($zero256(), $zero256()) }
                    }
                    #[inline(always)]
                    unsafe fn load(e: &[$t; L]) -> Self {
                        // SAFETY: see above.
                        unsafe { Self($load256(e.as_ptr()), $load256(e.as_ptr().add(L / 2))) }
                    }
                    #[inline(always)]
                    unsafe fn store(self, e: &mut [$t; L]) {
                        // SAFETY: see above.
                        unsafe {
                            $store256(e.as_mut_ptr(), self.0);
                            $store256(e.as_mut_ptr().add(L / 2), self.1);
                        }
                    }
                    #[inline(always)]
                    unsafe fn plus(self, e: &[$t; L]) -> Self {
                        // SAFETY: see above.
                        unsafe {
                            let e = Self::load(e);
                            Self($add256(self.0, e.0), $add256(self.1, e.1))
                        }
                    }
                    #[inline(always)]
                    unsafe fn minus(self, e: &[$t; L]) -> Self {
                        // SAFETY: see above.
                        unsafe {
                            let e = Self::load(e);
                            Self($sub256(self.0, e.0), $sub256(self.1, e.1))
                        }
                    }
                }

                #[derive(Clone, Copy)]
                pub(crate) struct Avx512($m512);

                // In all methods: AVX-512 is present by the caller's promise, and the unaligned access covers
                // the 64 bytes of the array.
                impl Vector for Avx512 {
                    #[inline(always)]
                    unsafe fn zero() -> Self {
                        // SAFETY: see above.
                        unsafe { Self($zero512()) }
                    }
                    #[inline(always)]
                    unsafe fn load(e: &[$t; L]) -> Self {
                        // SAFETY: see above.
                        unsafe { Self($load512(e.as_ptr())) }
                    }
                    #[inline(always)]
                    unsafe fn store(self, e: &mut [$t; L]) {
                        // SAFETY: see above.
                        unsafe { $store512(e.as_mut_ptr(), self.0) }
                    }
                    #[inline(always)]
                    unsafe fn plus(self, e: &[$t; L]) -> Self {
                        // SAFETY: see above.
                        unsafe { Self($add512(self.0, $load512(e.as_ptr()))) }
                    }
                    #[inline(always)]
                    unsafe fn minus(self, e: &[$t; L]) -> Self {
                        // SAFETY: see above.
                        unsafe { Self($sub512(self.0, $load512(e.as_ptr()))) }
                    }
                }
            }
        }
    };
}

real_vector!(
    f32, 16, __m256, __m512,
    [_mm256_setzero_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_add_ps _mm256_sub_ps],
    [_mm512_setzero_ps _mm512_loadu_ps _mm512_storeu_ps _mm512_add_ps _mm512_sub_ps]
);
real_vector!(
    f64, 8, __m256d, __m512d,
    [_mm256_setzero_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_add_pd _mm256_sub_pd],
    [_mm512_setzero_pd _mm512_loadu_pd _mm512_storeu_pd _mm512_add_pd _mm512_sub_pd]
);
