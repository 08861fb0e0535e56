//! One pass over the weights of a coupling, in blocks of rows: gradient, penalties, optimiser, average.

use super::rule::Rule;
use super::{ROWS, Regulariser, Step};
use crate::Real;
use harmonium_kernels::Loop;
use ndarray::Array2;

/// One block of rows of one coupling.
pub(super) struct Block<'a, T> {
    pub(super) first_row: usize,
    pub(super) old: &'a [T],
    pub(super) new: &'a mut [T],
    pub(super) positive: &'a [T],
    pub(super) negative: &'a [T],
    pub(super) first: &'a mut [T],
    pub(super) second: &'a mut [T],
    pub(super) average: &'a mut [T],
}

/// Sums over one block.
pub(super) struct Part<T> {
    /// $\sum_i \Delta_{ij}\mu_i$ for each column, $\sum_j \Delta_{ij}\lambda_j$ for each row.
    pub(super) columns: Vec<T>,
    pub(super) rows: Vec<T>,
    pub(super) gradient: f64,
    pub(super) change: f64,
    pub(super) product: f64,
    pub(super) before: f64,
}

/// One coupling's constants.
pub(super) struct Ends<'a, T> {
    /// Offsets and scales of rows and columns, and differences of the means between the phases.
    pub(super) centre: (&'a [T], &'a [T]),
    pub(super) scale: Option<(&'a [T], &'a [T])>,
    pub(super) difference: (&'a [T], &'a [T]),
    /// $\sum_i |w_{ij}|$, for the L1b penalty.
    pub(super) column_sums: Option<&'a [T]>,
}

pub(super) fn column_sums<T: Real>(w: &Array2<T>) -> Vec<T> {
    let mut sums = vec![T::zero(); w.ncols()];
    for row in w.rows() {
        sums.iter_mut().zip(row).for_each(|(s, w)| *s += w.abs());
    }
    sums
}

/// Cuts the arrays of one coupling into blocks of rows; an array that is not there has empty blocks.
pub(super) fn blocks<'a, T: Real>(
    old: &'a Array2<T>,
    new: &'a mut Array2<T>,
    (positive, negative): (&'a Array2<T>, &'a Array2<T>),
    first: Option<&'a mut Array2<T>>,
    second: Option<&'a mut Array2<T>>,
    average: Option<&'a mut Array2<T>>,
) -> Vec<Block<'a, T>> {
    let size = ROWS * old.ncols().max(1);
    let slice = "arrays of a machine are in standard layout";
    let read = |a: &'a Array2<T>| a.as_slice().expect(slice).chunks(size);
    let write = |a: Option<&'a mut Array2<T>>| {
        let data: &mut [T] = a.map_or(&mut [], |a| a.as_slice_mut().expect(slice));
        data.chunks_mut(size).map(Some).chain(std::iter::repeat_with(|| None))
    };
    let writes = write(Some(new)).zip(write(first)).zip(write(second)).zip(write(average));
    let reads = read(old).zip(read(positive)).zip(read(negative));
    reads
        .zip(writes)
        .enumerate()
        .map(|(k, (((old, positive), negative), (((new, first), second), average)))| Block {
            first_row: k * ROWS,
            old,
            new: new.unwrap_or_default(),
            positive,
            negative,
            first: first.unwrap_or_default(),
            second: second.unwrap_or_default(),
            average: average.unwrap_or_default(),
        })
        .collect()
}

/// Row `r` of a block's array of `n` columns; empty when the array is not there.
#[inline(always)]
pub(super) fn row_of<T>(data: &mut [T], r: usize, n: usize) -> &mut [T] {
    if data.is_empty() { data } else { &mut data[r * n..(r + 1) * n] }
}

/// The pass over one block.
pub(super) struct Pass<'a, 'b, T> {
    pub(super) block: Block<'a, T>,
    pub(super) n: usize,
    pub(super) ends: &'b Ends<'a, T>,
    pub(super) rule: &'b Rule<T>,
    pub(super) regulariser: &'b Regulariser,
    pub(super) step: Step,
}

impl<T: Real> Loop for Pass<'_, '_, T> {
    type Output = Part<T>;

    #[inline(always)]
    fn run(self) -> Part<T> {
        let Self { block, n, ends, rule, regulariser, step } = self;
        let Block { first_row, old, new, positive, negative, first, second, average } = block;
        let mut part = Part {
            columns: vec![T::zero(); n],
            rows: Vec::with_capacity(ROWS),
            gradient: 0.0,
            change: 0.0,
            product: 0.0,
            before: 0.0,
        };
        let mut delta = vec![T::zero(); n];
        for (r, old) in old.chunks_exact(n.max(1)).enumerate() {
            let (i, at) = (first_row + r, r * n..(r + 1) * n);
            gradient_row(i, &positive[at.clone()], &negative[at.clone()], ends, step.wt, &mut delta);
            penalise(regulariser, old, ends, i, &mut delta);
            part.gradient += squares(&delta);
            let (first, second) = (row_of(first, r, n), row_of(second, r, n));
            let (product, before) = rule.turn(&mut delta, first, second);
            (part.product, part.before) = (part.product + product, part.before + before);
            if let Some((row, column)) = ends.scale {
                delta.iter_mut().zip(column).for_each(|(d, s)| *d /= row[i] * *s);
            }
            part.change += squares(&delta);
            let mu = ends.centre.0[i];
            for (((new, &old), &d), column) in
                new[at].iter_mut().zip(old).zip(&delta).zip(&mut part.columns)
            {
                *new = old + d;
                *column += mu * d;
            }
            part.rows.push(dot(&delta, ends.centre.1));
            let a = T::of(step.average);
            if step.average == 0.0 {
                continue;
            }
            for (avg, &x) in row_of(average, r, n).iter_mut().zip(old) {
                *avg += a * (x - *avg);
            }
        }
        part
    }
}

