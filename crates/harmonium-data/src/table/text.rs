//! Text per row, in one allocation, and the labels of the rows.

use std::sync::Arc;

/// A column of text in one allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextColumn {
    text: String,
    ends: Vec<usize>,
}

impl TextColumn {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Appends a row.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    /// The text of a row.
    pub fn get(&self, row: usize) -> &str {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.text[start..self.ends[row]]
    }

    /// The rows in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|row| self.get(row))
    }
}

impl<'a> FromIterator<&'a str> for TextColumn {
    fn from_iter<I: IntoIterator<Item = &'a str>>(rows: I) -> Self {
        let mut column = Self::default();
        rows.into_iter().for_each(|row| column.push(row));
        column
    }
}

/// The values of an ignored column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// The column's place in the schema.
    pub column: usize,
    /// Its text as it was read.
    pub values: TextColumn,
}

/// The class of every row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    /// The label column's place in the schema.
    pub column: usize,
    /// The classes' names, in the order of their codes.
    pub categories: Arc<[String]>,
    /// The code of every row's class; [`Labels::MISSING`] where it is unknown.
    pub codes: Vec<u32>,
}

impl Labels {
    /// The code of a missing label.
    pub const MISSING: u32 = u32::MAX;

    /// The class of a row, if it is known.
    pub fn get(&self, row: usize) -> Option<u32> {
        Some(self.codes[row]).filter(|code| *code != Self::MISSING)
    }

    /// The name of a row's class, if it is known.
    pub fn name(&self, row: usize) -> Option<&str> {
        self.get(row).map(|code| self.categories[code as usize].as_str())
    }
}
