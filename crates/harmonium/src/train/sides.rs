//! Initial dReLU units over coupled Gaussian columns, along the directions in which the rows are least normal.
//!
//! With equal sides such a unit is a normal variable. Coupled Gaussian columns gain nothing from it, so the likelihood
//! is flat around small weights and equal sides, and a run could leave this region only by noise.

use super::Data;
use super::white::{Normal, set_normal};
use crate::machine::Cholesky;
use crate::sample::purpose;
use crate::{Batch, Key, Kind, Layer, Machine, Real, Result, Role};
use harmonium_kernels::Stream;
use ndarray::{Array1, Array2, Axis};
use rand_distr::{Distribution, StandardNormal};

/// Most rows, and most entries of rows, that are used.
const ROWS: usize = 10_000;
const ENTRIES: usize = 1 << 19;
const FEWEST_ROWS: usize = 100;

/// Most directions per layer; random starts of the search for each, and its steps.
const DIRECTIONS: usize = 16;
const STARTS: u32 = 8;
const STEPS: usize = 60;

/// Weights of the two averages of [`non_normality`], with which it approximates the negentropy (Hyvärinen, 1998).
const ODD: f64 = 7.412_888_581_8;
const EVEN: f64 = 33.669_423_336_1;

/// Candidate hidden densities, by θ₊, θ₋, γ₊ and γ₋: wells between two modes, peaks, and sides of unequal width.
const SHAPES: [[f64; 4]; 9] = [
    [1.0, -1.0, 1.0, 1.0],
    [2.0, -2.0, 1.0, 1.0],
    [-1.0, 1.0, 1.0, 1.0],
    [-4.0, 4.0, 1.0, 1.0],
    [0.0, 0.0, 0.25, 4.0],
    [0.0, 0.0, 0.04, 4.0],
    [-1.0, 0.0, 0.25, 4.0],
    [2.0, -1.0, 1.0, 4.0],
    [1.0, -2.0, 0.5, 4.0],
];
/// Candidate correlations of the projection with the hidden unit, with both signs.
const CORRELATIONS: [f64; 4] = [0.5, 0.7, 0.85, 0.95];

/// Gives dReLU units that are coupled to a visible layer of coupled Gaussian columns a direction and a shape, as long
/// as there are directions in which the rows are significantly less than normal; the other units stay unchanged.
pub(super) fn shape<T: Real>(machine: &mut Machine<T>, data: &Data<T>, seed: u64) -> Result<()> {
    let normal = |l: usize| machine.layer(l).kind().is_normal() && machine.has_lateral(l);
    let visible: Vec<usize> = machine.with_role(Role::Visible).filter(|&l| normal(l)).collect();
    for l in visible {
        let whole = |c: usize| machine.couplings()[c].mask().is_none();
        let shaped = |h: usize| {
            let c = machine.coupling_between(l.min(h), l.max(h))?;
            (machine.layer(h).kind().has_sides() && whole(c)).then_some((h, c))
        };
        let free = machine.coupling_between(l, l).is_some_and(whole) && data.known()[l].is_none();
        let hidden = machine.with_role(Role::Hidden).find_map(shaped).filter(|_| free);
        let (Some((h, c)), Batch::Reals(x)) = (hidden, data.states().layer(l)?) else { continue };
        let Some(rows) = Rows::new(x, data) else { continue };
        let kind = machine.layer(h).kind();
        let found = rows.directions(kind, machine.layer(h).len().min(DIRECTIONS), seed);
        if !found.is_empty() {
            put(machine, [l, h, c], &rows.normal, &found);
        }
    }
    Ok(())
}

/// Whitened rows: one half to search for directions, the other to validate them.
struct Rows {
    normal: Normal,
    search: Part,
    check: Part,
}

struct Part {
    z: Array2<f64>,
    wts: Array1<f64>,
}

