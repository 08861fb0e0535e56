//! The rule that finds the kind of a column from its values, with the reason.
//!
//! | entries | kind |
//! |---|---|
//! | none, or all equal | ignore |
//! | 0 and 1, two words | binary |
//! | −1 and 1 | spin |
//! | words that repeat | categorical; ignore where they differ from row to row |
//! | dates, times, prices, percentages, separators | real, with a [`CellFormat`](crate::CellFormat) |
//! | fractions | real |
//! | whole numbers that number the rows, or are named so and differ | ignore |
//! | years | real, whole |
//! | at most 10 whole numbers that repeat and do not count from 0 (3, 4, 5 gears; stars 1 to 5) | categorical |
//! | whole numbers from at most 2 to at most 255, of at most 64 values | count |
//! | other whole numbers (ages from 18 on, blood pressure, income) | real, whole |
//!
//! Why these limits. A count model puts its probability on 0, 1, 2, … in a shape of one or two parameters: this suits
//! small numbers, but not values from 80 to 200, for which a real column whose values are rounded is the better model. A
//! few whole numbers that do not start at 0 are most often grades or sizes with arbitrary frequencies; a categorical unit
//! learns these, given 3 rows per level, and never produces a value that is not among them. Levels that begin with 0 and
//! 1 stay counts: the number of children, visits or failures could have been one higher.

use super::profile::{MANY, MAX_CATEGORIES, Profile, are_levels};
use crate::{Kind, Reason};

/// More distinct words than this are identifiers, unless the schema says otherwise.
pub const MAX_WORDS: usize = 256;
/// Fewest equal entries that make a constant column; two may be equal by chance.
const CONSTANT: usize = 3;
/// Upper limits for the largest and for the smallest value of a count column.
const MAX_COUNT: f64 = 255.0;
const FIRST_COUNT: f64 = 2.0;

/// The kind of a column that stands by itself, the reason, and what it might be instead. `identifies`: its name means an
/// identifier.
pub(crate) fn decide(profile: &Profile, identifies: bool, year: bool) -> (Kind, Reason, Option<Kind>) {
    let (kind, reason) = match (&profile.reading, profile.numbers, profile.texts) {
        (_, 0, 0) => (Kind::Ignore, Reason::Empty),
        (_, _, 1..) => words(profile),
        _ if profile.series.levels().len() == 1 && profile.numbers >= CONSTANT => {
            (Kind::Ignore, Reason::Constant)
        }
        (Some(guess), ..) if !guess.format.is_plain() => (Kind::Real, guess.reason),
        _ => numbers(profile, identifies, year),
    };
    (kind, reason, instead(profile, reason))
}

/// Whether a column with so many distinct words among its entries holds names or comments, which differ from row to row.
pub fn words_differ(distinct: usize, entries: usize) -> bool {
    distinct > MAX_WORDS
        || (entries >= 4 && distinct == entries)
        || (entries >= 10 && 2 * distinct > entries)
}

fn words(profile: &Profile) -> (Kind, Reason) {
    let distinct = profile.distinct();
    let differ = words_differ(distinct, profile.texts + profile.numbers);
    match distinct {
        0 | 1 => (Kind::Ignore, Reason::Constant),
        _ if profile.is_truth() => (Kind::Binary, Reason::Truth),
        _ if differ => (Kind::Ignore, Reason::DistinctWords),
        2 if profile.are_codes() => (Kind::Binary, Reason::Codes),
        2 => (Kind::Binary, Reason::TwoWords),
        _ if profile.are_codes() => (Kind::Categorical, Reason::Codes),
        _ if profile.is_ordered() => (Kind::Categorical, Reason::OrderedWords),
        _ => (Kind::Categorical, Reason::Words),
    }
}

