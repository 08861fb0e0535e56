//! Guesses how the entries of a column are written: as numbers with separators, prices, dates, …

use crate::format::{CellFormat, Decimals, Item, Letters, MOST_DECIMALS, Moment, Number};
use crate::schema::Reason;
use crate::words::is_code;

/// The form of a column's words, and the reason for the choice.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Guess {
    pub(crate) format: CellFormat,
    pub(crate) reason: Reason,
}

impl Guess {
    /// The form that a schema gives.
    pub(crate) fn given(format: &CellFormat) -> Self {
        Self { format: format.clone(), reason: Reason::Given }
    }
}

/// Words that are compared to choose among several ways of writing the same values.
const SHOWN: usize = 1000;

/// The form in which all `words` are written, if it is one of numbers or dates. `decimal_comma`: commas are more likely
/// decimal points than separators of thousands, as where entries are separated by semicolons.
pub(crate) fn guess(words: &[&str], decimal_comma: bool) -> Option<Guess> {
    let first = words.first()?;
    if !first.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    moment(words).or_else(|| number(words, decimal_comma))
}

/// Whether a single word reads as a date, a price or the like, which no name of a column does.
pub(crate) fn is_value(word: &str) -> bool {
    guess(&[word], false).is_some_and(|guess| guess.reason != Reason::Unit)
}

const DATES: [&str; 15] = [
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%d.%m.%Y",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%m-%d-%Y",
    "%d-%m-%Y",
    "%b %d, %Y",
    "%b %d %Y",
    "%d %b %Y",
    "%d-%b-%Y",
    "%d/%b/%Y",
    "%Y%m%d",
    "%Y-%m",
];
/// Years of two digits. With dashes between numbers they would be taken for codes and the like too often.
const SHORT_DATES: [&str; 9] = [
    "%d/%m/%y",
    "%m/%d/%y",
    "%d.%m.%y",
    "%m.%d.%y",
    "%d-%b-%y",
    "%d %b %y",
    "%d/%b/%y",
    "%b %d, %y",
    "%b %d %y",
];
const TIMES: [&str; 4] = ["%H:%M:%S%.1f", "%H:%M", "%I:%M:%S %p", "%I:%M %p"];
const ZONES: [&str; 3] = ["", "%:z", " %:z"];

/// All patterns of dates, with times behind them or without; times alone are among those of four digits.
fn patterns(dates: &[&str]) -> Vec<Moment> {
    let mut patterns: Vec<String> = dates.iter().map(ToString::to_string).collect();
    for time in TIMES {
        patterns.push(time.into());
        for (date, between) in dates.iter().flat_map(|date| ["T", " "].map(|between| (date, between))) {
            patterns.extend(ZONES.map(|zone| format!("{date}{between}{time}{zone}")));
        }
    }
    patterns.iter().filter_map(|pattern| Moment::from_pattern(pattern)).collect()
}

/// The pattern that reads all words; of two that differ in day and month, the one with the month first.
///
/// Years of two digits are believed where the month is named, or where some day is above 12, so that one order alone reads
/// all words: `10/11/12` and `1.2.10` may be numbers of sections or versions, and stay words.
fn moment(words: &[&str]) -> Option<Guess> {
    let reads = |moment: &Moment| words.iter().all(|word| moment.read(word).is_some());
    // Most patterns fail at the first word.
    let fitting = |dates: &[&str]| -> Vec<Moment> {
        let moments = patterns(dates).into_iter();
        moments.filter(|m| m.read(words[0]).is_some()).filter(reads).collect()
    };
    let mut fits = fitting(&DATES);
    if fits.is_empty() {
        fits = fitting(&SHORT_DATES);
        let named = |m: &Moment| m.items().iter().any(|item| matches!(item, Item::MonthName(_)));
        if fits.len() > 1 && !fits.iter().all(named) {
            return None;
        }
    }
    let first = fits.first()?;
    let day = |moment: &Moment| moment.items().iter().position(|item| matches!(item, Item::Day { .. }));
    let ambiguous = fits.iter().any(|other| day(other) != day(first));
    let reason = match (ambiguous, first.has_time()) {
        (true, _) => Reason::AmbiguousDate,
        (_, true) => Reason::Time,
        _ => Reason::Date,
    };
    let format = CellFormat::from(as_written(first, &words[..words.len().min(SHOWN)]));
    Some(Guess { format, reason })
}

