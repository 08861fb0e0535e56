//! How a kernel is compiled for several instruction sets, of which one is chosen at run time.
//!
//! An [`Isa`] names a set that the processor has. Every kernel that depends on it is defined by `multiversion!`: a
//! function whose first argument is an `Isa` and which calls the copy of its body that was compiled for that set. The
//! choice is one `match` per call, never one per element: loops are inside. There are three forms:
//!
//! ```text
//! fn f(isa: Isa, x: &[T]) { … }                      plain Rust, vectorised by the compiler for each set
//! fn f(isa: Isa, x: &[T]) { … } avx512 => by_hand    the same, but for AVX-512 a function of intrinsics
//! fn f(isa: Isa, x: &[T]) => g with family           g::<family::Portable>, g::<family::Avx2>, g::<family::Avx512>:
//!                                                    an unsafe function over a trait of vectors that they implement
//! ```
//!
//! Public functions start with [`Isa::detect`]; tests go through `Isa::all`, and so run every copy that the processor
//! has. A whole algorithm that only one set has (tables in registers) is chosen in `fixed/outer.rs`, by `Method`.

#[cfg(all(target_arch = "x86_64", not(miri)))]
use std::sync::atomic::{AtomicU8, Ordering};

/// An instruction set that this processor has.
///
/// Values exist only for sets that were detected, so holding one is the proof that a kernel compiled for
/// it may be called. Every kernel gives the same bits on every set: no fused multiply-add is used where
/// it would round differently, and sums are taken in a fixed order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isa(Level);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// What the compiler emits for the target: SSE2 on x86-64, NEON on aarch64.
    Portable,
    /// AVX2, BMI1, BMI2, POPCNT and FMA (Haswell, Zen and later).
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    Avx2,
    /// AVX-512 F, BW, DQ, VL, VPOPCNTDQ, VBMI, VBMI2 and VNNI (Ice Lake, Zen 4 and later).
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    Avx512,
}

impl Isa {
    /// The widest instruction set of this processor.
    #[inline]
    pub fn detect() -> Self {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            /// Number of the level, from 1; 0 before it is known. The standard library would be asked for every feature.
            static FOUND: AtomicU8 = AtomicU8::new(0);
            match FOUND.load(Ordering::Relaxed) {
                3 => Self(Level::Avx512),
                2 => Self(Level::Avx2),
                1 => Self(Level::Portable),
                _ => {
                    let (found, number) = match (Self::has_avx512(), Self::has_avx2()) {
                        (true, _) => (Level::Avx512, 3),
                        (_, true) => (Level::Avx2, 2),
                        _ => (Level::Portable, 1),
                    };
                    FOUND.store(number, Ordering::Relaxed);
                    Self(found)
                }
            }
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        Self(Level::Portable)
    }

    /// Every instruction set that may be used here, the portable one first.
    #[cfg(test)]
    pub(crate) fn all() -> Vec<Self> {
        #[allow(unused_mut)]
        let mut all = vec![Self(Level::Portable)];
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            if Self::has_avx2() {
                all.push(Self(Level::Avx2));
            }
            if Self::has_avx512() {
                all.push(Self(Level::Avx512));
            }
        }
        all
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    fn has_avx2() -> bool {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("fma")
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    fn has_avx512() -> bool {
        Self::has_avx2()
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vpopcntdq")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("avx512vbmi2")
            && is_x86_feature_detected!("avx512vnni")
    }

    #[inline]
    pub(crate) fn level(self) -> Level {
        self.0
    }

    /// A short name: `portable`, `avx2` or `avx512`.
    pub fn name(self) -> &'static str {
        match self.0 {
            Level::Portable => "portable",
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Level::Avx2 => "avx2",
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Level::Avx512 => "avx512",
        }
    }
}

/// A loop of plain arithmetic over slices that [`vectorised`] compiles for wider vectors than the platform's least.
pub trait Loop {
    /// What it gives.
    type Output;
    /// The loop; to be marked `#[inline(always)]`, as must be all that it calls, or nothing is gained.
    fn run(self) -> Self::Output;
}

/// Runs a loop of another crate, compiled for the instruction set of this processor.
///
/// Rust never contracts or reorders floating-point operations, so the result has the same bits on every set.
pub fn vectorised<L: Loop>(l: L) -> L::Output {
    run_loop(Isa::detect(), l)
}

