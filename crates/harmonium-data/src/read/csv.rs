//! Text tables: csv, tsv and their relatives, from a file or from standard input.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read};

use crate::cells::{Cell, Cells};
use crate::infer::is_value;
use crate::words::{is_code, is_missing, parse_number};
use crate::{Error, Place, Result};

/// Bytes of the first line that are searched for the separator.
const FIRST_LINE: u64 = 1 << 16;

/// A text table in memory: all entries in one string.
pub(crate) struct CsvCells {
    place: Place,
    names: Vec<String>,
    missing: Vec<String>,
    semicolons: bool,
    text: String,
    rows: Vec<Row>,
    /// Ends of the entries, counted from the start of their row.
    ends: Vec<u32>,
}

struct Row {
    start: usize,
    line: u64,
}

/// How a text table is written, where it should not be guessed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dialect {
    pub(crate) delimiter: Option<u8>,
    pub(crate) header: Option<bool>,
    pub(crate) missing: Vec<String>,
}

impl CsvCells {
    pub(crate) fn read(input: impl Read, dialect: &Dialect, place: &Place) -> Result<Self> {
        let mut input = BufReader::new(input);
        let mut start = Vec::new();
        let mut line = input.by_ref().take(FIRST_LINE);
        line.read_until(b'\n', &mut start).map_err(Error::io(place, "read"))?;
        let delimiter = dialect.delimiter.unwrap_or_else(|| guess_delimiter(&start));
        if start.starts_with(b"\xef\xbb\xbf") {
            start.drain(..3);
        }
        let input = std::io::Cursor::new(start).chain(input);
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter)
            .trim(csv::Trim::All)
            .from_reader(input);
        let mut cells = Self {
            place: place.clone(),
            names: Vec::new(),
            missing: dialect.missing.clone(),
            semicolons: delimiter == b';',
            text: String::new(),
            rows: Vec::new(),
            ends: Vec::new(),
        };
        let mut record = csv::StringRecord::new();
        let mut first: Option<csv::StringRecord> = None;
        // The line behind the last record.
        let mut next = 1;
        loop {
            match reader.read_record(&mut record) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => return Err(cells.failure(error)),
            }
            match &first {
                None => {
                    first = Some(record.clone());
                    next = reader.position().line();
                    continue;
                }
                Some(start) if cells.names.is_empty() => {
                    let header = dialect.header.unwrap_or_else(|| is_header(start, Some(&record)));
                    cells.begin(start, header)?;
                }
                Some(_) => {}
            }
            let after = reader.position().line();
            let line = line_of(&record, after);
            cells.push_blank(next..line)?;
            cells.push(&record, line)?;
            next = after;
        }
        if let Some(start) = &first
            && cells.names.is_empty()
        {
            let header = dialect.header.unwrap_or_else(|| is_header(start, None));
            cells.begin(start, header)?;
        }
        cells.push_blank(next..reader.position().line())?;
        if cells.rows.is_empty() {
            return Err(Error::empty(
                place,
                match first {
                    None => "the file is empty",
                    Some(_) => "there is only a header line",
                },
            ));
        }
        Ok(cells)
    }

    /// Takes the first line as names, or as the first row.
    fn begin(&mut self, first: &csv::StringRecord, header: bool) -> Result<()> {
        let name = |(i, word): (usize, &str)| match header && !word.is_empty() {
            true => word.to_owned(),
            false => format!("v{i}"),
        };
        self.names = first.iter().enumerate().map(name).collect();
        match header {
            true => Ok(()),
            false => self.push(first, 1),
        }
    }

    /// Empty lines are skipped in most tables; in a table of one column each is a row with a missing entry.
    fn push_blank(&mut self, mut lines: std::ops::Range<u64>) -> Result<()> {
        let blank = csv::StringRecord::from(vec![""]);
        match self.names.len() {
            1 => lines.try_for_each(|line| self.push(&blank, line)),
            _ => Ok(()),
        }
    }

    fn push(&mut self, record: &csv::StringRecord, line: u64) -> Result<()> {
        if record.len() != self.names.len() {
            return Err(Error::Ragged {
                place: Box::new(self.place.clone().row(self.rows.len()).line(line)),
                expected: self.names.len(),
                got: record.len(),
            });
        }
        let start = self.text.len();
        for word in record {
            self.text.push_str(word);
            let end = u32::try_from(self.text.len() - start).map_err(|_| {
                let place = self.place.clone().row(self.rows.len()).line(line);
                Error::format(&place, "a row of more than 4 GiB", "is a quote left open?")
            })?;
            self.ends.push(end);
        }
        self.rows.push(Row { start, line });
        Ok(())
    }

    fn failure(&self, error: csv::Error) -> Error {
        let line = error.position().map(csv::Position::line);
        let place = Place { line, ..self.place.clone() };
        match error.into_kind() {
            csv::ErrorKind::Io(source) => Error::Io { place: Box::new(place), action: "read", source },
            csv::ErrorKind::Utf8 { .. } => {
                Error::format(&place, "text that is not UTF-8", "save the file as UTF-8")
            }
            other => Error::format(&place, format!("{other:?}"), "fix the line"),
        }
    }

    fn written(&self, row: usize, col: usize) -> &str {
        let at = row * self.names.len() + col;
        let from = if col == 0 { 0 } else { self.ends[at - 1] as usize };
        let start = self.rows[row].start;
        &self.text[start + from..start + self.ends[at] as usize]
    }
}

