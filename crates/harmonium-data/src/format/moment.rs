//! Dates and times by pattern: text to days or seconds since 1970-01-01, and back.

use std::fmt;

use super::calendar::{civil_from_days, days_from_civil, days_of_month};

/// One piece of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Literal(char),
    /// Four digits.
    Year,
    /// Two digits: 69 to 99 are 1969 to 1999, 00 to 68 are 2000 to 2068, as in POSIX.
    ShortYear,
    /// One or two digits; without a leading zero when written, if not `padded`.
    Month {
        padded: bool,
    },
    Day {
        padded: bool,
    },
    /// The hour from 0 to 23.
    Hour {
        padded: bool,
    },
    /// The hour from 1 to 12.
    HalfHour {
        padded: bool,
    },
    Minute,
    Second,
    /// A point and so many digits; any number of them, or none, is read.
    Fraction(u8),
    /// AM or PM.
    Noon,
    /// An English month, read in any case, long or short.
    MonthName(Letters),
    /// The distance from universal time, `+02:00`.
    Offset,
}

/// How the name of a month is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Letters {
    Short,
    Long,
    ShortCapitals,
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAY: f64 = 86_400.0;
/// 0001-01-01 and 9999-12-31 as days: the range of four-digit years.
const DAYS: [i64; 2] = [-719_162, 2_932_896];
/// 1969-01-01 and 2068-12-31: the range of two-digit years.
const SHORT_DAYS: [i64; 2] = [-365, 36_159];
/// Two-digit years from here on are in the twentieth century.
const PIVOT: i64 = 69;

/// The pattern of a date, a time or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    items: Vec<Item>,
}

/// The values of the pieces of an entry.
#[derive(Clone, Copy)]
struct Fields {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    fraction: f64,
    afternoon: Option<bool>,
    offset: i64,
}

impl Moment {
    /// Whether numbers are seconds, not days.
    pub(crate) fn has_time(&self) -> bool {
        self.items.iter().any(|item| matches!(item, Item::Hour { .. } | Item::HalfHour { .. }))
    }

    fn has_date(&self) -> bool {
        self.items.contains(&Item::Year) || self.has_short_year()
    }

    /// Whether years have two digits.
    pub(crate) fn has_short_year(&self) -> bool {
        self.items.contains(&Item::ShortYear)
    }

    pub(crate) fn items(&self) -> &[Item] {
        &self.items
    }

    pub(crate) fn with_items(&self, change: impl Fn(Item) -> Item) -> Self {
        Self { items: self.items.iter().map(|item| change(*item)).collect() }
    }

    pub(crate) fn read(&self, word: &str) -> Option<f64> {
        let mut rest = word;
        let mut fields = Fields {
            year: 1970,
            month: 1,
            day: 1,
            hour: 0,
            minute: 0,
            second: 0,
            fraction: 0.0,
            afternoon: None,
            offset: 0,
        };
        for item in &self.items {
            take(*item, &mut rest, &mut fields)?;
        }
        if !rest.is_empty() || !(1..=days_of_month(fields.year, fields.month)).contains(&fields.day) {
            return None;
        }
        if let Some(afternoon) = fields.afternoon {
            fields.hour = fields.hour % 12 + if afternoon { 12 } else { 0 };
        }
        let days = days_from_civil(fields.year, fields.month, fields.day);
        let seconds = fields.hour * 3600 + fields.minute * 60 + fields.second - fields.offset;
        Some(match self.has_time() {
            true => (days * 86_400 + seconds) as f64 + fields.fraction,
            false => days as f64,
        })
    }

    pub(crate) fn write(&self, value: f64) -> String {
        let step = self.resolution();
        let (days, seconds) = match self.has_time() {
            false => (value.round(), 0.0),
            true => {
                let rounded = (value / step).round() * step;
                ((rounded / DAY).floor(), rounded.rem_euclid(DAY))
            }
        };
        // Half a month later, the nearest first of a month is that of the same month.
        let shift = if self.has_date() && !self.items.iter().any(|i| matches!(i, Item::Day { .. })) {
            14
        } else {
            0
        };
        let [first, last] = if self.has_short_year() { SHORT_DAYS } else { DAYS };
        let (year, month, day) = civil_from_days((days as i64).clamp(first, last - shift) + shift);
        // A rounding error must not make the number of smallest units one less.
        let whole = (seconds + 0.5 * step.min(1e-6)).floor();
        let (hour, minute, second) =
            ((whole / 3600.0) as i64 % 24, (whole / 60.0) as i64 % 60, whole as i64 % 60);
        let two = |n: i64, padded: bool| if padded { format!("{n:02}") } else { n.to_string() };
        let piece = |item: &Item| match *item {
            Item::Literal(c) => c.to_string(),
            Item::Year => format!("{year:04}"),
            Item::ShortYear => two(year % 100, true),
            Item::Month { padded } => two(month, padded),
            Item::Day { padded } => two(day, padded),
            Item::Hour { padded } => two(hour, padded),
            Item::HalfHour { padded } => two((hour + 11) % 12 + 1, padded),
            Item::Minute => two(minute, true),
            Item::Second => two(second, true),
            Item::Fraction(n) => {
                let units = 10f64.powi(i32::from(n));
                let fraction = ((seconds - whole).max(0.0) * units).round().min(units - 1.0);
                format!(".{:0width$}", fraction as u64, width = usize::from(n))
            }
            Item::Noon => if hour < 12 { "AM" } else { "PM" }.into(),
            Item::MonthName(letters) => month_name(month, letters),
            Item::Offset => "+00:00".into(),
        };
        self.items.iter().map(piece).collect()
    }

