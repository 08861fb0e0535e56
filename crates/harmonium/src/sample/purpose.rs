//! The purposes of random numbers, each with its own streams.

/// Initial weights and states.
pub const INIT: u32 = 1;
/// Order of the data within an epoch, and splits.
pub const DATA: u32 = 2;
/// Chains with the data clamped.
pub const POSITIVE: u32 = 3;
/// Chains with nothing clamped.
pub const NEGATIVE: u32 = 4;
/// Swaps between chains.
pub const SWAP: u32 = 5;
/// Estimates of ln Z.
pub const PARTITION: u32 = 6;
/// Diagnostics and sample quality.
pub const EVALUATE: u32 = 7;
/// Samples for the user.
pub const USER: u32 = 8;
/// Draws from enumerated distributions.
pub const EXACT: u32 = 9;