impl Cells for CsvCells {
    fn place(&self) -> &Place {
        &self.place
    }

    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    fn cell(&self, row: usize, col: usize) -> Cell<'_> {
        let word = self.written(row, col);
        match word {
            "0" => Cell::Number(0.0),
            "1" => Cell::Number(1.0),
            _ if is_missing(word, &self.missing) => Cell::Missing,
            _ => match parse_number(word).filter(|_| !is_code(word)) {
                Some(value) => Cell::number(value),
                None => Cell::Text(Cow::Borrowed(word)),
            },
        }
    }

    fn text(&self, row: usize, col: usize) -> Cow<'_, str> {
        let word = self.written(row, col);
        match is_missing(word, &self.missing) {
            true => Cow::Borrowed(""),
            false => Cow::Borrowed(word),
        }
    }

    fn word(&self, row: usize, col: usize) -> Option<&str> {
        Some(self.written(row, col))
    }

    fn semicolons(&self) -> bool {
        self.semicolons
    }

    fn locate(&self, row: usize) -> Place {
        self.place.clone().row(row).line(self.rows[row].line)
    }
}

/// The line on which a record starts, when the reader stands on line `after` behind it: the record's own
/// position is where the blank lines before it start.
fn line_of(record: &csv::StringRecord, after: u64) -> u64 {
    let inside = record.as_slice().bytes().filter(|byte| *byte == b'\n').count() as u64;
    let start = record.position().map_or(1, csv::Position::line);
    start.max(after.saturating_sub(inside + 1))
}

/// The separator that the first line uses most; spaces only when there is no other.
fn guess_delimiter(start: &[u8]) -> u8 {
    let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
    // Between digits, and with semicolons or tabs in the line, a comma is a decimal point.
    let other = line.iter().any(|byte| [b';', b'\t'].contains(byte));
    let point = |at: usize| {
        let digit = |at: usize| line.get(at).is_some_and(u8::is_ascii_digit);
        other && line[at] == b',' && at > 0 && digit(at - 1) && digit(at + 1)
    };
    let count = |delimiter: u8| {
        line.iter().enumerate().filter(|(at, byte)| **byte == delimiter && !point(*at)).count()
    };
    let best = [b',', b'\t', b';'].into_iter().rev().max_by_key(|delimiter| count(*delimiter));
    match best {
        Some(delimiter) if count(delimiter) > 0 => delimiter,
        _ => {
            let text = String::from_utf8_lossy(line);
            let numbers = text.split_whitespace().all(|word| parse_number(word).is_some());
            if numbers && count(b' ') > 0 { b' ' } else { b',' }
        }
    }
}

