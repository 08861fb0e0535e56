//! What the values of a column look like, gathered in one pass.

use std::collections::HashSet;

use crate::Kind;
use crate::cells::Cell;

/// More distinct values than this are no categories.
pub(crate) const MAX_CATEGORIES: usize = 65_536;

/// More distinct words than this are identifiers, unless the schema says otherwise.
const MAX_INFERRED: usize = 256;

/// A summary of the values of one column, or of several that mean the same thing.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    pub(crate) numbers: usize,
    pub(crate) texts: usize,
    pub(crate) min: f64,
    pub(crate) max: f64,
    whole: bool,
    zero: bool,
    /// Whether numbers are gathered too, not only words.
    pub(crate) gather: bool,
    words: HashSet<Box<str>>,
    values: HashSet<u64>,
    last: u64,
}

impl Profile {
    pub(crate) fn new(gather: bool) -> Self {
        Self {
            numbers: 0,
            texts: 0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            whole: true,
            zero: false,
            gather,
            words: HashSet::new(),
            values: HashSet::new(),
            last: f64::NAN.to_bits(),
        }
    }

    /// Takes in a number; `word` is how it was written, where that is known.
    pub(crate) fn number(&mut self, value: f64, word: Option<&str>) {
        self.numbers += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.whole &= value.trunc() == value;
        self.zero |= value == 0.0;
        if self.gather && self.distinct() <= MAX_CATEGORIES {
            match word {
                Some(word) => self.word(word),
                None if value.to_bits() != self.last => {
                    // Adding 0 makes -0 and 0 one value.
                    self.last = (value + 0.0).to_bits();
                    self.values.insert(self.last);
                }
                None => {}
            }
        }
    }

    /// Takes in a row of numbers, NaN for missing ones.
    pub(crate) fn row(&mut self, values: &[f64]) {
        if self.gather {
            let present = values.iter().filter(|value| !value.is_nan());
            present.for_each(|value| self.number(*value, None));
            return;
        }
        for &value in values {
            // Minimum and maximum pass over NaN by themselves.
            self.min = self.min.min(value);
            self.max = self.max.max(value);
            self.numbers += usize::from(!value.is_nan());
            self.whole &= value.trunc() == value || value.is_nan();
            self.zero |= value == 0.0;
        }
    }

    pub(crate) fn text(&mut self, word: &str) {
        self.texts += 1;
        if self.distinct() <= MAX_CATEGORIES {
            self.word(word);
        }
    }

    fn word(&mut self, word: &str) {
        if !self.words.contains(word) {
            self.words.insert(word.into());
        }
    }

    pub(crate) fn observe(&mut self, cell: &Cell<'_>, word: impl FnOnce() -> Option<String>) {
        match cell {
            Cell::Missing => {}
            Cell::Number(value) if self.gather => self.number(*value, word().as_deref()),
            Cell::Number(value) => self.number(*value, None),
            Cell::Text(text) => self.text(text),
        }
    }

    /// Takes in what another profile has seen of numbers.
    pub(crate) fn merge_numbers(&mut self, other: &Self) {
        self.numbers += other.numbers;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.whole &= other.whole;
        self.zero |= other.zero;
    }

    pub(crate) fn distinct(&self) -> usize {
        self.words.len() + self.values.len()
    }

    /// Whether every value is 0 or 1.
    pub(crate) fn is_binary(&self) -> bool {
        self.is_numeric() && self.whole && self.min >= 0.0 && self.max <= 1.0
    }

    pub(crate) fn is_numeric(&self) -> bool {
        self.numbers > 0 && self.texts == 0
    }

    /// The kind that the values suggest.
    pub(crate) fn kind(&self) -> Kind {
        let distinct = self.distinct();
        if self.texts > 0 {
            let entries = self.texts + self.numbers;
            let identifiers = distinct > MAX_INFERRED
                || (entries >= 4 && distinct == entries)
                || (entries >= 10 && 2 * distinct > entries);
            return match distinct {
                0 | 1 => Kind::Ignore,
                _ if identifiers => Kind::Ignore,
                2 => Kind::Binary,
                _ => Kind::Categorical,
            };
        }
        if self.numbers == 0 {
            Kind::Ignore
        } else if self.is_binary() {
            Kind::Binary
        } else if self.whole && self.min == -1.0 && self.max <= 1.0 && !self.zero {
            Kind::Spin
        } else if self.whole && self.min >= 0.0 && self.max <= f64::from(u32::MAX) {
            Kind::Count
        } else {
            Kind::Real
        }
    }

    /// The distinct values in order: numbers by size, or words by alphabet when any is no number.
    ///
    /// `dense` fills the gaps between whole numbers, down to 0, so that codes are the numbers themselves.
    pub(crate) fn categories(&self, dense: bool) -> Vec<String> {
        if dense
            && self.words.is_empty()
            && self.whole
            && self.min >= 0.0
            && self.max < MAX_CATEGORIES as f64
        {
            return (0..=self.max as u32).map(|code| code.to_string()).collect();
        }
        let mut names: Vec<String> = self.words.iter().map(|word| word.to_string()).collect();
        names.extend(self.values.iter().map(|bits| f64::from_bits(*bits).to_string()));
        let numbers: Option<Vec<f64>> = names.iter().map(|name| name.parse().ok()).collect();
        match numbers {
            Some(numbers) => {
                let mut order: Vec<(f64, String)> = numbers.into_iter().zip(names).collect();
                order.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
                order.into_iter().map(|(_, name)| name).collect()
            }
            None => {
                names.sort_unstable();
                names
            }
        }
    }
}
