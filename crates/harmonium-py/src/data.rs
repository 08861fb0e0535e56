//! Tables of typed columns: the data sets and file formats of `harmonium-data`.

use crate::error::{refuse, value};
use crate::machine::Machine;
use crate::objects::from_python;
use crate::precision::{Precise, Precision, named};
use harmonium::io::LayerInfo;
use harmonium_data::{Dataset, Given, Labels, Overrides, Place, ReadOptions, Schema, Transform, Values};
use harmonium_table::{Histogram, Visible, schema_from_json, schema_to_json};
use ndarray::{Array2, ArrayView2};
use numpy::{IntoPyArray, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;

/// Rows of typed columns.
#[pyclass(frozen, module = "harmonium._core")]
pub(crate) struct Table {
    table: harmonium_data::Table,
}

/// Places of the columns, values and known entries of a block.
type Block<'py> = (Vec<usize>, Bound<'py, PyAny>, Option<Bound<'py, PyArray2<bool>>>);

#[pymethods]
impl Table {
    fn __len__(&self) -> usize {
        self.table.rows()
    }

    /// The columns and the shape of images as JSON.
    fn schema(&self) -> String {
        columns(self.table.schema())
    }

    /// One block per kind of column, and per number of categories.
    fn blocks<'py>(&self, py: Python<'py>) -> Vec<Block<'py>> {
        let rows = self.table.rows();
        let block = |b: &harmonium_data::Block| {
            let shape = (rows, b.cols());
            let spin = b.kind == harmonium_data::Kind::Spin;
            let values = match &b.values {
                Values::Bits(x) if spin => {
                    Array2::from_shape_fn(shape, |(r, j)| if x.get(r, j) { 1.0f32 } else { -1.0 })
                        .into_pyarray(py)
                        .into_any()
                }
                Values::Bits(x) => Array2::from_shape_fn(shape, |(r, j)| u8::from(x.get(r, j)))
                    .into_pyarray(py)
                    .into_any(),
                Values::Codes(x) => {
                    Array2::from_shape_fn(shape, |(r, j)| x.get(r, j)).into_pyarray(py).into_any()
                }
                Values::Reals(x) => {
                    Array2::from_shape_fn(shape, |(r, j)| x.get(r, j)).into_pyarray(py).into_any()
                }
                Values::Singles(x) => {
                    Array2::from_shape_fn(shape, |(r, j)| x.get(r, j)).into_pyarray(py).into_any()
                }
            };
            let known = b.missing.as_ref().map(|m| Array2::from_shape_fn(shape, |(r, j)| !m.get(r, j)));
            (b.columns.clone(), values, known.map(|k| k.into_pyarray(py)))
        };
        self.table.blocks().iter().map(block).collect()
    }

    /// Place of the label column and the code of every row, −1 where it is missing.
    fn labels(&self) -> Option<(usize, Vec<i64>)> {
        let labels = self.table.labels()?;
        let code = |&c: &u32| if c == Labels::MISSING { -1 } else { i64::from(c) };
        Some((labels.column, labels.codes.iter().map(code).collect()))
    }

    /// How much every row counts.
    fn weights(&self) -> Option<Vec<f64>> {
        self.table.weights().map(<[f64]>::to_vec)
    }
}

type Parts = (Table, Option<Table>, Option<Table>);

fn parts(set: Dataset) -> Parts {
    let table = |table| Table { table };
    (table(set.train), set.valid.map(table), set.test.map(table))
}

fn raise(error: harmonium_data::Error) -> PyErr {
    match error {
        harmonium_data::Error::Io { .. } => PyOSError::new_err(error.to_string()),
        other => pyo3::exceptions::PyValueError::new_err(other.to_string()),
    }
}

fn options(
    overrides: &str,
    seed: u64,
    header: Option<bool>,
    alphabet: Option<&str>,
    reweight: Option<f64>,
    threads: usize,
) -> PyResult<ReadOptions> {
    let overrides = Overrides::from_toml(overrides, Place::new("schema")).map_err(raise)?;
    let alphabet = alphabet.map(|letters| letters.parse().map_err(|e| value("alphabet", e)));
    let alphabet = alphabet.transpose()?;
    Ok(ReadOptions { overrides, seed, header, alphabet, reweight, threads, ..ReadOptions::default() })
}

/// Training, validation and test part of the data of this name; `overrides` is TOML.
#[pyfunction]
pub(crate) fn load_data(
    py: Python<'_>,
    name: &str,
    overrides: &str,
    seed: u64,
    header: Option<bool>,
    alphabet: Option<&str>,
    reweight: Option<f64>,
    threads: usize,
) -> PyResult<Parts> {
    let options = options(overrides, seed, header, alphabet, reweight, threads)?;
    Ok(parts(py.detach(|| harmonium_data::load(name, &options)).map_err(raise)?))
}

/// Name, kind where it is known, words where there are some, and values: places of words or numbers, NaN for missing ones.
type Column<'py> = (String, Option<String>, Option<Vec<String>>, PyReadonlyArray1<'py, f64>);