fn numbers(profile: &Profile, identifies: bool, year: bool) -> (Kind, Reason) {
    let (min, max) = (profile.min, profile.max);
    if profile.is_binary() {
        return (Kind::Binary, Reason::ZeroOne);
    }
    if profile.is_spin() {
        return (Kind::Spin, Reason::PlusMinusOne);
    }
    if !profile.whole || !min.is_finite() || !max.is_finite() {
        return (Kind::Real, Reason::Fractions);
    }
    let series = &profile.series;
    let differ = match profile.numbers {
        n if n < 10 => profile.distinct() == n,
        n => 2 * profile.distinct() > n || profile.distinct() > MAX_CATEGORIES,
    };
    if identifies && differ && profile.numbers >= 2 {
        return (Kind::Ignore, Reason::Identifier);
    }
    let near = series.deviation() < 0.05 * series.mean();
    if min >= 1500.0 && max <= 2200.0 && (year || near) {
        return (Kind::Real, Reason::Year);
    }
    if series.numbers_rows(min, max) {
        return (Kind::Ignore, Reason::RowNumber);
    }
    let levels = series.levels();
    let counted = min == 0.0 && levels.contains(&1.0);
    if are_levels(levels.len(), profile.numbers) && !counted {
        return (Kind::Categorical, Reason::Levels);
    }
    match (0.0..=FIRST_COUNT).contains(&min) && max <= MAX_COUNT && levels.len() < MANY {
        true => (Kind::Count, Reason::SmallCounts),
        false => (Kind::Real, Reason::WholeMeasure),
    }
}

/// The kind of numbers in an array, or in many columns that differ in their number: one kind for all of them.
pub(crate) fn alike(profile: &Profile) -> (Kind, Reason, Option<Kind>) {
    let counts = profile.whole && profile.min >= 0.0 && profile.max <= f64::from(u32::MAX);
    match profile {
        profile if profile.texts > 0 || profile.numbers == 0 => decide(profile, false, false),
        profile if profile.is_binary() => (Kind::Binary, Reason::ZeroOne, Some(Kind::Categorical)),
        profile if profile.is_spin() => (Kind::Spin, Reason::PlusMinusOne, Some(Kind::Categorical)),
        _ if counts => (Kind::Count, Reason::ArrayCounts, Some(Kind::Real)),
        _ => (Kind::Real, Reason::ArrayNumbers, None),
    }
}

/// What a column with this reason would most likely be if the rule were wrong.
fn instead(profile: &Profile, reason: Reason) -> Option<Kind> {
    let counts = profile.min >= 0.0 && profile.max <= f64::from(u32::MAX);
    match reason {
        Reason::Empty | Reason::Constant => None,
        Reason::RowNumber | Reason::Identifier | Reason::SmallCounts => Some(Kind::Real),
        Reason::Levels | Reason::Year | Reason::WholeMeasure if counts => Some(Kind::Count),
        Reason::Levels => Some(Kind::Real),
        Reason::ZeroOne | Reason::PlusMinusOne | Reason::DistinctWords => Some(Kind::Categorical),
        Reason::Truth | Reason::TwoWords | Reason::Words | Reason::OrderedWords => Some(Kind::Label),
        _ => Some(Kind::Ignore),
    }
}

/// Whether a name means an identifier: `id`, `user_id`, `PassengerId`, `index`, `Unnamed: 0`.
pub(crate) fn names_identifier(name: &str) -> bool {
    const WORDS: [&str; 16] = [
        "id",
        "ids",
        "index",
        "idx",
        "row",
        "rowid",
        "rownames",
        "rowname",
        "rownum",
        "rownumber",
        "uuid",
        "guid",
        "key",
        "#",
        "nr",
        "no",
    ];
    let lower = name.trim().to_lowercase();
    let bare = lower.replace(['_', ' ', '.', '-'], "");
    let ends = ["_id", " id", ".id", "-id"].iter().any(|end| lower.ends_with(end));
    let camel = ["Id", "ID"].iter().any(|end| {
        name.strip_suffix(end).is_some_and(|stem| stem.ends_with(|c: char| c.is_lowercase()))
    });
    lower.is_empty() || lower.starts_with("unnamed:") || ends || camel || WORDS.contains(&bare.as_str())
}

/// Whether a name means a year: `year`, `yr`, `model_year`, `date`.
pub(crate) fn names_year(name: &str) -> bool {
    let lower = name.to_lowercase();
    lower.split(|c: char| !c.is_alphabetic()).any(|word| ["year", "years", "yr", "date"].contains(&word))
        || lower.ends_with("year")
}
