//! For the benchmarks: the dense baseline, and measurements of the processor's limits. Not part of the API.

use crate::bernoulli;
use crate::isa::{Isa, multiversion};
use crate::lanes::Lanes;
use crate::stream::Key;

/// x ← 1 with probability σ(x + bias), else 0, for rows of `bias.len()`: the vectorised sigmoid and sampling
/// that a dense product would be followed by. 24 random bits per draw.
pub fn dense_bernoulli(x: &mut [f32], bias: &[f32], key: Key) {
    dense_on(Isa::detect(), x, bias, &mut Lanes::new(key.hash()));
}

multiversion! {
    fn dense_on(isa: Isa, x: &mut [f32], bias: &[f32], lanes: &mut Lanes) => dense_rows with multiply_add
}

/// a·b + c: fused where the instruction set can, otherwise in two steps (a call of the fused function would be slow).
mod multiply_add {
    pub(super) trait MultiplyAdd {
        fn of(a: f32, b: f32, c: f32) -> f32;
    }

    pub(super) struct Portable;
    impl MultiplyAdd for Portable {
        #[inline(always)]
        fn of(a: f32, b: f32, c: f32) -> f32 {
            a * b + c
        }
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    pub(super) struct Fused;
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    impl MultiplyAdd for Fused {
        #[inline(always)]
        fn of(a: f32, b: f32, c: f32) -> f32 {
            a.mul_add(b, c)
        }
    }
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    pub(super) use Fused as Avx2;
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    pub(super) use Fused as Avx512;
}
use multiply_add::MultiplyAdd;

/// # Safety
/// None is needed: the instructions of `F` are chosen by the compiler.
#[inline(always)]
unsafe fn dense_rows<F: MultiplyAdd>(x: &mut [f32], bias: &[f32], lanes: &mut Lanes) {
    for x in x.chunks_exact_mut(bias.len().max(1)) {
        for (x, bias) in x.chunks_mut(16).zip(bias.chunks(16)) {
            let random = lanes.next();
            if let (Ok(x), Ok(bias)) =
                (<&mut [f32; 16]>::try_from(&mut *x), <&[f32; 16]>::try_from(bias))
            {
                for ((x, &bias), random) in x.iter_mut().zip(bias).zip(random) {
                    *x = dense_draw::<F>(*x + bias, random);
                }
            } else {
                for ((x, &bias), random) in x.iter_mut().zip(bias).zip(random) {
                    *x = dense_draw::<F>(*x + bias, random);
                }
            }
        }
    }
}

/// u·(1 + e^{−x}) < 1, without a division; the cheapest e^{−x} that is right to 24 bits.
#[inline(always)]
fn dense_draw<F: MultiplyAdd>(x: f32, random: u32) -> f32 {
    const MAGIC: f32 = 12_582_912.0;
    let y = -std::f32::consts::LOG2_E * x;
    let y = if y > 126.0 { 126.0 } else { y };
    let y = if y < -126.0 { -126.0 } else { y };
    let t = y + MAGIC;
    let f = y - (t - MAGIC);
    let p = F::of(1.339_887_4e-3, f, 9.618_437e-3);
    let p = F::of(p, f, 5.550_332_5e-2);
    let p = F::of(p, f, 0.240_226_48);
    let p = F::of(p, f, std::f32::consts::LN_2);
    let p = F::of(p, f, 1.0);
    let e = f32::from_bits(p.to_bits().wrapping_add(t.to_bits() << 23));
    let u = (random >> 8) as f32;
    if F::of(u, e, u) < 16_777_216.0 { 1.0 } else { 0.0 }
}

/// A chain of 4·`n` dependent operations of one cycle each, to measure the length of a cycle.
pub fn dependent_chain(n: u64) -> u64 {
    let mut x = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..n {
        x ^= x >> 7;
        x ^= x << 9;
    }
    x
}

/// A cache line of 16-bit numbers.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub struct CacheLine(pub [i16; 32]);

/// Loads every line `repeats` times and adds it to one of eight sums: the load (and add) limit of a cache level.
pub fn load_and_add(lines: &[CacheLine], repeats: usize) -> i16 {
    load_and_add_on(Isa::detect(), lines, repeats)
}

multiversion! {
    fn load_and_add_on(isa: Isa, lines: &[CacheLine], repeats: usize) -> i16 {
        let mut sums = [[0i16; 32]; 8];
        for _ in 0..repeats {
            for lines in lines.chunks_exact(8) {
                for (sum, line) in sums.iter_mut().zip(lines) {
                    for (a, b) in sum.iter_mut().zip(&line.0) {
                        *a = a.wrapping_add(*b);
                    }
                }
            }
            // Keeps the compiler from taking the repetition out of the loop.
            std::hint::black_box(&mut sums);
        }
        sums.as_flattened().iter().fold(0, |a, &b| a.wrapping_add(b))
    }
}

/// Stores to every line `repeats` times.
pub fn store(lines: &mut [CacheLine], repeats: usize) {
    store_on(Isa::detect(), lines, repeats);
}

multiversion! {
    fn store_on(isa: Isa, lines: &mut [CacheLine], repeats: usize) {
        for r in 0..repeats {
            for line in lines.iter_mut() {
                *line = CacheLine([r as i16; 32]);
            }
            std::hint::black_box(&mut *lines);
        }
    }
}

/// Every 16-bit logit with every 16-bit random number on the widest instruction set: (wrong decisions, open
/// ones). The first must be 0.
pub fn check_every_decision() -> (u64, u64) {
    bernoulli::check_every_decision(Isa::detect())
}
