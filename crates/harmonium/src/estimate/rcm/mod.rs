//! Low-rank start: a machine whose weights lie in the first principal directions of the data, with its ln Z.

mod fit;
mod mesh;

use crate::machine::{Iteration, principal};
use crate::sample::{purpose, weights::systematic};
use crate::units::uniform;
use crate::{Error, Kind, Machine, Real, Result, Role, States};
use fit::{Density, Shape};
use harmonium_kernels::{Key, Stream};
use mesh::{Point, Projection};
use ndarray::{Array1, Array2};
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

/// Rows of data used in the fit, evenly spread: a density in three dimensions needs no more.
const ROWS: usize = 5000;
/// Rounds of subspace iteration.
const ROUNDS: usize = 60;
/// Number of samples for ln Z.
const SAMPLES: usize = 4000;

/// Settings of [`low_rank_start`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RcmParams {
    /// Number of principal directions, 1 to 3.
    pub directions: usize,
    /// Points of the mesh along each direction; chosen by the number of directions when left out.
    pub mesh: Option<usize>,
}

impl Default for RcmParams {
    fn default() -> Self {
        Self { directions: 2, mesh: None }
    }
}

/// The result of [`low_rank_start`].
#[derive(Clone, Debug)]
pub struct LowRank<T: Real = f32> {
    /// The machine. Hidden units that were not needed have no weights.
    pub machine: Machine<T>,
    /// Its ln Z, from importance sampling: unbiased for Z.
    pub log_z: f64,
    /// Standard error of ln Z.
    pub std_err: f64,
    /// Effective sample size of ln Z, as a fraction of the samples.
    pub ess: f64,
    /// Visible configurations of the machine, resampled by their importance weights.
    pub samples: States<T>,
    /// Hidden units with weights.
    pub used: usize,
}

/// Fits a density over the projections $m = U^\top s/\sqrt N$ of spins on the first principal directions of the data and
/// turns it into a machine (Decelle and Furtlehner 2021, "restricted Coulomb machine"):
///
/// $$p(s) \propto e^{b\cdot s + \theta\cdot m}\prod_k 2\cosh\big(q_k(n_k\cdot m + z_k)\big),$$
///
/// one hidden unit for each hyperplane $n_k\cdot m + z_k = 0$. The likelihood of m is concave with |x| for ln 2cosh x;
/// that fit, on a mesh, selects the hyperplanes, and a second one with ln 2cosh refines them. A training that starts
/// here has the modes of the data from the first update on, where one that starts from zero weights must pass through
/// the transitions that create them.
///
/// ln Z comes from importance sampling: a point of the mesh and independent spins tilted to it are nearly a
/// sample of the machine, and the probability of drawing it depends on m alone.
///
/// # Errors
/// [`Error::Undefined`] unless the machine is one layer of binary or spin units joined to one hidden layer of such; a
/// number of directions other than 1, 2 or 3; missing visible layers.
pub fn low_rank_start<T: Real>(
    machine: &Machine<T>,
    data: &States<T>,
    wts: Option<&[f64]>,
    params: &RcmParams,
    seed: u64,
) -> Result<LowRank<T>> {
    let (v, h) = layers(machine)?;
    let d = params.directions;
    if !(1..=3).contains(&d) {
        return Err(Error::value("directions of the low-rank start", "1, 2 or 3", d));
    }
    let (x, wts) = spins(machine, v, data, wts)?;
    let (mean, u) = principal_directions(&x, &wts.to_vec(), d);
    let bias = mean.mapv(|m| m.clamp(-0.998, 0.998).atanh());
    let projection = Projection { bias, u };
    let m = x.dot(&projection.u) / projection.spins().sqrt();
    let per_side = params.mesh.unwrap_or([400, 60, 24][d - 1]).max(4);
    let (low, high) = bounds(&m);
    let points = projection.mesh(&low, &high, per_side);
    if points.is_empty() {
        let why = "its data do not vary along their principal directions".into();
        return Err(Error::Undefined { what: "the low-rank start", why });
    }
    let density = density(&m, &wts, &points, machine.layer(h).len());
    let machine = to_machine(machine, (v, h), &projection, &density)?;
    importance(machine, v, &projection, &points, &density, seed)
}

/// The weighted mean of spins and `d` principal directions, as columns.
fn principal_directions(x: &Array2<f64>, wts: &[f64], d: usize) -> (Array1<f64>, Array2<f64>) {
    let mut rng = Stream::new(Key { seed: 0, purpose: 0, block: 0, sweep: 0 });
    let start = Array2::from_shape_fn((x.ncols(), d), |_| StandardNormal.sample(&mut rng));
    let until = Iteration { rounds: ROUNDS, tolerance: 0.0, wanted: d, vanishing: 1e-12 };
    principal(x, wts, start, until)
}

