//! The arithmetic of an update of weights: gradient, penalties, optimiser, average.

use super::rule::{Rule, adam, collect, cosine, momentum, nesterov};
use super::{Regulariser, Step};
use crate::Real;
use harmonium_kernels::fixed;
use ndarray::Array2;

/// Cells processed at a time: they fit two registers.
pub(super) const CELLS: usize = fixed::WIDTH;

/// Sums over one block of rows or strip of columns.
#[derive(Clone, Debug)]
pub(super) struct PassSums<T> {
    /// Row and column that it starts at.
    pub(super) at: (usize, usize),
    /// $\sum_i \Delta_{ij}\mu_i$ for each column, $\sum_j \Delta_{ij}\lambda_j$ for each row.
    pub(super) columns: Vec<T>,
    pub(super) rows: Vec<T>,
    gradient: [T; CELLS],
    change: [T; CELLS],
    memory: CosineSums<T>,
}

/// Sums for the cosine rule: the product of the gradient with the previous one, and the square of the latter.
#[derive(Clone, Copy, Debug)]
struct CosineSums<T> {
    product: [T; CELLS],
    before: [T; CELLS],
}

impl<T: Real> Default for PassSums<T> {
    fn default() -> Self {
        let zero = [T::zero(); CELLS];
        Self {
            at: (0, 0),
            columns: Vec::new(),
            rows: Vec::new(),
            gradient: zero,
            change: zero,
            memory: CosineSums { product: zero, before: zero },
        }
    }
}

impl<T: Real> PassSums<T> {
    /// All sums zero, of so many rows and columns from here on.
    pub(super) fn reset(&mut self, at: (usize, usize), rows: usize, columns: usize) {
        let zero = [T::zero(); CELLS];
        self.at = at;
        self.rows.clear();
        self.rows.resize(rows, T::zero());
        self.columns.clear();
        self.columns.resize(columns, T::zero());
        (self.gradient, self.change) = (zero, zero);
        self.memory = CosineSums { product: zero, before: zero };
    }

    /// Squared norms of the gradient and of the change.
    pub(super) fn squares(&self) -> (f64, f64) {
        (total(&self.gradient), total(&self.change))
    }

    /// The product of the gradient with the previous one, and the square of the latter.
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
    /// Scales in which penalties measure weights: those of visible columns, and 1 for hidden units.
    pub(super) unit: (&'a [T], &'a [T]),
    pub(super) difference: (&'a [T], &'a [T]),
    /// $\sum_i |w_{ij}|$ in these units, for the L1b penalty.
    pub(super) column_sums: Option<&'a [T]>,
}

/// Sums of the absolute weights of each column, in these units.
pub(super) fn column_sums<T: Real>(w: &Array2<T>, unit: (&[T], &[T])) -> Vec<T> {
    let mut sums = vec![T::zero(); w.ncols()];
    for (row, s) in w.rows().into_iter().zip(unit.0) {
        sums.iter_mut().zip(row).for_each(|(sum, w)| *sum += w.abs() * *s);
    }
    sums.iter_mut().zip(unit.1).for_each(|(sum, s)| *sum *= *s);
    sums
}

/// N columns of one row: the old weights, the new ones, and the vectors of the optimiser that are in use, empty where not.
pub(super) struct Cells<'a, T, const N: usize> {
    pub(super) old: &'a [T; N],
    pub(super) new: &'a mut [T; N],
    pub(super) first: &'a mut [T],
    pub(super) second: &'a mut [T],
}

/// What is the same for all weights of a coupling.
pub(super) struct Pass<'a, T> {
    pub(super) ends: Ends<'a, T>,
    pub(super) rule: Rule<T>,
    pub(super) regulariser: Regulariser,
    pub(super) step: Step,
    /// Whether all offsets are 0 and all scales 1.
    pub(super) is_plain: bool,
}

