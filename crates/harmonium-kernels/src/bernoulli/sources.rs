//! Where the logits of a draw come from: 16- or 32-bit fixed-point sums, or a matrix of reals.

use super::decide::Decide;
use super::{Noise, STEPS_PER_NAT, STREAM_ROWS, Source, pack, sample, sampled};
use crate::isa::Isa;
use crate::scratch::first;
use crate::stream::Key;
use crate::strip::{Strips, for_each_task};
use crate::x32::{F32x32, I16x32, I32x32, WIDTH};

/// 16-bit sums in steps of 2^-11 and a constant per column.
pub(crate) struct Sums16<'a> {
    pub(crate) sums: &'a [I16x32],
    pub(crate) bias: I16x32,
}

impl Source for Sums16<'_> {
    #[inline(always)]
    unsafe fn rounded<D: Decide>(&self, row: usize) -> D::Logits {
        let sums = &self.sums[row].0;
        // Plain loops, here and below: `from_fn` and `map` of arrays are not always inlined. And whole cache lines: an array
        // that starts within one costs more than twice the time, whenever the stack happens to put it there.
        let mut x = I16x32::default();
        for ((x, &sum), &bias) in x.0.iter_mut().zip(sums).zip(&self.bias.0) {
            *x = sum.saturating_add(bias);
        }
        // SAFETY: the caller's promise.
        unsafe { D::load(&x.0) }
    }
    fn exact(&self, row: usize, c: usize) -> f64 {
        f64::from(i32::from(self.sums[row].0[c]) + i32::from(self.bias.0[c])) / STEPS_PER_NAT
    }
}

/// 32-bit sums, each worth `scale` nats.
pub(crate) struct Sums32<'a> {
    pub(crate) sums: &'a [I32x32],
    pub(crate) scale: f64,
}

impl Source for Sums32<'_> {
    #[inline(always)]
    unsafe fn rounded<D: Decide>(&self, row: usize) -> D::Logits {
        let scale = (self.scale * STEPS_PER_NAT) as f32;
        let sums = &self.sums[row].0;
        let mut y = F32x32::default();
        for (y, &sum) in y.0.iter_mut().zip(sums) {
            *y = sum as f32 * scale;
        }
        // SAFETY: the caller's promise.
        unsafe { D::round(&y.0) }
    }
    fn exact(&self, row: usize, c: usize) -> f64 {
        f64::from(self.sums[row].0[c]) * self.scale
    }
}

macro_rules! reals {
    ($t:ident, $source:ident) => {
        /// A strip of a row-major matrix of logits.
        pub(crate) struct $source<'a> {
            logits: &'a [$t],
            n: usize,
            width: usize,
        }
        impl Source for $source<'_> {
            #[inline(always)]
            unsafe fn rounded<D: Decide>(&self, row: usize) -> D::Logits {
                let x = &self.logits[row * self.n..][..self.width];
                let mut y = F32x32::default();
                if let Ok(x) = <&[$t; WIDTH]>::try_from(x) {
                    for (y, &x) in y.0.iter_mut().zip(x) {
                        *y = (x * STEPS_PER_NAT as $t) as f32;
                    }
                } else {
                    for (y, &x) in y.0.iter_mut().zip(x) {
                        *y = (x * STEPS_PER_NAT as $t) as f32;
                    }
                }
                // SAFETY: the caller's promise.
                unsafe { D::round(&y.0) }
            }
            fn exact(&self, row: usize, c: usize) -> f64 {
                // Columns beyond the matrix are drawn with the rest and dropped.
                if c < self.width { f64::from(self.logits[row * self.n + c]) } else { 0.0 }
            }
        }
        impl SampleReals for $t {
            fn strip(
                isa: Isa,
                logits: &[$t],
                n: usize,
                width: usize,
                noise: &mut Noise,
                out: &mut [u32],
            ) {
                sample(isa, &$source { logits, n, width }, noise, out);
            }
        }
    };
}
reals!(f32, Reals32);
reals!(f64, Reals64);

/// The real types whose strips can be drawn.
pub(crate) trait SampleReals: Sized + Sync {
    fn strip(isa: Isa, logits: &[Self], n: usize, width: usize, noise: &mut Noise, out: &mut [u32]);
}

/// Draws every bit of `rows × n` from its logit.
pub(crate) fn sample_reals<T: SampleReals>(isa: Isa, logits: &[T], n: usize, key: Key, out: &mut [u64]) {
    if n == 0 {
        assert!(out.is_empty() && logits.is_empty(), "sample: rows of no bits");
        return;
    }
    let rows = logits.len() / n;
    assert_eq!(logits.len(), rows * n, "sample: logits do not fit rows × n");
    assert_eq!(out.len(), rows * crate::bits::words(n), "sample: output does not fit rows × words");
    let mut buffer = sampled();
    let (columns, chunks) = (n.div_ceil(WIDTH), rows.div_ceil(STREAM_ROWS));
    let sampled = first(&mut buffer, columns * rows);
    let strips = Strips::new(sampled, rows);
    for_each_task(columns * chunks, rows * columns, |task| {
        let (block, chunk) = (task % columns, task / columns);
        let (first, j) = (chunk * STREAM_ROWS, block * WIDTH);
        let here = STREAM_ROWS.min(rows - first);
        // SAFETY: no other task has this block of columns and rows.
        let out = unsafe { strips.segment(block, first, here) };
        let mut noise = Noise::new(key, block, chunk);
        T::strip(isa, &logits[first * n + j..], n, WIDTH.min(n - j), &mut noise, out);
    });
    pack(sampled, rows, n, out);
}