/// The variant of the pattern that reproduces most of the words: with or without leading zeros, by the length of
/// fractions, the names of months, and a zone that is the same everywhere.
fn as_written(moment: &Moment, words: &[&str]) -> Moment {
    let digits = words
        .iter()
        .filter_map(|word| word.split(':').nth(2)?.split_once(['.', ',']))
        .map(|(_, behind)| behind.bytes().take_while(u8::is_ascii_digit).count().min(6) as u8);
    let digits = digits.max().unwrap_or(0);
    let mut variants = Vec::new();
    for padded in [true, false] {
        for letters in [Letters::Short, Letters::Long, Letters::ShortCapitals] {
            for hours in [true, false] {
                variants.push(moment.with_items(|item| match item {
                    Item::Month { .. } => Item::Month { padded },
                    Item::Day { .. } => Item::Day { padded },
                    Item::Hour { .. } => Item::Hour { padded: hours },
                    Item::HalfHour { .. } => Item::HalfHour { padded: hours },
                    Item::Fraction(_) => Item::Fraction(digits.max(1)),
                    Item::MonthName(_) => Item::MonthName(letters),
                    other => other,
                }));
            }
        }
    }
    let zone = words[0].rfind(['Z', '+', '-']).filter(|_| moment.items().contains(&Item::Offset));
    if let Some(zone) = zone.map(|at| &words[0][at..])
        && words.iter().all(|word| word.ends_with(zone))
    {
        let fixed = |m: &Moment| Moment::from_pattern(&m.to_string().replace("%:z", zone));
        variants = variants.iter().filter_map(fixed).collect();
    }
    if digits == 0 {
        let whole = |m: &Moment| Moment::from_pattern(&m.to_string().replace("%.1f", ""));
        variants = variants.iter().filter_map(whole).collect();
    }
    let same = |m: &Moment| {
        words.iter().filter(|word| m.read(word).is_some_and(|x| m.write(x) == **word)).count()
    };
    // The first of the best.
    variants.into_iter().rev().max_by_key(same).unwrap_or_else(|| moment.clone())
}

const CURRENCIES: [&str; 24] = [
    "$", "€", "£", "¥", "₹", "₽", "₩", "₺", "₴", "US$", "USD", "EUR", "GBP", "JPY", "CHF", "CAD", "AUD",
    "CNY", "INR", "kr", "zł", "Kč", "R$", "Fr.",
];
/// Units that may follow a number without a space.
const UNITS: [&str; 20] = [
    "°", "°C", "°F", "kg", "g", "mg", "km", "m", "cm", "mm", "ml", "l", "s", "ms", "h", "min", "lb",
    "lbs", "kWh", "x",
];

/// Numbers with the same sign of a currency, percent sign or unit around them, or with separators.
fn number(words: &[&str], decimal_comma: bool) -> Option<Guess> {
    if words.iter().any(|word| is_code(word)) {
        return None;
    }
    let (prefix, suffix) = affixes(words[0])?;
    let (before, behind) = (prefix.trim(), suffix.trim());
    let reason = match (before, behind) {
        ("", "") => Reason::Separators,
        ("", "%" | "‰") => Reason::Percent,
        ("", unit) if CURRENCIES.contains(&unit) => Reason::Money,
        (unit, "") if CURRENCIES.contains(&unit) => Reason::Money,
        ("", unit) if UNITS.contains(&unit) || is_unit(suffix) => Reason::Unit,
        _ => return None,
    };
    let commas: &[(Option<char>, char)] = match decimal_comma {
        true => &[(None, ','), (Some('.'), ','), (Some(','), '.')],
        false => &[(Some(','), '.'), (None, ','), (Some('.'), ',')],
    };
    let money = (reason == Reason::Money).then_some((Some('.'), ','));
    let plain = [(None, '.')];
    let spaces = [' ', '\u{a0}', '\u{202f}', '\'', '’'].map(|c| [(Some(c), '.'), (Some(c), ',')]);
    let all = money.iter().chain(&plain).chain(commas).chain(spaces.iter().flatten());
    for &(group, point) in all {
        let (prefix, suffix) = (prefix.to_owned(), suffix.to_owned());
        let number = Number { prefix, suffix, group, point, decimals: Decimals::AtMost(MOST_DECIMALS) };
        let same = |word: &&str| number.read(word).is_some() && is_same(word, before, behind);
        if words.iter().all(same) {
            // A separator that does not occur is not written.
            let seen = |separator: char| words.iter().any(|word| word.contains(separator));
            let bare = match group {
                Some(group) => !seen(group),
                None if point == ',' => !seen(','),
                None => reason == Reason::Separators,
            };
            if bare {
                continue;
            }
            let seen = || words.iter().map(|word| number.decimals_of(word));
            let decimals = Some((seen().min().unwrap_or(0), seen().max().unwrap_or(0)));
            return Some(Guess { format: CellFormat::from(number).with_decimals(decimals), reason });
        }
    }
    None
}

/// Whether a word has these affixes, or none: one entry without its sign does not make another column.
fn is_same(word: &str, before: &str, behind: &str) -> bool {
    affixes(word)
        .is_some_and(|(p, s)| (p.trim() == before && s.trim() == behind) || p.is_empty() && s.is_empty())
}

/// A space and letters, as in `5 km`.
fn is_unit(suffix: &str) -> bool {
    suffix.starts_with(' ') && suffix.trim().chars().all(|c| c.is_alphabetic() || "/²³µ".contains(c))
}

