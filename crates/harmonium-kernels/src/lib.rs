//! Slices in, slices out: the arithmetic under harmonium.
//!
//! This crate knows nothing of machines or layers. It holds the number type ([`Real`]), the random
//! [`Stream`]s, bit-packed rows ([`bits`]) and the products, element-wise functions and samplers that
//! run over them. It is the only crate of the workspace in which `unsafe` may appear, and every fast
//! kernel has a slow twin in [`mod@reference`] that it is tested against.

#[doc(hidden)]
pub mod bench_support;
mod bernoulli;
pub mod bits;
mod codes;
mod elementwise;
pub mod fixed;
mod inputs;
mod isa;
mod lanes;
mod math;
pub mod moments;
mod prefetch;
mod real;
pub mod reference;
mod scratch;
mod stream;
mod strip;
mod transpose;
mod x32;

pub use codes::Codes;
pub use isa::{Isa, Loop, vectorised};
pub use prefetch::prefetch;
pub use real::Real;
pub use stream::{Key, Stream};
pub use strip::{Columns, split_columns};
pub use transpose::transpose;
