//! Output: results go to standard output, everything else to standard error.

use crate::error::{Failure, Result};
use harmonium::tune::{Method, Record, Setting};
use std::io::{ErrorKind, IsTerminal, Write};

/// Writes a line of the result to standard output.
macro_rules! put {
    ($($arg:tt)*) => { $crate::output::put_line(format_args!($($arg)*)) };
}
pub(crate) use put;

/// Writes a line to standard error and ignores failures.
macro_rules! say {
    ($($arg:tt)*) => { $crate::output::say_line(format_args!($($arg)*)) };
}
pub(crate) use say;

/// See [`put!`].
pub(crate) fn put_line(line: std::fmt::Arguments<'_>) -> Result {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(pipe)
}

/// See [`say!`].
pub(crate) fn say_line(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Raw bytes of the result to standard output.
pub(crate) fn put_bytes(bytes: &[u8]) -> Result {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(pipe)
}

/// A failure to write to standard output; a closed pipe is no failure.
pub(crate) fn pipe(error: std::io::Error) -> Failure {
    match error.kind() {
        ErrorKind::BrokenPipe => Failure::Pipe,
        _ => Failure::new(format!("standard output: cannot write: {error}")),
    }
}

/// A command of this program that works as it is printed: the program as its user typed it (after `cargo run` there is no
/// `harmonium` on the path), and in quotes what a shell would take apart.
pub(crate) fn command(words: &[&str]) -> String {
    let program = std::env::args_os().next().map(|name| name.to_string_lossy().into_owned());
    let program = program.unwrap_or_else(|| "harmonium".into());
    let words: Vec<_> = std::iter::once(&*program).chain(words.iter().copied()).map(quoted).collect();
    words.join(" ")
}

/// A word for a shell, in quotes where it needs them.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-:=,+@%~".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Whether a person is likely to look at standard error.
pub(crate) fn is_live() -> bool {
    std::io::stderr().is_terminal()
}

/// Whether a person is likely to look at standard output.
pub(crate) fn is_shown() -> bool {
    std::io::stdout().is_terminal()
}

/// Columns of the terminal, or what fits most pages.
pub(crate) fn width() -> usize {
    console::Term::stdout()
        .size_checked()
        .map_or(100, |(_, columns)| usize::from(columns).clamp(20, 160))
}

/// A number with its noun: `1 row`, `12 rows`; `many` is the noun of more than one.
pub(crate) fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{} {}", grouped(n as u64), if n == 1 { one } else { many })
}

/// A duration for people: `0.4 s`, `12 s`, `3 min 05 s`, `2 h 10 min`.
pub(crate) fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 60.0 => format!("{s:.0} s"),
        s if s < 3600.0 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole / 60 % 60),
    }
}

/// A whole number with thin groups: `70 000`.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    if digits.len() < 5 {
        return digits;
    }
    let first = digits.len() % 3;
    let mut out = digits[..first].to_owned();
    for (i, c) in digits[first..].chars().enumerate() {
        if i % 3 == 0 && !out.is_empty() {
            out.push('\u{202f}');
        }
        out.push(c);
    }
    out
}

/// The settings of a trial: `48 hidden · L1 3e-4 · rate 0.1`.
pub(crate) fn setting(s: &Setting) -> String {
    let mut words = vec![format!("{} hidden", s.hidden)];
    if s.hidden_kind != "binary" {
        words[0] = format!("{} {}", words[0], s.hidden_kind);
    }
    let penalties = [("L1", s.l1), ("L2", s.l2)];
    words.extend(penalties.iter().filter(|p| p.1 != 0.0).map(|(name, x)| format!("{name} {x:.0e}")));
    words.push(format!("rate {:.3}", s.rate));
    words.join(" · ")
}

/// The score of a stage with its error, or why there is none.
pub(crate) fn score(record: &Record) -> String {
    match (record.score, record.method) {
        (Some(score), Some(Method::Exact)) => format!("{score:.3} (exact)"),
        (Some(score), Some(Method::Annealed)) => {
            format!("{score:.3} ± {:.3}", record.error.unwrap_or_default())
        }
        (Some(score), _) => format!("{score:.3} (substitute)"),
        (None, _) => format!("failed: {}", record.failure.as_deref().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_a_shell() {
        assert_eq!(quoted("runs/a-b_1.csv:train"), "runs/a-b_1.csv:train");
        assert_eq!(quoted("my table.csv"), "'my table.csv'");
        assert_eq!(quoted("a'b"), r"'a'\''b'");
        assert_eq!(quoted(""), "''");
        assert!(command(&["sample", "my run"]).ends_with(" sample 'my run'"));
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(duration(0.42), "0.4 s");
        assert_eq!(duration(185.0), "3 min 05 s");
        assert_eq!(duration(7801.0), "2 h 10 min");
        assert_eq!(grouped(70_000), "70\u{202f}000");
        assert_eq!(grouped(123_456_789), "123\u{202f}456\u{202f}789");
        assert_eq!(grouped(1797), "1797");
    }
}
