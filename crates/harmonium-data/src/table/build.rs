//! From cells and a schema to a table: every entry is checked against the kind of its column.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{Bits, Block, Ignored, Labels, Table, TextColumn, Values};
use crate::cells::{Cell, Cells};
use crate::words::{is_gap, is_missing, lenient_number, truth};
use crate::{Column, Error, Kind, Overrides, Result, Schema};

/// Builds the table that `schema` describes from the columns of `grid` with the same names.
///
/// Labels and ignored columns may be absent from the grid, data columns may not.
///
/// With `unseen`, an entry that is none of its column's categories is missing, and its row is noted.
pub(crate) fn build(grid: &dyn Cells, schema: &Arc<Schema>, seed: u64, unseen: bool) -> Result<Table> {
    let names = grid.names();
    let by_name: HashMap<&str, usize> = names.iter().map(String::as_str).zip(0..).collect();
    let sources: Vec<Option<usize>> =
        schema.columns.iter().map(|column| by_name.get(column.name.as_str()).copied()).collect();
    for (column, source) in schema.columns.iter().zip(&sources) {
        if source.is_none() && column.kind.is_data() {
            let hint = match crate::error::nearest(&column.name, names.iter().map(String::as_str)) {
                Some(near) => format!("did you mean {near:?}? Columns are matched by name"),
                None => format!("it must have the {} columns it is compared with", schema.columns.len()),
            };
            let what = format!("the {} column {:?} is absent", column.kind, column.name);
            return Err(Error::schema(grid.place(), what, hint));
        }
    }
    let builder = Builder { grid, schema, sources, seed, unseen };
    let mut table = Table::zeros(schema.clone(), grid.rows());
    for block in &mut table.blocks {
        builder.fill(block, &mut table.impossible)?;
    }
    table.impossible.sort_unstable();
    table.impossible.dedup();
    for (place, column) in schema.columns.iter().enumerate() {
        match (column.kind, builder.sources[place]) {
            (Kind::Label, Some(source)) => {
                table.labels = Some(builder.labels(place, source)?);
            }
            (Kind::Ignore, Some(source)) if source >= grid.uniform() => {
                let texts: Vec<_> = (0..grid.rows()).map(|row| grid.text(row, source)).collect();
                table.ignored.push(Ignored {
                    column: place,
                    values: texts.iter().map(|text| text.as_ref()).collect::<TextColumn>(),
                });
            }
            _ => {}
        }
    }
    Ok(table)
}

/// Fails when the grid has a column that `schema` does not have, unless `overrides` ignores it.
pub(crate) fn check_known(cells: &dyn Cells, schema: &Schema, overrides: &Overrides) -> Result<()> {
    let known: HashSet<&str> = schema.columns.iter().map(|column| column.name.as_str()).collect();
    let ignored = |name: &str| overrides.rule(name).and_then(|rule| rule.kind) == Some(Kind::Ignore);
    let label = cells.uniform();
    for (col, name) in cells.names().iter().enumerate() {
        // Labels that come with an array may be superfluous.
        let extra_label = label > 0 && col >= label;
        if !known.contains(name.as_str()) && !ignored(name) && !extra_label {
            let what =
                format!("this column is not among the {} that are expected", schema.columns.len());
            return Err(Error::schema(
                &cells.place().clone().column(name),
                what,
                "remove the column, or mark it \"ignore\" in a schema",
            ));
        }
    }
    Ok(())
}

/// One entry of the grid, with its column.
struct Entry<'a> {
    column: &'a Column,
    lookup: &'a Lookup,
    cell: Cell<'a>,
    row: usize,
    /// The column of the grid.
    source: usize,
}

struct Builder<'a> {
    grid: &'a dyn Cells,
    schema: &'a Schema,
    /// For each column of the schema, the column of the grid.
    sources: Vec<Option<usize>>,
    seed: u64,
    unseen: bool,
}

