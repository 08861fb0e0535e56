//! From the columns of a table to the layers of a machine, and back.
//!
//! The command line and the Python package both call these functions and make no such choice of their own, so that equal
//! data and equal settings give the same model, bit for bit.
//!
//! ```
//! use harmonium_data::{ReadOptions, load};
//! use harmonium_table::{MachineConfig, machine_for};
//!
//! let digits = load("digits", &ReadOptions::default())?.train;
//! let mut config = MachineConfig::default();
//! let (machine, layout) = machine_for(&mut config, &digits)?;
//! assert_eq!(config.hidden, Some(vec![96])); // half as many again as there are columns
//! let data = layout.data(&machine, &digits)?;
//! assert_eq!(data.rows(), digits.rows());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod build;
mod config;
mod counts;
mod error;
mod layout;
mod schema;
mod side_by_side;
mod transforms;

pub use build::{join, machine_for, measured};
pub use config::{MachineConfig, MachineKind};
pub use counts::{CountUnits, Histogram};
pub use error::{Error, Result};
pub use layout::{Layout, Visible, visible};
pub use schema::{schema_from_json, schema_to_json};
pub use side_by_side::{given_data, given_schema};
pub use transforms::fit_transforms;
