//! Which instruction set the kernels run on, found once at run time.

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
    /// AVX2 (Haswell, Zen and later).
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    Avx2,
    /// AVX-512 F, BW, DQ, VL, VPOPCNTDQ, VBMI, VBMI2 and VNNI (Ice Lake, Zen 4 and later).
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    Avx512,
}

impl Isa {
    /// The widest instruction set of this processor (the standard library caches the answer).
    #[inline]
    pub fn detect() -> Self {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            if Self::has_avx512() {
                return Self(Level::Avx512);
            }
            if Self::has_avx2() {
                return Self(Level::Avx2);
            }
        }
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
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn avx2<L: Loop>(l: L) -> L::Output {
        l.run()
    }
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,avx512f,avx512bw,avx512dq,avx512vl")]
    fn avx512<L: Loop>(l: L) -> L::Output {
        l.run()
    }
    match Isa::detect().level() {
        Level::Portable => l.run(),
        // SAFETY: an `Isa` of this level exists only if its features were detected.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        Level::Avx2 => unsafe { avx2(l) },
        // SAFETY: as above.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        Level::Avx512 => unsafe { avx512(l) },
    }
}

/// Compiles one function body once per instruction set and calls the copy named by its first argument.
///
/// The body is plain Rust over slices and arrays; the compiler vectorises each copy for its own set.
macro_rules! multiversion {
    ($(#[$attr:meta])* $vis:vis fn $name:ident $([const $G:ident: $Gt:ty])? ($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$attr])*
        #[allow(clippy::too_many_arguments)]
        $vis fn $name $(<const $G: $Gt>)? (isa: $crate::isa::Isa, $($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            #[allow(clippy::too_many_arguments)]
            fn body $(<const $G: $Gt>)? ($($arg: $ty),*) $(-> $ret)? $body
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
            #[allow(clippy::too_many_arguments)]
            fn avx2 $(<const $G: $Gt>)? ($($arg: $ty),*) $(-> $ret)? { body $(::<$G>)? ($($arg),*) }
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq")]
            #[allow(clippy::too_many_arguments)]
            fn avx512 $(<const $G: $Gt>)? ($($arg: $ty),*) $(-> $ret)? { body $(::<$G>)? ($($arg),*) }
            match isa.level() {
                $crate::isa::Level::Portable => body $(::<$G>)? ($($arg),*),
                // SAFETY: an `Isa` of this level exists only if its features were detected.
                #[cfg(all(target_arch = "x86_64", not(miri)))]
                $crate::isa::Level::Avx2 => unsafe { avx2 $(::<$G>)? ($($arg),*) },
                // SAFETY: as above.
                #[cfg(all(target_arch = "x86_64", not(miri)))]
                $crate::isa::Level::Avx512 => unsafe { avx512 $(::<$G>)? ($($arg),*) },
            }
        }
    };
}
pub(crate) use multiversion;
