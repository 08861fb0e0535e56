//! Tables of typed columns: the data sets and file formats of `harmonium-data`.

use crate::error::{refuse, value};
use crate::machine::Machine;
use crate::objects::from_python;
use crate::precision::{Precise, Precision, named};
use crate::schema::{described, schema_of};
use harmonium::io::LayerInfo;
use harmonium_data::{Bits, Dataset, Given, Labels, Overrides, Place, ReadOptions, Transform, Values};
use harmonium_table::Visible;
use ndarray::{Array2, ArrayView2};
use numpy::{IntoPyArray, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;
use std::path::PathBuf;

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

    /// The columns and the shape of images, as a dict.
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        described(py, self.table.schema())
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

    /// Rows that a machine gives probability 0: with a category that its column does not have, where that is no error, or a count
    /// beyond the largest one of its units. `layers` are those of the blocks.
    fn impossible(&self, machine: &Machine, layers: Vec<usize>) -> PyResult<Vec<usize>> {
        let kinds = layers.into_iter().map(|l| machine.kind(l)).collect::<PyResult<Vec<_>>>()?;
        Ok(harmonium_table::impossible_rows(&self.table, &kinds))
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
        // With number and file name, so that it becomes a FileNotFoundError where it is one.
        harmonium_data::Error::Io { ref place, ref source, .. } => match source.raw_os_error() {
            Some(number) => PyOSError::new_err((number, source.to_string(), place.to_string())),
            None => PyOSError::new_err(error.to_string()),
        },
        other => pyo3::exceptions::PyValueError::new_err(other.to_string()),
    }
}

/// What is known of columns beforehand: a dict laid out as the TOML of [`Overrides`], or the path of such a file; with the
/// column that holds the class, and how numbers become bits.
#[derive(FromPyObject)]
pub(crate) struct Known<'py>(Bound<'py, PyAny>, Option<String>, Option<String>);

impl Known<'_> {
    fn overrides(&self) -> PyResult<Overrides> {
        let Self(said, label, binarize) = self;
        let mut found = match said.extract::<PathBuf>() {
            Ok(path) => Overrides::read(&path).map_err(raise)?,
            Err(_) => {
                let said: Value = from_python("schema", said)?;
                Overrides::from_value(said, Place::new("schema")).map_err(raise)?
            }
        };
        if let Some(text) = binarize {
            found.binarize = Some(text.parse().map_err(|e| value("binarize", e))?);
        }
        if let Some(label) = label {
            found.set_kind(label, harmonium_data::Kind::Label);
        }
        Ok(found)
    }
}

fn options(
    known: &Known<'_>,
    seed: u64,
    header: Option<bool>,
    alphabet: Option<&str>,
    reweight: Option<f64>,
    threads: usize,
) -> PyResult<ReadOptions> {
    let overrides = known.overrides()?;
    let alphabet = alphabet.map(|letters| letters.parse().map_err(|e| value("alphabet", e)));
    let alphabet = alphabet.transpose()?;
    Ok(ReadOptions { overrides, seed, header, alphabet, reweight, threads, ..ReadOptions::default() })
}

/// Training, validation and test part of the data of this name.
#[pyfunction]
pub(crate) fn load_data(
    py: Python<'_>,
    name: &str,
    known: Known<'_>,
    seed: u64,
    header: Option<bool>,
    alphabet: Option<&str>,
    reweight: Option<f64>,
    threads: usize,
) -> PyResult<Parts> {
    let options = options(&known, seed, header, alphabet, reweight, threads)?;
    Ok(parts(py.detach(|| harmonium_data::load(name, &options)).map_err(raise)?))
}

/// Name, kind where it is known, words where there are some, and values: places of words or numbers, NaN for missing ones.
type GivenColumn<'py> = (String, Option<String>, Option<Vec<String>>, PyReadonlyArray1<'py, f64>);

/// A remark on the number of rows that an average leaves out because they have probability 0.
#[pyfunction]
pub(crate) fn impossible_remark(rows: usize) -> Option<String> {
    harmonium_table::impossible_remark(rows)
}

/// Whether a column of this name is assumed to hold the class of a row.
#[pyfunction]
pub(crate) fn means_label(name: &str) -> bool {
    harmonium_data::means_label(name)
}

