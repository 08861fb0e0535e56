//! Images of one filled shape: a square, a disc or a triangle.

use std::sync::Arc;

use super::random::Random;
use crate::schema::numbered;
use crate::{Bits, Column, Kind, Labels, Result, Schema, Table, Values};

const NAMES: [&str; 3] = ["disc", "square", "triangle"];

/// One shape per row, of random size and place, wholly inside the image; its name is the label.
pub(super) fn shapes(height: usize, width: usize, rows: usize, seed: u64) -> Result<Table> {
    let mut random = Random::new(seed, "shapes");
    let categories: Arc<[String]> = NAMES.map(str::to_owned).into();
    let mut columns = numbered("v", height * width, Kind::Binary);
    columns.push(Column::new("label", Kind::Label).with_categories(categories.clone()));
    let label = columns.len() - 1;
    let schema = Schema { columns, shape: Some([height, width]) };
    let mut bits = Bits::zeros(rows, height * width);
    let mut codes = Vec::with_capacity(rows);
    let side = height.min(width) as f64;
    for row in 0..rows {
        let shape = random.below(NAMES.len());
        // Half the shape's extent: an eighth to a quarter of the image.
        let r = side * (0.125 + 0.125 * random.uniform());
        let cy = r + (height as f64 - 2.0 * r) * random.uniform();
        let cx = r + (width as f64 - 2.0 * r) * random.uniform();
        codes.push(shape as u32);
        for y in 0..height {
            for x in 0..width {
                let (dy, dx) = (y as f64 + 0.5 - cy, x as f64 + 0.5 - cx);
                let inside = match shape {
                    0 => dy * dy + dx * dx <= r * r,
                    1 => dy.abs() <= r && dx.abs() <= r,
                    _ => dy.abs() <= r && dx.abs() <= (dy + r) / 2.0,
                };
                if inside {
                    bits.set(row, y * width + x, true);
                }
            }
        }
    }
    let mut table = Table::zeros(Arc::new(schema), rows);
    table.blocks[0].values = Values::Bits(bits);
    table.labels = Some(Labels { column: label, categories, codes });
    Ok(table)
}