/// A piece of a coupling, by rows: its difference of the phases, $\Delta\langle x_iy_j\rangle$, positive minus negative, and its
/// arrays.
pub(super) trait Piece<T> {
    /// Rows.
    fn rows(&self) -> usize;
    /// The difference in row `r` from column `k` of the piece on.
    fn difference<const N: usize>(&self, r: usize, k: usize) -> [T; N];
    /// The cells of row `r` from column `k` of the piece on, with as many vectors of the optimiser as `MEMORY` says.
    fn cells<const N: usize, const MEMORY: usize>(&mut self, r: usize, k: usize) -> Cells<'_, T, N>;
    /// The averages of the same cells, where there are some.
    fn average<const N: usize>(&mut self, r: usize, k: usize) -> &mut [T];
}

impl<T: Real> Pass<'_, T> {
    /// All cells of a piece of `width` columns whose first is that of row `i` and column `j` of the coupling, and of row `row` and
    /// column `column` of the sums of the part.
    #[inline(always)]
    pub(super) fn run(
        &self,
        piece: &mut impl Piece<T>,
        width: usize,
        (i, j): (usize, usize),
        (row, column): (usize, usize),
        part: &mut PassSums<T>,
    ) {
        let mut at = 0;
        macro_rules! in_steps_of {
            ($($width:literal)*) => {$(
                while width - at >= $width {
                    self.columns::<$width>(piece, at, (i, j + at), (row, column + at), part);
                    at += $width;
                }
            )*};
        }
        // With constant widths the loops are unrolled and free of bounds checks.
        in_steps_of!(32 16 4 1);
    }

    /// N columns, by the rule of the optimiser.
    #[inline(always)]
    fn columns<const N: usize>(
        &self,
        piece: &mut impl Piece<T>,
        at: usize,
        first: (usize, usize),
        place: (usize, usize),
        part: &mut PassSums<T>,
    ) {
        macro_rules! by {
            ($memory:literal, $rule:expr) => {
                if self.regulariser.has_penalty() {
                    self.each::<N, $memory, true, false>(piece, at, first, place, part, $rule)
                } else {
                    self.each::<N, $memory, false, false>(piece, at, first, place, part, $rule)
                }
            };
        }
        match self.rule {
            Rule::Sgd { rate } if self.is_plain && !self.regulariser.has_penalty() => {
                self.each::<N, 0, false, true>(piece, at, first, place, part, |_, g, _, _| rate * g);
            }
            Rule::Sgd { rate } => by!(0, |_, g, _, _| rate * g),
            Rule::Collect => by!(1, |_, g, m, _| collect(g, m)),
            Rule::Apply => {
                self.each::<N, 1, false, false>(piece, at, first, place, part, |_, _, m, _| *m);
            }
            Rule::Momentum { rate, mu } => by!(1, |_, g, m, _| momentum(rate, mu, g, m)),
            Rule::Nesterov { rate, mu } => by!(1, |_, g, m, _| nesterov(rate, mu, g, m)),
            Rule::Adam(a) => by!(2, |_, g, m, s| adam(a, g, m, s)),
            Rule::Cosine { rate } => {
                let mut memory = part.memory;
                by!(1, |k: usize, g, m, _| {
                    cosine(rate, g, m, (&mut memory.product[k], &mut memory.before[k]))
                });
                part.memory = memory;
            }
        }
    }

    /// N columns of a piece. Inputs and sums of the loop over its rows are in local arrays, which the compiler can keep
    /// in registers because writes to weights cannot alias them.
    ///
    /// $g_{ij} = \omega\big[\Delta\langle x_iy_j\rangle - (\mu_i \Delta\langle y_j\rangle + \lambda_j \Delta\langle
    /// x_i\rangle)\big]/(s_i t_j)$, Δ being positive minus negative phase, s and t the scales of the two ends: the
    /// gradient by $\tilde W$. The terms $\mu_i\lambda_j$ of the two phases cancel, because both are averages; ω is the
    /// weight of the minibatch. `rule` turns it into a change of $\tilde W$, with as many of the optimiser's two
    /// vectors as `MEMORY` says. For `PLAIN` coordinates, offsets and scales are skipped, with the same bits.
    #[inline(always)]
    fn each<const N: usize, const MEMORY: usize, const PENALISED: bool, const PLAIN: bool>(
        &self,
        piece: &mut impl Piece<T>,
        at: usize,
        (i, j): (usize, usize),
        (row, column): (usize, usize),
        part: &mut PassSums<T>,
        mut rule: impl FnMut(usize, T, &mut T, &mut T) -> T,
    ) {
        let (ends, wt, average) = (&self.ends, T::of(self.step.wt), T::of(self.step.average));
        let lambda: [T; N] = array_of(&ends.centre.1[j..]);
        let dy: [T; N] = array_of(&ends.difference.1[j..]);
        let inverse: [T; N] = array_of(&ends.inverse.1[j..]);
        let unit: [T; N] = array_of(&ends.unit.1[j..]);
        let (pull, l2) = (self.pull::<N>(j), T::of(self.regulariser.l2));
        let mut columns: [T; N] = array_of(&part.columns[column..]);
        let (mut gradient, mut change): ([T; N], [T; N]) =
            (array_of(&part.gradient), array_of(&part.change));
        for r in 0..piece.rows() {
            let difference: [T; N] = piece.difference(r, at);
            // Written in place: arrays that are copied back go through `memmove`.
            let Cells { old, new, first, second } = piece.cells::<N, MEMORY>(r, at);
            let old = *old;
            let (mu, dx) = (ends.centre.0[i + r], ends.difference.0[i + r]);
            let si = ends.inverse.0[i + r];
            let (mut none, mut none_either) = ([T::zero(); N], [T::zero(); N]);
            let m = if MEMORY > 0 { array_of_mut(first) } else { &mut none };
            let s = if MEMORY > 1 { array_of_mut(second) } else { &mut none_either };
            let mut shift = [T::zero(); N];
            if PLAIN {
                for k in 0..N {
                    let g = wt * difference[k];
                    gradient[k] += g * g;
                    let d = rule(k, g, &mut m[k], &mut s[k]);
                    change[k] += d * d;
                    new[k] = old[k] + d;
                }
            }
            for k in 0..if PLAIN { 0 } else { N } {
                let inverse = si * inverse[k];
                let mut g = wt * (difference[k] - (mu * dy[k] + dx * lambda[k])) * inverse;
                if PENALISED {
                    let unit = self.ends.unit.0[i + r] * unit[k];
                    let w = unit * old[k];
                    let up = if w > T::zero() { pull[k] } else { T::zero() };
                    let down = if w < T::zero() { pull[k] } else { T::zero() };
                    g -= ((up - down) + l2 * w) * unit * inverse;
                }
                gradient[k] += g * g;
                let d = rule(k, g, &mut m[k], &mut s[k]) * inverse;
                change[k] += d * d;
                new[k] = old[k] + d;
                columns[k] += mu * d;
                shift[k] = d * lambda[k];
            }
            if self.step.average != 0.0 {
                let averages = piece.average::<N>(r, at).iter_mut().zip(&old);
                averages.for_each(|(avg, &x)| *avg += average * (x - *avg));
            }
            if !PLAIN {
                part.rows[row + r] += sum(&shift);
            }
        }
        part.columns[column..column + N].copy_from_slice(&columns);
        part.gradient[..N].copy_from_slice(&gradient);
        part.change[..N].copy_from_slice(&change);
    }

    /// The factor of the sign of a weight in the derivative of the penalties, for N columns from `j` on.
    #[inline(always)]
    fn pull<const N: usize>(&self, j: usize) -> [T; N] {
        let (l1, l1b) = (T::of(self.regulariser.l1), T::of(self.regulariser.l1b));
        let mut pull = [l1; N];
        if let Some(sums) = self.ends.column_sums {
            pull.iter_mut().zip(&sums[j..]).for_each(|(pull, &sum)| *pull = l1 + l1b * sum);
        }
        pull
    }
}

#[inline(always)]
fn array_of<T: Copy, const N: usize>(x: &[T]) -> [T; N] {
    x[..N].try_into().expect("as long as asked for")
}

#[inline(always)]
pub(super) fn array_of_ref<T, const N: usize>(x: &[T]) -> &[T; N] {
    (&x[..N]).try_into().expect("as long as asked for")
}

#[inline(always)]
pub(super) fn array_of_mut<T, const N: usize>(x: &mut [T]) -> &mut [T; N] {
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
            // Centring subtracts products of offsets on the block diagonal too, which must stay zero.
            for j in i / columns * columns..(i / columns + 1) * columns {
                w[[i, j]] = T::zero();
            }
        }
    }
    coupling.apply_mask();
}
