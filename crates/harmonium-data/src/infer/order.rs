//! The order of categories: scales of words, numbers inside words, the alphabet.

use std::cmp::Ordering;

/// Words with an order of their own, in lower case.
const SCALES: [&[&str]; 15] = [
    &["very low", "low", "medium", "high", "very high"],
    &["low", "moderate", "high", "extreme"],
    &["low", "normal", "high"],
    &["none", "low", "mid", "high"],
    &["none", "mild", "moderate", "severe"],
    &["xxs", "xs", "s", "m", "l", "xl", "xxl", "xxxl"],
    &["tiny", "small", "medium", "large", "huge"],
    &["very bad", "bad", "average", "good", "very good"],
    &["very poor", "poor", "fair", "good", "very good", "excellent"],
    &["poor", "average", "good", "excellent"],
    &["never", "rarely", "sometimes", "often", "always"],
    &["strongly disagree", "disagree", "neutral", "agree", "strongly agree"],
    &["first", "second", "third", "fourth", "fifth"],
    &["mon", "tue", "wed", "thu", "fri", "sat", "sun"],
    &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
];
const LONG: [&[&str]; 2] = [
    &["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"],
    &[
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ],
];

/// Puts words in the order of their scale, else by the numbers and letters in them; says whether there was more than the
/// alphabet to go by.
pub(crate) fn sort(words: &mut [String]) -> bool {
    let lower: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let scale =
        SCALES.iter().chain(&LONG).find(|scale| lower.iter().all(|word| scale.contains(&word.as_str())));
    if let Some(scale) = scale {
        let rank = |word: &String| scale.iter().position(|step| *step == word.to_lowercase());
        words.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| a.cmp(b)));
        return true;
    }
    words.sort_by(|a, b| natural(a, b));
    words.iter().all(|word| {
        word.trim_start_matches(['<', '>', '≤', '≥', ' ']).starts_with(|c: char| c.is_ascii_digit())
    })
}

/// Natural order: digits by their number, the rest alphabetically; `<5` comes before `5`.
fn natural(a: &str, b: &str) -> Ordering {
    let below = |word: &str| !word.starts_with(['<', '≤']);
    let order = pieces(a).cmp(pieces(b));
    below(a).cmp(&below(b)).then(order).then_with(|| a.cmp(b))
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Piece<'a> {
    /// Digits without leading zeros, the shorter first.
    Number(usize, &'a str),
    Text(&'a str),
}

/// Runs of digits and of other characters.
fn pieces(mut rest: &str) -> impl Iterator<Item = Piece<'_>> {
    std::iter::from_fn(move || {
        let first = rest.bytes().next()?.is_ascii_digit();
        let end = rest.bytes().position(|byte| byte.is_ascii_digit() != first).unwrap_or(rest.len());
        let (piece, behind) = rest.split_at(end);
        rest = behind;
        let digits = piece.trim_start_matches('0');
        Some(if first { Piece::Number(digits.len(), digits) } else { Piece::Text(piece) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_in_their_order() {
        for (expected, ordered) in [
            (&["low", "medium", "high"][..], true),
            (&["S", "M", "L", "XL"], true),
            (&["Never", "Sometimes", "Always"], true),
            (&["Mon", "Tue", "Sun"], true),
            (&["0-9", "10-19", "100-109"], true),
            (&["<5", "5-10", "10+"], true),
            (&["1 - no", "2 - perhaps", "10 - yes"], true),
            (&["a2", "a10", "b"], false),
            (&["Kyiv", "Oslo", "Rome"], false),
            (&["01", "1", "002"], true),
        ] {
            let mut words: Vec<String> = expected.iter().rev().map(ToString::to_string).collect();
            assert_eq!(sort(&mut words), ordered, "{words:?}");
            assert_eq!(words, expected);
        }
    }
}
