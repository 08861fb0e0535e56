//! How the entries of a column are written: text to number and back.

mod calendar;
mod moment;
mod number;

use std::fmt;
use std::str::FromStr;

pub(crate) use moment::{Item, Letters, Moment};
pub(crate) use number::{Decimals, MOST_DECIMALS, Number};

/// How the numbers of a column are written as text, and read back.
///
/// Its own text form is an example, a number written in that way (`1,234.56`, `$1,234.56`, `1234%`, `1234,##` with at most two
/// decimals), `whole`, or the pattern of a date or time in the letters of `strftime` (`%Y-%m-%d`, `%-m/%-d/%Y`,
/// `%Y-%m-%dT%H:%M:%S%.3fZ`):
///
/// ```
/// use harmonium_data::CellFormat;
///
/// let date: CellFormat = "%d.%m.%Y".parse()?;
/// assert_eq!(date.read("05.01.2020"), Some(18_266.0)); // days since 1970-01-01
/// assert_eq!(date.write(18_266.3), "05.01.2020");
/// let price: CellFormat = "$1,234.56".parse()?;
/// assert_eq!(price.read("$12,000.5"), Some(12_000.5));
/// assert_eq!(price.write(-1250.0), "-$1,250.00");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellFormat(Notation);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Notation {
    #[default]
    Plain,
    Number(Number),
    Moment(Moment),
}

impl CellFormat {
    /// Numbers as programs write them, with all their digits.
    pub const PLAIN: Self = Self(Notation::Plain);
    /// Whole numbers.
    pub const WHOLE: Self = Self(Notation::Number(Number::WHOLE));

    /// Whether numbers are written as programs write them, with all their digits.
    pub fn is_plain(&self) -> bool {
        self.0 == Notation::Plain
    }

    /// Whether a plain number reads as itself.
    pub(crate) fn reads_plain(&self) -> bool {
        self.is_plain() || *self == Self::WHOLE
    }

    /// The number that `word` stands for; `None` if it is not written in this way.
    pub fn read(&self, word: &str) -> Option<f64> {
        let word = word.trim();
        match &self.0 {
            Notation::Number(number) if *self != Self::WHOLE => number.read(word),
            Notation::Moment(moment) => moment.read(word),
            _ => crate::words::lenient_number(word),
        }
    }

    /// `value` in this form, rounded to what can be written.
    pub fn write(&self, value: f64) -> String {
        match &self.0 {
            Notation::Number(number) => number.write(value),
            Notation::Moment(moment) => moment.write(value),
            Notation::Plain => value.to_string(),
        }
    }

    /// The nearest number that can be written in this form.
    pub fn nearest(&self, value: f64) -> f64 {
        match self.is_plain() {
            true => value,
            false => self.read(&self.write(value)).unwrap_or(value),
        }
    }

    /// An entry in this form, for messages.
    pub(crate) fn example(&self) -> String {
        match &self.0 {
            Notation::Moment(_) => format!("{self} as in {}", self.write(1_580_474_096.0 / self.unit())),
            _ => self.to_string(),
        }
    }

    /// Seconds per unit of the numbers: a day for dates, one second for times.
    fn unit(&self) -> f64 {
        match &self.0 {
            Notation::Moment(moment) if !moment.has_time() => 86_400.0,
            _ => 1.0,
        }
    }

    /// The same form with as many decimals as `words` of it had, at least and at most.
    pub(crate) fn with_decimals(self, seen: Option<(u8, u8)>) -> Self {
        match (self.0, seen) {
            (Notation::Number(number), Some((least, most))) => {
                let decimals =
                    if least == most { Decimals::Exactly(most) } else { Decimals::AtMost(most) };
                Self(Notation::Number(Number { decimals, ..number }))
            }
            (form, _) => Self(form),
        }
    }

    /// Decimals of a word of this form; `None` where they do not matter.
    pub(crate) fn decimals(&self, word: &str) -> Option<u8> {
        match &self.0 {
            Notation::Number(number) => Some(number.decimals_of(word)),
            _ => None,
        }
    }
}

impl From<Number> for CellFormat {
    fn from(number: Number) -> Self {
        Self(Notation::Number(number))
    }
}

impl From<Moment> for CellFormat {
    fn from(moment: Moment) -> Self {
        Self(Notation::Moment(moment))
    }
}

impl fmt::Display for CellFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Notation::Plain => f.write_str("plain"),
            _ if *self == Self::WHOLE => f.write_str("whole"),
            Notation::Number(number) => number.fmt(f),
            Notation::Moment(moment) => moment.fmt(f),
        }
    }
}

impl FromStr for CellFormat {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "plain" => return Ok(Self::PLAIN),
            "whole" => return Ok(Self::WHOLE),
            _ => {}
        }
        let number = Number::from_pattern(text).map(Self::from);
        number.or_else(|| Moment::from_pattern(text).map(Self::from)).ok_or_else(|| {
            format!(
                "format = {text:?}: expected plain, whole, the number 1234.56 as it is written (\"$1,234.56\", \
                 \"1234%\", \"1.234,##\"), or the pattern of a date such as \"%Y-%m-%d\""
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_written_and_read_back() {
        for text in [
            "plain",
            "whole",
            "1,234",
            "1234%",
            "1234.5 %",
            "$1,234.56",
            "1.234,56 €",
            "1234,##",
            "1 234.567",
            "CHF 1'234.56",
            "%Y-%m-%d",
            "%-m/%-d/%Y",
            "%b %d, %Y",
            "%d-%^b-%Y",
            "%Y-%m-%dT%H:%M:%S%.3fZ",
            "%Y-%m-%d %H:%M:%S%:z",
            "%I:%M %p",
            "%Y%m%d",
            "%Y-%m",
        ] {
            let format: CellFormat = text.parse().unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(format.to_string(), text);
        }
        for text in ["", "date", "%Q", "1243", "1,23", "%d", "12"] {
            assert!(text.parse::<CellFormat>().is_err(), "{text}");
        }
    }

    #[test]
    fn rounded_to_what_can_be_written() {
        let nearest = |text: &str, x: f64| text.parse::<CellFormat>().unwrap().nearest(x);
        assert_eq!(nearest("whole", 7.4), 7.0);
        assert_eq!(nearest("whole", -0.2), 0.0);
        assert_eq!(nearest("1.234,56 €", 1234.567), 1234.57);
        assert_eq!(nearest("%Y-%m-%d", 18_266.4), 18_266.0);
        assert_eq!(nearest("%H:%M", 3629.0), 3600.0);
        assert_eq!(nearest("plain", 0.1), 0.1);
    }
}
