//! What the values of a column look like, gathered in one pass.

use std::collections::HashSet;

use super::guess::{Guess, guess};
use super::order;
use crate::CellFormat;
use crate::cells::Cell;
use crate::schema::Reason;
use crate::words::{is_gap, truth};

/// More distinct values than this are no categories.
pub(crate) const MAX_CATEGORIES: usize = 65_536;

/// Most distinct numbers that are remembered of a column.
pub(crate) const MANY: usize = 65;

/// Most distinct values that can be the levels of a categorical column.
const MAX_LEVELS: usize = 10;

/// Whether so many distinct values in so many entries are levels of a scale.
pub(crate) fn are_levels(distinct: usize, entries: usize) -> bool {
    distinct <= MAX_LEVELS && entries >= 3 * distinct
}

/// A summary of the values of one column, or of several that mean the same thing.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    pub(crate) numbers: usize,
    pub(crate) texts: usize,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) whole: bool,
    zero: bool,
    /// Whether numbers are gathered too, not only words.
    pub(crate) gather: bool,
    words: HashSet<Box<str>>,
    values: HashSet<u64>,
    last: u64,
    /// The form that words are read in, on a pass that tries one.
    pub(crate) reading: Option<Guess>,
    decimals: Option<(u8, u8)>,
    /// Numbers of a column that stands by itself, in the order of the rows.
    pub(crate) series: Series,
}

/// Numbers in the order of the rows: distinct values, mean and spread, steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series {
    count: usize,
    mean: f64,
    /// Sum of squared distances from the mean.
    squares: f64,
    /// The distinct values, at most [`MANY`].
    levels: Vec<f64>,
    previous: f64,
    step: f64,
    uneven: bool,
    falls: bool,
    /// Sum of a hash of every value: equal for equal multisets.
    hash: u64,
}

impl Series {
    fn push(&mut self, value: f64) {
        self.count += 1;
        let from_mean = value - self.mean;
        self.mean += from_mean / self.count as f64;
        self.squares += from_mean * (value - self.mean);
        if self.levels.len() < MANY && !self.levels.contains(&value) {
            self.levels.push(value);
        }
        let step = value - self.previous;
        match self.count {
            1 => {}
            2 => self.step = step,
            _ => self.uneven |= step != self.step,
        }
        self.falls |= self.count > 1 && step <= 0.0;
        self.previous = value;
        self.hash = self.hash.wrapping_add(hash(value));
    }

    /// The distinct values; [`MANY`] of them stand for any larger number.
    pub(crate) fn levels(&self) -> &[f64] {
        &self.levels
    }

    pub(crate) fn mean(&self) -> f64 {
        self.mean
    }

    pub(crate) fn deviation(&self) -> f64 {
        (self.squares / self.count.max(1) as f64).sqrt()
    }

    /// Whether whole numbers from `min` to `max` number the rows.
    ///
    /// Three properties tell row numbers from measurements: equal steps from row to row; every number between smallest and
    /// largest once, in any order (n!/nⁿ by chance, 0.2 % for 8 rows); and rising numbers, all different, at least half of
    /// those in their range, as when some rows were removed (100 draws from 200 numbers are all different once in 10¹⁸).
    pub(crate) fn numbers_rows(&self, min: f64, max: f64) -> bool {
        let (n, span) = (self.count, max - min + 1.0);
        let steady = n >= 5 && !self.uneven && self.step != 0.0;
        let rising = n >= 20 && !self.falls && span <= 2.0 * n as f64;
        let dense = n >= 8 && span == n as f64;
        let permutation = || (0..n).fold(0u64, |sum, i| sum.wrapping_add(hash(min + i as f64)));
        steady || rising || dense && permutation() == self.hash
    }
}