/// $g_{ij} = \omega\big[\Delta\langle x_iy_j\rangle - (\mu_i \Delta\langle y_j\rangle +
/// \lambda_j \Delta\langle x_i\rangle)\big]/(s_i t_j)$, Δ being positive minus negative phase, s and t the
/// scales of the two ends: the gradient by $\tilde W$. The terms $\mu_i\lambda_j$ of the two phases cancel,
/// because both are averages; ω is the weight of the minibatch.
#[inline(always)]
pub(super) fn gradient_row<T: Real>(
    i: usize,
    positive: &[T],
    negative: &[T],
    ends: &Ends<'_, T>,
    wt: f64,
    out: &mut [T],
) {
    let (mu, dx, wt) = (ends.centre.0[i], ends.difference.0[i], T::of(wt));
    let (lambda, dy) = (ends.centre.1, ends.difference.1);
    let n = out.len();
    let (positive, negative, lambda, dy) = (&positive[..n], &negative[..n], &lambda[..n], &dy[..n]);
    for j in 0..n {
        out[j] = wt * ((positive[j] - negative[j]) - (mu * dy[j] + dx * lambda[j]));
    }
    if let Some((row, column)) = ends.scale {
        out.iter_mut().zip(column).for_each(|(g, s)| *g /= row[i] * *s);
    }
}

/// Subtracts the derivative of the penalties, in the run's coordinates.
#[inline(always)]
pub(super) fn penalise<T: Real>(p: &Regulariser, w: &[T], ends: &Ends<'_, T>, i: usize, out: &mut [T]) {
    if p.l1 == 0.0 && p.l2 == 0.0 && p.l1b == 0.0 {
        return;
    }
    for (j, (g, &w)) in out.iter_mut().zip(w).enumerate() {
        let sign = if w == T::zero() { T::zero() } else { w.signum() };
        let column = ends.column_sums.map_or(T::zero(), |s| s[j]);
        let d = T::of(p.l1) * sign + T::of(p.l2) * w + T::of(p.l1b) * column * sign;
        *g -= ends.scale.map_or(d, |(row, column)| d / (row[i] * column[j]));
    }
}

#[inline(always)]
pub(super) fn squares<T: Real>(x: &[T]) -> f64 {
    dot(x, x).f64()
}

/// Sum of products in sixteen lanes, whose order is fixed.
#[inline(always)]
pub(super) fn dot<T: Real>(x: &[T], y: &[T]) -> T {
    const LANES: usize = 16;
    let mut lanes = [T::zero(); LANES];
    let (xs, ys) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
    let rest: T = xs.remainder().iter().zip(ys.remainder()).map(|(&a, &b)| a * b).sum();
    for (x, y) in xs.zip(ys) {
        for k in 0..LANES {
            lanes[k] += x[k] * y[k];
        }
    }
    lanes.into_iter().sum::<T>() + rest
}

/// Mask, symmetry and norm of a coupling's new weights; a unit has `columns` columns.
pub(super) fn finish<T: Real>(coupling: &mut crate::Coupling<T>, columns: usize, max_norm: f64) {
    if max_norm > 0.0 {
        let w = coupling.w_mut();
        let mut norms = vec![0.0; w.ncols()];
        for row in w.rows() {
            norms.iter_mut().zip(row).for_each(|(s, w)| *s += w.f64() * w.f64());
        }
        let factor = |s: &f64| T::of(if s.sqrt() > max_norm { max_norm / s.sqrt() } else { 1.0 });
        let factors: Vec<T> = norms.iter().map(factor).collect();
        for mut row in w.rows_mut() {
            row.iter_mut().zip(&factors).for_each(|(w, f)| *w *= *f);
        }
    }
    if coupling.is_lateral() {
        // Rounding may differ between a weight and its mirror image, which are one parameter.
        let w = coupling.w_mut();
        for i in 0..w.nrows() {
            for j in 0..i {
                w[[i, j]] = w[[j, i]];
            }
            // The products of offsets that centring subtracts know no units: none acts on itself.
            for j in i / columns * columns..(i / columns + 1) * columns {
                w[[i, j]] = T::zero();
            }
        }
    }
    coupling.apply_mask();
}