impl Rows {
    fn new<T: Real>(x: &Array2<T>, data: &Data<T>) -> Option<Self> {
        let all = data.positive_weight_rows();
        let most = ROWS.min((ENTRIES / x.ncols()).max(FEWEST_ROWS));
        let chosen: Vec<usize> = all.iter().copied().step_by(all.len().div_ceil(most).max(1)).collect();
        if chosen.len() < FEWEST_ROWS {
            return None;
        }
        let normal = Normal::new(&x.mapv(Real::f64), data.wts(), None)?;
        let x = x.select(Axis(0), &chosen).mapv(Real::f64);
        let wts: Vec<f64> = chosen.iter().map(|&r| data.wts().map_or(1.0, |w| w[r])).collect();
        let z = (&x - &normal.mean.view().insert_axis(Axis(0))).dot(normal.factor.lower());
        let part = |parity: usize| {
            let rows: Vec<usize> = (parity..chosen.len()).step_by(2).collect();
            let wts: Array1<f64> = rows.iter().map(|&r| wts[r]).collect();
            Part { z: z.select(Axis(0), &rows), wts: &wts / wts.sum() }
        };
        Some(Self { search: part(0), check: part(1), normal })
    }

    /// Orthogonal directions and the densities along them, under which the other half of the rows is more probable than
    /// under a normal one by two standard errors.
    fn directions(&self, kind: Kind, most: usize, seed: u64) -> Vec<(Array1<f64>, Projected)> {
        let mut found: Vec<(Array1<f64>, Projected)> = Vec::new();
        while found.len() < most.min(self.search.z.ncols()) {
            let taken: Vec<&Array1<f64>> = found.iter().map(|(u, _)| u).collect();
            let direction = least_normal(&self.search, &taken, seed);
            let Some(density) = best_density(kind, &self.search, &direction) else { break };
            let (gain, error) = self.check.gain(&density, &direction);
            if !(gain > 2.0 * error) {
                break;
            }
            found.push((direction, density));
        }
        found
    }
}

impl Part {
    /// Mean and standard error of ln p of the projections minus that of a normal density.
    fn gain(&self, density: &Projected, direction: &Array1<f64>) -> (f64, f64) {
        let gains = self.z.dot(direction).mapv(|y| density.gain(y));
        let mean = gains.dot(&self.wts);
        let error =
            gains.iter().zip(&self.wts).map(|(g, w)| (w * (g - mean)).powi(2)).sum::<f64>().sqrt();
        (mean, error)
    }
}

/// The direction, orthogonal to the previous ones, along which the rows are least normal: the best of several ascents.
fn least_normal(part: &Part, taken: &[&Array1<f64>], seed: u64) -> Array1<f64> {
    let n = part.z.ncols();
    let mut best = (f64::NEG_INFINITY, Array1::zeros(n));
    for start in 0..STARTS {
        let block = 1 << 17 | (taken.len() as u32) << 8 | start;
        let mut rng = Stream::new(Key { seed, purpose: purpose::INIT, block, sweep: 0 });
        let mut u: Array1<f64> = (0..n).map(|_| StandardNormal.sample(&mut rng)).collect();
        onto_sphere(&mut u, taken);
        let (mut height, mut slope) = non_normality(part, &u);
        let mut step = 1.0;
        for _ in 0..STEPS {
            let mut next = &u + &(&slope * step);
            onto_sphere(&mut next, taken);
            let (reached, its_slope) = non_normality(part, &next);
            if reached > height {
                (u, height, slope, step) = (next, reached, its_slope, 2.0 * step);
            } else {
                step *= 0.25;
            }
        }
        if height > best.0 {
            best = (height, u);
        }
    }
    best.1
}

/// Makes a vector orthogonal to the previous ones and of length one.
fn onto_sphere(u: &mut Array1<f64>, taken: &[&Array1<f64>]) {
    for t in taken {
        let along = u.dot(*t);
        u.scaled_add(-along, *t);
    }
    let length = u.dot(u).sqrt().max(f64::MIN_POSITIVE);
    *u /= length;
}

