//! Charts of lines, bands, points and bars.

use super::axis::{Axis, label};
use super::{Figure, escape};
use std::fmt::Write;

pub(crate) use super::axis::Scale;

/// Places of the frame in the picture.
const LEFT: f64 = 58.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 28.0;
const BOTTOM: f64 = 40.0;

/// One series of a chart.
enum Mark {
    Line(Vec<(f64, f64)>),
    /// x, lower, upper.
    Band(Vec<(f64, f64, f64)>),
    /// x, value, lower, upper; hollow where they are not to be relied upon.
    Bars(Vec<(f64, f64, f64, f64)>, bool),
    Points(Vec<(f64, f64)>, f64),
    /// Left, right, height.
    Steps(Vec<(f64, f64, f64)>),
}

/// A chart under construction.
pub(crate) struct Chart {
    width: f64,
    height: f64,
    scales: (Scale, Scale),
    titles: (String, String),
    marks: Vec<(Mark, usize, Option<String>)>,
    diagonal: bool,
}

impl Chart {
    /// A chart with these titles of its axes.
    pub(crate) fn new(x: &str, y: &str) -> Self {
        Self {
            width: 460.0,
            height: 280.0,
            scales: (Scale::Linear, Scale::Linear),
            titles: (x.into(), y.into()),
            marks: Vec::new(),
            diagonal: false,
        }
    }

    /// The same with these scales.
    pub(crate) fn scales(mut self, x: Scale, y: Scale) -> Self {
        self.scales = (x, y);
        self
    }

    /// The same, about as high as wide.
    pub(crate) fn square(mut self) -> Self {
        (self.width, self.height) = (380.0, 350.0);
        self
    }

    /// The same with the line y = x.
    pub(crate) fn diagonal(mut self) -> Self {
        self.diagonal = true;
        self
    }

    fn mark(mut self, mark: Mark, colour: usize, name: Option<&str>) -> Self {
        self.marks.push((mark, colour, name.map(Into::into)));
        self
    }

    /// The same with a line.
    pub(crate) fn line(self, points: Vec<(f64, f64)>, colour: usize, name: Option<&str>) -> Self {
        self.mark(Mark::Line(points), colour, name)
    }

    /// The same with a band between lower and upper.
    pub(crate) fn band(self, points: Vec<(f64, f64, f64)>, colour: usize) -> Self {
        self.mark(Mark::Band(points), colour, None)
    }

    /// The same with points that have error bars.
    pub(crate) fn bars(
        self,
        points: Vec<(f64, f64, f64, f64)>,
        colour: usize,
        name: Option<&str>,
    ) -> Self {
        self.mark(Mark::Bars(points, false), colour, name)
    }

    /// The same with hollow points that have error bars.
    pub(crate) fn doubtful(
        self,
        points: Vec<(f64, f64, f64, f64)>,
        colour: usize,
        name: Option<&str>,
    ) -> Self {
        self.mark(Mark::Bars(points, true), colour, name)
    }

    /// The same with points.
    pub(crate) fn points(
        self,
        points: Vec<(f64, f64)>,
        radius: f64,
        colour: usize,
        name: Option<&str>,
    ) -> Self {
        self.mark(Mark::Points(points, radius), colour, name)
    }

    /// The same with a histogram.
    pub(crate) fn steps(self, steps: Vec<(f64, f64, f64)>, colour: usize, name: Option<&str>) -> Self {
        self.mark(Mark::Steps(steps), colour, name)
    }

    fn extent(&self) -> (Vec<f64>, Vec<f64>) {
        let (mut xs, mut ys) = (Vec::new(), Vec::new());
        for (mark, ..) in &self.marks {
            match mark {
                Mark::Line(p) | Mark::Points(p, _) => p.iter().for_each(|&(x, y)| {
                    xs.push(x);
                    ys.push(y);
                }),
                Mark::Band(p) => p.iter().for_each(|&(x, a, b)| {
                    xs.push(x);
                    ys.extend([a, b]);
                }),
                Mark::Bars(p, _) => p.iter().for_each(|&(x, y, a, b)| {
                    xs.push(x);
                    ys.extend([y, a, b]);
                }),
                Mark::Steps(p) => p.iter().for_each(|&(a, b, y)| {
                    xs.extend([a, b]);
                    ys.extend([0.0, y]);
                }),
            }
        }
        if self.diagonal {
            let all: Vec<f64> = xs.iter().chain(&ys).copied().collect();
            return (all.clone(), all);
        }
        (xs, ys)
    }

