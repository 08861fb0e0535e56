//! Whether Z is finite: which couplings of unbounded units can be normalised.

use super::Machine;
use crate::units::AllowedWeights;
use crate::{Error, Real, Result};
use ndarray::Array2;

impl<T: Real> Machine<T> {
    /// Whether $Z = \sum\nu e^{-\beta E}$ is finite for every β > 0; checked before sampling, enumeration and training.
    ///
    /// Bounded units never matter. Two rules decide the others.
    ///
    /// - A Poisson unit meets $-\ln x! \sim -x\ln x$, which any $+x^2$ outgrows: it may not be coupled to a Gaussian or
    ///   dReLU unit at all, nor with a positive weight to a Poisson or ReLU unit.
    /// - Real units need $\sum\gamma x^2/2 - \sum w x x'$ to grow in every direction they can go. Without ReLU
    ///   units this is a positive definite matrix. The ReLU units are taken last in a Cholesky
    ///   factorisation; where two of them repel, dropping the repulsion can only make the test stricter.
    ///   A dReLU unit counts with its smaller γ. So the test is exact for Gaussian units and for
    ///   attracting ReLU units, and otherwise may refuse a machine that is normalisable by a narrow margin.
    ///
    /// # Errors
    /// [`Error::NotNormalisable`] with the coupling or the bound that fails.
    pub fn check_normalisable(&self) -> Result<()> {
        self.check_counts()?;
        self.check_reals()
    }

    pub(crate) fn check_counts(&self) -> Result<()> {
        for (c, coupling) in self.couplings().iter().enumerate() {
            if self.allowed_weights(c) != AllowedWeights::NotPositive {
                continue;
            }
            let bad = |w: &&T| if self.only_repels(c) { **w > T::zero() } else { **w != T::zero() };
            if let Some(w) = coupling.w().iter().find(bad) {
                let (a, b) = coupling.ends();
                let [kind, other] = [a, b].map(|l| self.layer(l).kind());
                let [a, b] = [a, b].map(|l| &self.members()[l].name);
                let why = format!(
                    "the weight {w} of {a}-{b} couples a {kind} unit to a {other} unit, and {}",
                    "their joint energy falls faster than the measure of counts can hold it"
                );
                return Err(Error::NotNormalisable { why });
            }
        }
        Ok(())
    }

    /// The weights of coupling `c` for which Z is finite.
    fn allowed_weights(&self, c: usize) -> AllowedWeights {
        let (a, b) = self.couplings()[c].ends();
        self.layer(a).kind().tail().allowed_weights(self.layer(b).kind().tail())
    }

    /// Whether the weights of coupling `c` may be negative but not positive: both units grow without bound, and the measure
    /// of one of them does not hold a product.
    pub(crate) fn only_repels(&self, c: usize) -> bool {
        let (a, b) = self.couplings()[c].ends();
        let is_bounded_below = |l: usize| self.layer(l).kind().lowest() == 0.0;
        self.allowed_weights(c) == AllowedWeights::NotPositive
            && [a, b].into_iter().all(is_bounded_below)
    }

    /// How far the machine is from losing its normalisation: the smallest pivot of the matrix that
    /// [`check_normalisable`](Self::check_normalisable) factorises, as a part of the γ in its place; not positive where it
    /// fails; `None` when no real units are coupled to each other.
    pub(crate) fn margin(&self) -> Option<f64> {
        let mut precision = self.real_precision()?;
        precision.scale_to_one();
        Some(precision.smallest_pivot())
    }

    fn check_reals(&self) -> Result<()> {
        let Some(precision) = self.real_precision() else { return Ok(()) };
        let order = precision.order.clone();
        match precision.smallest_pivot() {
            pivot if pivot > 0.0 => Ok(()),
            pivot => {
                let names: Vec<_> = order.iter().map(|&l| self.members()[l].name.as_str()).collect();
                let why = format!(
                    "the weights among the real units of {} outgrow their γ (smallest pivot {pivot:.3e} ≤ 0)",
                    names.join(", ")
                );
                Err(Error::NotNormalisable { why })
            }
        }
    }

