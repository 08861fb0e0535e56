//! Why a column has its kind, in words.

use std::fmt;

/// Why a column has its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// A schema or a flag says so.
    Given,
    /// The file or the data set itself says so.
    Declared,
    /// Its name means the class of a row.
    LabelName,
    /// It has no entries.
    Empty,
    /// All entries are equal.
    Constant,
    /// 0 and 1.
    ZeroOne,
    /// −1 and 1.
    PlusMinusOne,
    /// Words for false and true.
    Truth,
    /// Two words.
    TwoWords,
    /// Few words that repeat.
    Words,
    /// Few words that repeat and have an order.
    OrderedWords,
    /// Digits with leading zeros, few of them.
    Codes,
    /// Words that differ from row to row.
    DistinctWords,
    /// Whole numbers that count the rows.
    RowNumber,
    /// Its name means an identifier, and its entries differ.
    Identifier,
    /// Few whole numbers that repeat and do not count from 0.
    Levels,
    /// Small whole numbers from about 0 on.
    SmallCounts,
    /// The year of the calendar.
    Year,
    /// Whole numbers far from 0, of many values, or large: measured rather than counted.
    WholeMeasure,
    /// Numbers with fractions.
    Fractions,
    /// Whole numbers from 0 on in an array, or in many columns that differ in their number.
    ArrayCounts,
    /// Other numbers in an array, or in many columns that differ in their number.
    ArrayNumbers,
    /// A date.
    Date,
    /// A date that could have the day before the month or behind it.
    AmbiguousDate,
    /// A time, perhaps with a date.
    Time,
    /// Sums of money.
    Money,
    /// Percentages.
    Percent,
    /// Numbers with a unit.
    Unit,
    /// Numbers with separators of thousands or with a decimal comma.
    Separators,
}

impl Reason {
    /// The reason in plain words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Given => "as the schema says",
            Self::Declared => "as the data say",
            Self::LabelName => "named like a class",
            Self::Empty => "no entries",
            Self::Constant => "always the same",
            Self::ZeroOne => "0 and 1",
            Self::PlusMinusOne => "-1 and 1",
            Self::Truth => "false and true",
            Self::TwoWords => "two words",
            Self::Words => "few words that repeat",
            Self::OrderedWords => "few words that repeat, in their order",
            Self::Codes => "codes with leading zeros",
            Self::DistinctWords => "words that differ from row to row",
            Self::RowNumber => "whole numbers that number the rows",
            Self::Identifier => "named like an identifier, and different in every row",
            Self::Levels => "few whole numbers that repeat, not counted from 0",
            Self::SmallCounts => "small whole numbers from about 0 on",
            Self::Year => "whole numbers, a year",
            Self::WholeMeasure => "whole numbers, measured rather than counted",
            Self::Fractions => "numbers with fractions",
            Self::ArrayCounts => "whole numbers from 0 on, many columns alike",
            Self::ArrayNumbers => "numbers, many columns alike",
            Self::Date => "a date, as days since 1970-01-01",
            Self::AmbiguousDate => "a date, read with the month first (the day first would fit as well)",
            Self::Time => "a time, in seconds",
            Self::Money => "sums of money",
            Self::Percent => "percentages",
            Self::Unit => "numbers with a unit",
            Self::Separators => "numbers with separators",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text())
    }
}

/// What was found out about a column: why it has its kind, and the range of its numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    /// Why it has its kind.
    pub reason: Reason,
    /// Its smallest and largest number, if it has numbers.
    pub range: Option<[f64; 2]>,
    /// The kind that it would most likely have otherwise, where there is one.
    pub instead: Option<crate::Kind>,
}
