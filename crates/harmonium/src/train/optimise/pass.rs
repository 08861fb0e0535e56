//! The arithmetic of an update of weights: gradient, penalties, optimiser, average.

use super::rule::{Rule, adam, cosine, momentum, nesterov};
use super::{Regulariser, Step};
use crate::Real;
use harmonium_kernels::fixed;
use ndarray::Array2;

/// Cells that are worked on at a time: what fits two registers.
pub(super) const CELLS: usize = fixed::WIDTH;

/// Sums over one block of rows or strip of columns.
pub(super) struct Part<T> {
    /// $\sum_i \Delta_{ij}\mu_i$ for each column, $\sum_j \Delta_{ij}\lambda_j$ for each row.
    pub(super) columns: Vec<T>,
    pub(super) rows: Vec<T>,
    gradient: [T; CELLS],
    change: [T; CELLS],
    memory: Memory<T>,
}

/// What the cosine rule asks: the product of the gradient with the one before, and the square of the latter.
#[derive(Clone, Copy)]
struct Memory<T> {
    product: [T; CELLS],
    before: [T; CELLS],
}

impl<T: Real> Part<T> {
    pub(super) fn new(rows: usize, columns: usize) -> Self {
        let zero = [T::zero(); CELLS];
        Self {
            columns: vec![T::zero(); columns],
            rows: vec![T::zero(); rows],
            gradient: zero,
            change: zero,
            memory: Memory { product: zero, before: zero },
        }
    }

    /// Squared norms of the gradient and of the change.
    pub(super) fn squares(&self) -> (f64, f64) {
        (total(&self.gradient), total(&self.change))
    }

    /// The product of the gradient with the one before, and the square of the latter.
    pub(super) fn memory(&self) -> (f64, f64) {
        (total(&self.memory.product), total(&self.memory.before))
    }
}

fn total<T: Real>(x: &[T; CELLS]) -> f64 {
    x.iter().map(|x| x.f64()).sum()
}

/// One coupling's constants.
pub(super) struct Ends<'a, T> {
    /// Offsets and inverse scales of rows and columns, and differences of the means between the phases.
    pub(super) centre: (&'a [T], &'a [T]),
    pub(super) inverse: (&'a [T], &'a [T]),
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

/// Some columns of one row: the arrays that the pass reads and writes, empty where an array is not there.
pub(super) struct Cells<'a, T> {
    pub(super) old: &'a [T],
    pub(super) new: &'a mut [T],
    pub(super) first: &'a mut [T],
    pub(super) second: &'a mut [T],
    pub(super) average: &'a mut [T],
}

impl<T> Cells<'_, T> {
    #[inline(always)]
    pub(super) fn part(&mut self, from: usize, to: usize) -> Cells<'_, T> {
        #[inline(always)]
        fn cut<T>(x: &mut [T], from: usize, to: usize) -> &mut [T] {
            if x.is_empty() { x } else { &mut x[from..to] }
        }
        Cells {
            old: &self.old[from..to],
            new: cut(self.new, from, to),
            first: cut(self.first, from, to),
            second: cut(self.second, from, to),
            average: cut(self.average, from, to),
        }
    }
}

/// What is the same for all weights of a coupling.
pub(super) struct Pass<'a, T> {
    pub(super) ends: Ends<'a, T>,
    pub(super) rule: Rule<T>,
    pub(super) regulariser: Regulariser,
    pub(super) step: Step,
}

