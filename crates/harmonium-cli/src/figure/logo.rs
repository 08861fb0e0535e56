//! Sequence logos: letters as high as their weights, those below zero hanging.

use super::{Figure, escape};
use ndarray::ArrayView2;
use std::fmt::Write;

/// A logo of weights: a row per position, a column per letter. Of a long sequence the positions with the
/// largest weights are shown.
pub(crate) fn logo(w: ArrayView2<'_, f64>, letters: &[String], most: usize) -> Figure {
    let strength = |i: usize| w.row(i).iter().map(|x| x.abs()).sum::<f64>();
    let mut shown: Vec<usize> = (0..w.nrows()).collect();
    shown.sort_by(|&a, &b| strength(b).total_cmp(&strength(a)));
    shown.truncate(most);
    shown.sort_unstable();
    let sum = |i: usize, sign: f64| w.row(i).iter().map(|x| (sign * x).max(0.0)).sum::<f64>();
    let top = shown.iter().map(|&i| sum(i, 1.0).max(sum(i, -1.0))).fold(1e-12, f64::max);
    let (cell, half, left) = (15.0, 70.0, 8.0);
    let width = left * 2.0 + cell * shown.len() as f64;
    let height = 2.0 * half + 26.0;
    let mut out = format!(
        "<svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\">"
    );
    for (k, &i) in shown.iter().enumerate() {
        let x = left + cell * k as f64;
        for sign in [1.0, -1.0] {
            let mut column: Vec<(usize, f64)> =
                w.row(i).iter().map(|&x| sign * x).enumerate().filter(|c| c.1 > 0.0).collect();
            column.sort_by(|a, b| a.1.total_cmp(&b.1));
            let mut edge = half;
            for (a, weight) in column {
                let h = half * weight / top;
                if h < 1.5 {
                    continue;
                }
                let base = if sign > 0.0 { edge } else { edge + h };
                edge -= sign * h;
                // Capitals of a bold sans are about 0.72 em high and 0.66 em wide.
                let _ = write!(
                    out,
                    "<text transform=\"translate({:.1} {base:.1}) scale({:.2} {:.2})\" style=\"font:bold 10px sans-serif;fill:var(--c{})\">{}</text>",
                    x + 1.0,
                    (cell - 1.0) / 7.2,
                    h / 7.2,
                    family(letters.get(a).map_or("", |l| l)),
                    escape(letters.get(a).map_or("?", |l| l))
                );
            }
        }
        if k % 5 == 0 || shown.len() < 12 {
            let _ = write!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" style=\"font-size:10px\">{}</text>",
                x + 0.5 * cell,
                height - 6.0,
                i + 1
            );
        }
    }
    let _ = write!(
        out,
        "<line class=\"g\" x1=\"{left}\" x2=\"{:.1}\" y1=\"{half}\" y2=\"{half}\"/></svg>",
        width - left
    );
    Figure::Svg(out)
}

/// Letters of like chemistry share a colour.
fn family(letter: &str) -> usize {
    match letter {
        "D" | "E" => 1,
        "K" | "R" | "H" => 0,
        "A" | "V" | "L" | "I" | "M" | "F" | "W" => 4,
        "S" | "T" | "N" | "Q" | "Y" => 2,
        "C" | "G" | "P" | "U" => 3,
        _ => 5,
    }
}