/// The text before the first and after the last digit, without the sign.
fn affixes(word: &str) -> Option<(&str, &str)> {
    let signs = ['-', '+', '\u{2212}'];
    let first = word.find(|c: char| c.is_ascii_digit())?;
    let last = word.rfind(|c: char| c.is_ascii_digit())? + 1;
    let before = word[..first].trim_start_matches(signs).trim_end_matches(signs);
    // A number may begin with its point.
    let before = before.strip_suffix(['.', ',']).unwrap_or(before);
    Some((before, &word[last..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(words: &[&str]) -> Option<String> {
        guess(words, false).map(|guess| guess.format.to_string())
    }

    /// Words, the form, and every word comes back from its number.
    #[test]
    fn forms_are_recognised_and_written_back() {
        for (words, expected) in [
            (&["2020-01-05", "1999-12-31"][..], "%Y-%m-%d"),
            (&["2020/01/05"], "%Y/%m/%d"),
            (&["05.01.2020", "31.12.1999"], "%d.%m.%Y"),
            (&["1/5/2020", "12/31/1999"], "%-m/%-d/%Y"),
            (&["05/01/2020", "31/12/1999"], "%d/%m/%Y"),
            (&["Jan 5, 2020", "May 12, 2021"], "%b %-d, %Y"),
            (&["January 5, 2020", "May 12, 2021"], "%B %-d, %Y"),
            (&["5-Jan-2020", "12-May-2021"], "%-d-%b-%Y"),
            (&["05-JAN-2020"], "%d-%^b-%Y"),
            (&["20200105", "19991231"], "%Y%m%d"),
            (&["2020-01", "1999-12"], "%Y-%m"),
            (&["2020-01-05T10:20:30Z", "2020-01-05T00:00:00Z"], "%Y-%m-%dT%H:%M:%SZ"),
            (&["2020-01-05 10:20:30.125", "2020-01-05 00:00:00.000"], "%Y-%m-%d %H:%M:%S%.3f"),
            (&["2020-01-05T10:20:30+02:00"], "%Y-%m-%dT%H:%M:%S+02:00"),
            (&["2020-01-05 10:20"], "%Y-%m-%d %H:%M"),
            (&["1/5/2020 3:04 PM", "12/13/2020 11:59 AM"], "%-m/%-d/%Y %-I:%M %p"),
            (&["10:20", "23:59"], "%H:%M"),
            (&["31/12/99", "01/02/03"], "%d/%m/%y"),
            (&["12/31/99", "1/2/03"], "%-m/%-d/%y"),
            (&["31.12.99", "01.02.68"], "%d.%m.%y"),
            (&["1-Jan-99", "12-May-21"], "%-d-%b-%y"),
            (&["Jan 5, 20"], "%b %-d, %y"),
            (&["31/12/99 10:20"], "%d/%m/%y %H:%M"),
            (&["$1,234.50", "$3.20", "-$0.99"], "$1,234.56"),
            (&["1.234,50 €", "3,20 €"], "1.234,56 €"),
            (&["€ 3.20", "€ 17.00"], "€ 1234.56"),
            (&["12%", "7%", "-3%"], "1234%"),
            (&["12.5 %", "7 %"], "1234.# %"),
            (&["1,234", "999", "1,234,567"], "1,234"),
            (&["3,5", "0,25", "-7"], "1234,##"),
            (&["1 234,5", "12,0"], "1 234,5"),
            (&["CHF 1'234.50"], "CHF 1'234.56"),
            (&["5 km", "12 km"], "1234 km"),
            (&["10kg", "7.5kg"], "1234.#kg"),
        ] {
            assert_eq!(form(words).as_deref(), Some(expected), "{words:?}");
            let format: CellFormat = expected.parse().unwrap();
            for word in words {
                assert_eq!(format.write(format.read(word).unwrap()), *word, "{expected}");
            }
        }
    }

    #[test]
    fn codes_and_words_are_no_numbers() {
        for words in [
            &["A12"][..],
            &["12A"],
            &["0-9", "10-19"],
            &["1 - strongly disagree"],
            &["12-34-56"],
            // Days of a year of two digits, if anything, but the order cannot be told; sort codes with dashes look like them.
            &["10/11/12", "01/02/03"],
            &["1.2.10"],
            &["31-12-99"],
            &["1.2.3"],
            &["2020-02-30"],
            &["Q1 2020"],
            &["555-1234"],
            &["$1", "€2"],
            &["5 km", "3 kg"],
            &["10 Downing Street"],
            &["1,23,456"],
            &["v2"],
        ] {
            assert_eq!(form(words), None, "{words:?}");
        }
    }

    #[test]
    fn commas_follow_the_separator_of_entries() {
        let words = ["1,250", "3,125"];
        assert_eq!(guess(&words, true).unwrap().format.to_string(), "1234,567");
        assert_eq!(guess(&words, false).unwrap().format.to_string(), "1,234");
        assert_eq!(guess(&["1,250,000", "3,125"], true).unwrap().format.to_string(), "1,234");
        // Which is the day cannot be told.
        assert_eq!(guess(&["01/02/2020"], false).unwrap().reason, Reason::AmbiguousDate);
    }
}