/// Defines a function once per instruction set; see the [module](self) for its forms.
///
/// Before the arguments may stand one constant parameter, `[const K: usize]`, or one type, `<S: Source>`.
macro_rules! multiversion {
    ($(#[$attr:meta])* $vis:vis fn $name:ident $([const $K:ident: $Kt:ty])? $(<$S:ident: $bound:path>)?
     ($isa:ident: $Isa:ty $(, $arg:ident: $ty:ty)* $(,)?) $(-> $ret:ty)? $body:block) => {
        $crate::isa::multiversion! {
            @define [$(#[$attr])* $vis fn $name] [$(const $K: $Kt)?] [$($S: $bound)?]
            ($isa: $Isa, $($arg: $ty,)*) [$(-> $ret)?]
            [
                #[inline(always)]
                #[allow(clippy::too_many_arguments, unused_variables)]
                fn body $(<const $K: $Kt>)? $(<$S: $bound>)?
                    ($isa: $Isa, $($arg: $ty),*) $(-> $ret)? $body
            ]
            body $(::<$K>)? ($isa, $($arg),*),
            body $(::<$K>)? ($isa, $($arg),*),
            body $(::<$K>)? ($isa, $($arg),*);
            avx512 $(::<$K>)? ($isa, $($arg),*)
        }
    };
    ($(#[$attr:meta])* $vis:vis fn $name:ident ($isa:ident: $Isa:ty $(, $arg:ident: $ty:ty)* $(,)?)
     $(-> $ret:ty)? $body:block avx512 => $by_hand:path) => {
        $crate::isa::multiversion! {
            @define [$(#[$attr])* $vis fn $name] [] [] ($isa: $Isa, $($arg: $ty,)*) [$(-> $ret)?]
            [
                #[inline(always)]
                #[allow(clippy::too_many_arguments, unused_variables)]
                fn body($isa: $Isa, $($arg: $ty),*) $(-> $ret)? $body
            ]
            body($isa, $($arg),*),
            body($isa, $($arg),*),
            body($isa, $($arg),*);
            $by_hand($($arg),*)
        }
    };
    ($(#[$attr:meta])* $vis:vis fn $name:ident $([const $K:ident: $Kt:ty])? $(<$S:ident: $bound:path>)?
     ($isa:ident: $Isa:ty $(, $arg:ident: $ty:ty)* $(,)?) $(-> $ret:ty)? => $body:ident with $($family:ident)::+) => {
        $crate::isa::multiversion! {
            @define [$(#[$attr])* $vis fn $name] [$(const $K: $Kt)?] [$($S: $bound)?]
            ($isa: $Isa, $($arg: $ty,)*) [$(-> $ret)?] []
            // SAFETY: the portable vectors need no feature.
            unsafe { $body::<$($family)::+::Portable $(, $K)? $(, $S)?>($($arg),*) },
            // SAFETY: this is evaluated in a function that has the features of the set.
            unsafe { $body::<$($family)::+::Avx2 $(, $K)? $(, $S)?>($($arg),*) },
            // SAFETY: as above.
            unsafe { $body::<$($family)::+::Avx512 $(, $K)? $(, $S)?>($($arg),*) };
            avx512 $(::<$K>)? ($isa, $($arg),*)
        }
    };
    (@define [$($head:tt)*] [$(const $K:ident: $Kt:ty)?] [$($S:ident: $bound:path)?]
     ($isa:ident: $Isa:ty, $($arg:ident: $ty:ty,)*) [$($ret:tt)*] [$($items:tt)*]
     $portable:expr, $avx2:expr, $avx512:expr; $($call_avx512:tt)*) => {
        #[allow(clippy::too_many_arguments)]
        $($head)* $(<const $K: $Kt>)? $(<$S: $bound>)? ($isa: $Isa, $($arg: $ty),*) $($ret)* {
            $($items)*
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,fma")]
            #[allow(clippy::too_many_arguments, unused_variables)]
            fn avx2 $(<const $K: $Kt>)? $(<$S: $bound>)?
                ($isa: $Isa, $($arg: $ty),*) $($ret)* { $avx2 }
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq")]
            #[allow(clippy::too_many_arguments, unused_variables, dead_code)]
            fn avx512 $(<const $K: $Kt>)? $(<$S: $bound>)?
                ($isa: $Isa, $($arg: $ty),*) $($ret)* { $avx512 }
            match $isa.level() {
                $crate::isa::Level::Portable => $portable,
                // SAFETY: an `Isa` of this level exists only if its features were detected.
                #[cfg(all(target_arch = "x86_64", not(miri)))]
                $crate::isa::Level::Avx2 => unsafe { avx2 $(::<$K>)? ($isa, $($arg),*) },
                // SAFETY: as above.
                #[cfg(all(target_arch = "x86_64", not(miri)))]
                $crate::isa::Level::Avx512 => unsafe { $($call_avx512)* },
            }
        }
    };
}
pub(crate) use multiversion;

multiversion! {
    fn run_loop<L: Loop>(isa: Isa, l: L) -> L::Output {
        l.run()
    }
}
