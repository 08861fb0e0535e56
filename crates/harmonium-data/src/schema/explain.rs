//! A schema for people, with the reason for every kind and the flag that changes it.

use super::{Binarize, Finding, Reason, Schema};
use crate::{CellFormat, Column, Kind};

impl Schema {
    /// The columns with range or categories, why they have their kind, and how to choose another; `findings` are those of
    /// [`describe`](crate::describe). Neighbours that differ only in their number are one line.
    pub fn explain(&self, findings: &[Finding]) -> String {
        let mut lines: Vec<(String, usize, String)> = Vec::new();
        let mut first = 0;
        for run in self.runs() {
            let found = findings.get(first..first + run.len()).unwrap_or_default();
            first += run.len();
            let mut rest = run;
            for alike in found.chunk_by(|a, b| a.reason == b.reason && a.instead == b.instead) {
                let (columns, behind) = rest.split_at(alike.len());
                rest = behind;
                lines.push((range_name(columns), columns.len(), line(columns, alike)));
            }
        }
        let width = lines.iter().map(|(name, ..)| name.chars().count()).max().unwrap_or(0).min(40);
        let mut text = String::new();
        for (name, count, line) in lines {
            text += &format!("{name:width$}  {count:>5}  {line}\n");
        }
        if let Some([height, width]) = self.shape {
            text += &format!("images of {height} × {width}\n");
        }
        text
    }
}

/// The name of a column, or the first and the last of several.
pub(super) fn range_name(run: &[Column]) -> String {
    match run {
        [only] => only.name.clone(),
        _ => format!("{} … {}", run[0].name, run[run.len() - 1].name),
    }
}

/// Kind, categories and binarisation.
pub(super) fn details(column: &Column) -> String {
    let mut text = column.kind.to_string();
    match &column.categories[..] {
        [] => {}
        names if names.len() > 8 => {
            text += &format!(": {} categories, {}, …", names.len(), names[..6].join(", "));
        }
        names => text += &format!(": {}", names.join(", ")),
    }
    match column.binarize {
        Some(Binarize::Threshold(threshold)) => text += &format!(", 1 from {threshold} on"),
        Some(Binarize::Sample { scale }) => text += &format!(", 1 with probability value/{scale}"),
        None => {}
    }
    text
}

fn line(columns: &[Column], findings: &[Finding]) -> String {
    let column = &columns[0];
    let mut text = details(column);
    let ranges = || findings.iter().filter_map(|finding| finding.range);
    let bits = matches!(column.kind, Kind::Binary | Kind::Spin);
    if column.categories.is_empty() && !bits && ranges().next().is_some() {
        let low = ranges().map(|[low, _]| low).fold(f64::INFINITY, f64::min);
        let high = ranges().map(|[_, high]| high).fold(f64::NEG_INFINITY, f64::max);
        let shown =
            |x: f64| if column.format.is_plain() { shortened(x) } else { column.format.write(x) };
        text += &match low == high {
            true => format!(": {}", shown(low)),
            false => format!(": {} to {}", shown(low), shown(high)),
        };
    }
    let finding = findings[0];
    if finding.reason != Reason::Declared {
        text += &format!("; {}", finding.reason);
    }
    if finding.reason == Reason::Given
        && ![CellFormat::PLAIN, CellFormat::WHOLE].contains(&column.format)
    {
        text += &format!(", as {}", column.format);
    }
    if let Some(kind) = finding.instead {
        let pattern = match columns {
            [only] => only.name.clone(),
            _ => format!("{}..{}", column.name, columns[columns.len() - 1].name),
        };
        let rule = format!("{pattern}={kind}");
        let plain = rule.chars().all(|c| c.is_alphanumeric() || "_-.=".contains(c));
        text += &if plain { format!("  [--column {rule}]") } else { format!("  [--column {rule:?}]") };
    }
    text
}

/// At most six digits, as `%g` writes them.
fn shortened(x: f64) -> String {
    let rounded: f64 = format!("{x:.5e}").parse().unwrap_or(x);
    match rounded.abs() {
        0.0 | 1e-4..1e9 => rounded.to_string(),
        _ => format!("{rounded:e}"),
    }
}