    /// The matrix of $\sum\gamma x^2/2 - \sum w x x'$ over the real units; `None` when none of these are coupled to each other.
    fn real_precision(&self) -> Option<Precision> {
        let real = |l: usize| self.layer(l).kind().tail().has_gamma();
        let joint = |c: usize| self.allowed_weights(c) == AllowedWeights::PositiveDefinite;
        if !(0..self.couplings().len()).any(joint) {
            return None;
        }
        let size = |l: usize| self.layer(l).len();
        let is_relu = |l: &usize| self.layer(*l).kind().is_half_line();
        let (last, first): (Vec<_>, Vec<_>) = (0..self.len()).filter(|&l| real(l)).partition(is_relu);
        // Of several the first: the layers then keep their order.
        let diagonal =
            first.iter().rev().copied().filter(|&l| !self.has_lateral(l)).max_by_key(|&l| size(l));
        let others = first.iter().copied().filter(|&l| Some(l) != diagonal);
        let order: Vec<usize> = diagonal.into_iter().chain(others).chain(last.iter().copied()).collect();
        let start = |l: usize| order.iter().take_while(|&&k| k != l).map(|&k| size(k)).sum::<usize>();
        let n: usize = order.iter().map(|&l| size(l)).sum();
        let m = diagonal.map_or(0, size);
        let mut out = Precision {
            diagonal: vec![0.0; m],
            cross: Array2::zeros((m, n - m)),
            rest: Array2::zeros((n - m, n - m)),
            boundary: last.first().map_or(n, |&l| start(l)) - m,
            order: order.clone(),
        };
        for &l in &order {
            let params = self.layer(l).params();
            for j in 0..size(l) {
                let gammas = self.layer(l).kind().gamma_rows().map(|k| params[[k, j]].f64());
                let gamma = gammas.fold(f64::INFINITY, f64::min);
                match (start(l) + j).checked_sub(m) {
                    Some(i) => out.rest[[i, i]] = gamma,
                    None => out.diagonal[j] = gamma,
                }
            }
        }
        for c in (0..self.couplings().len()).filter(|&c| joint(c)) {
            let coupling = &self.couplings()[c];
            let (p, q) = coupling.ends();
            let (p, q) = (start(p), start(q));
            coupling.w().indexed_iter().for_each(|((i, j), w)| out.set(p + i, q + j, -w.f64()));
        }
        Some(out)
    }
}

/// A symmetric matrix whose first block is diagonal: the largest layer without lateral couplings that is no ReLU layer. Its
/// elimination is one product, so that the cost is that of the other layers squared times the largest.
#[derive(Clone, Debug)]
struct Precision {
    /// The first block.
    diagonal: Vec<f64>,
    /// The first block by the others.
    cross: Array2<f64>,
    /// The other blocks, with the ReLU units last.
    rest: Array2<f64>,
    /// The first of these in `rest`.
    boundary: usize,
    /// The layers in this order.
    order: Vec<usize>,
}

impl Precision {
    /// Sets the element of two rows, which are not both of the first block, and its mirror image.
    fn set(&mut self, i: usize, j: usize, x: f64) {
        let m = self.diagonal.len();
        let (i, j) = (i.min(j), i.max(j));
        if i < m && j >= m {
            self.cross[[i, j - m]] = x;
        } else if i != j {
            (self.rest[[i - m, j - m]], self.rest[[j - m, i - m]]) = (x, x);
        }
    }

    /// Divides rows and columns so that the diagonal is one.
    fn scale_to_one(&mut self) {
        let of_first: Vec<f64> = self.diagonal.iter().map(|x| x.sqrt()).collect();
        let of_rest: Vec<f64> = self.rest.diag().iter().map(|x| x.sqrt()).collect();
        self.diagonal.iter_mut().zip(&of_first).for_each(|(x, s)| *x /= s * s);
        self.cross.indexed_iter_mut().for_each(|((i, j), x)| *x /= of_first[i] * of_rest[j]);
        self.rest.indexed_iter_mut().for_each(|((i, j), x)| *x /= of_rest[i] * of_rest[j]);
    }

    /// The smallest pivot of a Cholesky factorisation, or the first that is not positive.
    fn smallest_pivot(self) -> f64 {
        #[cfg(test)]
        FACTORISATIONS.with(|n| n.set(n.get() + 1));
        let Self { diagonal, cross, mut rest, boundary, .. } = self;
        if let Some(pivot) = diagonal.iter().find(|p| p.is_nan() || **p <= 0.0) {
            return pivot.min(0.0);
        }
        let mut divided = cross.clone();
        divided.rows_mut().into_iter().zip(&diagonal).for_each(|(mut row, d)| row /= *d);
        ndarray::linalg::general_mat_mul(-1.0, &divided.t(), &cross, 1.0, &mut rest);
        let smallest = diagonal.into_iter().fold(f64::INFINITY, f64::min);
        smallest.min(smallest_pivot(rest, boundary))
    }
}