    /// The chart as SVG.
    pub(crate) fn svg(self) -> Figure {
        let (xs, ys) = self.extent();
        let x = Axis::around(xs.into_iter(), self.scales.0);
        let y = Axis::around(ys.into_iter(), self.scales.1);
        let (w, h) = (self.width - LEFT - RIGHT, self.height - TOP - BOTTOM);
        let px = |v: f64| LEFT + w * x.at(v);
        let py = |v: f64| TOP + h * (1.0 - y.at(v));
        let mut out = format!(
            "<svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" width=\"{0}\" height=\"{1}\" role=\"img\">",
            self.width, self.height
        );
        for t in y.ticks(5) {
            let at = py(t);
            let _ = write!(
                out,
                "<line class=\"g\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>",
                LEFT + w
            );
            let _ = write!(
                out,
                "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                at + 4.0,
                label(t)
            );
        }
        let foot = TOP + h;
        for t in x.ticks(6) {
            let at = px(t);
            let _ = write!(
                out,
                "<line class=\"g\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{foot:.1}\" y2=\"{:.1}\"/>",
                foot + 4.0
            );
            let _ = write!(
                out,
                "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                foot + 17.0,
                label(t)
            );
        }
        let _ = write!(
            out,
            "<line class=\"g\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{foot:.1}\" y2=\"{foot:.1}\"/>",
            LEFT + w
        );
        if self.diagonal {
            let ends = [0.0, 1.0].map(|t: f64| (LEFT + w * t, TOP + h * (1.0 - t)));
            let [(x1, y1), (x2, y2)] = ends;
            let _ = write!(
                out,
                "<line class=\"g\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
            );
        }
        for (mark, colour, _) in &self.marks {
            draw(&mut out, mark, *colour, &px, &py);
        }
        let middle = LEFT + 0.5 * w;
        let _ = write!(
            out,
            "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            self.height - 6.0,
            escape(&self.titles.0)
        );
        let _ = write!(
            out,
            "<text transform=\"translate(13 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            TOP + 0.5 * h,
            escape(&self.titles.1)
        );
        self.legend(&mut out, w);
        out.push_str("</svg>");
        Figure::Svg(out)
    }

    /// Names of the series in one line above the frame, from the right.
    fn legend(&self, out: &mut String, w: f64) {
        let named =
            self.marks.iter().filter_map(|(m, colour, name)| name.as_ref().map(|n| (m, colour, n)));
        let mut right = LEFT + w;
        for (mark, colour, name) in named.collect::<Vec<_>>().into_iter().rev() {
            let fill = match mark {
                Mark::Bars(_, true) => "fill:none;stroke-width:1.5;stroke",
                _ => "fill",
            };
            let _ = write!(
                out,
                "<text x=\"{right:.1}\" y=\"15\" text-anchor=\"end\" style=\"fill:var(--ink)\">{}</text>",
                escape(name)
            );
            // Letters of a sans at 12 px are at most about 7 px wide.
            right -= 7.0 * name.chars().count() as f64 + 18.0;
            let _ = write!(
                out,
                "<rect x=\"{right:.1}\" y=\"5\" width=\"11\" height=\"11\" rx=\"2\" style=\"{fill}:var(--c{})\"/>",
                colour % 6
            );
            right -= 14.0;
        }
    }
}

fn draw(out: &mut String, mark: &Mark, colour: usize, px: &dyn Fn(f64) -> f64, py: &dyn Fn(f64) -> f64) {
    let c = colour % 6;
    let path = |points: &mut dyn Iterator<Item = (f64, f64)>| {
        let mut d = String::new();
        for (x, y) in points.filter(|(x, y)| x.is_finite() && y.is_finite()) {
            let _ = write!(d, "{}{:.1} {:.1}", if d.is_empty() { "M" } else { "L" }, px(x), py(y));
        }
        d
    };
    let _ = match mark {
        Mark::Line(p) => {
            let d = path(&mut p.iter().copied());
            write!(out, "<path class=\"l\" style=\"stroke:var(--c{c})\" d=\"{d}\"/>")
        }
        Mark::Band(p) => {
            let there = p.iter().map(|&(x, a, _)| (x, a));
            let back = p.iter().rev().map(|&(x, _, b)| (x, b));
            let d = path(&mut there.chain(back));
            write!(out, "<path class=\"b\" style=\"fill:var(--c{c})\" d=\"{d}Z\"/>")
        }
        Mark::Bars(p, hollow) => p.iter().try_for_each(|&(x, y, a, b)| {
            let (x, y, a, b) = (px(x), py(y), py(a), py(b));
            let disc = match hollow {
                true => format!("fill:var(--paper);stroke:var(--c{c});stroke-width:1.5"),
                false => format!("fill:var(--c{c})"),
            };
            write!(out, "<path class=\"l\" style=\"stroke:var(--c{c})\" d=\"M{x:.1} {a:.1}L{x:.1} {b:.1}M{:.1} {a:.1}h6M{:.1} {b:.1}h6\"/><circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.8\" style=\"{disc}\"/>", x - 3.0, x - 3.0)
        }),
        Mark::Points(p, r) => {
            let mut d = String::new();
            for &(x, y) in p.iter().filter(|(x, y)| x.is_finite() && y.is_finite()) {
                let _ = write!(d, "M{:.1} {:.1}h.01", px(x), py(y));
            }
            write!(out, "<path class=\"p\" style=\"fill:none;stroke:var(--c{c});stroke-width:{:.1};stroke-linecap:round\" d=\"{d}\"/>", 2.0 * r)
        }
        Mark::Steps(p) => p.iter().try_for_each(|&(a, b, y)| {
            let (left, right, top) = (px(a), px(b), py(y));
            write!(out, "<rect class=\"p\" style=\"fill:var(--c{c})\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>", (right - left).max(0.0), (py(0.0) - top).max(0.0))
        }),
    };
}
