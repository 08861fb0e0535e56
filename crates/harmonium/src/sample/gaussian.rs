//! Draws a Gaussian layer with lateral couplings jointly: given all others, its units have a joint normal distribution.

use crate::machine::Cholesky;
use crate::{Batch, Bits, Coupling, Key, Layer, Real};
use harmonium_kernels::Stream;
use ndarray::Array2;
use rand_distr::{Distribution, StandardNormal};

/// The factor of the precision of some units, and which they are.
struct Free {
    units: Vec<usize>,
    factor: Cholesky,
}

impl Free {
    fn new(p: &Array2<f64>, units: Vec<usize>) -> Option<Self> {
        let part = Array2::from_shape_fn((units.len(), units.len()), |(i, j)| p[[units[i], units[j]]]);
        Some(Self { factor: Cholesky::new(&part)?, units })
    }
}

/// Draws the units of each row that the mask leaves free from their joint distribution given all else, $x \sim
/// N(P^{-1}b, P^{-1})$ with $P = \mathrm{diag}(\gamma) - \beta U$ and b what they receive. Returns `false` without
/// drawing when the precision is not positive definite.
pub(super) fn jointly<T: Real>(
    layer: &Layer<T>,
    coupling: &Coupling<T>,
    beta: f64,
    inputs: &Array2<T>,
    mask: Option<&Bits>,
    key: Key,
    x: &mut Batch<T>,
) -> bool {
    let n = layer.len();
    let mut p = Array2::from_diag(&layer.params().row(1).mapv(Real::f64));
    p.zip_mut_with(coupling.w(), |p, w| *p -= beta * w.f64());
    let Some(all) = Free::new(&p, (0..n).collect()) else { return false };
    let theta: Vec<f64> = layer.params().row(0).iter().map(|t| t.f64()).collect();
    let start = |block: usize| (Stream::new(Key { block: block as u32, ..key }), None::<Free>);
    layer.rows_mut(inputs, x, true, start, |(rng, last), r, inputs, x| {
        let free = match mask {
            None => &all,
            Some(mask) => {
                let units: Vec<usize> = (0..n).filter(|&j| !mask.get(r, j)).collect();
                if last.as_ref().is_none_or(|l| l.units != units) {
                    *last = Free::new(&p, units);
                }
                // A principal minor of a positive definite matrix is positive definite.
                last.as_ref().expect("part of a positive definite matrix")
            }
        };
        let held: Vec<usize> = (0..n).filter(|j| !free.units.contains(j)).collect();
        let field = |&i: &usize| {
            let others: f64 = held.iter().map(|&k| p[[i, k]] * x[k]).sum();
            theta[i] + inputs[i].f64() - others
        };
        let mut draw: Vec<f64> = free.units.iter().map(field).collect();
        free.factor.solve_lower(&mut draw);
        draw.iter_mut().for_each(|d| *d += normal(rng));
        free.factor.solve_upper(&mut draw);
        free.units.iter().zip(draw).for_each(|(&j, d)| x[j] = d);
    });
    true
}

fn normal(rng: &mut Stream) -> f64 {
    StandardNormal.sample(rng)
}
