//! 32 columns side by side in memory: the unit in which weights, sums and means are kept.
//!
//! Matrices are cut into *strips* of [`WIDTH`] columns. One row of a strip is one of the types here; 32 numbers of 16
//! bits are one cache line, and one register of AVX-512.

/// Columns of a strip.
pub const WIDTH: usize = 32;

/// 16-bit weights or sums: one cache line.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct I16x32(pub(crate) [i16; WIDTH]);

/// 32-bit sums.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct I32x32(pub(crate) [i32; WIDTH]);

/// Conditional means as levels 0…63; the alignment keeps a row within one cache line.
#[repr(C, align(32))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Levels(pub(crate) [u8; WIDTH]);

/// Reals: weights before they are rounded, or one row of a strip of a product.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct F32x32(pub [f32; WIDTH]);