/// How far the projections $y = u^\top z$ are from normal ones, $k_1\langle ye^{-y^2/2}\rangle^2 + k_2\big(\langle
/// e^{-y^2/2}\rangle - \sqrt{1/2}\big)^2$, and its gradient by u. Unlike cumulants, these averages are robust against
/// outliers.
fn non_normality(part: &Part, u: &Array1<f64>) -> (f64, Array1<f64>) {
    let y = part.z.dot(u);
    let bell = y.mapv(|y| (-0.5 * y * y).exp()) * &part.wts;
    let (odd, even) = (y.dot(&bell), bell.sum() - 0.5f64.sqrt());
    let by_odd = y.mapv(|y| 1.0 - y * y) * &bell;
    let slope = by_odd * (2.0 * ODD * odd) - &y * &bell * (2.0 * EVEN * even);
    (ODD * odd * odd + EVEN * even * even, part.z.t().dot(&slope))
}

/// A unit over one normal column: the density of a projection that is the sum of a hidden value and of normal noise.
struct Projected {
    /// Field and precision of the column, the weight, and the hidden unit's parameters.
    theta: f64,
    gamma: f64,
    weight: f64,
    unit: Layer<f64>,
    /// The normalisation of the density, times the normal constant.
    shift: f64,
}

impl Projected {
    /// With the hidden density q of these parameters, of mean μ and variance s², and $y \mid h \sim
    /// N\big(r(h-\mu)/s, 1-r^2\big)$, the pair (y, h) is a machine of one column and one unit.
    fn new(kind: Kind, q: [f64; 4], r: f64) -> Option<Self> {
        let params = Array2::from_shape_vec((4, 1), q.to_vec()).ok()?;
        let hidden = Layer::with_params(kind, params.clone()).ok()?;
        let (mut mean, mut variance, mut scratch) = ([0.0], [0.0], [0.0]);
        hidden.mean_row(&[0.0], &mut mean);
        hidden.variance_row(&[0.0], &mut variance);
        let (noise, s) = (1.0 - r * r, variance[0].sqrt());
        let weight = r / (s * noise);
        let (mu, held) = (mean[0], r * weight / s);
        let mut params = params;
        kind.linear_rows().for_each(|row| params[[row, 0]] += mu * held);
        kind.gamma_rows().for_each(|row| params[[row, 0]] += held);
        let shift = -0.5 * noise.ln() - 0.5 * mu * mu * held - hidden.cgf_row(&[0.0], &mut scratch);
        let unit = Layer::with_params(kind, params).ok()?;
        Some(Self { theta: -mu * weight, gamma: 1.0 / noise, weight, unit, shift })
    }

    /// ln p(y) minus that of a normal density.
    fn gain(&self, y: f64) -> f64 {
        let own = self.theta * y - 0.5 * (self.gamma - 1.0) * y * y + self.shift;
        own + self.unit.cgf_row(&[self.weight * y], &mut [0.0])
    }
}

/// The candidate density under which the projections are most probable.
fn best_density(kind: Kind, part: &Part, direction: &Array1<f64>) -> Option<Projected> {
    let signs = |&r: &f64| [r, -r];
    let all = SHAPES.iter().flat_map(|&q| CORRELATIONS.iter().flat_map(signs).map(move |r| (q, r)));
    let scored = all.filter_map(|(q, r)| {
        let density = Projected::new(kind, q, r)?;
        Some((part.gain(&density, direction).0, density))
    });
    scored.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, density)| density)
}

/// Gives the first hidden units the densities that were found, and the columns the remainder of their normal
/// distribution.
fn put<T: Real>(
    machine: &mut Machine<T>,
    [l, h, c]: [usize; 3],
    normal: &Normal,
    found: &[(Array1<f64>, Projected)],
) {
    let (mean, lower) = (&normal.mean, normal.factor.lower());
    let mut p = Array2::<f64>::eye(mean.len());
    let mut theta = Array1::<f64>::zeros(mean.len());
    for (u, d) in found {
        let column = u.view().insert_axis(Axis(1));
        p.scaled_add(d.gamma - 1.0, &column.dot(&column.t()));
        theta.scaled_add(d.theta, u);
    }
    let p = lower.dot(&p).dot(&lower.t());
    let Some(factor) = Cholesky::new(&p) else { return };
    // The mean that gives independent columns their fields.
    let mut alone = (p.dot(mean) + lower.dot(&theta)).to_vec();
    factor.solve(&mut alone);
    set_normal(machine, l, &Normal { mean: alone.into(), factor });
    for (k, (u, d)) in found.iter().enumerate() {
        let w = lower.dot(u) * d.weight;
        let shift = w.dot(mean);
        let kind = machine.layer(h).kind();
        let params = machine.layer_mut(h).params_mut();
        params.column_mut(k).assign(&d.unit.params().column(0).mapv(T::of));
        kind.linear_rows().for_each(|row| params[[row, k]] -= T::of(shift));
        let above = machine.couplings()[c].ends().1 == h;
        let weights = machine.coupling_mut(c).w_mut();
        let mut lane = if above { weights.column_mut(k) } else { weights.row_mut(k) };
        lane.assign(&w.mapv(T::of));
    }
}