impl<T: Real> Pass<'_, T> {
    /// Row `i` from column `j` on, with $\Delta\langle x_iy_j\rangle$, positive minus negative phase. `row` and
    /// `column` are the places of the first cell among the sums of the part.
    #[inline(always)]
    pub(super) fn row(
        &self,
        (i, j): (usize, usize),
        (row, column): (usize, usize),
        difference: &[T],
        mut cells: Cells<'_, T>,
        part: &mut Part<T>,
    ) {
        let n = difference.len();
        let mut at = 0;
        macro_rules! in_steps_of {
            ($($width:literal)*) => {$(
                while n - at >= $width {
                    let difference: &[T; $width] = difference[at..at + $width].try_into().expect("cells");
                    let cells = cells.part(at, at + $width);
                    self.cells((i, j + at), (row, column + at), difference, cells, part);
                    at += $width;
                }
            )*};
        }
        // Constant widths are worth their code: loops over them are unrolled, and nothing is checked inside.
        in_steps_of!(32 16 4 1);
    }

    /// Some cells of row `i`, by the rule of the optimiser.
    #[inline(always)]
    pub(super) fn cells<const N: usize>(
        &self,
        at: (usize, usize),
        place: (usize, usize),
        difference: &[T; N],
        cells: Cells<'_, T>,
        part: &mut Part<T>,
    ) {
        let Cells { old, new, first, second, average } = cells;
        let (old, new) = (array_of(old), array_of_mut(new));
        if self.step.average != 0.0 {
            let a = T::of(self.step.average);
            average.iter_mut().zip(old).for_each(|(avg, &x)| *avg += a * (x - *avg));
        }
        macro_rules! by {
            ($rule:expr) => {
                if self.regulariser.has_penalty() {
                    self.each::<N, true>(at, place, difference, old, new, part, $rule)
                } else {
                    self.each::<N, false>(at, place, difference, old, new, part, $rule)
                }
            };
        }
        match self.rule {
            Rule::Sgd { rate } => by!(|_, g| rate * g),
            Rule::Momentum { rate, mu } => {
                let m: &mut [T; N] = array_of_mut(first);
                by!(|k: usize, g| momentum(rate, mu, g, &mut m[k]));
            }
            Rule::Nesterov { rate, mu } => {
                let m: &mut [T; N] = array_of_mut(first);
                by!(|k: usize, g| nesterov(rate, mu, g, &mut m[k]));
            }
            Rule::Adam(a) => {
                let (m, s): (&mut [T; N], &mut [T; N]) = (array_of_mut(first), array_of_mut(second));
                by!(|k: usize, g| adam(a, g, &mut m[k], &mut s[k]));
            }
            Rule::Cosine { rate } => {
                let m: &mut [T; N] = array_of_mut(first);
                let mut memory = part.memory;
                by!(|k: usize, g| {
                    let (product, before) = (&mut memory.product[k], &mut memory.before[k]);
                    cosine(rate, g, &mut m[k], (product, before))
                });
                part.memory = memory;
            }
        }
    }

    /// Some cells of row `i`: one loop without intermediate arrays, which would go through memory in pieces.
    ///
    /// $g_{ij} = \omega\big[\Delta\langle x_iy_j\rangle - (\mu_i \Delta\langle y_j\rangle +
    /// \lambda_j \Delta\langle x_i\rangle)\big]/(s_i t_j)$, Δ being positive minus negative phase, s and t the
    /// scales of the two ends: the gradient by $\tilde W$. The terms $\mu_i\lambda_j$ of the two phases cancel,
    /// because both are averages; ω is the weight of the minibatch. `rule` turns it into a change of $\tilde W$.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn each<const N: usize, const PENALISED: bool>(
        &self,
        (i, j): (usize, usize),
        (row, column): (usize, usize),
        difference: &[T; N],
        old: &[T; N],
        new: &mut [T; N],
        part: &mut Part<T>,
        mut rule: impl FnMut(usize, T) -> T,
    ) {
        let ends = &self.ends;
        let (mu, dx, si, wt) =
            (ends.centre.0[i], ends.difference.0[i], ends.inverse.0[i], T::of(self.step.wt));
        let (lambda, dy): (&[T; N], &[T; N]) =
            (array_of(&ends.centre.1[j..]), array_of(&ends.difference.1[j..]));
        let inverse: &[T; N] = array_of(&ends.inverse.1[j..]);
        let columns: &mut [T; N] = array_of_mut(&mut part.columns[column..]);
        let mut shift = [T::zero(); N];
        for k in 0..N {
            let inverse = si * inverse[k];
            let mut g = wt * (difference[k] - (mu * dy[k] + dx * lambda[k])) * inverse;
            if PENALISED {
                g -= self.penalty(old[k], j + k) * inverse;
            }
            part.gradient[k] += g * g;
            let d = rule(k, g) * inverse;
            part.change[k] += d * d;
            new[k] = old[k] + d;
            columns[k] += mu * d;
            shift[k] = d * lambda[k];
        }
        part.rows[row] += sum(&shift);
    }

    /// The derivative of the penalties by a weight of column `j`.
    #[inline(always)]
    fn penalty(&self, w: T, j: usize) -> T {
        let p = &self.regulariser;
        let sign = if w == T::zero() { T::zero() } else { w.signum() };
        let column = self.ends.column_sums.map_or(T::zero(), |s| s[j]);
        T::of(p.l1) * sign + T::of(p.l2) * w + T::of(p.l1b) * column * sign
    }
}

#[inline(always)]
fn array_of<T, const N: usize>(x: &[T]) -> &[T; N] {
    x[..N].try_into().expect("as long as asked for")
}

#[inline(always)]
fn array_of_mut<T, const N: usize>(x: &mut [T]) -> &mut [T; N] {
    (&mut x[..N]).try_into().expect("as long as asked for")
}

/// The sum of the elements, halves onto halves.
#[inline(always)]
fn sum<T: Real, const N: usize>(x: &[T; N]) -> T {
    if N < 16 {
        return x.iter().copied().sum();
    }
    let (mut a, mut b, mut c) = ([T::zero(); 16], [T::zero(); 8], [T::zero(); 4]);
    (0..16).for_each(|k| a[k] = if N == 32 { x[k] + x[k + 16] } else { x[k] });
    (0..8).for_each(|k| b[k] = a[k] + a[k + 8]);
    (0..4).for_each(|k| c[k] = b[k] + b[k + 4]);
    (c[0] + c[2]) + (c[1] + c[3])
}

/// Whether [`finish`] leaves the new weights of a coupling as they are.
pub(super) fn is_final<T: Real>(coupling: &crate::Coupling<T>, max_norm: f64) -> bool {
    max_norm == 0.0 && !coupling.is_lateral() && coupling.mask().is_none()
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