/// Whether the first line holds names: words only, or the counting numbers that data frames write.
fn is_header(first: &csv::StringRecord, second: Option<&csv::StringRecord>) -> bool {
    let is_word = |(col, word): &(usize, &str)| {
        // A date is a column name where the entry below it is no date.
        let below = || second.is_none_or(|second| second.get(*col).is_none_or(is_value));
        parse_number(word).is_none() && !is_missing(word, &[]) && !(is_value(word) && below())
    };
    let counting = |skip: usize| {
        first.len() >= skip + 3
            && first.iter().skip(skip).enumerate().all(|(i, word)| word == i.to_string())
    };
    if counting(0) || (first.get(0) == Some("") && counting(1)) {
        return true;
    }
    let words = first.iter().enumerate().filter(is_word).count();
    let blanks = first.iter().filter(|word| word.is_empty()).count();
    match second {
        None => words > 0 && words + blanks == first.len() && first.len() > 1,
        Some(_) => words > 0 && words + blanks == first.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<CsvCells> {
        CsvCells::read(text.as_bytes(), &Dialect::default(), &Place::new("t.csv"))
    }

    #[test]
    fn separators_and_headers_are_recognised() {
        for (text, names, rows) in [
            ("a,b\n1,2\n", vec!["a", "b"], 1),
            ("1,2\n3,4\n", vec!["v0", "v1"], 2),
            ("a\tb\n1\t2\n", vec!["a", "b"], 1),
            ("a;b\n1,5;2\n", vec!["a", "b"], 1),
            ("1,5;2,5\n3,5;4\n", vec!["v0", "v1"], 2),
            ("town,2020-01,2020-02\nRome,3,5\n", vec!["town", "2020-01", "2020-02"], 1),
            ("2020-01-05,Rome\n2020-02-05,Oslo\n", vec!["v0", "v1"], 2),
            ("0 1 0\n1 1 0\n", vec!["v0", "v1", "v2"], 2),
            ("0,1,2\n5,6,7\n", vec!["0", "1", "2"], 1),
            (",0,1,2\n0,5,6,7\n", vec!["v0", "0", "1", "2"], 1),
            ("\u{feff}x,y\r\nu,w\r\n", vec!["x", "y"], 1),
            ("\"a, b\",c\n\"1\",2", vec!["a, b", "c"], 1),
            ("1\n0\n", vec!["v0"], 2),
        ] {
            let cells = read(text).unwrap();
            assert_eq!(cells.names(), names, "{text:?}");
            assert_eq!(cells.rows(), rows, "{text:?}");
        }
    }

    #[test]
    fn entries_are_numbers_words_or_missing() {
        let cells = read("a,b,c,d,e,f\n 1.5 ,x,,NaN,NA,true\n").unwrap();
        let row: Vec<Cell<'_>> = (0..6).map(|col| cells.cell(0, col)).collect();
        assert_eq!(
            row,
            [
                Cell::Number(1.5),
                Cell::Text("x".into()),
                Cell::Missing,
                Cell::Missing,
                Cell::Missing,
                Cell::Text("true".into())
            ]
        );
        assert_eq!(cells.locate(0).line, Some(2));
    }

    #[test]
    fn an_empty_line_of_a_single_column_is_a_missing_entry() {
        for (text, rows) in
            [("a\n1\n\n0\n", 3), ("a\r\n1\r\n\r\n\r\n0", 4), ("1\n\n0\n\n", 4), ("\n\na\n1\n\"\"\n", 2)]
        {
            let cells = read(text).unwrap();
            assert_eq!(cells.rows(), rows, "{text:?}");
            assert_eq!(cells.cell(0, 0), Cell::Number(1.0), "{text:?}");
            assert_eq!(cells.cell(1, 0), Cell::Missing, "{text:?}");
        }
        assert_eq!(read("a,b\n1,2\n\n3,4\n\n").unwrap().rows(), 2);
    }

    #[test]
    fn ragged_rows_and_emptiness_are_explained() {
        let message = |text: &str| read(text).err().unwrap().to_string();
        assert!(message("a,b\n1,2\n\n1\n").contains("row 2 (line 4): 1 entries, expected 2"));
        assert!(message("").contains("the file is empty"));
        assert!(message("a,b\n").contains("only a header"));
    }
}
