//! What to put into a gap, from the mean of a unit given everything known.

use super::{Kind, Layer};
use crate::Real;
use ndarray::Array2;

impl Kind {
    /// The value to fill in for a unit whose mean (in dense form) is this: the most probable state of bits, spins and Potts units,
    /// the count nearest to the mean, and the mean itself of real units.
    pub fn most_probable(self, mean: &[f64]) -> f64 {
        match self {
            Self::Binary => f64::from(u8::from(mean[0] > 0.5)),
            Self::Spin if mean[0] > 0.0 => 1.0,
            Self::Spin => -1.0,
            Self::Potts { .. } => {
                mean.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map_or(0.0, |m| m.0 as f64)
            }
            kind if kind.is_count() => (mean[0] + 0.5).floor(),
            _ => mean[0],
        }
    }

    /// The probability of value `x` of a unit whose mean is this, where the mean tells it: of bits, spins and Potts units.
    pub fn probability(self, mean: &[f64], x: f64) -> Option<f64> {
        match self {
            Self::Binary => Some(if x > 0.5 { mean[0] } else { 1.0 - mean[0] }),
            Self::Spin => Some(0.5 * (1.0 + x * mean[0])),
            Self::Potts { .. } => mean.get(x as usize).copied(),
            _ => None,
        }
    }
}

impl<T: Real> Layer<T> {
    /// [`Kind::most_probable`] of every unit from means in dense form, a row for each configuration.
    pub fn most_probable(&self, means: &Array2<f64>) -> Array2<f64> {
        self.per_unit(means, |_, _, mean| self.kind().most_probable(mean))
    }

    /// [`Kind::probability`] of every value from means in dense form; NaN where there is none.
    pub fn probabilities(&self, means: &Array2<f64>, values: &Array2<f64>) -> Array2<f64> {
        self.per_unit(means, |r, j, mean| {
            self.kind().probability(mean, values[[r, j]]).unwrap_or(f64::NAN)
        })
    }

    fn per_unit(&self, means: &Array2<f64>, f: impl Fn(usize, usize, &[f64]) -> f64) -> Array2<f64> {
        let (q, means) = (self.kind().columns(), means.as_standard_layout());
        Array2::from_shape_fn((means.nrows(), self.len()), |(r, j)| {
            let row = means.row(r);
            f(r, j, &row.as_slice().expect("standard layout")[j * q..(j + 1) * q])
        })
    }
}
