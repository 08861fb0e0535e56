//! Train, sample and judge Boltzmann machines.
#![forbid(unsafe_code)]

mod archive;
mod container;
mod error;
pub mod estimate;
pub mod exact;
pub mod io;
pub mod machine;
pub mod sample;
mod states;
pub mod units;

pub use archive::{Archive, Tensor};
pub use error::{Error, Result};
pub use harmonium_kernels::{Key, Real};
pub use machine::{Coupling, Machine, Member, Parameters, Role, Tempered};
pub use sample::{Chains, Clamp, Clamps};
pub use states::{Batch, Bits, States};
pub use units::{Kind, Layer};