    /// Seconds of the smallest piece.
    fn resolution(&self) -> f64 {
        let finest = self.items.iter().map(|item| match *item {
            Item::Fraction(n) => 10f64.powi(-i32::from(n)),
            Item::Second => 1.0,
            Item::Minute => 60.0,
            Item::Hour { .. } | Item::HalfHour { .. } => 3600.0,
            _ => DAY,
        });
        finest.fold(DAY, f64::min)
    }

    /// The pattern in the letters of `strftime`; it must have a year and a month, or an hour.
    pub(crate) fn from_pattern(pattern: &str) -> Option<Self> {
        let mut items = Vec::new();
        let mut rest = pattern;
        while let Some(c) = rest.chars().next() {
            let found = ITEMS.iter().find(|(letters, _)| rest.starts_with(letters));
            if let Some((letters, item)) = found {
                items.push(*item);
                rest = &rest[letters.len()..];
            } else if let Some(digits) = rest.strip_prefix("%.") {
                let n = digits.chars().next()?.to_digit(10).filter(|n| (1..=9).contains(n))?;
                items.push(Item::Fraction(n as u8));
                rest = digits[1..].strip_prefix('f')?;
            } else if c == '%' {
                return None;
            } else {
                items.push(Item::Literal(c));
                rest = &rest[c.len_utf8()..];
            }
        }
        let moment = Self { items };
        let month = moment.items.iter().any(|i| matches!(i, Item::Month { .. } | Item::MonthName(_)));
        (moment.has_date() && month || moment.has_time()).then_some(moment)
    }
}

/// The letters of the pieces, those that begin like others first.
const ITEMS: [(&str, Item); 17] = [
    ("%Y", Item::Year),
    ("%y", Item::ShortYear),
    ("%m", Item::Month { padded: true }),
    ("%-m", Item::Month { padded: false }),
    ("%d", Item::Day { padded: true }),
    ("%-d", Item::Day { padded: false }),
    ("%H", Item::Hour { padded: true }),
    ("%-H", Item::Hour { padded: false }),
    ("%I", Item::HalfHour { padded: true }),
    ("%-I", Item::HalfHour { padded: false }),
    ("%M", Item::Minute),
    ("%S", Item::Second),
    ("%p", Item::Noon),
    ("%b", Item::MonthName(Letters::Short)),
    ("%B", Item::MonthName(Letters::Long)),
    ("%^b", Item::MonthName(Letters::ShortCapitals)),
    ("%:z", Item::Offset),
];

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for item in &self.items {
            match item {
                Item::Literal(c) => write!(f, "{c}")?,
                Item::Fraction(n) => write!(f, "%.{n}f")?,
                item => {
                    let letters = ITEMS.iter().find(|(_, other)| other == item);
                    f.write_str(letters.map_or("", |(letters, _)| letters))?;
                }
            }
        }
        Ok(())
    }
}

/// Takes one piece off the front of `rest`.
fn take(item: Item, rest: &mut &str, fields: &mut Fields) -> Option<()> {
    match item {
        Item::Literal(c) => *rest = rest.strip_prefix(c)?,
        Item::Year => fields.year = digits(rest, 4, 4)?,
        Item::ShortYear => {
            let year = digits(rest, 2, 2)?;
            fields.year = if year < PIVOT { 2000 + year } else { 1900 + year };
        }
        Item::Month { .. } => fields.month = within(digits(rest, 1, 2)?, 1, 12)?,
        Item::Day { .. } => fields.day = within(digits(rest, 1, 2)?, 1, 31)?,
        Item::Hour { .. } => fields.hour = within(digits(rest, 1, 2)?, 0, 23)?,
        Item::HalfHour { .. } => fields.hour = within(digits(rest, 1, 2)?, 1, 12)?,
        Item::Minute => fields.minute = within(digits(rest, 2, 2)?, 0, 59)?,
        // A leap second is read as the second after it.
        Item::Second => fields.second = within(digits(rest, 2, 2)?, 0, 60)?,
        Item::Fraction(_) => {
            if let Some(behind) = rest.strip_prefix(['.', ',']) {
                let n = behind.bytes().take_while(u8::is_ascii_digit).count();
                fields.fraction = format!("0.{}", &behind[..n]).parse().ok().filter(|_| n > 0)?;
                *rest = &behind[n..];
            }
        }
        Item::Noon => {
            let mark = rest.get(..2)?;
            fields.afternoon = match () {
                () if mark.eq_ignore_ascii_case("am") => Some(false),
                () if mark.eq_ignore_ascii_case("pm") => Some(true),
                () => return None,
            };
            *rest = &rest[2..];
        }
        Item::MonthName(_) => {
            let n = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
            let (name, behind) = rest.split_at(n);
            let named = |month: &&str| {
                name.eq_ignore_ascii_case(month) || n == 3 && name.eq_ignore_ascii_case(&month[..3])
            };
            fields.month = MONTHS.iter().position(named)? as i64 + 1;
            *rest = behind;
        }
        Item::Offset => fields.offset = offset(rest)?,
    }
    Some(())
}

