//! Coupled chains that meet: maximal couplings of their conditionals.

use super::Order;
use crate::units::{BLOCK, Form, uniform};
use crate::{Batch, Key, Layer, Real, Result, Role, States, Tempered};
use harmonium_kernels::Stream;
use ndarray::Array2;
use rayon::prelude::*;

/// Draws after which the search for a second value gives up, which only rounding can cause.
const TRIES: usize = 10_000;

/// One sweep of two ensembles: each on its own is distributed like [`sweep`](super::sweep), and every unit takes the
/// same value in both with the largest probability that this allows. Rows that are equal stay equal.
///
/// Conditioning layers stay as they are.
///
/// # Errors
/// A layer with lateral couplings, or one that is not held.
pub fn coupled_sweep<T: Real>(
    model: &Tempered<'_, T>,
    order: &Order,
    x: &mut States<T>,
    y: &mut States<T>,
    key: Key,
) -> Result<()> {
    for &l in order.layers() {
        if model.machine().role(l) == Role::Condition {
            continue;
        }
        model.must_factorise("a coupled sweep", &[l])?;
        let (a, b) = (model.inputs(l, x)?, model.inputs(l, y)?);
        let key = Key { purpose: key.purpose << 8 | l as u32 & 0xff, ..key };
        let (drawn_x, drawn_y) = draw(model.layer(l), &a, &b, key)?;
        x.set(l, drawn_x);
        y.set(l, drawn_y);
    }
    Ok(())
}

/// A pair of draws of a whole layer given two inputs.
fn draw<T: Real>(
    layer: &Layer<T>,
    a: &Array2<T>,
    b: &Array2<T>,
    key: Key,
) -> Result<(Batch<T>, Batch<T>)> {
    let (rows, n, c) = (a.nrows(), layer.len(), layer.kind().columns());
    let units: Vec<Layer<T>> = (0..n).map(|j| layer.unit(j)).collect();
    let (mut x, mut y) = (Array2::<f64>::zeros((rows, n)), Array2::<f64>::zeros((rows, n)));
    let slice = "new arrays are in standard layout";
    let chunk = (BLOCK * n).max(1);
    let blocks = x.as_slice_mut().expect(slice).par_chunks_mut(chunk);
    let blocks = blocks.zip(y.as_slice_mut().expect(slice).par_chunks_mut(chunk)).enumerate();
    blocks.for_each(|(block, (x, y))| {
        let mut rng = Stream::new(Key { block: block as u32, ..key });
        for (i, (x, y)) in x.iter_mut().zip(y).enumerate() {
            let (r, j) = (block * BLOCK + i / n, i % n);
            let input = |inputs: &Array2<T>| -> Vec<T> {
                (j * c..(j + 1) * c).map(|k| inputs[[r, k]]).collect()
            };
            (*x, *y) = pair(&units[j], &input(a), &input(b), &mut rng);
        }
    });
    Ok((layer.batch(x.view())?, layer.batch(y.view())?))
}

/// A maximal coupling of one unit's conditionals p and q given two inputs.
///
/// Two-valued units share one uniform number. Otherwise (Thorisson): draw x from p and keep y = x with probability
/// min(1, q(x)/p(x)), else draw y from the excess of q over p.
fn pair<T: Real>(unit: &Layer<T>, a: &[T], b: &[T], rng: &mut Stream) -> (f64, f64) {
    if unit.kind().form() == Form::Bits {
        let mut mean = [T::zero()];
        let u = uniform(rng);
        let mut bit = |inputs: &[T]| {
            unit.mean_row(inputs, &mut mean);
            let p = unit.kind().upper_probability(mean[0].f64()).expect("a two-valued unit");
            unit.kind().value(u32::from(u < p))
        };
        return (bit(a), bit(b));
    }
    let log_ratio = |x: f64| unit.log_density(b, x) - unit.log_density(a, x);
    let x = unit.sample_unit(0, a, rng);
    if uniform(rng).ln() <= log_ratio(x) {
        return (x, x);
    }
    let mut y = unit.sample_unit(0, b, rng);
    for _ in 0..TRIES {
        if uniform(rng).ln() > -log_ratio(y) {
            break;
        }
        y = unit.sample_unit(0, b, rng);
    }
    (x, y)
}
