//! Pictures of weights and images.

use super::Figure;
use crate::picture::{Picture, encode};
use ndarray::ArrayView2;

/// Blue below zero, near white at zero, red above: −1 to 1.
pub(crate) fn diverging(x: f32) -> [u8; 3] {
    let ends = if x < 0.0 { [33, 92, 173] } else { [190, 40, 48] };
    let t = x.abs().clamp(0.0, 1.0).powf(0.8);
    [0, 1, 2].map(|i| {
        let white = [244.0, 244.0, 242.0][i];
        (white + t * (ends[i] as f32 - white)).round() as u8
    })
}

fn colour(picture: &Picture, map: impl Fn(f32) -> [u8; 3]) -> Figure {
    let bytes: Vec<u8> = picture.pixels.iter().flat_map(|&x| map(x)).collect();
    let (w, h) = (picture.width, picture.height);
    Figure::Png(encode(w, h, png::ColorType::Rgb, &bytes), w, h)
}

/// How much to enlarge a picture of this width to be looked at.
fn scale(width: usize, wanted: usize) -> usize {
    (wanted / width.max(1)).clamp(1, 12)
}

/// A grid of images; `map` gives their colours.
pub(crate) fn image_grid(
    images: &[Picture],
    across: usize,
    wanted: usize,
    map: Option<fn(f32) -> [u8; 3]>,
) -> Figure {
    let paper = if map.is_some() { f32::NAN } else { 0.35 };
    let grid = Picture::grid(images, across, 1, paper);
    let grid = grid.enlarged(scale(grid.width, wanted));
    let grey = |x: f32| [(255.0 * (1.0 - x.clamp(0.0, 1.0))).round() as u8; 3];
    colour(&grid, |x| match map {
        _ if x.is_nan() => [150, 150, 150],
        Some(map) => map(x),
        None => grey(x),
    })
}

/// A matrix as a heat map, its largest absolute value at the ends of the colours.
pub(crate) fn heat_map(w: ArrayView2<'_, f64>, wanted: usize) -> Figure {
    let top = w.iter().fold(1e-12f64, |a, x| a.max(x.abs()));
    // Very wide matrices are thinned out: more columns than pixels cannot be seen.
    let (rows, cols) = w.dim();
    let (dr, dc) = (rows.div_ceil(700).max(1), cols.div_ceil(900).max(1));
    let (h, wd) = (rows.div_ceil(dr), cols.div_ceil(dc));
    let pixel = |i: usize| (w[[i / wd * dr, i % wd * dc]] / top) as f32;
    let picture = Picture { width: wd, height: h, pixels: (0..h * wd).map(pixel).collect() };
    colour(&picture.enlarged(scale(wd, wanted)), diverging)
}