#[cfg(test)]
thread_local! {
    /// Factorisations made by this thread.
    pub(crate) static FACTORISATIONS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The smallest pivot of a Cholesky factorisation, or the first that is not positive. When the columns
/// before `boundary` are eliminated, positive off-diagonal elements of the rest are dropped. Only the upper triangle is used.
fn smallest_pivot(mut a: Array2<f64>, boundary: usize) -> f64 {
    let n = a.nrows();
    let mut smallest = f64::INFINITY;
    for k in 0..n {
        if k == boundary {
            for i in k..n {
                a.row_mut(i).iter_mut().skip(i + 1).for_each(|x| *x = x.min(0.0));
            }
        }
        let pivot = a[[k, k]];
        smallest = smallest.min(pivot);
        if pivot.is_nan() || pivot <= 0.0 {
            return pivot.min(0.0);
        }
        let (above, mut below) = a.view_mut().split_at(ndarray::Axis(0), k + 1);
        let row = above.row(k);
        for (i, mut target) in below.rows_mut().into_iter().enumerate() {
            let i = k + 1 + i;
            let f = row[i] / pivot;
            if f != 0.0 {
                target.iter_mut().zip(row).skip(i).for_each(|(a, x)| *a -= f * x);
            }
        }
    }
    smallest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Layer, Role, machine::Member};
    use harmonium_kernels::{Key, Stream};
    use rand::RngExt;

    /// The whole matrix.
    fn dense(p: &Precision) -> Array2<f64> {
        let (m, n) = (p.diagonal.len(), p.diagonal.len() + p.rest.nrows());
        Array2::from_shape_fn((n, n), |(i, j)| match (i < m, j < m) {
            (true, true) if i == j => p.diagonal[i],
            (true, true) => 0.0,
            (true, false) => p.cross[[i, j - m]],
            (false, true) => p.cross[[j, i - m]],
            (false, false) => p.rest[[i - m, j - m]],
        })
    }

    /// Pivots by the definition, with all elements.
    fn plain_pivot(mut a: Array2<f64>, boundary: usize) -> f64 {
        let (n, mut smallest) = (a.nrows(), f64::INFINITY);
        for k in 0..n {
            if k == boundary {
                for (i, j) in (k..n).flat_map(|i| (k..n).map(move |j| (i, j))).filter(|(i, j)| i != j) {
                    a[[i, j]] = a[[i, j]].min(0.0);
                }
            }
            smallest = smallest.min(a[[k, k]]);
            if a[[k, k]] <= 0.0 {
                return a[[k, k]];
            }
            for (i, j) in (k + 1..n).flat_map(|i| (k + 1..n).map(move |j| (i, j))) {
                let x = a[[i, k]] * a[[k, j]] / a[[k, k]];
                a[[i, j]] -= x;
            }
        }
        smallest
    }

    /// Random machines of up to four layers of all real kinds, some with lateral couplings, at the edge of normalisation.
    #[test]
    fn blocks_have_the_pivots_of_the_whole_matrix() {
        let mut rng = Stream::new(Key { seed: 4, purpose: 0, block: 0, sweep: 0 });
        let (mut sound, mut unsound) = (0, 0);
        for _ in 0..400 {
            let layers = rng.random_range(2..5);
            let kinds = [Kind::Gaussian, Kind::Relu, Kind::Drelu, Kind::Binary];
            let members: Vec<Member<f64>> = (0..layers)
                .map(|l| {
                    let (kind, n) = (kinds[rng.random_range(0..4)], rng.random_range(1..6));
                    let mut layer = Layer::new(kind, n);
                    let first = layer.params().nrows() / 2;
                    if kind != Kind::Binary {
                        layer.params_mut().rows_mut().into_iter().skip(first).for_each(|mut row| {
                            row.iter_mut().for_each(|x| *x = rng.random_range(0.5..2.0));
                        });
                    }
                    Member { name: l.to_string(), role: Role::Visible, layer }
                })
                .collect();
            let mut couplings = Vec::new();
            for (a, b) in (0..layers).flat_map(|a| (a..layers).map(move |b| (a, b))) {
                if rng.random_range(0..3) == 0 {
                    continue;
                }
                let shape = (members[a].layer.len(), members[b].layer.len());
                let mut w = Array2::from_shape_fn(shape, |_| rng.random_range(-0.35..0.35));
                if a == b {
                    w = Array2::from_shape_fn(
                        shape,
                        |(i, j)| if i == j { 0.0 } else { w[[i.min(j), i.max(j)]] },
                    );
                }
                couplings.push(crate::Coupling::new(a, b, w).unwrap());
            }
            let machine = Machine::new(members, couplings).unwrap();
            let Some(precision) = machine.real_precision() else { continue };
            let boundary = precision.diagonal.len() + precision.boundary;
            let expected = plain_pivot(dense(&precision), boundary);
            let got = precision.smallest_pivot();
            if expected > 0.0 {
                assert!((got - expected).abs() < 1e-12, "{got} and {expected}");
                (sound, _) = (sound + 1, machine.check_normalisable().unwrap());
            } else {
                assert!(got <= 0.0 && machine.check_normalisable().is_err());
                unsound += 1;
            }
        }
        assert!(sound > 30 && unsound > 30, "{sound} and {unsound}");
    }
}
