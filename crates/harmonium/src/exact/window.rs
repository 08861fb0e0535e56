//! Windows for real units: the range outside which the density of one, maximised over all others, is negligible.

use crate::machine::Cholesky;
use ndarray::{Array1, Array2};

/// Most sign and support patterns of the units, as a power of two.
const PATTERNS: usize = 8;

/// One side of zero of a real unit, in the distance from zero: −γx²/2 + bx with b between bounds from the bounded
/// units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    pub(super) gamma: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// A real unit: x ≥ 0 and, unless it stops at zero, x ≤ 0.
#[derive(Clone, Debug)]
pub(super) struct RealUnit {
    pub(super) layer: usize,
    pub(super) unit: usize,
    pub(super) sides: Vec<Side>,
}

impl RealUnit {
    /// The largest field away from zero.
    pub(super) fn pull(&self) -> f64 {
        let outward = match &self.sides[..] {
            [only] => only.high,
            sides => sides.iter().flat_map(|s| [s.low.abs(), s.high.abs()]).fold(0.0, f64::max),
        };
        outward.max(0.0)
    }

    /// The steepest fall of its density from zero without couplings.
    pub(super) fn descent(&self) -> f64 {
        self.sides.iter().map(|s| -s.low).fold(0.0, f64::max)
    }

    /// Whether its density is normal on the whole line.
    fn is_normal(&self) -> bool {
        match &self.sides[..] {
            [p, m] => p.gamma == m.gamma && p.low == p.high && m.low == m.high && p.low == -m.low,
            _ => false,
        }
    }
}

/// The largest x and −x of each unit at which the logarithm of the density, maximised over all others, is within `tail`
/// of its maximum; `None` if there are too many patterns of signs.
///
/// With signs given and some of the units at zero, the density is quadratic in the others, and its maximum in closed
/// form counts if it has these signs. The maximum over all units is one of these.
pub(super) fn ends(units: &[RealUnit], weights: &Array2<f64>, tail: f64) -> Option<Vec<[f64; 2]>> {
    let (normal, cut): (Vec<usize>, Vec<usize>) = (0..units.len()).partition(|&i| units[i].is_normal());
    let two: Vec<usize> = cut.iter().copied().filter(|&i| units[i].sides.len() == 2).collect();
    if two.len() + cut.len() > PATTERNS {
        return None;
    }
    let chosen = |of: &[usize], mask: usize| -> Vec<usize> {
        of.iter().enumerate().filter(|(k, _)| mask >> k & 1 == 1).map(|(_, &i)| i).collect()
    };
    let supports: Vec<Vec<usize>> =
        (0..1 << cut.len()).map(|mask| [&normal[..], &chosen(&cut, mask)].concat()).collect();
    let orthants: Vec<Orthant> = (0..1 << two.len())
        .map(|mask| Orthant::new(units, weights, &chosen(&two, mask), &cut))
        .collect();
    let summits = orthants.iter().flat_map(|o| supports.iter().filter_map(|s| o.summit(s)));
    let floor = summits.fold(0.0, f64::max) - tail;
    let mut ends = vec![[0.0f64; 2]; units.len()];
    for orthant in &orthants {
        for (i, ends) in ends.iter_mut().enumerate() {
            let is_normal = normal.contains(&i);
            for support in supports.iter().filter(|s| is_normal || !s.contains(&i)) {
                let others: Vec<usize> = support.iter().copied().filter(|&j| j != i).collect();
                let Some((from, to)) = orthant.range(i, &others, floor) else { continue };
                let side = usize::from(orthant.signs[i] < 0.0);
                ends[side] = ends[side].max(to);
                if is_normal {
                    ends[1] = ends[1].max(-from);
                }
            }
        }
    }
    Some(ends)
}

/// The units in coordinates y = ±x in which all but the normal ones are non-negative: $-y^\top Ay/2 + b^\top y$.
struct Orthant {
    signs: Vec<f64>,
    a: Array2<f64>,
    low: Array1<f64>,
    high: Array1<f64>,
    /// Whether y ≥ 0.
    cut: Vec<bool>,
}

impl Orthant {
    fn new(units: &[RealUnit], weights: &Array2<f64>, negative: &[usize], cut: &[usize]) -> Self {
        let signs: Vec<f64> =
            (0..units.len()).map(|i| if negative.contains(&i) { -1.0 } else { 1.0 }).collect();
        let side = |i: usize| &units[i].sides[usize::from(signs[i] < 0.0)];
        let a = Array2::from_shape_fn(weights.dim(), |(i, j)| match i == j {
            true => side(i).gamma,
            false => -signs[i] * signs[j] * weights[[i, j]],
        });
        let (low, high) =
            (0..units.len()).map(|i| (side(i).low, side(i).high)).unzip::<_, _, Vec<_>, Vec<_>>();
        let cut = (0..units.len()).map(|i| cut.contains(&i)).collect();
        Self { a, low: low.into(), high: high.into(), cut, signs }
    }

    fn factor(&self, these: &[usize]) -> Option<Cholesky> {
        let n = these.len();
        Cholesky::new(&Array2::from_shape_fn((n, n), |(i, j)| self.a[[these[i], these[j]]]))
    }

