//! Schemas of tables as dicts of Python.

use crate::error::{refuse, value};
use crate::objects::{from_python, to_python};
use harmonium_data::{Column, Schema};
use harmonium_table::{schema_from_json, schema_to_json};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

/// All columns of a schema, and the shape of images.
#[derive(Serialize, Deserialize)]
struct Described {
    shape: Option<[usize; 2]>,
    columns: Vec<DescribedColumn>,
}

#[derive(Serialize, Deserialize)]
struct DescribedColumn {
    name: String,
    kind: String,
    categories: Vec<String>,
    binarize: Option<String>,
    format: Option<String>,
    transform: Option<String>,
}

impl Described {
    fn of(schema: &Schema) -> Self {
        let columns = schema.columns.iter().map(|c| DescribedColumn {
            name: c.name.clone(),
            kind: c.kind.name().into(),
            categories: c.categories.to_vec(),
            binarize: c.binarize.map(|b| b.to_string()),
            format: Some(&c.format).filter(|f| !f.is_plain()).map(ToString::to_string),
            transform: c.transform.map(|t| t.to_string()),
        });
        Self { shape: schema.shape, columns: columns.collect() }
    }
}

impl DescribedColumn {
    fn column(self) -> Result<Column, String> {
        let column = Column::new(self.name, self.kind.parse()?);
        Ok(Column {
            categories: self.categories.into(),
            binarize: self.binarize.map(|b| b.parse()).transpose()?,
            format: self.format.map(|f| f.parse()).transpose()?.unwrap_or_default(),
            transform: self.transform.map(|t| t.parse()).transpose()?,
            ..column
        })
    }
}

/// A schema as a dict.
pub(crate) fn described<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyAny>> {
    to_python(py, &Described::of(schema))
}

/// The schema that a dict describes.
pub(crate) fn schema_of(schema: &Bound<'_, PyAny>) -> PyResult<Schema> {
    let Described { shape, columns } = from_python("schema", schema)?;
    let columns = columns.into_iter().map(|c| c.column().map_err(|e| value("schema", e)));
    Ok(Schema { columns: columns.collect::<PyResult<_>>()?, shape })
}

/// A schema (a dict) as a model file keeps it.
#[pyfunction]
pub(crate) fn pack_schema(schema: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(schema_to_json(&schema_of(schema)?))
}

/// The schema of a model file, as a dict.
#[pyfunction]
pub(crate) fn unpack_schema<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    described(py, &schema_from_json(text).map_err(refuse)?)
}

/// A schema (a dict) as a file for `harmonium --schema`.
#[pyfunction]
pub(crate) fn schema_toml(schema: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(schema_of(schema)?.to_toml())
}