/// Seconds east of universal time, of `Z`, `+02:00`, `+0200` or `+02` at the front.
fn offset(rest: &mut &str) -> Option<i64> {
    if let Some(behind) = rest.strip_prefix(['Z', 'z']) {
        *rest = behind;
        return Some(0);
    }
    let sign = match rest.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    *rest = &rest[1..];
    let hours = within(digits(rest, 2, 2)?, 0, 23)?;
    *rest = rest.strip_prefix(':').unwrap_or(rest);
    let minutes = if rest.is_empty() { 0 } else { within(digits(rest, 2, 2)?, 0, 59)? };
    Some(sign * (hours * 3600 + minutes * 60))
}

/// The number that `least` to `most` digits at the front make.
fn digits(rest: &mut &str, least: usize, most: usize) -> Option<i64> {
    let n = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
    let value = rest[..n].parse().ok().filter(|_| n >= least)?;
    *rest = &rest[n..];
    Some(value)
}

fn within(value: i64, low: i64, high: i64) -> Option<i64> {
    (low..=high).contains(&value).then_some(value)
}

fn month_name(month: i64, letters: Letters) -> String {
    let name = MONTHS[(month - 1) as usize];
    match letters {
        Letters::Long => name.into(),
        Letters::Short => name[..3].into(),
        Letters::ShortCapitals => name[..3].to_uppercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Moment {
        Moment::from_pattern(text).unwrap()
    }

    #[test]
    fn known_moments() {
        for (form, word, value) in [
            ("%Y-%m-%d", "2000-03-01", 11_017.0),
            ("%Y-%m-%dT%H:%M:%SZ", "2001-09-09T01:46:40Z", 1e9),
            ("%Y-%m-%dT%H:%M:%S%.1f%:z", "2001-09-09T03:46:40.5+02:00", 1e9 + 0.5),
            ("%b %-d, %Y", "Jan 5, 2020", 18_266.0),
            ("%I:%M %p", "12:30 AM", 1800.0),
            ("%I:%M %p", "12:30 pm", 45_000.0),
            ("%Y-%m", "1970-02", 31.0),
            ("%d/%m/%y", "31/12/99", 10_956.0),
            ("%d/%m/%y", "01/01/69", -365.0),
            ("%d/%m/%y", "31/12/68", 36_159.0),
            ("%-d-%b-%y", "1-Jan-00", 10_957.0),
        ] {
            assert_eq!(pattern(form).read(word), Some(value), "{word}");
        }
        for (form, word) in [
            ("%Y-%m-%d", "2001-02-29"),
            ("%Y-%m-%d", "2000-13-01"),
            ("%Y-%m-%d", "2000-01-01x"),
            ("%Y-%m-%d", "00-01-01"),
            ("%H:%M", "24:00"),
            ("%b %d, %Y", "Foo 5, 2020"),
            ("%d/%m/%y", "31/12/1999"),
            ("%d/%m/%y", "31/12/9"),
            ("%I:%M %p", "13:00 PM"),
        ] {
            assert_eq!(pattern(form).read(word), None, "{word}");
        }
    }

    #[test]
    fn what_is_written_is_the_nearest() {
        assert_eq!(pattern("%Y-%m").write(31.0 + 13.0), "1970-02");
        assert_eq!(pattern("%Y-%m").write(31.0 - 10.0), "1970-02");
        assert_eq!(pattern("%H:%M").write(-60.0), "23:59");
        assert_eq!(pattern("%H:%M:%S%.3f").write(59.9996), "00:01:00.000");
        assert_eq!(pattern("%Y-%m-%d %H:%M:%S").write(-0.4), "1970-01-01 00:00:00");
        assert_eq!(pattern("%Y-%m-%d").write(1e300), "9999-12-31");
        assert_eq!(pattern("%Y-%m-%d").write(f64::NEG_INFINITY), "0001-01-01");
        // Two digits cover one century: a year outside of it is not written as if it were inside.
        assert_eq!(pattern("%d/%m/%y").write(-366.0), "01/01/69");
        assert_eq!(pattern("%d/%m/%y").write(36_160.0), "31/12/68");
    }
}
