//! What a single word of a text file means: a number, a code, a missing entry, true or false.

/// The number that a word of a text file stands for.
pub(crate) fn parse_number(word: &str) -> Option<f64> {
    // The first byte decides for most words, and keeps `nan` words of other meaning away.
    match word.as_bytes().first()? {
        b'0'..=b'9' | b'+' | b'-' | b'.' => word.parse().ok(),
        b'i' | b'I' if ["inf", "infinity"].iter().any(|name| word.eq_ignore_ascii_case(name)) => {
            Some(f64::INFINITY)
        }
        _ => None,
    }
}

/// The same where a number is wanted: `true` and `false` are 1 and 0.
pub(crate) fn lenient_number(word: &str) -> Option<f64> {
    parse_number(word).or_else(|| match truth(word) {
        Some((0, truth)) => Some(f64::from(u8::from(truth))),
        _ => None,
    })
}

/// Whether a word is a code rather than a number: digits with a leading zero.
pub(crate) fn is_code(word: &str) -> bool {
    word.len() > 1 && word.starts_with('0') && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a word of a text file stands for a missing entry.
pub(crate) fn is_missing(word: &str, also: &[String]) -> bool {
    word.is_empty()
        || (word.len() <= 4 && MISSING.iter().any(|name| word.eq_ignore_ascii_case(name)))
        || also.iter().any(|name| name == word)
}

const MISSING: [&str; 7] = ["NA", "N/A", "NaN", "null", "?", "#N/A", "<NA>"];

/// Whether a word stands for a missing entry where everything else is a number; among words it may mean something.
pub(crate) fn is_gap(word: &str) -> bool {
    const GAPS: [&str; 9] = ["-", "--", "–", ".", "none", "nil", "unknown", "missing", "n.a."];
    word.len() <= 7 && GAPS.iter().any(|name| word.eq_ignore_ascii_case(name))
}

/// Pairs of words for false and true.
const TRUTHS: [[&str; 2]; 5] = [["false", "true"], ["no", "yes"], ["n", "y"], ["f", "t"], ["off", "on"]];

/// The pair that a word for false or true belongs to, and which of the two it is.
pub(crate) fn truth(word: &str) -> Option<(usize, bool)> {
    TRUTHS.iter().enumerate().find_map(|(pair, [no, yes])| match () {
        () if word.eq_ignore_ascii_case(no) => Some((pair, false)),
        () if word.eq_ignore_ascii_case(yes) => Some((pair, true)),
        () => None,
    })
}