    /// The maximum with all units but these at zero and the lower linear terms, if it has the right signs.
    fn summit(&self, these: &[usize]) -> Option<f64> {
        let mut y: Vec<f64> = these.iter().map(|&i| self.low[i]).collect();
        self.factor(these)?.solve(&mut y);
        let allowed = these.iter().zip(&y).all(|(&i, y)| *y >= 0.0 || !self.cut[i]);
        let value = these.iter().zip(&y).map(|(&i, y)| 0.5 * self.low[i] * y).sum();
        allowed.then_some(value)
    }

    /// The values of unit `i` at which the maximum over these units has the right signs and lies above the floor, with
    /// the upper linear terms; unbounded above if it does not fall.
    fn range(&self, i: usize, these: &[usize], floor: f64) -> Option<(f64, f64)> {
        let factor = self.factor(these)?;
        // The others are at u + vt.
        let (mut u, mut v): (Vec<f64>, Vec<f64>) =
            these.iter().map(|&j| (self.high[j], -self.a[[j, i]])).unzip();
        factor.solve(&mut u);
        factor.solve(&mut v);
        let mut range =
            if self.cut[i] { (0.0, f64::INFINITY) } else { (f64::NEG_INFINITY, f64::INFINITY) };
        for ((_, u), v) in these.iter().zip(&u).zip(&v).filter(|((j, _), _)| self.cut[**j]) {
            match *v {
                0.0 if *u < 0.0 => return None,
                0.0 => {}
                v if v > 0.0 => range.0 = range.0.max(-u / v),
                v => range.1 = range.1.min(-u / v),
            }
        }
        // The maximum is q₀ + q₁t − q₂t²/2.
        let (mut q0, mut q1, mut q2) = (0.0, self.high[i], self.a[[i, i]]);
        for (&j, (u, v)) in these.iter().zip(u.iter().zip(&v)) {
            q0 += 0.5 * self.high[j] * u;
            q1 -= self.a[[i, j]] * u;
            q2 += self.a[[i, j]] * v;
        }
        if q2 > 0.0 {
            let spread = q1 * q1 + 2.0 * q2 * (q0 - floor);
            if spread < 0.0 {
                return None;
            }
            range = (range.0.max((q1 - spread.sqrt()) / q2), range.1.min((q1 + spread.sqrt()) / q2));
        }
        (range.0 <= range.1).then_some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a grid search, for one unit at a time.
    #[test]
    fn ends_are_where_the_density_dies_out() {
        let two = |p: [f64; 2], m: [f64; 2]| {
            let side = |[gamma, b]: [f64; 2]| Side { gamma, low: b, high: b };
            RealUnit { layer: 0, unit: 0, sides: vec![side(p), side(m)] }
        };
        let mut relu = two([1.3, 2.0], [1.0, 0.0]);
        relu.sides.pop();
        // One that stops at zero, one with two wells and a normal one.
        let units = [relu, two([0.8, 1.0], [1.5, 2.0]), two([1.1, -0.5], [1.1, 0.5])];
        let weights = ndarray::arr2(&[[0.0, 0.5, -0.4], [0.5, 0.0, 0.3], [-0.4, 0.3, 0.0]]);
        let (tail, step) = (10.0, 0.1);
        let log_density = |x: [f64; 3]| -> f64 {
            let own = x.iter().zip(&units).map(|(x, u)| {
                let side = &u.sides[usize::from(*x < 0.0)];
                side.high * x.abs() - 0.5 * side.gamma * x * x
            });
            let pairs = [(0, 1), (0, 2), (1, 2)];
            own.sum::<f64>() + pairs.iter().map(|&(i, j)| weights[[i, j]] * x[i] * x[j]).sum::<f64>()
        };
        let lattice =
            |k: i32, lowest: i32| (lowest..=k).map(|k| f64::from(k) * step).collect::<Vec<_>>();
        let axes = [lattice(100, 0), lattice(100, -100), lattice(100, -100)];
        let mut profiles = axes.each_ref().map(|a| vec![f64::NEG_INFINITY; a.len()]);
        for (i, &x) in axes[0].iter().enumerate() {
            for (j, &y) in axes[1].iter().enumerate() {
                for (k, &z) in axes[2].iter().enumerate() {
                    let found = log_density([x, y, z]);
                    for (profile, at) in profiles.iter_mut().zip([i, j, k]) {
                        profile[at] = profile[at].max(found);
                    }
                }
            }
        }
        let top = profiles[0].iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let found = ends(&units, &weights, tail).unwrap();
        for ((axis, profile), ends) in axes.iter().zip(&profiles).zip(found) {
            let alive: Vec<f64> =
                axis.iter().zip(profile).filter(|(_, p)| **p > top - tail).map(|(x, _)| *x).collect();
            let (least, most) = (alive[0].min(0.0), alive[alive.len() - 1]);
            assert!((ends[0] - most).abs() < 2.0 * step, "{} and {most}", ends[0]);
            assert!((ends[1] + least).abs() < 2.0 * step, "{} and {least}", ends[1]);
        }
    }
}
