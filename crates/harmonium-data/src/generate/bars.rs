//! Bars and stripes, and shifting bars.

use super::random::Random;
use crate::{Bits, Kind, Result, Table};

/// Every image whose rows are each all on or all off, or whose columns are: 2^height + 2^width − 2 rows.
///
/// With `rows`, that many images are drawn instead, each of the distinct ones equally likely.
pub(super) fn bars_and_stripes(
    height: usize,
    width: usize,
    rows: Option<usize>,
    seed: u64,
) -> Result<Table> {
    let stripes = 1usize << height;
    let distinct = stripes + (1usize << width) - 2;
    // Columns all on and all off repeat the first and the last of the row patterns.
    let pattern = |index: usize, y: usize, x: usize| match index.checked_sub(stripes) {
        None => index >> y & 1 == 1,
        Some(other) => (other + 1) >> x & 1 == 1,
    };
    let mut random = Random::new(seed, "bars-and-stripes");
    let mut bits = Bits::zeros(rows.unwrap_or(distinct), height * width);
    for row in 0..bits.rows() {
        let index = match rows {
            None => row,
            Some(_) => random.below(distinct),
        };
        for y in 0..height {
            for x in 0..width {
                bits.set(row, y * width + x, pattern(index, y, x));
            }
        }
    }
    Table::from_bits(Kind::Binary, bits, Some([height, width]))
}

/// A bar of `bar` ones on a ring of `length` pixels, in every position; or `rows` draws of them.
pub(super) fn shifting_bars(length: usize, bar: usize, rows: Option<usize>, seed: u64) -> Result<Table> {
    let mut random = Random::new(seed, "shifting-bars");
    let mut bits = Bits::zeros(rows.unwrap_or(length), length);
    for row in 0..bits.rows() {
        let start = match rows {
            None => row,
            Some(_) => random.below(length),
        };
        for i in 0..bar {
            bits.set(row, (start + i) % length, true);
        }
    }
    Table::from_bits(Kind::Binary, bits, Some([1, length]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_pattern_once() {
        for (height, width, count) in [(4, 4, 30), (2, 3, 10), (1, 1, 2), (5, 3, 38)] {
            let table = bars_and_stripes(height, width, None, 0).unwrap();
            let bits = table.blocks()[0].bits().unwrap();
            let distinct: HashSet<&[u64]> = (0..bits.rows()).map(|row| bits.row(row)).collect();
            assert_eq!((table.rows(), distinct.len()), (count, count));
            for row in 0..bits.rows() {
                let pixel = |y: usize, x: usize| bits.get(row, y * width + x);
                let by_rows = (0..height).all(|y| (0..width).all(|x| pixel(y, x) == pixel(y, 0)));
                let by_columns = (0..height).all(|y| (0..width).all(|x| pixel(y, x) == pixel(0, x)));
                assert!(by_rows || by_columns);
            }
        }
    }

    #[test]
    fn bars_shift_around_the_ring() {
        let table = shifting_bars(9, 4, None, 0).unwrap();
        let bits = table.blocks()[0].bits().unwrap();
        assert_eq!((bits.rows(), bits.count_ones()), (9, 36));
        assert_eq!(bits.row(8)[0], 0b1_0000_0111);
    }
}
