//! Lengths of time as they are typed: `90s`, `5m`, `1.5h`.

/// A thousand years: clocks cannot count much further.
const LONGEST: f64 = 3.2e10;

/// Seconds of `90`, `90s`, `5m`, `1.5h` or `2d`.
///
/// # Errors
/// The reason, where it is none of these or not positive.
pub fn seconds(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &text[number.len()..];
    let scale = match unit {
        "" | "s" | "sec" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        _ => return Err(format!("{unit:?} is not a unit of time, write 90s, 5m or 1.5h")),
    };
    match number.trim_end().parse::<f64>() {
        Ok(x) if x > 0.0 && x * scale <= LONGEST => Ok(x * scale),
        Ok(x) if x > 0.0 => Err("expected at most a thousand years".into()),
        _ => Err("expected a positive time such as 90s, 5m or 1.5h".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (text, want) in
            [("90", 90.0), ("1.5h", 5400.0), (" 2 min ", 120.0), ("1e2s", 100.0), ("1d", 86400.0)]
        {
            assert_eq!(seconds(text), Ok(want), "{text}");
        }
        for text in ["5 parsecs", "-3s", "0", "h", "", "nan", "inf", "1m 3s", "5M", "1e300", "400000d"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
