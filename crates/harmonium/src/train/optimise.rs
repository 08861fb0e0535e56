//! From two phases to new parameters: coordinates, penalties, optimiser and average in one pass over the arrays.

use super::coordinates::{Coordinates, linear_rows, mean};
use super::{Optimiser, Regulariser};
use crate::machine::Parameters;
use crate::{Archive, Machine, Real, Result, Role};
use ndarray::Array2;
use rayon::prelude::*;

/// Rows of weights that one task handles: fixed, so that sums do not depend on the number of threads.
const ROWS: usize = 16;

/// The optimiser's memory and the average of the parameters.
#[derive(Clone, Debug)]
pub(super) struct Stepper<T> {
    optimiser: Optimiser,
    regulariser: Regulariser,
    /// First and second vector of the optimiser, where it has them.
    first: Option<Parameters<T>>,
    second: Option<Parameters<T>>,
    average: Option<Parameters<T>>,
    /// For each array, the rate that the cosine rule has found.
    rates: Vec<f64>,
    /// Updates since the vectors were last cleared.
    since: u64,
}

/// What the pass needs to know of the present update.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// Learning rate.
    pub(super) rate: f64,
    /// Weight of the minibatch in units of an average minibatch.
    pub(super) wt: f64,
    /// Part by which the average moves towards the parameters.
    pub(super) average: f64,
}

/// Squared norms and the product with the gradient before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Norms {
    pub(super) gradient: f64,
    pub(super) change: f64,
}

/// The two phases and the coordinates.
pub(super) struct Phases<'a, T: Real> {
    pub(super) positive: &'a Parameters<T>,
    pub(super) negative: &'a Parameters<T>,
    pub(super) coordinates: &'a Coordinates<T>,
}

/// One block of rows of one coupling.
struct Block<'a, T> {
    first_row: usize,
    old: &'a [T],
    new: &'a mut [T],
    positive: &'a [T],
    negative: &'a [T],
    first: &'a mut [T],
    second: &'a mut [T],
    average: &'a mut [T],
}

/// Sums over one block.
struct Part<T> {
    /// $\sum_i \Delta_{ij}\mu_i$ for each column, $\sum_j \Delta_{ij}\lambda_j$ for each row.
    columns: Vec<T>,
    rows: Vec<T>,
    gradient: f64,
    change: f64,
    product: f64,
    before: f64,
}

/// One coupling's constants.
struct Ends<'a, T> {
    /// Offsets and scales of rows and columns, and differences of the means between the phases.
    centre: (&'a [T], &'a [T]),
    scale: Option<(&'a [T], &'a [T])>,
    difference: (&'a [T], &'a [T]),
    /// $\sum_i |w_{ij}|$, for the L1b penalty.
    column_sums: Option<&'a [T]>,
}

impl<T: Real> Stepper<T> {
    pub(super) fn new(
        optimiser: Optimiser,
        regulariser: Regulariser,
        rate: f64,
        average: bool,
        machine: &Machine<T>,
    ) -> Self {
        let zeros = || machine.zero_parameters();
        let arrays = machine.len() + machine.couplings().len();
        Self {
            optimiser,
            regulariser,
            first: (optimiser != Optimiser::Sgd).then(zeros),
            second: matches!(optimiser, Optimiser::Adam { .. }).then(zeros),
            average: average.then(|| machine.parameters()),
            rates: vec![rate; arrays],
            since: 0,
        }
    }

    /// The average of the parameters, where one is kept.
    pub(super) fn average(&self) -> Option<&Parameters<T>> {
        self.average.as_ref()
    }

    /// The average starts again from these parameters.
    pub(super) fn restart(&mut self, parameters: &Parameters<T>) {
        if let Some(average) = &mut self.average {
            average.clone_from(parameters);
        }
    }

    /// Forgets the gradients seen so far; the cosine rule starts again at `rate`.
    pub(super) fn clear(&mut self, rate: f64) {
        for p in [&mut self.first, &mut self.second].into_iter().flatten() {
            p.fill(T::zero());
        }
        self.rates.fill(rate);
        self.since = 0;
    }

