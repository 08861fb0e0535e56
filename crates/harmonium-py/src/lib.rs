//! `harmonium._core`: the compiled part of the Python package, a thin layer over the library.
//!
//! Objects are immutable (`Machine`, `Rows`), so that arrays can be views of them and threads can share
//! them. Settings and results with many fields go as dicts (`objects.rs`). The public interface is Python, in `python/harmonium`.
#![forbid(unsafe_code)]
#![allow(clippy::too_many_arguments)] // Arguments of Python functions have names.
#![allow(missing_docs)] // The documentation is python/harmonium/_core.pyi.

mod chains;
mod checkpoint;
mod custom_components;
mod data;
mod error;
mod evaluate;
mod machine;
mod objects;
mod pieces;
mod precision;
mod rows;
mod schema;
mod train;
mod watch;
mod work;

use pyo3::prelude::*;

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_class::<machine::Machine>()?;
    m.add_class::<machine::View>()?;
    m.add_class::<rows::Rows>()?;
    m.add_class::<chains::Chains>()?;
    m.add_class::<checkpoint::Checkpoint>()?;
    m.add_class::<evaluate::LogZ>()?;
    m.add_class::<evaluate::LogLikelihood>()?;
    m.add_class::<data::Table>()?;
    m.add_function(wrap_pyfunction!(machine::kinds, m)?)?;
    m.add_function(wrap_pyfunction!(data::load_data, m)?)?;
    m.add_function(wrap_pyfunction!(data::read_columns, m)?)?;
    m.add_function(wrap_pyfunction!(data::impossible_remark, m)?)?;
    m.add_function(wrap_pyfunction!(schema::pack_schema, m)?)?;
    m.add_function(wrap_pyfunction!(schema::unpack_schema, m)?)?;
    m.add_function(wrap_pyfunction!(schema::schema_toml, m)?)?;
    m.add_function(wrap_pyfunction!(data::build, m)?)?;
    m.add_function(wrap_pyfunction!(data::build_on_layer, m)?)?;
    m.add_function(wrap_pyfunction!(data::to_units, m)?)?;
    m.add_function(wrap_pyfunction!(data::from_units, m)?)?;
    m.add_function(wrap_pyfunction!(chains::sample, m)?)?;
    m.add_function(wrap_pyfunction!(chains::complete, m)?)?;
    m.add_function(wrap_pyfunction!(train::seconds, m)?)?;
    m.add_function(wrap_pyfunction!(train::plan, m)?)?;
    m.add_function(wrap_pyfunction!(train::train, m)?)?;
    m.add_function(wrap_pyfunction!(evaluate::log_z, m)?)?;
    m.add_function(wrap_pyfunction!(evaluate::log_likelihood, m)?)?;
    m.add_function(wrap_pyfunction!(evaluate::pseudo_log_likelihood, m)?)?;
    m.add_function(wrap_pyfunction!(evaluate::pseudo_log_likelihood_by_flips, m)?)?;
    m.add_function(wrap_pyfunction!(evaluate::equilibrium, m)?)?;
    m.add_function(wrap_pyfunction!(evaluate::quality, m)?)?;
    m.add_function(wrap_pyfunction!(evaluate::verify, m)?)?;
    m.add_function(wrap_pyfunction!(evaluate::mixing, m)?)?;
    Ok(())
}
