//! What a front end chooses for its user: from the columns of a table to layers, a machine, settings and the start of a
//! training run.
//!
//! The command line and the Python package both call these functions and make no such choice of their own, so that equal
//! data and equal wishes give the same model, bit for bit.
//!
//! ```
//! use harmonium_data::{ReadOptions, load};
//! use harmonium_table::{MachineConfig, machine_for, settings};
//! use harmonium::train::TrainParams;
//!
//! let digits = load("digits", &ReadOptions::default())?.train;
//! let mut config = MachineConfig::default();
//! let (machine, layout) = machine_for(&mut config, &digits)?;
//! assert_eq!(config.hidden, Some(vec![96])); // half as many again as there are columns
//! let data = layout.data(&machine, &digits)?;
//! let params = settings(TrainParams::default(), &machine, &data, None, &|| false)?;
//! assert_eq!(params.updates, Some(20_000));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod build;
mod config;
mod counts;
mod error;
mod layout;
mod length;
mod pretrain;
mod schema;
mod settings;
mod side_by_side;
mod transforms;

pub use build::{join, machine_for, measured};
pub use config::{MachineConfig, MachineKind};
pub use counts::{CountUnits, Histogram};
pub use error::{Error, Result};
pub use layout::{LABELS, Layout, Visible, is_class, visible};
pub use pretrain::{starts_from_levels, trainer};
pub use schema::{schema_from_json, schema_to_json};
pub use settings::settings;
pub use side_by_side::{given_schema, given_states};
pub use transforms::fit_transforms;
