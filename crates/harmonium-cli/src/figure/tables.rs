//! Figures made of text: rows of a table, and matrices with names at their rows.

use super::{Figure, escape, pictures::diverging};
use ndarray::ArrayView2;
use std::fmt::Write;

/// Width of a letter and height of a line in the small fixed-width type.
const LETTER: f64 = 6.7;
const LINE: f64 = 16.0;

fn begin(width: f64, height: f64) -> String {
    format!(
        "<svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\">"
    )
}

/// Lines of words, words of a column below each other; the first line is a head if `head`.
pub(crate) fn rows(lines: &[Vec<String>], head: bool) -> Figure {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let length = |word: &String| word.chars().count();
    let width = |j: usize| lines.iter().filter_map(|l| l.get(j)).map(length).max().unwrap_or(0);
    let mut at = vec![0.0];
    for j in 0..columns {
        at.push(at[j] + LETTER * (width(j) + 2) as f64);
    }
    let mut out = begin(at[columns].max(40.0), LINE * lines.len() as f64 + 8.0);
    for (i, line) in lines.iter().enumerate() {
        let colour = if head && i == 0 { "--dim" } else { "--ink" };
        for (word, x) in line.iter().zip(&at) {
            let _ = write!(
                out,
                "<text x=\"{x:.1}\" y=\"{:.1}\" xml:space=\"preserve\" style=\"font:11px ui-monospace,monospace;fill:var({colour})\">{}</text>",
                LINE * (i + 1) as f64 - 3.0,
                escape(word)
            );
        }
    }
    out.push_str("</svg>");
    Figure::Svg(out)
}

/// A matrix as coloured squares with names at its rows, the largest absolute value at the ends of the colours.
pub(crate) fn named_heat_map(w: ArrayView2<'_, f64>, names: &[String], wanted: f64) -> Figure {
    let top = w.iter().fold(1e-12f64, |a, x| a.max(x.abs()));
    let left = LETTER * names.iter().map(|n| n.chars().count()).max().unwrap_or(0) as f64 + 8.0;
    let cell = ((wanted - left) / w.ncols().max(1) as f64).clamp(3.0, 22.0);
    let height = LINE * w.nrows() as f64;
    let mut out = begin(left + cell * w.ncols() as f64, height + 4.0);
    for (i, row) in w.rows().into_iter().enumerate() {
        let y = LINE * i as f64;
        let name = names.get(i).map_or("", String::as_str);
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" style=\"font:11px ui-monospace,monospace\">{}</text>",
            left - 6.0,
            y + 12.0,
            escape(name)
        );
        for (j, x) in row.iter().enumerate() {
            let [r, g, b] = diverging((x / top) as f32);
            let _ = write!(
                out,
                "<rect x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"#{r:02x}{g:02x}{b:02x}\"/>",
                left + cell * j as f64,
                cell - 1.0,
                LINE - 1.0
            );
        }
    }
    out.push_str("</svg>");
    Figure::Svg(out)
}