/// Whether a column with so many distinct words among its entries holds names, which differ from row to row.
#[pyfunction]
pub(crate) fn words_differ(distinct: usize, entries: usize) -> bool {
    harmonium_data::words_differ(distinct, entries)
}

/// The table of columns in memory; `place` names it in messages. With `unseen`, a category that its column does not have
/// makes its row impossible, and is no error.
#[pyfunction]
pub(crate) fn read_columns(
    py: Python<'_>,
    columns: Vec<GivenColumn<'_>>,
    place: &str,
    known: Known<'_>,
    seed: u64,
    unseen: bool,
) -> PyResult<Table> {
    let options = ReadOptions { unseen, ..options(&known, seed, None, None, None, 1)? };
    let given = |(name, kind, levels, values): GivenColumn<'_>| {
        let kind = kind.map(|k| k.parse().map_err(|e: String| value("kind", e))).transpose()?;
        Ok(Given { name, kind, levels: levels.map(Into::into), values: values.as_array().to_vec() })
    };
    let columns = columns.into_iter().map(given).collect::<PyResult<Vec<_>>>()?;
    let set = py.detach(|| harmonium_data::read_columns(columns, place, &options)).map_err(raise)?;
    Ok(parts(set).0)
}

/// The machine that `config` (a dict of `MachineConfig`) asks for on the columns of a schema (a dict), and the schema with a
/// transform for every real column. `blocks` holds an array for each group of real columns and of counts, NaN where an entry is
/// missing: their units are chosen by their values.
#[pyfunction]
pub(crate) fn build<'py>(
    py: Python<'py>,
    config: &Bound<'py, PyDict>,
    schema: &Bound<'py, PyDict>,
    blocks: Vec<Option<PyReadonlyArray2<'py, f64>>>,
) -> PyResult<(Machine, Bound<'py, PyAny>)> {
    let mut config = from_python("machine", config)?;
    let rows = blocks.iter().flatten().next().map_or(0, |x| x.as_array().nrows());
    let mut table = harmonium_data::Table::zeros(schema_of(schema)?.into(), rows);
    for (block, x) in table.blocks_mut().iter_mut().zip(&blocks) {
        if let Some(x) = x {
            put(block, x.as_array());
        }
    }
    let made = py.detach(|| harmonium_table::machine_for(&mut config, &table));
    let (machine, layout) = made.map_err(refuse)?;
    Ok((machine.into(), described(py, &layout.schema)?))
}

/// Puts numbers into a block of a table, NaN as missing.
fn put(block: &mut harmonium_data::Block, x: ArrayView2<'_, f64>) {
    let dim = x.dim();
    for ((r, j), &x) in x.indexed_iter() {
        match &mut block.values {
            _ if x.is_nan() => {
                block.missing.get_or_insert_with(|| Bits::zeros(dim.0, dim.1)).set(r, j, true);
            }
            Values::Bits(bits) => bits.set(r, j, x == 1.0),
            Values::Codes(codes) => codes.set(r, j, x as u32),
            Values::Reals(reals) => reals.set(r, j, x),
            Values::Singles(reals) => reals.set(r, j, x as f32),
        }
    }
}

/// The machine that `config` asks for on one visible layer (a dict of its kind and number of units).
#[pyfunction]
pub(crate) fn build_on_layer(
    config: &Bound<'_, PyDict>,
    layer: &Bound<'_, PyDict>,
) -> PyResult<Machine> {
    let mut config = from_python("machine", config)?;
    let LayerInfo { name, kind, units, .. } = from_python("visible", layer)?;
    let made = harmonium_table::join(&mut config, |labels, _| match labels {
        true => Err(harmonium_table::Error::NoLabel),
        false => Ok(vec![Visible { name, kind, units }]),
    });
    Ok(made.map_err(refuse)?.into())
}

fn parse_maps(maps: Vec<Option<String>>) -> PyResult<Vec<Option<Transform>>> {
    let parse = |t: String| t.parse().map_err(|e: String| value("transform", e));
    maps.into_iter().map(|t| t.map(parse).transpose()).collect()
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
