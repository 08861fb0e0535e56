//! Columns in memory, such as those of a data frame, with their kind and categories where these are known.

use std::borrow::Cow;
use std::sync::Arc;

use crate::cells::{Cell, Cells};
use crate::{Column, Error, Kind, Place, Result};

/// A column in memory. An unset `kind` is inferred from the values.
#[derive(Clone, Debug)]
pub struct Given {
    /// The column's name.
    pub name: String,
    /// What its entries mean, where that is known.
    pub kind: Option<Kind>,
    /// The categories that the values index; without them the values are numbers.
    pub levels: Option<Arc<[String]>>,
    /// A value per row, NaN where it is missing.
    pub values: Vec<f64>,
}

pub(crate) struct ColumnCells {
    place: Place,
    columns: Vec<Given>,
    rows: usize,
}

impl ColumnCells {
    pub(crate) fn new(columns: Vec<Given>, place: Place) -> Result<Self> {
        let rows = columns.first().map_or(0, |column| column.values.len());
        if rows == 0 {
            return Err(Error::empty(&place, "there are no rows in it"));
        }
        for column in &columns {
            let place = place.clone().column(&column.name);
            if column.values.len() != rows {
                return Err(Error::Ragged {
                    place: Box::new(place),
                    expected: rows,
                    got: column.values.len(),
                });
            }
            let is_place = |v: f64, n: usize| v.is_nan() || v >= 0.0 && v.trunc() == v && v < n as f64;
            if let Some(levels) = &column.levels
                && let Some(v) = column.values.iter().find(|v| !is_place(**v, levels.len()))
            {
                let what = format!("{v} is not the place of one of {} words", levels.len());
                return Err(Error::corrupt(&place, what));
            }
        }
        Ok(Self { place, columns, rows })
    }
}

impl Cells for ColumnCells {
    fn place(&self) -> &Place {
        &self.place
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn names(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.name.clone()).collect()
    }

    fn declared(&self, col: usize) -> Option<Column> {
        let Given { name, kind, levels, .. } = &self.columns[col];
        let named = levels.clone().unwrap_or_default();
        (*kind).map(|kind| match kind {
            Kind::Real | Kind::Count | Kind::Ignore => Column::new(name, kind),
            _ => Column::new(name, kind).with_categories(named),
        })
    }

    fn cell(&self, row: usize, col: usize) -> Cell<'_> {
        let Given { levels, values, .. } = &self.columns[col];
        match levels {
            // Words stay words, whatever they look like: `NA` is not missing and `01234` is no number.
            Some(levels) if !values[row].is_nan() => {
                Cell::Text(Cow::Borrowed(&levels[values[row] as usize]))
            }
            _ => Cell::number(values[row]),
        }
    }
}