    /// Writes the parameters of `old` plus the update into `new`. `old` enters the average, which an undone
    /// update therefore leaves clean.
    pub(super) fn apply(
        &mut self,
        old: &Machine<T>,
        new: &mut Machine<T>,
        phases: &Phases<'_, T>,
        step: Step,
    ) -> Norms {
        self.since += 1;
        let mut norms = Norms::default();
        let differences: Vec<Vec<T>> = (0..old.len()).map(|l| difference(old, phases, l)).collect();
        let mut shifts: Vec<Vec<f64>> =
            (0..old.len()).map(|l| vec![0.0; old.layer(l).width()]).collect();
        for c in 0..old.couplings().len() {
            self.coupling(c, old, new, phases, &differences, step, &mut shifts, &mut norms);
        }
        for l in (0..old.len()).filter(|&l| old.role(l) != Role::Condition) {
            self.layer(l, old, new, phases, step, &shifts[l], &mut norms);
        }
        Norms { gradient: norms.gradient.sqrt(), change: norms.change.sqrt() }
    }

    #[allow(clippy::too_many_arguments)]
    fn coupling(
        &mut self,
        c: usize,
        old: &Machine<T>,
        new: &mut Machine<T>,
        phases: &Phases<'_, T>,
        differences: &[Vec<T>],
        step: Step,
        shifts: &mut [Vec<f64>],
        norms: &mut Norms,
    ) {
        let coupling = &old.couplings()[c];
        let (a, b) = coupling.ends();
        let n = coupling.w().ncols();
        let coordinates = phases.coordinates;
        let sums = (self.regulariser.l1b > 0.0).then(|| column_sums(coupling.w()));
        let ends = Ends {
            centre: (coordinates.centre(a), coordinates.centre(b)),
            scale: (coordinates.form() == super::Form::Standardised)
                .then(|| (coordinates.scale(a), coordinates.scale(b))),
            difference: (&differences[a], &differences[b]),
            column_sums: sums.as_deref(),
        };
        let array = old.len() + c;
        let rule = Rule::new(self.optimiser, self.rate_of(array, step.rate), self.since);
        let regulariser = self.regulariser;
        let blocks = {
            let (first, second, average) = (
                self.first.as_mut().map(|p| &mut p.couplings[c]),
                self.second.as_mut().map(|p| &mut p.couplings[c]),
                self.average.as_mut().map(|p| &mut p.couplings[c]),
            );
            let arrays = (&phases.positive.couplings[c], &phases.negative.couplings[c]);
            let new = new.coupling_mut(c).w_mut();
            blocks(coupling.w(), new, arrays, first, second, average)
        };
        let parts: Vec<Part<T>> = blocks
            .into_par_iter()
            .map(|block| update_block(block, n, &ends, &rule, &regulariser, step))
            .collect();
        let (mut product, mut before, mut gradient) = (0.0, 0.0, 0.0);
        for (k, part) in parts.iter().enumerate() {
            for (i, x) in part.rows.iter().enumerate() {
                shifts[a][k * ROWS + i] += x.f64();
            }
            if a != b {
                for (s, x) in shifts[b].iter_mut().zip(&part.columns) {
                    *s += x.f64();
                }
            }
            gradient += part.gradient;
            norms.change += part.change;
            (product, before) = (product + part.product, before + part.before);
        }
        norms.gradient += gradient;
        self.learn_rate(array, product, before, step.rate);
        finish(new.coupling_mut(c), self.regulariser.max_norm);
    }

    /// The rate of one array: the run's, or what the cosine rule made of it.
    fn rate_of(&self, array: usize, rate: f64) -> f64 {
        match self.optimiser {
            Optimiser::Cosine { .. } => self.rates[array],
            _ => rate,
        }
    }

