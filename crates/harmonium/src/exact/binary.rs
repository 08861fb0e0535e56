//! ln Z when every traced unit is Binary, Spin or Binomial: products instead of logarithms.
//!
//! Such a unit contributes $n\ln(1+e^{sy})$ (less $y$ for spins, which is linear and kept in one number), and
//! a Gray-code step multiplies every $e^{sy}$ by a factor known beforehand. A state then costs two
//! multiplications and an addition for each traced unit, where $\ln(1+e^x)$ would cost ten times as much.

use super::gray::Gray;
use super::problem::{Problem, Runner};
use super::walk::REFRESH;
use rayon::prelude::*;

/// $e^{±600}$ and products up to it are far inside the range of `f64`, whose ends are at $e^{±708}$.
const RANGE: f64 = 600.0;

/// Traced columns whose factors $1+e^{sy}$ may be multiplied without overflow.
struct Group {
    columns: std::ops::Range<usize>,
    /// Exponent of the product: n of Binomial units, else 1.
    power: f64,
}

struct Factors {
    /// For each moving unit and each node but the last: the factors of a step up, then of a step down.
    steps: Vec<Vec<[Step; 2]>>,
    groups: Vec<Group>,
    /// s of each traced column: 2 for spins, else 1.
    sign: Vec<f64>,
    theta: Vec<f64>,
    is_spin: Vec<bool>,
}

struct Step {
    factor: Vec<f64>,
    /// Change of −Σy over the spins.
    linear: f64,
}

pub(super) fn log_z(p: &Problem) -> Option<f64> {
    let factors = Factors::new(p)?;
    let (held, blocks) = p.blocks();
    let parts: Vec<(f64, f64)> =
        (0..blocks).into_par_iter().map(|b| block(p, &factors, held, b)).collect();
    let max = parts.iter().fold(f64::NEG_INFINITY, |m, &(x, _)| m.max(x));
    Some(max + parts.iter().map(|(m, sum)| sum * (m - max).exp()).sum::<f64>().ln())
}

impl Factors {
    fn new(p: &Problem) -> Option<Self> {
        let mut power = Vec::new();
        let mut is_spin = Vec::new();
        let mut theta = Vec::new();
        for layer in &p.traced {
            let n = f64::from(layer.kind().two_valued_parts()?);
            power.extend(std::iter::repeat_n(n, layer.width()));
            is_spin.extend(std::iter::repeat_n(layer.kind().lowest() < 0.0, layer.width()));
            theta.extend(layer.params().row(0));
        }
        let sign: Vec<f64> = is_spin.iter().map(|&s| if s { 2.0 } else { 1.0 }).collect();
        // The largest |sy| that any state can reach.
        let mut bound: Vec<f64> = theta.iter().map(|t: &f64| t.abs()).collect();
        for unit in &p.units {
            for (j, bound) in bound.iter_mut().enumerate() {
                let reach = |a: usize| {
                    let (column, x) = unit.dense(a);
                    (x * p.cross[[column, j]]).abs()
                };
                *bound += (0..unit.nodes.len()).map(reach).fold(0.0, f64::max);
            }
        }
        bound.iter_mut().zip(&sign).for_each(|(b, s)| *b *= s);
        if bound.iter().any(|&b| b > RANGE) {
            return None;
        }
        let mut groups: Vec<Group> = Vec::new();
        let mut used = f64::INFINITY;
        for (j, &b) in bound.iter().enumerate() {
            let b = b + std::f64::consts::LN_2;
            match groups.last_mut() {
                Some(g) if used + b <= RANGE && g.power == power[j] => {
                    g.columns.end = j + 1;
                    used += b;
                }
                _ => {
                    groups.push(Group { columns: j..j + 1, power: power[j] });
                    used = b;
                }
            }
        }
        let step = |u: usize, from: usize, to: usize| {
            let unit = &p.units[u];
            let ((c0, x0), (c1, x1)) = (unit.dense(from), unit.dense(to));
            let change = |j: usize| x1 * p.cross[[c1, j]] - x0 * p.cross[[c0, j]];
            Step {
                factor: (0..sign.len()).map(|j| (sign[j] * change(j)).exp()).collect(),
                linear: -(0..sign.len()).filter(|&j| is_spin[j]).map(change).sum::<f64>(),
            }
        };
        let steps = p.moving.iter().map(|&u| {
            (1..p.units[u].nodes.len()).map(|a| [step(u, a - 1, a), step(u, a, a - 1)]).collect()
        });
        let steps = steps.collect();
        Some(Self { steps, groups, sign, theta, is_spin })
    }

    /// The running products from scratch; returns −Σy over the spins.
    fn refresh(&self, inputs: &[f64], t: &mut [f64]) -> f64 {
        let mut linear = 0.0;
        for j in 0..t.len() {
            let y = self.theta[j] + inputs[j];
            t[j] = (self.sign[j] * y).exp();
            if self.is_spin[j] {
                linear -= y;
            }
        }
        linear
    }
}

/// The maximal log-weight of a block and the sum of the weights relative to it.
fn block(p: &Problem, f: &Factors, held: usize, block: usize) -> (f64, f64) {
    let inner = &p.moving[held..];
    let mut gray = Gray::new(inner.iter().map(|&u| p.units[u].nodes.len()).collect());
    let mut runner = Runner::new(p, p.digits(block, held));
    let mut t = vec![0.0; f.theta.len()];
    let mut linear = f.refresh(&runner.inputs, &mut t);
    let (mut max, mut sum) = (f64::NEG_INFINITY, 0.0);
    let mut since = 0;
    loop {
        let mut log_w = runner.log_w + linear;
        // One group is the usual case: its product is used as it is, without a logarithm.
        let mut weight = 1.0;
        for (k, g) in f.groups.iter().enumerate() {
            let product = product(&t[g.columns.clone()]);
            if k == 0 && g.power == 1.0 {
                weight = product;
            } else {
                log_w += g.power * product.ln();
            }
        }
        if log_w > max {
            sum *= (max - log_w).exp();
            max = log_w;
        }
        sum += weight * (log_w - max).exp();
        let Some((j, a)) = gray.step() else { break };
        let old = runner.digits[inner[j]];
        runner.step_walked(inner[j], a);
        since += 1;
        if since == REFRESH {
            since = 0;
            runner.refresh();
            linear = f.refresh(&runner.inputs, &mut t);
        } else {
            let step = &f.steps[held + j][old.min(a)][usize::from(a < old)];
            linear += step.linear;
            t.iter_mut().zip(&step.factor).for_each(|(t, f)| *t *= f);
        }
    }
    (max, sum)
}

/// $\prod_j (1+t_j)$ in independent lanes.
fn product(t: &[f64]) -> f64 {
    let mut lanes = [1.0; 8];
    let chunks = t.chunks_exact(8);
    let rest: f64 = chunks.remainder().iter().map(|t| 1.0 + t).product();
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(l, t)| *l *= 1.0 + t);
    }
    rest * lanes.iter().product::<f64>()
}
