//! Slices in, slices out: the arithmetic under harmonium.
//!
//! This crate knows nothing of machines or layers. It holds the number type ([`Real`]), the random
//! [`Stream`]s, matrices of packed bits ([`Bits`], [`bits`]) and the products, element-wise functions and samplers that
//! run over them. It is the only crate of the workspace in which `unsafe` may appear. Every public kernel
//! has a slow twin in [`mod@reference`]; `tests/twins.rs` lists the pairs and fails when one is missing.
//!
//! There are two engines. The one for reals works with any weights in `f32` or `f64`; its entrances are the
//! functions of [`Real`] and of [`moments`]. The one in fixed point, [`fixed`], holds the weights of a
//! coupling in 16 bits and is several times as fast; the library takes it for large machines of binary, spin
//! and Potts units in `f32`. Matrices are cut into *strips* of 32 columns; batches are cut into *chunks* of
//! 1024 rows where random numbers are drawn. Strips and chunks are what threads share.
//!
//! # How a half-sweep and an update go through the files
//!
//! ```text
//!  states ──┐          ┌─ Field::sample ──────────▶ packed bits
//!           ├─▶ Field ─┼─ Field::rounded_means ───▶ Means ──┐
//!  Coupling ┘  (sums)  └─ Field::means, fields ───▶ f32     ├─▶ for_each_strip ─▶ optimiser
//!     ▲                                 bits V ─────────────┘       (VᵀM)            │
//!     └───────────────────────────── Rounder ◀─────────────────────── new weights ───┘
//! ```
//!
//! **A half-sweep** in fixed point samples one layer given the states of the others:
//!
//! 1. `fixed/coupling.rs`: [`Coupling::forward`](fixed::Coupling::forward) and `backward` give the weights of one direction
//!    as 16-bit integers, with a bound on what rounding does to a logit (`error_bound`).
//! 2. `fixed/field.rs`: [`Field::new`](fixed::Field::new) checks what the layer receives; `for_each_block` goes through strips
//!    and chunks, one task each, and adds all inputs of a block up by `sum`.
//! 3. `fixed/words.rs`: `Words`, made by `prepare` once for all strips, has the bits of every 64 inputs: as they are, or, where few are
//!    set (`are_lists_faster`), as lists of the set ones.
//! 4. `fixed/table.rs`: the inner loops. `add_by_tables` looks five bits at a time up in a table of their 32 sums, `add_lists`
//!    adds the rows of the set bits, `add_codes` those of Potts codes. `fixed/vector.rs`: `Vector` is 32 sums in registers.
//! 5. `fixed/outputs.rs`: `sample_on` gives the sums of a block to `sample` of `bernoulli/mod.rs`: `sample_rows` decides 32 units at a
//!    time from 16 random bits each (`bernoulli/decide.rs`: `margin`), and `decide_with_more_bits` of `bernoulli/mod.rs` the few for which these do
//!    not suffice; `pack` joins the bits of all strips. For moments, `levels` rounds the conditional means to 64 levels.
//!
//! **An update** takes the moments of both phases to new weights, strip by strip, while they are in the cache:
//!
//! 1. `fixed/means.rs`: [`Means`](fixed::Means), the conditional means as levels, from `rounded_means` of `fixed/outputs.rs`
//!    or, with samples, its `sample_with_means`.
//! 2. `fixed/outer.rs`: [`for_each_strip`](fixed::for_each_strip) multiplies bits with levels, one strip of all products at a time, and hands
//!    each piece of a strip to the caller. `Method` says how: by tables in registers (`fixed/register_tables.rs`: `add_levels`), by dot
//!    products where there are few rows (`fixed/row_dots.rs`: `add`), by lists of rows where few bits are set
//!    (`fixed/row_lists.rs`: `add_groups`), else by the tables of `fixed/table.rs`. `fixed/finish.rs`: `finish` turns
//!    integer sums into reals.
//! 3. The optimiser of the library writes the new weights of the piece ([`Columns`], [`vectorised`]).
//! 4. `fixed/rewrite.rs`: [`Rounder::take`](fixed::Rounder::take) rounds them for both directions; `fixed/plan.rs`: `Planner` finds where 16-bit sums
//!    must be added to 32-bit ones so that no state overflows. `refresh` of `fixed/coupling.rs` does the same with all weights at once.
//!
//! The engine for reals does the same in `inputs/mod.rs` (`add_bits`, `add_codes`) and `moments.rs` (`add_bits_outer`, `add_codes_outer`,
//! `add_bits_bits_outer`), with draws by `sample_reals` of `bernoulli/sources.rs`. Every kernel is compiled for several instruction
//! sets as `isa.rs` describes.

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
mod packed;
mod prefetch;
mod real;
pub mod reference;
mod scratch;
mod small;
mod stream;
mod strip;
mod transpose;
mod x32;

pub use codes::Codes;
pub use isa::{Isa, Loop, vectorised};
pub use packed::{Bits, PackingError};
pub use prefetch::prefetch;
pub use real::Real;
pub use stream::{Key, Stream};
pub use strip::{Columns, for_each_part, split_columns};
pub use transpose::transpose;
