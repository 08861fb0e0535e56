//! From two phases to new parameters: coordinates, penalties, optimiser and average in one pass over the arrays.

mod pass;
mod rule;
mod tiles;

use super::coordinates::{OffsetsAndScales, linear_of, mean};
use super::{Coordinates, Gradient, Optimiser, Regulariser, StepRule};
use crate::machine::Parameters;
use crate::{Archive, Machine, Real, Result, Role};
use ndarray::Array2;
use pass::{Ends, Pass, PassSums, column_sums, finish, is_final};
use rule::Rule;
pub(super) use rule::Stage;
use tiles::Written;

/// Rows of weights that one task handles: fixed, so that sums do not depend on the number of threads.
const ROWS: usize = 16;

/// The state of the optimiser and the average of the parameters.
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
    work: Work<T>,
}

/// Buffers of an update, kept to reuse their memory.
#[derive(Clone, Debug)]
struct Work<T> {
    /// For each layer, $\langle x\rangle_+ - \langle x\rangle_-$, and the correction of θ for the changes of the
    /// weights.
    differences: Vec<Vec<T>>,
    shifts: Vec<Vec<f64>>,
    /// Inverse scales of the two ends of a coupling.
    inverse: [Vec<T>; 2],
    /// Units of the weights of penalties.
    unit: [Vec<T>; 2],
    parts: Vec<PassSums<T>>,
    /// The gradient of a row of a layer's parameters, then its change; before that, means of the negative phase.
    delta: Vec<T>,
    /// How far each γ has moved.
    moved: Vec<T>,
}

impl<T> Default for Work<T> {
    fn default() -> Self {
        Self {
            differences: Vec::new(),
            shifts: Vec::new(),
            inverse: [Vec::new(), Vec::new()],
            unit: [Vec::new(), Vec::new()],
            parts: Vec::new(),
            delta: Vec::new(),
            moved: Vec::new(),
        }
    }
}

/// The numbers of the present update.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// Learning rate.
    pub(super) rate: f64,
    /// Weight of the minibatch in units of an average minibatch.
    pub(super) wt: f64,
    /// Fraction by which the average moves towards the parameters.
    pub(super) average: f64,
    pub(super) stage: Stage,
}

/// Squared norms and the product with the gradient before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Norms {
    pub(super) gradient: f64,
    pub(super) change: f64,
}