    /// The cosine rule, with the gradient just used: the rate it finds is for the next update, so that one
    /// pass over the arrays is enough.
    fn learn_rate(&mut self, array: usize, product: f64, before: f64, rate: f64) {
        if let Optimiser::Cosine { delta, max } = self.optimiser {
            if before > 0.0 {
                let factor = if product > 0.0 { 1.0 + delta } else { 1.0 - delta };
                let r = &mut self.rates[array];
                *r = (*r * factor).clamp(rate.min(max), max);
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn layer(
        &mut self,
        l: usize,
        old: &Machine<T>,
        new: &mut Machine<T>,
        phases: &Phases<'_, T>,
        step: Step,
        shifts: &[f64],
        norms: &mut Norms,
    ) {
        let rule = Rule::new(self.optimiser, self.rate_of(l, step.rate), self.since);
        let kind = old.layer(l).kind();
        let theta = old.layer(l).params();
        let (positive, negative) = (&phases.positive.layers[l], &phases.negative.layers[l]);
        let n = theta.ncols();
        let (mut product, mut before) = (0.0, 0.0);
        for row in 0..theta.nrows() {
            let linear = linear_rows(kind).contains(&row);
            let pull = match self.regulariser.target {
                Some(target) if linear && old.role(l) == Role::Hidden => {
                    Some((self.regulariser.target_strength, target))
                }
                _ => None,
            };
            let mut delta: Vec<T> = (0..n)
                .map(|j| {
                    let g = step.wt * (positive[[row, j]] - negative[[row, j]]).f64();
                    let pulled = pull.map_or(0.0, |(s, t)| s * (t - mean(kind, positive, j).f64()));
                    T::of(g + pulled)
                })
                .collect();
            let memory = |p: &mut Option<Parameters<T>>| {
                p.as_mut().map_or(Vec::new(), |p| p.layers[l].row(row).to_vec())
            };
            let (mut first, mut second) = (memory(&mut self.first), memory(&mut self.second));
            norms.gradient += squares(&delta);
            let (x, y) = rule.turn(&mut delta, &mut first, &mut second);
            (product, before) = (product + x, before + y);
            for (p, x) in [(&mut self.first, first), (&mut self.second, second)] {
                if let Some(p) = p {
                    p.layers[l].row_mut(row).assign(&ndarray::ArrayView1::from(&x));
                }
            }
            for j in 0..n {
                let shift = if linear { T::of(shifts[j]) } else { T::zero() };
                let was = theta[[row, j]];
                let mut is = was + (delta[j] - shift);
                // γ stays positive: it may halve in one update, no more.
                if !linear && kind.params()[row].starts_with("gamma") {
                    is = is.max(T::of(0.5) * was);
                }
                norms.change += (is - was).f64().powi(2);
                new.layer_mut(l).params_mut()[[row, j]] = is;
            }
        }
        if let Some(average) = &mut self.average {
            let a = T::of(step.average);
            average.layers[l].zip_mut_with(theta, |avg, &x| *avg += a * (x - *avg));
        }
        self.learn_rate(l, product, before, step.rate);
    }

    pub(super) fn save(&self, archive: &mut Archive) {
        let vectors = [("first", &self.first), ("second", &self.second), ("average", &self.average)];
        for (name, p) in vectors {
            if let Some(p) = p {
                archive.put_parameters(name, p);
            }
        }
        archive.put_f64s("rates", &self.rates);
        archive.put_u64s("since", &[self.since]);
    }

    pub(super) fn load(&mut self, archive: &Archive) -> Result<()> {
        let vectors =
            [("first", &mut self.first), ("second", &mut self.second), ("average", &mut self.average)];
        for (name, p) in vectors {
            if let Some(p) = p {
                *p = archive.parameters(name, p)?;
            }
        }
        let rates = archive.f64s("rates")?;
        if rates.len() != self.rates.len() {
            let what = "learning rates of the checkpoint";
            return Err(crate::Error::shape(what, self.rates.len(), rates.len()));
        }
        self.rates = rates;
        self.since = archive.u64s("since")?.first().copied().unwrap_or(0);
        Ok(())
    }
}

/// $\langle x\rangle_+ - \langle x\rangle_-$ of layer `l`.
fn difference<T: Real>(machine: &Machine<T>, phases: &Phases<'_, T>, l: usize) -> Vec<T> {
    let kind = machine.layer(l).kind();
    let (p, n) = (&phases.positive.layers[l], &phases.negative.layers[l]);
    (0..p.ncols()).map(|j| mean(kind, p, j) - mean(kind, n, j)).collect()
}

fn column_sums<T: Real>(w: &Array2<T>) -> Vec<T> {
    let mut sums = vec![T::zero(); w.ncols()];
    for row in w.rows() {
        sums.iter_mut().zip(row).for_each(|(s, w)| *s += w.abs());
    }
    sums
}

/// Cuts the arrays of one coupling into blocks of rows; an array that is not there has empty blocks.
fn blocks<'a, T: Real>(
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
fn row_of<T>(data: &mut [T], r: usize, n: usize) -> &mut [T] {
    if data.is_empty() { data } else { &mut data[r * n..(r + 1) * n] }
}

fn update_block<T: Real>(
    block: Block<'_, T>,
    n: usize,
    ends: &Ends<'_, T>,
    rule: &Rule<T>,
    regulariser: &Regulariser,
    step: Step,
) -> Part<T> {
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
        let new = &mut new[at];
        for j in 0..n {
            new[j] = old[j] + delta[j];
            part.columns[j] += mu * delta[j];
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

/// $g_{ij} = \omega\big[\Delta\langle x_iy_j\rangle - (\mu_i \Delta\langle y_j\rangle +
/// \lambda_j \Delta\langle x_i\rangle)\big]/(s_i t_j)$, Δ being positive minus negative phase, s and t the
/// scales of the two ends: the gradient by $\tilde W$. The terms $\mu_i\lambda_j$ of the two phases cancel,
/// because both are averages; ω is the weight of the minibatch.
fn gradient_row<T: Real>(
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
fn penalise<T: Real>(p: &Regulariser, w: &[T], ends: &Ends<'_, T>, i: usize, out: &mut [T]) {
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

fn squares<T: Real>(x: &[T]) -> f64 {
    dot(x, x).f64()
}

/// Sum of products in eight lanes, whose order is fixed.
fn dot<T: Real>(x: &[T], y: &[T]) -> T {
    let mut lanes = [T::zero(); 8];
    let (xs, ys) = (x.chunks_exact(8), y.chunks_exact(8));
    let rest: T = xs.remainder().iter().zip(ys.remainder()).map(|(&a, &b)| a * b).sum();
    for (x, y) in xs.zip(ys) {
        for k in 0..8 {
            lanes[k] += x[k] * y[k];
        }
    }
    lanes.into_iter().sum::<T>() + rest
}

/// Mask, symmetry and norm of a coupling's new weights.
fn finish<T: Real>(coupling: &mut crate::Coupling<T>, max_norm: f64) {
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
        }
    }
    coupling.apply_mask();
}

/// An [`Optimiser`] with its numbers for the present update.
enum Rule<T> {
    Sgd { rate: T },
    Momentum { rate: T, mu: T },
    Nesterov { rate: T, mu: T },
    Adam { rate: T, beta1: T, beta2: T, epsilon: T, scale1: T, scale2: T },
    Cosine { rate: T },
}

impl<T: Real> Rule<T> {
    fn new(optimiser: Optimiser, rate: f64, since: u64) -> Self {
        let r = T::of(rate);
        match optimiser {
            Optimiser::Sgd => Self::Sgd { rate: r },
            Optimiser::Momentum { mu } => Self::Momentum { rate: r, mu: T::of(mu) },
            Optimiser::Nesterov { mu } => Self::Nesterov { rate: r, mu: T::of(mu) },
            Optimiser::Adam { beta1, beta2, epsilon } => {
                let scale = |beta: f64| T::of(1.0 / (1.0 - beta.powf(since as f64)));
                Self::Adam {
                    rate: r,
                    beta1: T::of(beta1),
                    beta2: T::of(beta2),
                    epsilon: T::of(epsilon),
                    scale1: scale(beta1),
                    scale2: scale(beta2),
                }
            }
            Optimiser::Cosine { .. } => Self::Cosine { rate: r },
        }
    }

    /// Turns a gradient into a change, in place, and moves the memory along; gives the product of the
    /// gradient with the one before and the square of the latter, for the rule that asks.
    fn turn(&self, x: &mut [T], first: &mut [T], second: &mut [T]) -> (f64, f64) {
        match *self {
            Self::Sgd { rate } => x.iter_mut().for_each(|x| *x *= rate),
            Self::Momentum { rate, mu } => {
                for (x, m) in x.iter_mut().zip(first) {
                    *m = mu * *m + *x;
                    *x = rate * *m;
                }
            }
            Self::Nesterov { rate, mu } => {
                for (x, m) in x.iter_mut().zip(first) {
                    *m = mu * *m + *x;
                    *x = rate * (*x + mu * *m);
                }
            }
            Self::Adam { rate, beta1, beta2, epsilon, scale1, scale2 } => {
                for ((x, m), s) in x.iter_mut().zip(first).zip(second) {
                    *m = beta1 * *m + (T::one() - beta1) * *x;
                    *s = beta2 * *s + (T::one() - beta2) * *x * *x;
                    *x = rate * (scale1 * *m) / ((scale2 * *s).sqrt() + epsilon);
                }
            }
            Self::Cosine { rate } => {
                let (product, before) = (dot(x, first).f64(), squares(first));
                first.copy_from_slice(x);
                x.iter_mut().for_each(|x| *x *= rate);
                return (product, before);
            }
        }
        (0.0, 0.0)
    }
}