/// The finaliser of MurmurHash3 on the bits of a number; adding 0 makes −0 and 0 one value.
fn hash(value: f64) -> u64 {
    let x = (value + 0.0).to_bits();
    let x = (x ^ x >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let x = (x ^ x >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ x >> 33
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
            reading: None,
            decimals: None,
            series: Series::default(),
        }
    }

    /// A profile that reads words in a form.
    pub(crate) fn reading(guess: Guess) -> Self {
        Self { reading: Some(guess), ..Self::new(false) }
    }

    /// Adds a number; `word` is how it was written, where that is known.
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

    /// Adds a row of numbers, NaN for missing ones.
    pub(crate) fn row(&mut self, values: &[f64]) {
        if self.gather {
            let present = values.iter().filter(|value| !value.is_nan());
            present.for_each(|value| self.number(*value, None));
            return;
        }
        for &value in values {
            // `min` and `max` ignore NaN.
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

    /// Adds an entry of a column that stands by itself; `word` is how it was written.
    pub(crate) fn observe(&mut self, cell: &Cell<'_>, word: impl Fn() -> Option<String>) {
        match (&self.reading, cell) {
            (_, Cell::Missing) => {}
            (Some(guess), Cell::Number(value)) => {
                let (format, written) = (guess.format.clone(), word());
                match (format.reads_plain(), written) {
                    (false, Some(word)) => self.read(&format, &word),
                    _ => self.own(*value, None),
                }
            }
            (Some(guess), Cell::Text(text)) => {
                let format = guess.format.clone();
                self.read(&format, text);
            }
            (None, Cell::Number(value)) if self.gather => self.own(*value, word().as_deref()),
            (None, Cell::Number(value)) => self.own(*value, None),
            (None, Cell::Text(text)) => self.text(text),
        }
    }

    /// Adds an entry of an array.
    pub(crate) fn observe_shared(&mut self, cell: &Cell<'_>) {
        match cell {
            Cell::Missing => {}
            Cell::Number(value) => self.number(*value, None),
            Cell::Text(text) => self.text(text),
        }
    }

    fn own(&mut self, value: f64, word: Option<&str>) {
        self.number(value, word);
        self.series.push(value);
    }

    fn read(&mut self, format: &CellFormat, word: &str) {
        match format.read(word) {
            Some(value) => {
                self.own(value, None);
                if let Some(n) = format.decimals(word) {
                    let (least, most) = self.decimals.unwrap_or((n, n));
                    self.decimals = Some((least.min(n), most.max(n)));
                }
            }
            None if is_gap(word) => {}
            None => self.text(word),
        }
    }

    /// A form in which everything seen might be read: numbers with gaps, dates, prices. `commas`: the decimal point is
    /// more likely a comma.
    pub(crate) fn candidate(&self, commas: bool) -> Option<Guess> {
        let words: Vec<&str> = self.words.iter().map(|word| &**word).filter(|w| !is_gap(w)).collect();
        if words.is_empty() {
            let gaps = self.texts > 0 && self.numbers > 0;
            return match gaps {
                true => Some(Guess { format: CellFormat::PLAIN, reason: Reason::Fractions }),
                false => self.dates_as_numbers(),
            };
        }
        let found = guess(&words, commas)?;
        // A dose of 10 mg or 20 mg is a category.
        let levels = found.reason == Reason::Unit && are_levels(words.len(), self.texts);
        (!levels).then_some(found)
    }

    /// Dates such as 20200131, which are numbers at first sight.
    fn dates_as_numbers(&self) -> Option<Guess> {
        let dates =
            self.whole && self.texts == 0 && self.min >= 18_000_101.0 && self.max <= 22_001_231.0;
        let format = dates.then(|| "%Y%m%d".parse().ok()).flatten()?;
        Some(Guess { format, reason: Reason::Date })
    }

    /// The form of the numbers that were read, with the decimals they had.
    pub(crate) fn format(&self) -> Option<CellFormat> {
        let guess = self.reading.as_ref().filter(|guess| !guess.format.is_plain())?;
        Some(guess.format.clone().with_decimals(self.decimals))
    }

    /// Adds the numbers of another profile.
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

    /// Whether every value is −1 or 1, and −1 occurs.
    pub(crate) fn is_spin(&self) -> bool {
        self.is_numeric() && self.whole && self.min == -1.0 && self.max <= 1.0 && !self.zero
    }

    pub(crate) fn is_numeric(&self) -> bool {
        self.numbers > 0 && self.texts == 0
    }

    /// Whether single precision would lose digits that matter: large numbers, or small differences of them.
    pub(crate) fn needs_double(&self) -> bool {
        let (mean, deviation) = (self.series.mean().abs(), self.series.deviation());
        self.numbers > 0 && (self.min < -1e6 || self.max > 1e6 || mean > 1e3 * deviation)
    }

    /// Whether all words are words for false and true, and both occur.
    pub(crate) fn is_truth(&self) -> bool {
        let mut truths = self.words.iter().map(|word| truth(word));
        let Some(Some((pair, first))) = truths.next() else { return false };
        let rest: Vec<_> = truths.collect();
        rest.iter().all(|t| t.is_some_and(|(other, _)| other == pair))
            && rest.iter().flatten().any(|(_, yes)| *yes != first)
    }

    /// The words for false and true, one each.
    pub(crate) fn truth_words(&self) -> Vec<String> {
        let word = |wanted: bool| {
            let words = self.words.iter().filter(|w| truth(w).is_some_and(|(_, yes)| yes == wanted));
            words.min().map(ToString::to_string)
        };
        [false, true].into_iter().filter_map(word).collect()
    }

    /// Whether every word is made of digits alone.
    pub(crate) fn are_codes(&self) -> bool {
        !self.words.is_empty() && self.words.iter().all(|w| w.bytes().all(|byte| byte.is_ascii_digit()))
    }

    /// Whether the words have an order other than that of the alphabet.
    pub(crate) fn is_ordered(&self) -> bool {
        let mut words: Vec<String> = self.words.iter().map(ToString::to_string).collect();
        order::sort(&mut words)
    }

    /// The distinct values in order: numbers by size, words by their scale, the numbers in them, or the alphabet.
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
        if self.words.is_empty() && self.values.is_empty() && self.series.levels.len() < MANY {
            names.extend(self.series.levels.iter().map(ToString::to_string));
        }
        let numbers: Option<Vec<f64>> = names.iter().map(|name| name.parse().ok()).collect();
        match numbers {
            Some(numbers) => {
                let mut order: Vec<(f64, String)> = numbers.into_iter().zip(names).collect();
                order.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
                order.into_iter().map(|(_, name)| name).collect()
            }
            None => {
                order::sort(&mut names);
                names
            }
        }
    }
}
