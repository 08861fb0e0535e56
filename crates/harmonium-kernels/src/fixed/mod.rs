//! The fixed-point engine: fields of binary layers in 16-bit integers, and samples straight from them.
//!
//! A [`Coupling`] holds the weights between two layers rounded to multiples of 2^-s, for both directions. A
//! [`Field`] names what a layer receives: its own field θ, and one or more couplings with the states at
//! their other ends. From it come packed samples, conditional means, or the logits themselves. Integer sums
//! are exact, so the result depends neither on the processor, nor on the number of threads, nor on which of
//! several ways of summing was the fastest.
//!
//! Rounding the weights shifts every logit by at most [`Coupling::error_bound`]; when that is more than
//! [`TOLERANCE`] the coupling says so ([`Coupling::is_trusted`]) and the caller takes the f32 products of
//! [`crate::Real`] with [`crate::Real::sample_bits`].

mod coupling;
mod field;
mod finish;
mod input;
mod means;
mod outer;
mod outputs;
mod plan;
mod quantise;
mod register_tables;
mod rewrite;
mod row_dots;
mod row_lists;
mod side;
mod table;
mod transpose;
mod vector;
mod words;

pub use crate::x32::{F32x32, WIDTH};
pub use coupling::{Coupling, Direction, TOLERANCE};
pub use field::Field;
pub use finish::Write;
pub use input::{Input, States};
pub use means::{Means, Range};
pub use outer::{Product, bits_means, for_each_strip};
pub use rewrite::Rounder;
pub use side::Side;
