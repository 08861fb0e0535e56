//! Figures: charts as SVG, pictures as PNG, both small and without other libraries.

mod axis;
pub(crate) mod chart;
mod logo;
mod pictures;
mod tables;

pub(crate) use chart::{Chart, Scale};
pub(crate) use logo::logo;
pub(crate) use pictures::{diverging, heat_map, image_grid};
pub(crate) use tables::{named_heat_map, rows};

/// Colours and strokes of all charts, for light and dark. A page has it once, a file of its own has it inside.
pub(crate) const STYLE: &str = "\
:root{--ink:#1d2430;--dim:#5d6675;--line:#d6dae1;--paper:#ffffff;--c0:#2f6fde;--c1:#d9622b;--c2:#2a9461;--c3:#8b5cc7;--c4:#b3871b;--c5:#c2417c}
@media(prefers-color-scheme:dark){:root{--ink:#e4e8ef;--dim:#9aa4b4;--line:#39414e;--paper:#151a21;--c0:#6ea3ff;--c1:#ff9a66;--c2:#5fcf99;--c3:#b994f0;--c4:#e0b54a;--c5:#f083b4}}
.chart text{font:12px system-ui,sans-serif;fill:var(--dim)}
.chart .t{fill:var(--ink);font-size:13px;font-weight:600}
.chart .g{stroke:var(--line);stroke-width:1}
.chart .l{fill:none;stroke-width:1.8;stroke-linejoin:round}
.chart .b{stroke:none;opacity:.22}
.chart .p{stroke:none;opacity:.6}";

/// What a figure is: for the page, and as a file.
pub(crate) enum Figure {
    /// A chart.
    Svg(String),
    /// A picture: PNG, its width and height.
    Png(Vec<u8>, usize, usize),
}

impl Figure {
    /// The file's ending and bytes.
    pub(crate) fn file(&self) -> (&'static str, Vec<u8>) {
        match self {
            Self::Svg(svg) => {
                let style = format!("<style>{STYLE}\nsvg{{background:var(--paper)}}</style>");
                ("svg", svg.replacen('>', &format!(">{style}"), 1).into_bytes())
            }
            Self::Png(bytes, ..) => ("png", bytes.clone()),
        }
    }

    /// The figure inside a page.
    pub(crate) fn html(&self, alt: &str) -> String {
        match self {
            Self::Svg(svg) => svg.clone(),
            Self::Png(bytes, w, h) => format!(
                "<img alt=\"{}\" width=\"{w}\" height=\"{h}\" src=\"data:image/png;base64,{}\">",
                escape(alt),
                base64(bytes)
            ),
        }
    }
}

/// Text that may stand in HTML and SVG.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Bytes as base 64.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |w, &b| w << 8 | u32::from(b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * i) & 63) as usize];
            out.push(if i > chunk.len() { '=' } else { letter.into() });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_everybody_writes_it() {
        assert_eq!(base64(b"Man"), "TWFu");
        assert_eq!(base64(b"Ma"), "TWE=");
        assert_eq!(base64(b"M"), "TQ==");
    }
}
