//! Pictures: grids of images as half blocks in a terminal and as PNG.

use harmonium_data::{Kind, Table};

/// Grey levels from 0 (off) to 1 (on), row by row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Picture {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) pixels: Vec<f32>,
}

impl Picture {
    /// All pixels at one level.
    pub(crate) fn filled(width: usize, height: usize, level: f32) -> Self {
        Self { width, height, pixels: vec![level; width * height] }
    }

    /// Equal images side by side, `across` in a line, with a gap of `gap` pixels at level `paper` around.
    pub(crate) fn grid(images: &[Self], across: usize, gap: usize, paper: f32) -> Self {
        let Some(first) = images.first() else { return Self::filled(0, 0, 0.0) };
        let (w, h) = (first.width, first.height);
        let across = across.clamp(1, images.len());
        let down = images.len().div_ceil(across);
        let mut out = Self::filled(across * (w + gap) + gap, down * (h + gap) + gap, paper);
        for (i, image) in images.iter().enumerate() {
            let (x0, y0) = (gap + i % across * (w + gap), gap + i / across * (h + gap));
            for y in 0..h {
                let to = (y0 + y) * out.width + x0;
                out.pixels[to..to + w].copy_from_slice(&image.pixels[y * w..(y + 1) * w]);
            }
        }
        out
    }

    /// Every pixel as a square of `scale` pixels.
    pub(crate) fn enlarged(&self, scale: usize) -> Self {
        let (w, h) = (self.width * scale, self.height * scale);
        let pixel = |i: usize| self.pixels[i / w / scale * self.width + i % w / scale];
        Self { width: w, height: h, pixels: (0..w * h).map(pixel).collect() }
    }

    /// The picture as lines of half blocks: two pixels in a character, those above one half drawn.
    pub(crate) fn half_blocks(&self) -> Vec<String> {
        let on = |x: usize, y: usize| y < self.height && self.pixels[y * self.width + x] > 0.5;
        let line = |y: usize| {
            let cell = |x: usize| match (on(x, 2 * y), on(x, 2 * y + 1)) {
                (true, true) => '█',
                (true, false) => '▀',
                (false, true) => '▄',
                (false, false) => ' ',
            };
            (0..self.width).map(cell).collect::<String>().trim_end().to_owned()
        };
        (0..self.height.div_ceil(2)).map(line).collect()
    }

    /// The picture as a grey PNG.
    pub(crate) fn png(&self) -> Vec<u8> {
        let bytes: Vec<u8> =
            self.pixels.iter().map(|x| (x.clamp(0.0, 1.0) * 255.0).round() as u8).collect();
        encode(self.width, self.height, png::ColorType::Grayscale, &bytes)
    }
}

/// A PNG of 8-bit samples.
pub(crate) fn encode(width: usize, height: usize, colour: png::ColorType, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width.max(1) as u32, height.max(1) as u32);
    encoder.set_color(colour);
    encoder.set_depth(png::BitDepth::Eight);
    let empty = vec![0; colour.samples()];
    let bytes = if bytes.is_empty() { &empty } else { bytes };
    let written = encoder.write_header().and_then(|mut w| w.write_image_data(bytes));
    written.expect("writing to memory");
    out
}

/// The rows of a table of images; `None` when its rows are no images.
pub(crate) fn images(table: &Table, rows: impl IntoIterator<Item = usize>) -> Option<Vec<Picture>> {
    let [height, width] = table.shape()?;
    let [block] = table.blocks() else { return None };
    if block.cols() != height * width {
        return None;
    }
    let (low, high) = range(table)?;
    let level = |x: Option<f64>| x.map_or(0.5, |x| ((x - low) / (high - low)) as f32);
    let image = |r: usize| Picture {
        width,
        height,
        pixels: (0..block.cols()).map(|j| level(block.number(r, j))).collect(),
    };
    Some(rows.into_iter().map(image).collect())
}

/// The values that are drawn as off and on.
fn range(table: &Table) -> Option<(f64, f64)> {
    let block = table.blocks().first()?;
    Some(match block.kind {
        Kind::Binary => (0.0, 1.0),
        Kind::Spin => (-1.0, 1.0),
        _ => {
            let all = (0..table.rows())
                .flat_map(|r| (0..block.cols()).filter_map(move |j| block.number(r, j)));
            let (low, high) = all.fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(x), b.max(x)));
            if high > low { (low, high) } else { (low - 1.0, low + 1.0) }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_and_blocks() {
        let image = Picture { width: 2, height: 2, pixels: vec![1.0, 0.0, 1.0, 1.0] };
        assert_eq!(image.half_blocks(), ["█▄"]);
        let grid = Picture::grid(&[image.clone(), image.clone(), image], 2, 1, 0.0);
        assert_eq!((grid.width, grid.height), (7, 7));
        assert_eq!(grid.half_blocks(), [" ▄  ▄", " ▀▀ ▀▀", " █▄", ""]);
        assert_eq!(&grid.enlarged(3).png()[1..4], b"PNG");
    }
}