/// The table of columns in memory; `place` names it in messages.
#[pyfunction]
pub(crate) fn read_columns(
    py: Python<'_>,
    columns: Vec<Column<'_>>,
    place: &str,
    overrides: &str,
    seed: u64,
) -> PyResult<Table> {
    let options = options(overrides, seed, None, None, None, 1)?;
    let given = |(name, kind, levels, values): Column<'_>| {
        let kind = kind.map(|k| k.parse().map_err(|e: String| value("kind", e))).transpose()?;
        Ok(Given { name, kind, levels: levels.map(Into::into), values: values.as_array().to_vec() })
    };
    let columns = columns.into_iter().map(given).collect::<PyResult<Vec<_>>>()?;
    let set = py.detach(|| harmonium_data::read_columns(columns, place, &options)).map_err(raise)?;
    Ok(parts(set).0)
}

/// All columns and the shape of images as JSON.
fn columns(schema: &Schema) -> String {
    let columns = schema.columns.iter().map(|c| {
        json!({
            "name": c.name, "kind": c.kind.name(), "categories": c.categories[..],
            "binarize": c.binarize.map(|b| b.to_string()),
            "transform": c.transform.map(|t| t.to_string()),
            "format": Some(&c.format).filter(|f| !f.is_plain()).map(ToString::to_string),
        })
    });
    json!({"shape": schema.shape, "columns": columns.collect::<Vec<_>>()}).to_string()
}

/// A schema as JSON of all its columns in the form that model files keep.
#[pyfunction]
pub(crate) fn pack_schema(columns: &str) -> PyResult<String> {
    Ok(schema_to_json(&schema_from_json(columns).map_err(refuse)?))
}

/// All columns of a schema in the form that model files keep.
#[pyfunction]
pub(crate) fn unpack_schema(text: &str) -> PyResult<String> {
    Ok(columns(&schema_from_json(text).map_err(refuse)?))
}

/// The machine that `config` (a dict of `MachineConfig`) asks for, for the columns of a schema (JSON) whose groups of counts
/// have these values, each with how often it occurs, by column; or on one visible layer (a dict of its kind and number of units) where there is no schema.
#[pyfunction]
pub(crate) fn build(
    config: &Bound<'_, PyDict>,
    schema: Option<&str>,
    counts: Vec<Vec<Histogram>>,
    layer: Option<&Bound<'_, PyDict>>,
) -> PyResult<Machine> {
    let mut config = from_python("machine", config)?;
    let schema = schema.map(schema_from_json).transpose().map_err(refuse)?;
    let layer: Option<LayerInfo> = layer.map(|l| from_python("visible", l)).transpose()?;
    let made = harmonium_table::join(&mut config, |labels, units| match (&schema, &layer) {
        (Some(schema), _) => harmonium_table::visible(schema, &counts, labels, units),
        (None, _) if labels => Err(harmonium_table::Error::NoLabel),
        (None, Some(l)) => Ok(vec![Visible { name: l.name.clone(), kind: l.kind, units: l.units }]),
        (None, None) => Ok(vec![]),
    });
    Ok(made.map_err(refuse)?.into())
}

fn parse_maps(maps: Vec<Option<String>>) -> PyResult<Vec<Option<Transform>>> {
    let parse = |t: String| t.parse().map_err(|e: String| value("transform", e));
    maps.into_iter().map(|t| t.map(parse).transpose()).collect()
}

/// The transform of each column of real numbers, NaN where one is missing.
#[pyfunction]
pub(crate) fn fit_transforms(x: PyReadonlyArray2<'_, f64>) -> Vec<String> {
    harmonium_table::fit_transforms(x.as_array()).iter().map(ToString::to_string).collect()
}

/// The columns as units see them, NaN where they are missing, and of each row the sum of $\ln(dz/dx)$ over what is known.
type InUnits<'py> = (Bound<'py, PyAny>, Vec<f64>);

/// Columns as the units of a machine of this precision see them.
#[pyfunction]
pub(crate) fn to_units<'py>(
    py: Python<'py>,
    maps: Vec<Option<String>>,
    x: PyReadonlyArray2<'py, f64>,
    dtype: &str,
) -> PyResult<InUnits<'py>> {
    let (maps, x) = (parse_maps(maps)?, x.as_array());
    Ok(match named(dtype)? {
        Precision::Single(()) => in_units::<f32>(py, &maps, x),
        Precision::Double(()) => in_units::<f64>(py, &maps, x),
    })
}

fn in_units<'py, T: Precise>(
    py: Python<'py>,
    maps: &[Option<Transform>],
    x: ArrayView2<'_, f64>,
) -> InUnits<'py> {
    let z = Array2::from_shape_fn(x.dim(), |(r, j)| match maps[j] {
        _ if x[[r, j]].is_nan() => T::nan(),
        Some(map) => T::of(map.forward(x[[r, j]])).max(T::min_value()).min(T::max_value()),
        None => T::of(x[[r, j]]),
    });
    // As the command line has them: of the numbers that the machine sees.
    let slope = |(j, &z): (usize, &T)| {
        maps[j].filter(|_| !z.is_nan()).map_or(0.0, |map| map.log_slope(map.inverse(z.f64())))
    };
    let slopes = z.rows().into_iter().map(|row| row.iter().enumerate().map(slope).sum()).collect();
    (z.into_pyarray(py).into_any(), slopes)
}

/// The columns in the numbers of the table.
#[pyfunction]
pub(crate) fn from_units<'py>(
    py: Python<'py>,
    maps: Vec<Option<String>>,
    z: PyReadonlyArray2<'py, f64>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let (maps, z) = (parse_maps(maps)?, z.as_array());
    let x =
        Array2::from_shape_fn(z.dim(), |(r, j)| maps[j].map_or(z[[r, j]], |map| map.inverse(z[[r, j]])));
    Ok(x.into_pyarray(py))
}