fn layers<T: Real>(machine: &Machine<T>) -> Result<(usize, usize)> {
    let refuse = |why: &str| Err(Error::Undefined { what: "the low-rank start", why: why.into() });
    let two_valued = |l: usize| matches!(machine.layer(l).kind(), Kind::Binary | Kind::Spin);
    let (v, h) = match (machine.len(), machine.with_role(Role::Visible).next()) {
        (2, Some(v)) => (v, 1 - v),
        _ => return refuse("it is for one visible and one hidden layer"),
    };
    if machine.role(h) != Role::Hidden || machine.couplings().len() != 1 {
        return refuse("it is for a restricted machine");
    }
    if !two_valued(v) || !two_valued(h) || machine.couplings()[0].mask().is_some() {
        return refuse("it is for binary or spin units joined without a mask");
    }
    Ok((v, h))
}

/// At most [`ROWS`] rows as ±1, with weights that sum to one.
fn spins<T: Real>(
    machine: &Machine<T>,
    v: usize,
    data: &States<T>,
    wts: Option<&[f64]>,
) -> Result<(Array2<f64>, Array1<f64>)> {
    let rows: Vec<usize> = (0..data.rows()).step_by(data.rows().div_ceil(ROWS).max(1)).collect();
    let mut x = machine.layer(v).values(&data.layer(v)?.select(&rows));
    x.mapv_inplace(|x| if x > 0.0 { 1.0 } else { -1.0 });
    let wts: Array1<f64> = rows.iter().map(|&r| wts.map_or(1.0, |w| w[r])).collect();
    let total = wts.sum();
    if total.is_nan() || total <= 0.0 {
        return Err(Error::value("sum of the weights", "positive", total));
    }
    Ok((x, wts / total))
}

/// The box of the data and a fifth of it on every side.
fn bounds(m: &Array2<f64>) -> (Array1<f64>, Array1<f64>) {
    let end = |f: fn(f64, f64) -> f64, start: f64| {
        Array1::from_iter(m.columns().into_iter().map(|c| c.iter().copied().fold(start, f)))
    };
    let (low, high) = (end(f64::min, f64::INFINITY), end(f64::max, f64::NEG_INFINITY));
    let margin = (&high - &low).mapv(|w| 0.2 * w.max(1e-6));
    (&low - &margin, &high + &margin)
}

/// Hyperplanes in several orientations across the data, fitted, thinned to `hidden` of them and fitted again.
fn density(m: &Array2<f64>, wts: &Array1<f64>, points: &[Point], hidden: usize) -> Density {
    let d = m.ncols();
    let normals: Vec<Array1<f64>> = match d {
        1 => vec![Array1::ones(1)],
        2 => {
            let angle = |k: usize| std::f64::consts::PI * k as f64 / 12.0;
            (0..12).map(|k| Array1::from_vec(vec![angle(k).cos(), angle(k).sin()])).collect()
        }
        // A golden spiral over half a sphere.
        _ => (0..24)
            .map(|k| {
                let z = (k as f64 + 0.5) / 24.0;
                let (angle, r) = (2.399_963 * k as f64, (1.0 - z * z).sqrt());
                Array1::from_vec(vec![r * angle.cos(), r * angle.sin(), z])
            })
            .collect(),
    };
    let per_normal = if d == 1 { 40 } else { 15 };
    let (mut rows, mut offsets) = (Vec::new(), Vec::new());
    for normal in &normals {
        let along = m.dot(normal);
        let low = along.iter().copied().fold(f64::INFINITY, f64::min);
        let high = along.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        for k in 0..per_normal {
            rows.extend(normal.iter().copied());
            offsets.push(-low - (high - low) * (k as f64 + 0.5) / per_normal as f64);
        }
    }
    let n = offsets.len();
    let mut density = Density {
        normals: Array2::from_shape_vec((n, d), rows).expect("a row for each hyperplane"),
        offsets: Array1::from_vec(offsets),
        theta: Array1::zeros(d),
        q: Array1::zeros(n),
    };
    let mesh = Array2::from_shape_fn((points.len(), d), |(p, k)| points[p].m[k]);
    let log_volume: Vec<f64> = points.iter().map(|p| p.log_volume).collect();
    density.fit((m, wts), (&mesh, &log_volume), Shape::Abs, 400);
    let mut keep: Vec<usize> = (0..n).filter(|&k| density.q[k] > 1e-6).collect();
    keep.sort_by(|&a, &b| density.q[b].total_cmp(&density.q[a]));
    keep.truncate(hidden);
    let mut density = density.select(&keep);
    density.fit((m, wts), (&mesh, &log_volume), Shape::Ln2Cosh, 400);
    density
}