impl Builder<'_> {
    fn fill(&self, block: &mut Block, impossible: &mut Vec<usize>) -> Result<()> {
        let (rows, width) = (self.grid.rows(), block.columns.len());
        let lookups = self.lookups(&block.columns);
        let mut numbers = Vec::new();
        for row in 0..rows {
            let quick = self.grid.numbers(row, &mut numbers);
            for (to, &place) in block.columns.iter().enumerate() {
                let source = self.sources[place].unwrap_or_default();
                let column = &self.schema.columns[place];
                let lookup = &*lookups[to];
                let cell = match numbers.get(source) {
                    Some(value) if quick => Cell::number(*value),
                    _ => self.known(column, lookup, row, source),
                };
                let missing = cell == Cell::Missing;
                let entry = Entry { column, lookup, cell, row, source };
                let unseen = !missing && self.unseen && self.is_unseen(&entry);
                if missing || unseen {
                    impossible.extend(unseen.then_some(row));
                    block.missing.get_or_insert_with(|| Bits::zeros(rows, width)).set(row, to, true);
                    continue;
                }
                match &mut block.values {
                    Values::Bits(bits) => bits.set(row, to, self.bit(&entry, place)?),
                    Values::Codes(codes) => {
                        let code = match column.kind {
                            Kind::Count => self.count(&entry)?,
                            _ => self.code(&entry)?,
                        };
                        codes.set(row, to, code);
                    }
                    Values::Reals(reals) => reals.set(row, to, self.real(&entry)?),
                    Values::Singles(reals) => reals.set(row, to, self.real(&entry)? as f32),
                }
            }
        }
        Ok(())
    }

    /// The entry at (`row`, `source`): a word for missing entries may be a category, and a word among numbers may mean
    /// that the entry is missing.
    fn known(&self, column: &Column, lookup: &Lookup, row: usize, source: usize) -> Cell<'_> {
        match self.grid.cell(row, source) {
            Cell::Missing if lookup.missing => match self.grid.word(row, source) {
                Some(word) if lookup.word(word).is_some() => Cell::Text(word.into()),
                _ => Cell::Missing,
            },
            Cell::Text(word)
                if column.categories.is_empty()
                    && is_gap(&word)
                    && matches!(column.kind, Kind::Real | Kind::Count) =>
            {
                Cell::Missing
            }
            cell => cell,
        }
    }

    /// The number of an entry in the form of its column.
    fn number(&self, entry: &Entry<'_>) -> Option<f64> {
        let format = &entry.column.format;
        match &entry.cell {
            Cell::Number(value) if format.reads_plain() => Some(*value),
            Cell::Number(value) => match self.grid.word(entry.row, entry.source) {
                Some(word) => format.read(word),
                None => Some(*value),
            },
            Cell::Text(word) => format.read(word),
            Cell::Missing => None,
        }
    }

    /// One lookup per distinct list of categories.
    fn lookups(&self, columns: &[usize]) -> Vec<Arc<Lookup>> {
        let mut made: HashMap<*const String, Arc<Lookup>> = HashMap::new();
        columns
            .iter()
            .map(|&place| {
                let categories = &self.schema.columns[place].categories;
                made.entry(categories.as_ptr())
                    .or_insert_with(|| Arc::new(Lookup::new(categories)))
                    .clone()
            })
            .collect()
    }

    /// `place` is that of the column in the schema.
    fn bit(&self, entry: &Entry<'_>, place: usize) -> Result<bool> {
        let column = entry.column;
        if !column.categories.is_empty() {
            return Ok(self.code(entry)? == 1);
        }
        let Some(value) = self.number(entry) else {
            return Err(self.misfit(entry, "a number", WORD_HINT));
        };
        if let Some(rule) = column.binarize {
            let row_in_source = self.grid.first_row() + entry.row;
            return rule.bit(value, self.seed, row_in_source, place).ok_or_else(|| {
                let expected = "a number that the scale turns into a probability between 0 and 1";
                let hint = "set the largest value as scale, for example binarize = \"sample:255\"";
                self.misfit(entry, expected, hint)
            });
        }
        let (low, expected) = match column.kind {
            Kind::Spin => (-1.0, "-1 or 1"),
            _ => (0.0, "0 or 1"),
        };
        match value {
            1.0 => Ok(true),
            value if value == low => Ok(false),
            _ => Err(self.misfit(entry, expected, BIT_HINT)),
        }
    }

    /// Whether the column has categories, none of which this entry is.
    fn is_unseen(&self, entry: &Entry<'_>) -> bool {
        !entry.column.categories.is_empty() && self.category(entry).is_none()
    }

    fn code(&self, entry: &Entry<'_>) -> Result<u32> {
        self.category(entry).ok_or_else(|| {
            let names = crate::schema::shorten(&entry.column.categories);
            self.misfit(entry, format!("one of the categories {names}"), CATEGORY_HINT)
        })
    }

    fn category(&self, entry: &Entry<'_>) -> Option<u32> {
        let lookup = entry.lookup;
        match &entry.cell {
            Cell::Number(value) if entry.source < self.grid.uniform() => lookup.number(*value),
            Cell::Number(value) => {
                let text = self.grid.text(entry.row, entry.source);
                lookup.word(&text).or_else(|| lookup.number(*value))
            }
            Cell::Text(text) => lookup.word(text),
            Cell::Missing => None,
        }
    }

    fn count(&self, entry: &Entry<'_>) -> Result<u32> {
        match self.number(entry) {
            Some(value) if value >= 0.0 && value.trunc() == value && value <= f64::from(u32::MAX) => {
                Ok(value as u32)
            }
            _ => Err(self.misfit(entry, "a whole number, 0 or more", COUNT_HINT)),
        }
    }

    fn real(&self, entry: &Entry<'_>) -> Result<f64> {
        let format = &entry.column.format;
        match self.number(entry) {
            Some(value) if value.is_finite() => Ok(value),
            _ if format.reads_plain() => Err(self.misfit(entry, "a finite number", WORD_HINT)),
            _ => {
                let expected = format!("an entry of the form {}", format.example());
                Err(self.misfit(entry, expected, FORM_HINT))
            }
        }
    }

    fn labels(&self, place: usize, source: usize) -> Result<Labels> {
        let column = &self.schema.columns[place];
        let lookup = Lookup::new(&column.categories);
        let codes = (0..self.grid.rows())
            .map(|row| match self.known(column, &lookup, row, source) {
                Cell::Missing => Ok(Labels::MISSING),
                cell => self.code(&Entry { column, lookup: &lookup, cell, row, source }),
            })
            .collect::<Result<_>>()?;
        Ok(Labels { column: place, categories: column.categories.clone(), codes })
    }

    fn misfit(&self, entry: &Entry<'_>, expected: impl Into<String>, hint: &str) -> Error {
        let got = match &entry.cell {
            Cell::Missing => "nothing".to_owned(),
            Cell::Number(value) => value.to_string(),
            Cell::Text(text) => format!("{:?}", text.chars().take(40).collect::<String>()),
        };
        Error::Cell {
            place: Box::new(self.grid.locate(entry.row).column(&entry.column.name)),
            got,
            expected: format!("{} in a {} column", expected.into(), entry.column.kind),
            hint: hint.into(),
        }
    }
}

