//! What every reader hands over: a grid of cells, before anybody knows what they mean.

use std::borrow::Cow;

use crate::{Column, Place};

/// One entry of a grid.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell<'a> {
    /// Empty, NaN or NA.
    Missing,
    /// A number.
    Number(f64),
    /// Anything else.
    Text(Cow<'a, str>),
}

impl Cell<'_> {
    /// A number, where NaN means missing.
    pub(crate) fn number(value: f64) -> Self {
        if value.is_nan() { Self::Missing } else { Self::Number(value) }
    }
}

/// A grid of cells with named columns.
pub(crate) trait Cells {
    /// Where the grid was read from.
    fn place(&self) -> &Place;

    /// Number of rows.
    fn rows(&self) -> usize;

    /// The columns' names.
    fn names(&self) -> Vec<String>;

    /// How many of the first columns come from one numeric array and therefore mean the same thing.
    fn uniform(&self) -> usize {
        0
    }

    /// What the file itself says about a column.
    fn declared(&self, _col: usize) -> Option<Column> {
        None
    }

    /// Height and width, when every row is an image.
    fn shape(&self) -> Option<[usize; 2]> {
        None
    }

    /// The entry at (`row`, `col`).
    fn cell(&self, row: usize, col: usize) -> Cell<'_>;

    /// Writes the [`Cells::uniform`] entries of a row to `out`, NaN for missing ones; false where the grid has
    /// no quicker way than entry by entry.
    fn numbers(&self, _row: usize, _out: &mut Vec<f64>) -> bool {
        false
    }

    /// The entry as it was written, which tells `01` from `1`; empty when it is missing.
    fn text(&self, row: usize, col: usize) -> Cow<'_, str> {
        match self.cell(row, col) {
            Cell::Missing => Cow::Borrowed(""),
            Cell::Number(value) => Cow::Owned(value.to_string()),
            Cell::Text(text) => text,
        }
    }

    /// The entry as it was written in a text file, missing or not.
    fn word(&self, _row: usize, _col: usize) -> Option<&str> {
        None
    }

    /// Whether semicolons separate the entries, as where commas are decimal points.
    fn semicolons(&self) -> bool {
        false
    }

    /// The number of rows before this grid, when it is one block of a stream.
    fn first_row(&self) -> usize {
        0
    }

    /// The place of a row, for messages.
    fn locate(&self, row: usize) -> Place {
        self.place().clone().row(self.first_row() + row)
    }
}

/// The number that a word of a text file stands for.
pub(crate) fn parse_number(word: &str) -> Option<f64> {
    // The first byte decides for most words, and keeps `nan` words of other meaning away.
    match word.as_bytes().first()? {
        b'0'..=b'9' | b'+' | b'-' | b'.' => word.parse().ok(),
        b'i' | b'I' if ["inf", "infinity"].iter().any(|name| word.eq_ignore_ascii_case(name)) => {
            Some(f64::INFINITY)
        }
        _ => None,
    }
}

/// The same where a number is wanted: `true` and `false` are 1 and 0.
pub(crate) fn lenient_number(word: &str) -> Option<f64> {
    parse_number(word).or_else(|| match crate::schema::order::truth(word) {
        Some((0, truth)) => Some(f64::from(u8::from(truth))),
        _ => None,
    })
}

/// Whether a word is a code rather than a number: digits with a leading zero.
pub(crate) fn is_code(word: &str) -> bool {
    word.len() > 1 && word.starts_with('0') && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a word of a text file stands for a missing entry.
pub(crate) fn is_missing(word: &str, also: &[String]) -> bool {
    word.is_empty()
        || (word.len() <= 4 && MISSING.iter().any(|name| word.eq_ignore_ascii_case(name)))
        || also.iter().any(|name| name == word)
}

const MISSING: [&str; 7] = ["NA", "N/A", "NaN", "null", "?", "#N/A", "<NA>"];

/// Whether a word stands for a missing entry where everything else is a number; among words it may mean something.
pub(crate) fn is_gap(word: &str) -> bool {
    const GAPS: [&str; 9] = ["-", "--", "–", ".", "none", "nil", "unknown", "missing", "n.a."];
    word.len() <= 7 && GAPS.iter().any(|name| word.eq_ignore_ascii_case(name))
}
