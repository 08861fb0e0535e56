//! From the columns of a table to the layers of a machine, and back.
//!
//! The command line and the Python package both call these functions and make no such choice of their own, so that equal
//! data and equal settings give the same model, bit for bit.
//!
//! A table with gaps, completed:
//!
//! ```
//! use harmonium::tasks::Fill;
//! use harmonium_data::{ReadOptions, read_csv};
//! use harmonium_table::{MachineConfig, Model};
//!
//! let csv = "fruit,sour,grams\n".to_owned() + &"lemon,yes,58.5\nbanana,no,118.2\n".repeat(40) + "lemon,,\n";
//! let mut table = read_csv(csv.as_bytes(), "fruit.csv", &ReadOptions::default())?.train;
//! let mut model = Model::new(MachineConfig::default(), &table)?;
//! model.train(&table, |task| task.updates(300).seed(1))?;
//! let filled = model.complete(&mut table, Fill::Best, |task| task)?;
//! assert_eq!((filled.len(), &*table.entry(&table.blocks()[0], 80, 1)), (2, "yes"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A Potts machine of aligned sequences:
//!
//! ```
//! use harmonium_data::{ReadOptions, load};
//! use harmonium_table::{MachineConfig, MachineKind, Model};
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("family.fasta");
//! # std::fs::write(&path, (0..60).map(|i| format!(">s{i}\n{}\n", ["ACDA", "GCEG", "AC-A"][i % 3])).collect::<String>())?;
//! # let path = path.to_str().unwrap();
//! let table = load(path, &ReadOptions::default())?.train;
//! let config = MachineConfig { kind: Some(MachineKind::FullyVisible), ..MachineConfig::default() };
//! let mut model = Model::new(config, &table)?;
//! model.train(&table, |task| task.updates(200).seed(1))?;
//! let new = model.sample(5, |task| task.temperature(0.8).seed(2))?;
//! assert_eq!((new.rows(), new.cols()), (5, 4));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod build;
mod config;
mod counts;
mod error;
mod layout;
mod model;
mod schema;
mod side_by_side;
mod transforms;

pub use build::{join, machine_for, measured};
pub use config::{MachineConfig, MachineKind};
pub use counts::{CountUnits, Histogram};
pub use error::{Error, Result};
pub use layout::{Layout, Visible, impossible_remark, impossible_rows, visible};
pub use model::{Filled, Model};
pub use schema::{schema_from_json, schema_to_json};
pub use side_by_side::{given_data, given_schema};
pub use transforms::fit_transforms;
