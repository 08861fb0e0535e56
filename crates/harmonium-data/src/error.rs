//! The error type: what went wrong, where, what was expected and what to do.

use std::fmt;
use std::path::Path;

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Where something went wrong: a source, and a row, line or column of it when they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The file or data name as the user wrote it; `-` is standard input.
    pub source: String,
    /// The array, split or tensor inside the source.
    pub part: Option<String>,
    /// The row of data, counted from 1 without the header.
    pub row: Option<usize>,
    /// The line of a text file, counted from 1.
    pub line: Option<u64>,
    /// The column's name.
    pub column: Option<String>,
}

impl Place {
    /// A whole source.
    pub fn new(source: impl Into<String>) -> Self {
        Self { source: source.into(), ..Self::default() }
    }

    /// A whole file.
    pub fn file(path: &Path) -> Self {
        Self::new(path.display().to_string())
    }

    /// The same place, inside the array or split `part`.
    pub fn part(mut self, part: impl Into<String>) -> Self {
        self.part = Some(part.into());
        self
    }

    /// The same place, at a row counted from 0.
    pub fn row(mut self, row: usize) -> Self {
        self.row = Some(row + 1);
        self
    }

    /// The same place, at a line counted from 1.
    pub fn line(mut self, line: u64) -> Self {
        self.line = Some(line);
        self
    }

    /// The same place, in the column of this name.
    pub fn column(mut self, column: impl Into<String>) -> Self {
        self.column = Some(column.into());
        self
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source.as_str() {
            "-" => write!(f, "standard input")?,
            source => write!(f, "{source}")?,
        }
        if let Some(part) = &self.part {
            write!(f, ", {part}")?;
        }
        if let Some(row) = self.row {
            write!(f, ", row {row}")?;
        }
        if let Some(line) = self.line {
            write!(f, " (line {line})")?;
        }
        if let Some(column) = &self.column {
            write!(f, ", column {column:?}")?;
        }
        Ok(())
    }
}

/// Everything that can go wrong in this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused to read or write.
    #[error("{place}: cannot {action}: {source}")]
    Io {
        /// Where.
        place: Box<Place>,
        /// What was tried: `read`, `write`, `create`, …
        action: &'static str,
        /// What the system answered.
        source: std::io::Error,
    },
    /// The contents are not what the format demands: truncated, corrupted or of a kind that is not supported.
    #[error("{place}: {what}; {hint}")]
    Format {
        /// Where.
        place: Box<Place>,
        /// What is wrong.
        what: String,
        /// What to do about it.
        hint: String,
    },
    /// One entry does not fit the kind of its column.
    #[error("{place}: got {got}, expected {expected}; {hint}")]
    Cell {
        /// Where, down to row and column.
        place: Box<Place>,
        /// The entry found.
        got: String,
        /// What the column's kind demands.
        expected: String,
        /// What to do about it.
        hint: String,
    },
    /// A row has another number of entries than the rows before it.
    #[error(
        "{place}: {got} entries, expected {expected} as in the rows before; \
         fix the row, or quote entries that contain the separator"
    )]
    Ragged {
        /// Where.
        place: Box<Place>,
        /// Number of columns of the table.
        expected: usize,
        /// Number of entries in this row.
        got: usize,
    },
    /// There is not a single row of data.
    #[error("{place}: no rows of data; {hint}")]
    Empty {
        /// Where.
        place: Box<Place>,
        /// What to do about it.
        hint: String,
    },
    /// The reader was left out of this build.
    #[error(
        "{place}: reading {format} needs the cargo feature `{feature}`; build again with `--features {feature}`"
    )]
    Feature {
        /// Where.
        place: Box<Place>,
        /// The format's name.
        format: &'static str,
        /// The missing cargo feature.
        feature: &'static str,
    },
    /// A data name is neither a known data set nor a readable file, or its options are wrong.
    #[error("{name:?}: {what}; {hint}")]
    Name {
        /// The name as given.
        name: String,
        /// What is wrong with it.
        what: String,
        /// What to write instead.
        hint: String,
    },
    /// The schema does not fit the data, or its TOML is wrong.
    #[error("{place}: {what}; {hint}")]
    Schema {
        /// The TOML file, or the table it was meant for.
        place: Box<Place>,
        /// What is wrong.
        what: String,
        /// What to do about it.
        hint: String,
    },
    /// A parameter of a call is out of range.
    #[error("{field}: got {got}, expected {expected}")]
    Parameter {
        /// The parameter's name.
        field: &'static str,
        /// Its value.
        got: String,
        /// What is allowed.
        expected: String,
    },
}

impl Error {
    pub(crate) fn io(place: &Place, action: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        let place = Box::new(place.clone());
        move |source| Self::Io { place, action, source }
    }

    pub(crate) fn format(place: &Place, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Format { place: Box::new(place.clone()), what: what.into(), hint: hint.into() }
    }

    /// The file ended early or holds nonsense where `what` should stand.
    pub(crate) fn corrupt(place: &Place, what: impl Into<String>) -> Self {
        Self::format(place, what, "the file is truncated or damaged: fetch or write it again")
    }

    pub(crate) fn empty(place: &Place, hint: impl Into<String>) -> Self {
        Self::Empty { place: Box::new(place.clone()), hint: hint.into() }
    }

    pub(crate) fn name(name: &str, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Name { name: name.into(), what: what.into(), hint: hint.into() }
    }

    pub(crate) fn schema(place: &Place, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Schema { place: Box::new(place.clone()), what: what.into(), hint: hint.into() }
    }

    pub(crate) fn parameter(
        field: &'static str,
        got: impl fmt::Display,
        expected: impl Into<String>,
    ) -> Self {
        Self::Parameter { field, got: got.to_string(), expected: expected.into() }
    }
}

/// The candidate nearest to `word` in edit distance, if it is near enough for `word` to be a misspelling of it.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Candidates are short; cutting long words off bounds the cost.
    let short = |text: &str| text.chars().take(64).collect::<String>();
    let (word, length) = (short(word), word.chars().take(64).count());
    let all = candidates.into_iter().map(|c| (strsim::levenshtein(&word, &short(c)), c));
    let near = all.filter(|(distance, _)| *distance <= 1 + length / 3);
    // Of two equally near words, the one whose length is closer.
    near.min_by_key(|(distance, c)| (*distance, c.chars().count().abs_diff(length))).map(|(_, c)| c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_from_the_outside_in() {
        let place = Place::new("t.csv").row(16).line(18).column("x");
        assert_eq!(place.to_string(), "t.csv, row 17 (line 18), column \"x\"");
        assert_eq!(Place::new("-").to_string(), "standard input");
    }

    #[test]
    fn the_nearest_word_is_offered_only_when_near() {
        assert_eq!(nearest("digts", ["mnist", "digits"]), Some("digits"));
        assert_eq!(nearest("zebra", ["mnist", "digits"]), None);
        assert_eq!(nearest("abcd", ["abc", "abxd"]), Some("abxd"));
    }
}
