//! Values for missing entries, from the mean of a unit given all known entries.

use super::Layer;
use crate::Real;
use ndarray::Array2;

impl<T: Real> Layer<T> {
    /// [`Kind::most_probable`](super::Kind::most_probable) of every unit from means in dense form, a row for each configuration.
    pub fn most_probable(&self, means: &Array2<f64>) -> Array2<f64> {
        self.per_unit(means, |_, _, mean| self.kind().most_probable(mean))
    }

    /// [`Kind::probability`](super::Kind::probability) of every value from means in dense form; NaN where the mean does not determine it.
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