/// Spin parameters $b + U\theta/\sqrt N$, $w_k = q_kUn_k/\sqrt N$, $c_k = q_kz_k$, turned into those of the machine's kinds.
fn to_machine<T: Real>(
    machine: &Machine<T>,
    (v, h): (usize, usize),
    projection: &Projection,
    density: &Density,
) -> Result<Machine<T>> {
    let root = projection.spins().sqrt();
    let mut b = &projection.bias + &(projection.u.dot(&density.theta) / root);
    let used = density.q.len();
    let mut w = Array2::zeros((b.len(), machine.layer(h).len()));
    let mut c = Array1::zeros(machine.layer(h).len());
    for k in 0..used {
        let column = projection.u.dot(&density.normals.row(k)) * (density.q[k] / root);
        w.column_mut(k).assign(&column);
        c[k] = density.q[k] * density.offsets[k];
    }
    // s = 2v − 1: the weights double, and the input from the −1 moves into the other side's bias.
    if machine.layer(v).kind() == Kind::Binary {
        c -= &w.sum_axis(ndarray::Axis(0));
        b *= 2.0;
        w *= 2.0;
    }
    if machine.layer(h).kind() == Kind::Binary {
        b -= &w.sum_axis(ndarray::Axis(1));
        c *= 2.0;
        w *= 2.0;
    }
    let mut out = machine.clone();
    let row = |x: &Array1<f64>| Array2::from_shape_fn((1, x.len()), |(_, j)| T::of(x[j]));
    out.layer_mut(v).params_mut().assign(&row(&b));
    out.layer_mut(h).params_mut().assign(&row(&c));
    let w = if v < h { w } else { w.reversed_axes() };
    out.coupling_mut(0).w_mut().assign(&w.mapv(T::of));
    Machine::new(out.members().to_vec(), out.couplings().to_vec())
}

/// ln Z of the machine from spins drawn by the mesh: $\hat Z = \langle e^{-F(v)}/\pi(v)\rangle_\pi$ with
/// $\pi(v) = \sum_p p_p \prod_i p(v_i\mid\mu_p)$, which depends on m(v) and b·s alone.
fn importance<T: Real>(
    machine: Machine<T>,
    v: usize,
    projection: &Projection,
    points: &[Point],
    density: &Density,
    seed: u64,
) -> Result<LowRank<T>> {
    let d = projection.u.ncols();
    let mesh = Array2::from_shape_fn((points.len(), d), |(p, k)| points[p].m[k]);
    let log_volume: Vec<f64> = points.iter().map(|p| p.log_volume).collect();
    let (p, _) = density.probabilities(&mesh, &log_volume, Shape::Ln2Cosh);
    let mut rng = Stream::new(Key { seed, purpose: purpose::INIT, block: 0, sweep: 1 });
    let n = projection.bias.len();
    let mut s = Array2::<f64>::zeros((SAMPLES, n));
    for mut row in s.rows_mut() {
        let mut u = uniform(&mut rng);
        let found = p.iter().position(|p| {
            u -= p;
            u < 0.0
        });
        let point = &points[found.unwrap_or(points.len() - 1)];
        for (s, b) in row.iter_mut().zip(projection.tilted(&point.tilt)) {
            *s = if uniform(&mut rng) < crate::units::sigmoid(2.0 * b) { 1.0 } else { -1.0 };
        }
    }
    let log_proposal = log_proposal(&s, projection, points, &p);
    let low = machine.layer(v).kind().value(0);
    let values = s.mapv(|s| if s > 0.0 { 1.0 } else { low });
    let mut states = States::empty(machine.len(), SAMPLES);
    states.set(v, machine.layer(v).batch(values.view())?);
    let free_energy = machine.free_energy(&states)?;
    let log_w: Vec<f64> = free_energy.iter().zip(&log_proposal).map(|(f, q)| -f - q).collect();
    let max = log_w.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let w: Vec<f64> = log_w.iter().map(|x| (x - max).exp()).collect();
    let (sum, squares): (f64, f64) = (w.iter().sum(), w.iter().map(|w| w * w).sum());
    let (count, ess) = (SAMPLES as f64, sum * sum / squares);
    let wts: Vec<f64> = w.iter().map(|w| w / sum).collect();
    let rows = systematic(&wts, SAMPLES, uniform(&mut rng));
    Ok(LowRank {
        log_z: max + (sum / count).ln(),
        std_err: (1.0 / ess - 1.0 / count).max(0.0).sqrt(),
        ess: ess / count,
        samples: states.select(&rows),
        used: density.q.len(),
        machine,
    })
}

/// $\ln\sum_p p_p\prod_i \frac{e^{s_ib_i(\mu_p)}}{2\cosh b_i(\mu_p)}$ of each row.
fn log_proposal(
    s: &Array2<f64>,
    projection: &Projection,
    points: &[Point],
    p: &Array1<f64>,
) -> Vec<f64> {
    let n = projection.spins();
    let own = s.dot(&projection.bias);
    let m = s.dot(&projection.u) / n.sqrt();
    let ln_2cosh = |x: f64| x.abs() + (-2.0 * x.abs()).exp().ln_1p();
    let norms: Vec<f64> = points
        .iter()
        .zip(p)
        .map(|(point, p)| p.ln() - projection.tilted(&point.tilt).mapv(ln_2cosh).sum())
        .collect();
    let row = |r: usize| {
        let terms: Vec<f64> = points
            .iter()
            .zip(&norms)
            .map(|(point, norm)| norm + n * point.tilt.dot(&m.row(r)))
            .collect();
        let max = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        own[r] + max + terms.iter().map(|t| (t - max).exp()).sum::<f64>().ln()
    };
    use rayon::prelude::*;
    (0..s.nrows()).into_par_iter().map(row).collect()
}
