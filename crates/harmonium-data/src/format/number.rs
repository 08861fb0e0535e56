//! Numbers with separators, currencies, percent signs and units.

use std::fmt;

/// How many digits follow the decimal point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decimals {
    Exactly(u8),
    /// Zeros at the end are left out.
    AtMost(u8),
}

/// How a number is written: prefix, suffix, separators and decimals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    pub(crate) prefix: String,
    pub(crate) suffix: String,
    /// The separator of groups of three digits.
    pub(crate) group: Option<char>,
    /// The decimal point.
    pub(crate) point: char,
    pub(crate) decimals: Decimals,
}

/// The significant decimal digits of an f64.
pub(crate) const MOST_DECIMALS: u8 = 15;

impl Number {
    pub(crate) const WHOLE: Self = Self {
        prefix: String::new(),
        suffix: String::new(),
        group: None,
        point: '.',
        decimals: Decimals::Exactly(0),
    };

    /// The number of a word; prefix and suffix may be absent.
    pub(crate) fn read(&self, word: &str) -> Option<f64> {
        let (negative, body) = self.body(word)?;
        let value = self.digits(body)?;
        Some(if negative { -value } else { value })
    }

    /// The sign of a word, and its digits with their separators.
    fn body<'a>(&self, word: &'a str) -> Option<(bool, &'a str)> {
        // The sign may stand before or behind the currency.
        let (before, word) = sign(word.trim());
        let word = word.strip_prefix(self.prefix.trim_end()).unwrap_or(word).trim_start();
        let (behind, word) = sign(word);
        let word = word.strip_suffix(self.suffix.trim_start()).unwrap_or(word).trim_end();
        (before.is_none() || behind.is_none()).then_some(((before.or(behind)) == Some(true), word))
    }

    /// The value of digits, groups and a decimal point, and perhaps an exponent; groups must be of three digits.
    fn digits(&self, body: &str) -> Option<f64> {
        let (body, exponent) = match body.split_once(['e', 'E']) {
            Some((body, exponent)) if self.prefix.is_empty() && self.suffix.is_empty() => {
                (body, exponent.parse::<i32>().ok()?)
            }
            _ => (body, 0),
        };
        let (whole, fraction) = body.split_once(self.point).unwrap_or((body, ""));
        let mut plain = String::with_capacity(body.len() + 4);
        match self.group.filter(|group| whole.contains(*group)) {
            None => plain += whole,
            Some(group) => {
                let mut groups = whole.split(group);
                let first = groups.next()?;
                if !(1..=3).contains(&first.len()) || first.starts_with('0') {
                    return None;
                }
                plain += first;
                for three in groups {
                    if three.len() != 3 {
                        return None;
                    }
                    plain += three;
                }
            }
        }
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_digits(&plain) || !is_digits(fraction) || plain.is_empty() && fraction.is_empty() {
            return None;
        }
        format!("{plain}.{fraction}e{exponent}").parse().ok()
    }

    /// Number of digits behind the decimal point of a word.
    pub(crate) fn decimals_of(&self, word: &str) -> u8 {
        let body = self.body(word).map_or(word, |(_, body)| body);
        match body.split_once(self.point) {
            _ if body.contains(['e', 'E']) => MOST_DECIMALS,
            Some((_, fraction)) => (fraction.len() as u64).min(u64::from(MOST_DECIMALS)) as u8,
            None => 0,
        }
    }

    pub(crate) fn write(&self, value: f64) -> String {
        let mut digits = match self.decimals {
            Decimals::Exactly(n) => format!("{:.*}", usize::from(n), value.abs()),
            Decimals::AtMost(n) => {
                let text = format!("{:.*}", usize::from(n), value.abs());
                match text.contains('.') {
                    true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
                    false => text,
                }
            }
        };
        let negative = value < 0.0 && digits.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
        let fraction = digits.find('.').map(|at| digits.split_off(at)).unwrap_or_default();
        let sign = if negative { "-" } else { "" };
        let mut text = format!("{sign}{}", self.prefix);
        self.push_grouped(&mut text, &digits);
        if let Some(fraction) = fraction.strip_prefix('.') {
            text.push(self.point);
            text += fraction;
        }
        text + &self.suffix
    }

    fn push_grouped(&self, text: &mut String, digits: &str) {
        for (i, digit) in digits.chars().enumerate() {
            if let Some(group) = self.group
                && i > 0
                && (digits.len() - i).is_multiple_of(3)
            {
                text.push(group);
            }
            text.push(digit);
        }
    }

    /// The form in which `text` writes the number 1234, with its decimals.
    pub(crate) fn from_pattern(text: &str) -> Option<Self> {
        let start = text.find('1')?;
        let (prefix, rest) = text.split_at(start);
        let rest = rest.strip_prefix('1')?;
        let (group, rest) = match rest.strip_prefix("234") {
            Some(rest) => (None, rest),
            None => {
                let group = rest.chars().next().filter(|c| !c.is_alphanumeric())?;
                (Some(group), rest[group.len_utf8()..].strip_prefix("234")?)
            }
        };
        let point = rest.chars().next().filter(|c| ['.', ','].contains(c));
        let behind = point.map_or(rest, |_| &rest[1..]);
        let of = |hash: bool| {
            let count = behind.chars().take_while(|c| if hash { *c == '#' } else { c.is_ascii_digit() });
            count.count().min(usize::from(MOST_DECIMALS))
        };
        let (decimals, suffix) = match (point, of(false), of(true)) {
            (None, ..) => (Decimals::Exactly(0), rest),
            (Some(_), 0, 0) => return None,
            (Some(_), 0, n) => (Decimals::AtMost(n as u8), &behind[n..]),
            (Some(_), n, _) => (Decimals::Exactly(n as u8), &behind[n..]),
        };
        let affix = |text: &str| text.chars().any(|c| c.is_ascii_digit() || "#+-".contains(c));
        if affix(prefix) || affix(suffix) || group.is_some() && group == point {
            return None;
        }
        // Without decimals, the decimal point is the character that does not separate groups.
        let point = point.unwrap_or(if group == Some('.') { ',' } else { '.' });
        Some(Self { prefix: prefix.into(), suffix: suffix.into(), group, point, decimals })
    }
}

/// Whether a sign leads the word and it is a minus; the rest.
fn sign(word: &str) -> (Option<bool>, &str) {
    for (mark, negative) in [('-', true), ('\u{2212}', true), ('+', false)] {
        if let Some(rest) = word.strip_prefix(mark) {
            return (Some(negative), rest.trim_start());
        }
    }
    (None, word)
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}1", self.prefix)?;
        if let Some(group) = self.group {
            write!(f, "{group}")?;
        }
        write!(f, "234")?;
        match self.decimals {
            Decimals::Exactly(0) | Decimals::AtMost(0) => {}
            Decimals::Exactly(n) => {
                let digits: String = "567890123456789".chars().take(usize::from(n)).collect();
                write!(f, "{}{digits}", self.point)?;
            }
            Decimals::AtMost(n) => write!(f, "{}{}", self.point, "#".repeat(usize::from(n)))?,
        }
        write!(f, "{}", self.suffix)
    }
}