#[cfg(test)]
mod tests {
    use super::super::init::from_data;
    use super::*;

    type Extra = fn(f64) -> f64;

    /// Rows of normal noise with a correlation, and `extra` times a second draw along (1, 2, −1).
    fn rows(extra: impl Fn(f64) -> f64) -> Array2<f64> {
        let mut rng = Stream::new(Key { seed: 5, purpose: purpose::USER, block: 0, sweep: 0 });
        let mut draw = || -> f64 { StandardNormal.sample(&mut rng) };
        let mut x = Array2::zeros((2000, 3));
        for mut row in x.rows_mut() {
            let (noise, along) = ([draw(), draw(), draw()], extra(draw()));
            row.assign(&ndarray::arr1(&[
                noise[0] + along,
                noise[1] + 2.0 * along,
                noise[2] + noise[0] - along + 7.0,
            ]));
        }
        x
    }

    /// The initial machine, and the gain of its rows over one normal distribution.
    fn start(x: Array2<f64>, kind: Kind) -> (Machine<f64>, f64) {
        let start = |kind: Kind| {
            let blank = Machine::semi_restricted(Layer::new(Kind::Gaussian, 3), Layer::new(kind, 2));
            let data = Data::new(blank.data(vec![Batch::Reals(x.clone())]).unwrap());
            let mut machine = blank;
            from_data(&mut machine, &data, 0.0, 1).unwrap();
            let found = machine.exact().log_likelihood(data.states(), None).unwrap();
            (machine, found)
        };
        let ((machine, shaped), (_, normal)) = (start(kind), start(Kind::Gaussian));
        (machine, shaped - normal)
    }

    /// A mixture of two modes, sides of unequal width and a peak: in each case the start is better than one normal
    /// distribution, and there is no second direction.
    #[test]
    fn units_start_where_rows_are_not_normal() {
        let cases: [(Extra, f64); 3] = [
            (|x| 3.0 * x.signum() + 0.3 * x, 0.2),
            (|x| if x > 0.0 { 4.0 * x } else { 0.3 * x }, 0.1),
            (|x| x * x * x, 0.1),
        ];
        for (extra, least) in cases {
            let (machine, gain) = start(rows(extra), Kind::Drelu);
            assert!(gain > least, "{gain}");
            let w = machine.couplings()[0].w();
            assert!(w.column(1).iter().all(|w| *w == 0.0), "{w}");
        }
    }

    /// Rows of one normal distribution give no directions.
    #[test]
    fn normal_rows_leave_units_as_they_are() {
        let (machine, gain) = start(rows(|x| x), Kind::Drelu);
        assert_eq!(machine.layer(1).params(), Layer::<f64>::new(Kind::Drelu, 2).params());
        assert!(gain.abs() < 1e-9, "{gain}");
    }

    /// In other units of the columns the start is the same model.
    #[test]
    fn a_start_does_not_depend_on_units() {
        let x = rows(|x| 3.0 * x.signum());
        let (_, gain) = start(x.clone(), Kind::Drelu);
        let (_, scaled) = start(x * &ndarray::arr1(&[1e3, 1.0, 1e-3]), Kind::Drelu);
        assert!((gain - scaled).abs() < 1e-6, "{gain} {scaled}");
    }
}
