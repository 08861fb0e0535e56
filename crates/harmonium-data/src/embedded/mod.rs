//! The data sets compiled into the crate: digits and MNIST.

use std::io::Read;
use std::sync::Arc;

use flate2::read::GzDecoder;

use crate::schema::numbered;
use crate::split::{Dataset, Split};
use crate::{Bits, Column, Error, Kind, Labels, Place, Result, Schema, Table, Values};

const DIGITS: &[u8] = include_bytes!("../../data/digits.gz");
const DIGITS_ROWS: usize = 1797;

const MNIST: &[u8] = include_bytes!("../../data/mnist.gz");
const MNIST_ROWS: usize = 70_000;
const MNIST_TRAIN: usize = 60_000;

/// A grey pixel of the digits is the number of dots that are on in a 4 × 4 square; from this number on the binary pixel is 1.
pub const DIGITS_THRESHOLD: u8 = 8;

/// The 1797 digits of 8 × 8 pixels: binary (at least [`DIGITS_THRESHOLD`] of 16), or as counts 0 to 16.
///
/// A fixed random fifth is the test part.
///
/// From scikit-learn's copy of *Optical Recognition of Handwritten Digits*, E. Alpaydin and C. Kaynak,
/// 1998, CC BY 4.0.
pub fn digits(grey: bool) -> Result<Dataset> {
    let bytes = unpack("digits", DIGITS, DIGITS_ROWS * 65)?;
    let kind = if grey { Kind::Count } else { Kind::Binary };
    let mut table = labelled(kind, [8, 8], bytes.chunks_exact(65).map(|row| row[64]));
    for (row, pixels) in bytes.chunks_exact(65).enumerate() {
        for (col, &pixel) in pixels[..64].iter().enumerate() {
            match &mut table.blocks[0].values {
                Values::Bits(bits) => bits.set(row, col, pixel >= DIGITS_THRESHOLD),
                Values::Codes(codes) => codes.set(row, col, u32::from(pixel)),
                Values::Reals(_) | Values::Singles(_) => {}
            }
        }
    }
    Split::Fraction { test: 0.2, seed: 0 }.apply(table)
}

/// The 70 000 digits of 28 × 28 pixels, thresholded at 128: 60 000 to train, 10 000 to test.
///
/// MNIST, by Y. LeCun, C. Cortes and C. Burges, 1998; `data/README.md` says where it comes from and on what terms.
pub fn mnist() -> Result<Dataset> {
    const BYTES: usize = 98;
    let bytes = unpack("mnist", MNIST, MNIST_ROWS * (BYTES + 1))?;
    let (images, labels) = bytes.split_at(MNIST_ROWS * BYTES);
    let part = |first: usize, end: usize| {
        let codes = labels[first..end].iter().copied();
        let mut table = labelled(Kind::Binary, [28, 28], codes);
        let mut bits = Bits::zeros(end - first, 784);
        let rows = images[first * BYTES..end * BYTES].chunks_exact(BYTES);
        for (row, packed) in rows.enumerate() {
            for (word, bytes) in bits.row_mut(row).iter_mut().zip(packed.chunks(8)) {
                let mut wide = [0; 8];
                wide[..bytes.len()].copy_from_slice(bytes);
                *word = u64::from_le_bytes(wide);
            }
        }
        table.blocks[0].values = Values::Bits(bits);
        table
    };
    Ok(Dataset { train: part(0, MNIST_TRAIN), valid: None, test: Some(part(MNIST_TRAIN, MNIST_ROWS)) })
}

/// Images with a label column of ten digits, all pixels 0.
fn labelled(kind: Kind, shape: [usize; 2], labels: impl Iterator<Item = u8>) -> Table {
    let categories: Arc<[String]> = (0..10).map(|digit| digit.to_string()).collect();
    let mut columns = numbered("v", shape[0] * shape[1], kind);
    columns.push(Column::new("label", Kind::Label).with_categories(categories.clone()));
    let codes: Vec<u32> = labels.map(u32::from).collect();
    let schema = Schema { shape: Some(shape), columns };
    let column = schema.columns.len() - 1;
    let mut table = Table::zeros(Arc::new(schema), codes.len());
    table.labels = Some(Labels { column, categories, codes });
    table
}

fn unpack(name: &str, packed: &[u8], expected: usize) -> Result<Vec<u8>> {
    let place = Place::new(name);
    let mut bytes = Vec::with_capacity(expected);
    GzDecoder::new(packed).read_to_end(&mut bytes).map_err(Error::io(&place, "unpack"))?;
    if bytes.len() != expected {
        let what = format!("{} bytes, expected {expected}", bytes.len());
        return Err(Error::corrupt(&place, what));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class_sizes(table: &Table) -> Vec<usize> {
        let labels = table.labels().unwrap();
        (0..10).map(|class| labels.codes.iter().filter(|code| **code == class).count()).collect()
    }

    #[test]
    fn digits_are_what_scikit_learn_ships() {
        let all = digits(true).unwrap().into_all().unwrap();
        assert_eq!((all.rows(), all.cols()), (1797, 64));
        let codes = all.blocks()[0].codes().unwrap();
        let sum: u32 = codes.values().iter().sum();
        // digits.data.sum() in scikit-learn.
        assert_eq!(sum, 561_718);
        assert_eq!(class_sizes(&all), [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
    }

    #[test]
    fn binary_digits_come_with_a_test_part() {
        let set = digits(false).unwrap();
        let test = set.test.unwrap();
        assert_eq!((set.train.rows(), test.rows()), (1438, 359));
        assert!(class_sizes(&test).iter().all(|size| *size >= 20));
        assert_eq!(test.shape(), Some([8, 8]));
    }

    #[test]
    fn mnist_has_the_published_class_sizes() {
        let set = mnist().unwrap();
        let test = set.test.unwrap();
        assert_eq!((set.train.rows(), test.rows()), (60_000, 10_000));
        assert_eq!(
            class_sizes(&set.train),
            [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
        );
        assert_eq!(class_sizes(&test), [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]);
        let ink = |table: &Table| table.blocks()[0].bits().unwrap().count_ones();
        let share = (ink(&set.train) + ink(&test)) as f64 / (70_000.0 * 784.0);
        assert!((share - 0.132_539_905).abs() < 1e-8, "{share}");
    }
}
