//! From integer sums of levels to rows of a product.

use crate::isa::{Isa, multiversion};
use crate::prefetch::prefetch;
use crate::x32::{F32x32, I32x32, WIDTH};

/// Whether an output is overwritten or added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// out ← …
    Set,
    /// out ← out + …
    Add,
}

/// What turns the sums of levels in 32 columns into the product: scale · Σ levels + shift · ones + offset.
pub(super) struct Affine {
    pub(super) scale: f32,
    pub(super) shift: f32,
    pub(super) offset: [f32; WIDTH],
}

multiversion! {
    /// strip ← \[strip +\] the sums of levels in units of the product.
    pub(super) fn finish(isa: Isa, sums: &[I32x32], ones: &[i32], affine: &Affine, write: Write, strip: &mut [F32x32]) {
        for (i, (&ones, strip)) in ones.iter().zip(strip).enumerate() {
            // Without this the compiler would take eight rows at a time, by slow gather instructions.
            prefetch(sums, i);
            let sums = &sums[i];
            let constant = affine.shift * ones as f32;
            let mut x = F32x32::default();
            for ((x, &sum), offset) in x.0.iter_mut().zip(&sums.0).zip(&affine.offset) {
                *x = affine.scale * sum as f32 + (constant + offset);
            }
            match write {
                Write::Set => *strip = x,
                Write::Add => strip.0.iter_mut().zip(x.0).for_each(|(out, x)| *out += x),
            }
        }
    }
}
