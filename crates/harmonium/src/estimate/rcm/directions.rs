//! The principal directions of centred spins.

use harmonium_kernels::{Key, Stream};
use ndarray::{Array1, Array2, Axis};
use rand_distr::{Distribution, StandardNormal};

/// Rounds of subspace iteration, which converges at the ratio of neighbouring eigenvalues.
const ROUNDS: usize = 60;

/// The weighted mean of the columns of `x` and the `d` orthonormal directions, as columns, in which its rows vary
/// most: subspace iteration, $U \leftarrow \mathrm{orth}(X^\top w X U)$.
pub(super) fn principal(x: &Array2<f64>, wts: &[f64], d: usize) -> (Array1<f64>, Array2<f64>) {
    let total: f64 = wts.iter().sum();
    let wts = Array1::from_iter(wts.iter().map(|w| w / total));
    let mean = wts.dot(x);
    let mut rng = Stream::new(Key { seed: 0, purpose: 0, block: 0, sweep: 0 });
    let mut u = Array2::from_shape_fn((x.ncols(), d), |_| StandardNormal.sample(&mut rng));
    orthonormalise(&mut u);
    for _ in 0..ROUNDS {
        let mut y = x.dot(&u);
        y -= &mean.dot(&u);
        y *= &wts.view().insert_axis(Axis(1));
        u = x.t().dot(&y) - outer(&mean, &y.sum_axis(Axis(0)));
        orthonormalise(&mut u);
    }
    (mean, u)
}

fn outer(a: &Array1<f64>, b: &Array1<f64>) -> Array2<f64> {
    Array2::from_shape_fn((a.len(), b.len()), |(i, j)| a[i] * b[j])
}

/// Gram–Schmidt on the columns, twice over for the sake of rounding; a column that vanishes stays zero.
fn orthonormalise(u: &mut Array2<f64>) {
    for k in 0..u.ncols() {
        for _ in 0..2 {
            for j in 0..k {
                let part = u.column(j).dot(&u.column(k));
                let other = u.column(j).to_owned();
                u.column_mut(k).scaled_add(-part, &other);
            }
        }
        let norm = u.column(k).dot(&u.column(k)).sqrt();
        let scale = if norm > 1e-12 { 1.0 / norm } else { 0.0 };
        u.column_mut(k).mapv_inplace(|x| scale * x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_direction_of_two_clusters() {
        let sign = |r: usize| if r.is_multiple_of(3) { 1.0 } else { -1.0 };
        let x = Array2::from_shape_fn((30, 6), |(r, i)| if i < 4 { sign(r) } else { 1.0 });
        let (mean, u) = principal(&x, &[1.0; 30], 2);
        assert!((mean[0] + 1.0 / 3.0).abs() < 1e-12 && (mean[5] - 1.0).abs() < 1e-12);
        for i in 0..6 {
            let want = if i < 4 { 0.5 } else { 0.0 };
            assert!((u[[i, 0]].abs() - want).abs() < 1e-9, "{u}");
        }
        assert!(u.column(1).dot(&u.column(1)) < 1e-9, "there is no second direction");
    }
}