/// The gradient and the coordinates in which it is followed.
pub(super) struct Source<'a, T: Real> {
    pub(super) gradient: &'a mut Gradient<T>,
    pub(super) coordinates: &'a OffsetsAndScales<T>,
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
            work: Work::default(),
        }
    }

    /// The average of the parameters, where one is kept.
    pub(super) fn average(&self) -> Option<&Parameters<T>> {
        self.average.as_ref()
    }

    /// Restarts the average from these parameters.
    pub(super) fn restart(&mut self, parameters: &Parameters<T>) {
        if let Some(average) = &mut self.average {
            average.clone_from(parameters);
        }
    }

    /// Clears the memory of gradients; the cosine rule restarts at `rate`.
    pub(super) fn clear(&mut self, rate: f64) {
        for p in [&mut self.first, &mut self.second].into_iter().flatten() {
            p.fill(T::zero());
        }
        self.rates.fill(rate);
        self.since = 0;
    }

    /// Writes the parameters of `old` plus the update into `new`. `old` enters the average, so an undone update does
    /// not affect it. A custom rule needs two passes: to collect the gradient, and to apply the step.
    pub(super) fn apply(
        &mut self,
        old: &Machine<T>,
        new: &mut Machine<T>,
        source: &mut Source<'_, T>,
        step: Step,
        own: Option<&mut (dyn StepRule<T> + '_)>,
    ) -> Result<Norms> {
        self.since += 1;
        let Some(own) = own else { return Ok(self.pass(old, new, source, step)) };
        self.first.get_or_insert_with(|| old.zero_parameters()).fill(T::zero());
        let collect = Step { average: 0.0, stage: Stage::Collect, ..step };
        let gradient = self.pass(old, new, source, collect).gradient;
        own.step(self.first.as_mut().expect("just made"), step.rate)?;
        let change = self.pass(old, new, source, Step { stage: Stage::Apply, ..step }).change;
        Ok(Norms { gradient, change })
    }

    /// One pass over all arrays.
    fn pass(
        &mut self,
        old: &Machine<T>,
        new: &mut Machine<T>,
        source: &mut Source<'_, T>,
        step: Step,
    ) -> Norms {
        let mut norms = Norms::default();
        let mut work = std::mem::take(&mut self.work);
        work.differences.resize_with(old.len(), Vec::new);
        work.shifts.resize_with(old.len(), Vec::new);
        for l in 0..old.len() {
            difference(old, source, l, &mut work.differences[l], &mut work.delta);
            work.shifts[l].clear();
            work.shifts[l].resize(old.layer(l).width(), 0.0);
        }
        for c in 0..old.couplings().len() {
            self.coupling(c, old, new, source, step, &mut work, &mut norms);
        }
        for l in (0..old.len()).filter(|&l| old.role(l) != Role::Condition) {
            self.layer(l, old, new, source, step, &mut work, &mut norms);
        }
        self.work = work;
        Norms { gradient: norms.gradient.sqrt(), change: norms.change.sqrt() }
    }

    #[allow(clippy::too_many_arguments)]
    fn coupling(
        &mut self,
        c: usize,
        old: &Machine<T>,
        new: &mut Machine<T>,
        source: &mut Source<'_, T>,
        step: Step,
        work: &mut Work<T>,
        norms: &mut Norms,
    ) {
        let Work { differences, shifts, inverse, unit, parts, .. } = work;
        let coupling = &old.couplings()[c];
        let (a, b) = coupling.ends();
        let coordinates = source.coordinates;
        let array = old.len() + c;
        for (l, inverse) in [a, b].into_iter().zip(&mut *inverse) {
            inverse.clear();
            inverse.extend(coordinates.scale(l).iter().map(|&s| T::one() / s));
        }
        for (l, unit) in [a, b].into_iter().zip(&mut *unit) {
            unit.clear();
            let hidden = old.role(l) == Role::Hidden;
            unit.extend(coordinates.scale(l).iter().map(|&s| if hidden { T::one() } else { s }));
        }
        let unit = (&unit[0][..], &unit[1][..]);
        let sums = (self.regulariser.l1b > 0.0).then(|| column_sums(coupling.w(), unit));
        let pass = Pass {
            ends: Ends {
                centre: (coordinates.centre(a), coordinates.centre(b)),
                inverse: (&inverse[0], &inverse[1]),
                unit,
                difference: (&differences[a], &differences[b]),
                column_sums: sums.as_deref(),
            },
            rule: self.rule(array, step),
            regulariser: self.regulariser,
            step,
            is_plain: coordinates.form() == Coordinates::Plain,
        };
        let is_final = is_final(coupling, self.regulariser.max_norm);
        let (w, mut tables) = new.coupling_mut(c).rewrite();
        let written = Written {
            new: w,
            tables: tables.as_mut().filter(|_| is_final),
            first: self.first.as_mut().map(|p| &mut p.couplings[c]),
            second: self.second.as_mut().map(|p| &mut p.couplings[c]),
            average: self.average.as_mut().map(|p| &mut p.couplings[c]),
        };
        let phases = (&mut source.gradient.positive, &mut source.gradient.negative);
        let (used, followed) = tiles::run(&pass, coupling.w(), phases, c, written, parts);
        let (mut product, mut before) = (0.0, 0.0);
        for part in &parts[..used] {
            let (row, column) = part.at;
            shifts[a][row..].iter_mut().zip(&part.rows).for_each(|(s, x)| *s += x.f64());
            if a != b {
                shifts[b][column..].iter_mut().zip(&part.columns).for_each(|(s, x)| *s += x.f64());
            }
            let (gradient, change) = part.squares();
            (norms.gradient, norms.change) = (norms.gradient + gradient, norms.change + change);
            if let Optimiser::Cosine { .. } = self.optimiser {
                let (x, y) = part.memory();
                (product, before) = (product + x, before + y);
            }
        }
        self.learn_rate(array, product, before, step.rate);
        if !is_final {
            let columns = new.layer(a).kind().columns();
            finish(new.coupling_mut(c), columns, self.regulariser.max_norm);
        }
        if let Some(tables) = tables {
            new.coupling_mut(c).put_tables(tables, followed);
        }
    }

    /// The rule for one array; its rate is the run's, or that of the cosine rule.
    fn rule(&self, array: usize, step: Step) -> Rule<T> {
        let rate = match self.optimiser {
            Optimiser::Cosine { .. } => self.rates[array],
            _ => step.rate,
        };
        Rule::new(self.optimiser, step.stage, rate, self.since)
    }

    /// The cosine rule, with the gradient just used: the rate it finds is for the next update, so that one
    /// pass over the arrays is enough.
    fn learn_rate(&mut self, array: usize, product: f64, before: f64, rate: f64) {
        if let Optimiser::Cosine { delta, max } = self.optimiser
            && before > 0.0
        {
            let factor = if product > 0.0 { 1.0 + delta } else { 1.0 - delta };
            let r = &mut self.rates[array];
            *r = (*r * factor).clamp(rate.min(max), max);
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn layer(
        &mut self,
        l: usize,
        old: &Machine<T>,
        new: &mut Machine<T>,
        source: &Source<'_, T>,
        step: Step,
        work: &mut Work<T>,
        norms: &mut Norms,
    ) {
        let rule = self.rule(l, step);
        let kind = old.layer(l).kind();
        let theta = old.layer(l).params();
        let (positive, negative) = source.gradient.layer(l);
        let (count, n) = theta.dim();
        let (mut product, mut before) = (0.0, 0.0);
        let units = source.coordinates.units(l, old);
        let Work { shifts, delta, moved, .. } = work;
        let shifts = &shifts[l];
        // The change of θ depends on that of its γ: γ comes first.
        let linear_rows = kind.linear_rows();
        moved.clear();
        moved.resize(linear_rows.len() * n, T::zero());
        let new = new.layer_mut(l).params_mut();
        for row in 0..count {
            let row = if units.is_some() { count - 1 - row } else { row };
            let linear = linear_rows.contains(&row);
            let pull = match self.regulariser.target {
                Some(target) if linear && old.role(l) == Role::Hidden => {
                    Some((self.regulariser.target_strength, target))
                }
                _ => None,
            };
            delta.clear();
            let gaps = row_of(positive, row).iter().zip(row_of(negative, row));
            if units.is_none() && pull.is_none() {
                delta.extend(gaps.map(|(&p, &q)| T::of(step.wt * (p - q).f64() + 0.0)));
            } else {
                delta.extend((0..n).map(|j| {
                    let gap = |row: usize| (positive[[row, j]] - negative[[row, j]]).f64();
                    let g =
                        step.wt * units.as_ref().map_or_else(|| gap(row), |u| u.gradient(row, j, gap));
                    let mean = |j| mean(linear_rows.clone(), positive, j).f64();
                    let pulled = pull.map_or(0.0, |(s, t)| s * (t - mean(j)));
                    T::of(g + pulled)
                }));
            }
            let [first, second] = [&mut self.first, &mut self.second].map(|p| match p {
                Some(p) => row_of_mut(&mut p.layers[l], row),
                None => &mut [],
            });
            norms.gradient += delta.iter().map(|d| d.f64().powi(2)).sum::<f64>();
            let (x, y) = rule.turn(delta, first, second);
            (product, before) = (product + x, before + y);
            let gamma_of = linear_of(kind, row);
            let (was, is) = (row_of(theta, row), row_of_mut(new, row));
            if units.is_none() && linear {
                for (((is, &was), &delta), &shift) in is.iter_mut().zip(was).zip(&*delta).zip(shifts) {
                    *is = was + (delta - T::of(shift));
                    norms.change += (*is - was).f64().powi(2);
                }
                continue;
            }
            for j in 0..n {
                let shift = if linear { T::of(shifts[j]) } else { T::zero() };
                let was = was[j];
                let moved_here = if linear { moved[row * n + j] } else { T::zero() };
                let change = units.as_ref().map_or(delta[j], |u| u.change(row, j, delta[j], moved_here));
                let mut now = was + (change - shift);
                // γ stays positive: it may halve in one update, no more.
                if let Some(theta) = gamma_of {
                    now = now.max(T::of(0.5) * was);
                    moved[theta * n + j] = now - was;
                }
                norms.change += (now - was).f64().powi(2);
                is[j] = now;
            }
        }
        if let (Some(average), true) = (&mut self.average, step.average != 0.0) {
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

/// $\langle x\rangle_+ - \langle x\rangle_-$ of layer `l`; `negative` is overwritten.
fn difference<T: Real>(
    machine: &Machine<T>,
    source: &Source<'_, T>,
    l: usize,
    out: &mut Vec<T>,
    negative: &mut Vec<T>,
) {
    // Row by row: which rows count is asked once, and all columns of a row are added up by vectors.
    let linear = machine.layer(l).kind().linear_rows();
    let means = |stats: &Array2<T>, out: &mut Vec<T>| {
        out.clear();
        out.extend_from_slice(row_of(stats, linear.start));
        for row in linear.clone().skip(1) {
            out.iter_mut().zip(row_of(stats, row)).for_each(|(o, &x)| *o += x);
        }
    };
    let (p, n) = source.gradient.layer(l);
    means(p, out);
    means(n, negative);
    out.iter_mut().zip(&*negative).for_each(|(p, &n)| *p -= n);
}

const STANDARD: &str = "arrays of a machine are in standard layout";

fn row_of<T>(a: &Array2<T>, row: usize) -> &[T] {
    let n = a.ncols();
    &a.as_slice().expect(STANDARD)[row * n..(row + 1) * n]
}

fn row_of_mut<T>(a: &mut Array2<T>, row: usize) -> &mut [T] {
    let n = a.ncols();
    &mut a.as_slice_mut().expect(STANDARD)[row * n..(row + 1) * n]
}
