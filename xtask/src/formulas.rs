//! The formulas in documentation comments must reach KaTeX unharmed by Markdown.
//!
//! rustdoc's Markdown does not know `$…$`: it takes a backslash before punctuation for an escape, and `_` or `*`
//! in some places for emphasis. Such a formula would come out wrong without any warning.

use crate::step::{Outcome, root};
use std::fs;
use std::path::{Path, PathBuf};

/// Checks every documentation comment of every Rust file in `crates/`.
pub(crate) fn check() -> Outcome {
    let mut files = Vec::new();
    rust_files(&root().join("crates"), &mut files);
    let mut bad = 0;
    for file in files {
        let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        for (line, why) in harmed(&text) {
            let shown = file.strip_prefix(root()).unwrap_or(&file).display();
            println!("{shown}:{line}: {why}");
            bad += 1;
        }
    }
    match bad {
        0 => Ok(()),
        n => Err(format!("{n} formulas that Markdown would change")),
    }
}

fn rust_files(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            rust_files(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// Line numbers and reasons of the formulas in a file's documentation that Markdown would change.
fn harmed(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let (mut in_code, mut in_formula, mut emphasis) = (false, false, false);
    for (n, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let Some(doc) = line.strip_prefix("///").or(line.strip_prefix("//!")) else {
            (in_code, in_formula, emphasis) = (false, false, false);
            continue;
        };
        if doc.trim().is_empty() {
            emphasis = false; // A paragraph ends.
        } else if doc.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            if in_formula
                && ["- ", "+ ", "> ", "# "].iter().any(|mark| doc.trim_start().starts_with(mark))
            {
                found.push((n + 1, format!("a formula continues with what starts a list:{doc}")));
            }
            let formulas = formulas(doc, &mut in_formula);
            if let Some(why) = harm(&formulas, &mut emphasis) {
                found.push((n + 1, format!("{why}: {}", formulas.trim())));
            }
        }
    }
    found
}

/// What lies between dollar signs, outside code spans.
fn formulas(line: &str, in_formula: &mut bool) -> String {
    let text: String = line.split('`').step_by(2).collect();
    let mut out = String::new();
    for (i, part) in text.replace("$$", "$").split('$').enumerate() {
        *in_formula ^= i > 0;
        if *in_formula {
            out.push_str(part);
            out.push(' ');
        }
    }
    out
}

/// What Markdown would do to these formulas, if anything. A `_` after punctuation can start emphasis, one
/// before punctuation can end it.
fn harm(formulas: &str, emphasis: &mut bool) -> Option<&'static str> {
    let mut before = ' ';
    for (c, next) in formulas.chars().zip(formulas.chars().skip(1)) {
        match c {
            '\\' if next.is_ascii_punctuation() => {
                return Some("a backslash before punctuation (leave \\, out, write \\Vert for \\|)");
            }
            '*' => return Some("a * (write \\ast)"),
            '_' if *emphasis && !next.is_ascii_alphanumeric() => {
                return Some(
                    "a _ before punctuation ends the emphasis that a _ after punctuation started",
                );
            }
            '_' if !before.is_ascii_alphanumeric() => *emphasis = true,
            _ => {}
        }
        before = c;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::harmed;

    #[test]
    fn markdown_traps_are_found() {
        for trap in [r"\nu(x)\, e^x", r"a \| b", "(vW)_j + x_{k}", "x^* y"] {
            let text = format!("/// The value ${trap}$ of\nfn f() {{}}");
            assert_eq!(harmed(&text).len(), 1, "{trap}");
            let text = format!("//! $$\n//! {trap}\n//! $$\n");
            assert_eq!(harmed(&text)[0].0, 2, "{trap}");
        }
    }

    #[test]
    fn a_formula_that_turns_into_a_list_is_found() {
        assert_eq!(harmed("/// $$a\n/// + b$$\n")[0].0, 2);
        assert_eq!(harmed("/// $$a +\n/// b$$\n/// + item $c$\n"), []);
    }

    #[test]
    fn harmless_lines_pass() {
        let text = "/// $\\sum_{k} x_k (vW)_j$, `a_ * b` and \\, outside\n/// ```\n/// $x\\,y$\n/// ```\nlet x = \"$\\,$\";";
        assert_eq!(harmed(text), []);
    }
}