const WORD_HINT: &str =
    "fix the entry, list the word under `missing`, or give the column another kind in a schema";
const FORM_HINT: &str = "fix the entry, list the word under `missing`, or give the column another format or kind in a schema";
const BIT_HINT: &str = "give a threshold (binarize = 0.5), or another kind for the column in a schema";
const CATEGORY_HINT: &str = "fix the entry, or list all categories of the column in a schema";
const COUNT_HINT: &str = "fix the entry, or give the column the kind \"real\" in a schema";

/// From an entry to the code of its category.
struct Lookup {
    words: HashMap<String, u32>,
    numbers: HashMap<u64, u32>,
    /// The codes of the whole numbers 0 to 255, which are most of what is looked up.
    small: [Option<u32>; 256],
    /// The codes of false and true, where the categories are a pair of words for these.
    truth: Option<(usize, [u32; 2])>,
    /// Whether a category is a word for missing entries.
    missing: bool,
}

impl Lookup {
    fn new(categories: &[String]) -> Self {
        let mut lookup = Self {
            words: HashMap::new(),
            numbers: HashMap::new(),
            small: [None; 256],
            truth: None,
            missing: categories.iter().any(|name| is_missing(name, &[])),
        };
        if let [a, b] = categories
            && let (Some((pair, first)), Some((other, second))) = (truth(a), truth(b))
            && pair == other
            && first != second
        {
            lookup.truth = Some((pair, [u32::from(first), u32::from(second)]));
        }
        for (name, code) in categories.iter().zip(0..) {
            lookup.words.insert(name.clone(), code);
            if let Some(value) = lenient_number(name) {
                lookup.numbers.entry((value + 0.0).to_bits()).or_insert(code);
            }
        }
        for (value, code) in lookup.small.iter_mut().enumerate() {
            *code = lookup.numbers.get(&(value as f64).to_bits()).copied();
        }
        lookup
    }

    fn word(&self, word: &str) -> Option<u32> {
        self.words.get(word).copied().or_else(|| {
            let (pair, codes) = self.truth?;
            let (other, yes) = truth(word)?;
            (pair == other).then_some(codes[usize::from(yes)])
        })
    }

    fn number(&self, value: f64) -> Option<u32> {
        let byte = value as u8;
        if f64::from(byte) == value {
            return self.small[usize::from(byte)];
        }
        self.numbers.get(&(value + 0.0).to_bits()).copied()
    }
}
