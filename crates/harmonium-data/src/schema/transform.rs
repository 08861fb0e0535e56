//! How the numbers of a real column become numbers of unit scale, and back: an invertible map with its exact slope.

use std::fmt;
use std::str::FromStr;

/// Most values that a fit uses; of more, an evenly spaced selection.
const MAX_FITTED: usize = 4000;

/// Gain in nats, over all values, that a curve with its two parameters must have over a map without parameters: half the
/// logarithm of the number of values for each parameter (Schwarz's criterion).
fn penalty(values: usize) -> f64 {
    (values as f64).ln()
}

/// The shape of the map, before its result is centred and scaled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Curve {
    /// $u = x$.
    Linear,
    /// $u = \ln(x - a)$, for columns that are skewed to the right; below `from` it continues as its tangent.
    Log {
        /// The bound a.
        bound: f64,
        /// Where the tangent begins.
        from: f64,
    },
    /// $u = -\ln(a - x)$, for columns that are skewed to the left; above `from` it continues as its tangent.
    Mirrored {
        /// The bound a.
        bound: f64,
        /// Where the tangent begins.
        from: f64,
    },
    /// $u = \operatorname{asinh}\big((x - m)/w\big)$, for heavy tails on both sides.
    Asinh {
        /// The middle m.
        middle: f64,
        /// The half width w of the nearly linear part.
        width: f64,
    },
}

impl Curve {
    /// Whether the map is a straight line to the left, and to the right, of everything.
    fn straight_ends(self) -> (bool, bool) {
        match self {
            Self::Linear => (true, true),
            Self::Log { .. } => (true, false),
            Self::Mirrored { .. } => (false, true),
            Self::Asinh { .. } => (false, false),
        }
    }

    fn forward(self, x: f64) -> f64 {
        match self {
            Self::Linear => x,
            Self::Log { bound, from } if x < from => (from - bound).ln() + (x - from) / (from - bound),
            Self::Log { bound, .. } => (x - bound).ln(),
            Self::Mirrored { bound, from } => -Self::Log { bound: -bound, from: -from }.forward(-x),
            Self::Asinh { middle, width } => ((x - middle) / width).asinh(),
        }
    }

    fn inverse(self, u: f64) -> f64 {
        match self {
            Self::Linear => u,
            Self::Log { bound, from } => match (from - bound).ln() {
                start if u < start => from + (u - start) * (from - bound),
                _ => bound + u.exp(),
            },
            Self::Mirrored { bound, from } => -Self::Log { bound: -bound, from: -from }.inverse(-u),
            Self::Asinh { middle, width } => middle + width * u.sinh(),
        }
    }

    /// $\ln(du/dx)$.
    fn log_slope(self, x: f64) -> f64 {
        match self {
            Self::Linear => 0.0,
            Self::Log { bound, from } => -(x.max(from) - bound).ln(),
            Self::Mirrored { bound, from } => -(bound - x.min(from)).ln(),
            Self::Asinh { middle, width } => {
                let y = ((x - middle) / width).abs();
                // ln √(1 + y²), without the overflow of y².
                -y.hypot(1.0).ln() - width.ln()
            }
        }
    }
}

/// A column's map $z = (u(x) - c)/s$ to numbers of mean 0 and variance 1 on the training rows.
///
/// It is defined and strictly increasing on all reals, so that it applies to values outside of the training range too. A
/// density of z becomes one of x by the slope: $\ln p(x) = \ln p(z) + \ln(dz/dx)$.
///
/// Where a straight end of the curve leaves the range of the training values by more than a standard deviation, z grows with
/// the logarithm of the distance instead: no finite number of rows shows that there are no values farther out, and under a
/// straight map a single one of them, fifty standard deviations away, would decide the mean likelihood of thousands of rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transform {
    /// The shape.
    pub curve: Curve,
    /// The centre c of u.
    pub centre: f64,
    /// The scale s of u, positive.
    pub scale: f64,
    /// The least and the largest $(u - c)/s$ that is z; beyond them z grows logarithmically.
    pub range: (f64, f64),
}

/// Standard deviations by which straight ends go on beyond the training values.
const MARGIN: f64 = 1.0;

/// No ends.
const EVERYWHERE: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

impl Transform {
    /// Leaves every number as it is.
    pub const IDENTITY: Self = Self { curve: Curve::Linear, centre: 0.0, scale: 1.0, range: EVERYWHERE };

    /// The linear map to mean 0 and variance 1. Values that are not finite are ignored.
    pub fn straight(values: impl IntoIterator<Item = f64>) -> Self {
        let x: Vec<f64> = values.into_iter().filter(|x| x.is_finite()).collect();
        Self::standard(Curve::Linear, &x)
    }

    /// The map under which these values are most nearly normal: that of the largest normal likelihood, Jacobian included,
    /// less a penalty for the two parameters of a curve. The logarithm of positive values has none. Values that are not
    /// finite are ignored.
    pub fn fit(values: impl IntoIterator<Item = f64>) -> Self {
        let mut x: Vec<f64> = values.into_iter().filter(|x| x.is_finite()).collect();
        let straight = Self::standard(Curve::Linear, &x);
        x.sort_unstable_by(f64::total_cmp);
        let (Some(&low), Some(&high)) = (x.first(), x.last()) else { return Self::IDENTITY };
        let step = x.len().div_ceil(MAX_FITTED).max(1);
        let mut seen: Vec<f64> = x.iter().copied().step_by(step).collect();
        // The extremes decide whether a curve is needed.
        if seen.last() != Some(&high) {
            seen.push(high);
        }
        if low == high || seen.len() < 8 {
            return straight;
        }
        let worth = |curve: Curve| Self::standard(curve, &seen).log_likelihood(&seen);
        let plain = std::iter::once(Curve::Linear).chain(natural(&seen)).map(|c| (worth(c), c));
        let fitted = curves(&seen).into_iter().map(|c| (worth(c) - penalty(seen.len()), c));
        let better = |best: (f64, Curve), next: (f64, Curve)| if next.0 > best.0 { next } else { best };
        let best = plain.chain(fitted).reduce(better).expect("a linear map");
        match best.1 {
            Curve::Linear => straight,
            curve => Self::standard(curve, &x),
        }
    }

    /// The map along this curve that gives the values mean 0 and variance 1; a constant column is only centred.
    fn standard(curve: Curve, x: &[f64]) -> Self {
        let n = x.len().max(1) as f64;
        // Values as large as 1e300 must not overflow when they are squared.
        let largest = x.iter().map(|&x| curve.forward(x).abs()).fold(f64::MIN_POSITIVE, f64::max);
        let u = || x.iter().map(|&x| curve.forward(x) / largest);
        let centre = u().sum::<f64>() / n;
        let spread = (u().map(|u| (u - centre).powi(2)).sum::<f64>() / n).sqrt() * largest;
        let centre = centre * largest;
        // The rounding error of a constant is no spread.
        let is_constant = !(spread > 1e-12 * centre.abs() && spread > f64::MIN_POSITIVE);
        if is_constant {
            return Self { curve, centre, scale: 1.0, range: EVERYWHERE };
        }
        let all = Self { curve, centre, scale: spread, range: EVERYWHERE };
        let z = || x.iter().map(|&x| all.along_the_curve(x));
        let (left, right) = curve.straight_ends();
        let low = if left { z().fold(f64::INFINITY, f64::min) - MARGIN } else { EVERYWHERE.0 };
        let high = if right { z().fold(f64::NEG_INFINITY, f64::max) + MARGIN } else { EVERYWHERE.1 };
        Self { range: (low, high), ..all }
    }

    /// The same map with straight ends that go on for ever.
    pub fn without_ends(self) -> Self {
        Self { range: EVERYWHERE, ..self }
    }

    /// Of the values, if z is standard normal.
    fn log_likelihood(&self, x: &[f64]) -> f64 {
        x.iter().map(|&x| self.log_slope(x) - 0.5 * self.forward(x).powi(2)).sum()
    }

    /// $(u(x) - c)/s$, which is z within the range.
    fn along_the_curve(&self, x: f64) -> f64 {
        (self.curve.forward(x) - self.centre) / self.scale
    }

    /// z of x.
    pub fn forward(&self, x: f64) -> f64 {
        let z = self.along_the_curve(x);
        let (low, high) = self.range;
        match z {
            _ if z < low => low - (low - z).ln_1p(),
            _ if z > high => high + (z - high).ln_1p(),
            _ => z,
        }
    }

    /// x of z.
    pub fn inverse(&self, z: f64) -> f64 {
        let (low, high) = self.range;
        let z = match z {
            _ if z < low => low - (low - z).exp_m1(),
            _ if z > high => high + (z - high).exp_m1(),
            _ => z,
        };
        self.curve.inverse(self.centre + self.scale * z)
    }

    /// $\ln(dz/dx)$ at x: the Jacobian term of a log-density.
    pub fn log_slope(&self, x: f64) -> f64 {
        let z = self.along_the_curve(x);
        let beyond = (self.range.0 - z).max(z - self.range.1).max(0.0);
        self.curve.log_slope(x) - self.scale.ln() - beyond.ln_1p()
    }

    /// The name of the curve, unless it is linear.
    pub fn name(&self) -> Option<&'static str> {
        match self.curve {
            Curve::Linear => None,
            Curve::Log { .. } => Some("logarithm"),
            Curve::Mirrored { .. } => Some("mirrored logarithm"),
            Curve::Asinh { .. } => Some("inverse hyperbolic sine"),
        }
    }
}

/// The logarithm of the values themselves, where all of these sorted values are positive; straight only far below them.
fn natural(x: &[f64]) -> Option<Curve> {
    (x[0] > 0.0).then_some(Curve::Log { bound: 0.0, from: 0.25 * x[0] })
}

/// The curves with parameters to choose from, for sorted values that differ.
fn curves(x: &[f64]) -> Vec<Curve> {
    let at = |part: f64| x[(part * (x.len() - 1) as f64) as usize];
    let (low, high, middle) = (x[0], x[x.len() - 1], at(0.5));
    // A spread that is robust against ties and outliers.
    let spread = [at(0.75) - at(0.25), at(0.9) - at(0.1), high - low];
    let spread = spread.into_iter().find(|s| *s > 0.0).unwrap_or(1.0);
    let few = ((x.len() as f64).sqrt() / 2.0) as usize;
    let mut out = Vec::new();
    let logs = |low: f64, from: f64, middle: f64| {
        let bounds = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0].map(|part| low - part * spread);
        let curve = move |bound: f64| {
            // Below the lowest few values the curve would be an extrapolation, and could be far too steep for values
            // lower than all seen: there it continues as its tangent.
            (bound.is_finite() && from > bound && middle > from).then_some((bound, from))
        };
        bounds.into_iter().filter_map(curve).collect::<Vec<_>>()
    };
    out.extend(logs(low, x[few], middle).into_iter().map(|(bound, from)| Curve::Log { bound, from }));
    let mirrored = logs(-high, -x[x.len() - 1 - few], -middle).into_iter();
    out.extend(mirrored.map(|(bound, from)| Curve::Mirrored { bound: -bound, from: -from }));
    let widths = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0].map(|part| part * spread);
    let asinh = widths.into_iter().filter(|w| *w > 0.0 && w.is_finite());
    out.extend(asinh.map(|width| Curve::Asinh { middle, width }));
    out
}

/// `linear 12.5 3`, `log BOUND FROM CENTRE SCALE`, `mirrored …` or `asinh MIDDLE WIDTH CENTRE SCALE`, and the range of z where
/// it has ends (`linear 12.5 3 in -2.5 3.5`): every digit is kept.
impl fmt::Display for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.curve {
            Curve::Linear => write!(f, "linear")?,
            Curve::Log { bound, from } => write!(f, "log {bound:e} {from:e}")?,
            Curve::Mirrored { bound, from } => write!(f, "mirrored {bound:e} {from:e}")?,
            Curve::Asinh { middle, width } => write!(f, "asinh {middle:e} {width:e}")?,
        }
        write!(f, " {:e} {:e}", self.centre, self.scale)?;
        match self.range {
            EVERYWHERE => Ok(()),
            (low, high) => write!(f, " in {low:e} {high:e}"),
        }
    }
}

impl FromStr for Transform {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let bad =
            || format!("transform {text:?}: expected a curve and its numbers, as in \"linear 12.5 3\"");
        let (map, range) = match text.split_once(" in ") {
            Some((map, range)) => (map, parse_range(range).ok_or_else(bad)?),
            None => (text, EVERYWHERE),
        };
        let mut words = map.split_whitespace();
        let curve = words.next().ok_or_else(bad)?;
        let numbers: Vec<f64> = words
            .map(|w| w.parse().ok().filter(|x: &f64| x.is_finite()))
            .collect::<Option<_>>()
            .ok_or_else(bad)?;
        let (curve, centre, scale) = match (curve, &numbers[..]) {
            ("linear", &[centre, scale]) => (Curve::Linear, centre, scale),
            ("log", &[bound, from, centre, scale]) if bound < from => {
                (Curve::Log { bound, from }, centre, scale)
            }
            ("mirrored", &[bound, from, centre, scale]) if from < bound => {
                (Curve::Mirrored { bound, from }, centre, scale)
            }
            ("asinh", &[middle, width, centre, scale]) if width > 0.0 => {
                (Curve::Asinh { middle, width }, centre, scale)
            }
            _ => return Err(bad()),
        };
        if scale > 0.0 { Ok(Self { curve, centre, scale, range }) } else { Err(bad()) }
    }
}

/// Two numbers of which the second is larger; either may be infinite.
fn parse_range(text: &str) -> Option<(f64, f64)> {
    let mut ends = text.split_whitespace().map(|word| word.parse().ok());
    let (low, high) = (ends.next()??, ends.next()??);
    (ends.next().is_none() && low < high).then_some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CURVES: [Curve; 4] = [
        Curve::Linear,
        Curve::Log { bound: -3.0, from: -1.0 },
        Curve::Mirrored { bound: 8.0, from: 5.0 },
        Curve::Asinh { middle: 2.0, width: 0.25 },
    ];

    #[test]
    fn every_curve_is_inverted_and_its_slope_is_the_derivative() {
        let ranges = [EVERYWHERE, (-2.5, 1.5), (f64::NEG_INFINITY, 0.5)];
        for (curve, range) in CURVES.into_iter().flat_map(|c| ranges.map(|r| (c, r))) {
            let map = Transform { curve, centre: 0.7, scale: 1.9, range };
            let mut before = f64::NEG_INFINITY;
            for i in -60..60 {
                let x = f64::from(i) / 3.0 + 0.01;
                let z = map.forward(x);
                assert!(z > before, "{curve:?} does not rise at {x}");
                before = z;
                assert!((map.inverse(z) - x).abs() < 1e-9 * (1.0 + x.abs()), "{curve:?} at {x}");
                let slope = (map.forward(x + 1e-5) - map.forward(x - 1e-5)) / 2e-5;
                assert!((slope.ln() - map.log_slope(x)).abs() < 1e-6, "{curve:?} at {x}");
            }
            assert_eq!(map.to_string().parse(), Ok(map));
        }
    }

    /// Training values are mapped straight, and a value fifty standard deviations beyond them costs less than forty nats.
    #[test]
    fn straight_ends_give_way_far_beyond_the_values() {
        let normal = normal_scores(500);
        let map = Transform::straight(normal.iter().map(|&z| 10.0 + 2.0 * z));
        assert!(normal.iter().all(|&z| map.log_slope(10.0 + 2.0 * z) == -map.scale.ln()));
        let log_density = |x: f64| map.log_slope(x) - 0.5 * map.forward(x).powi(2);
        assert!(log_density(110.0) > -40.0 && log_density(-90.0) > -40.0, "{}", log_density(110.0));
        assert!(log_density(1e9) > -400.0);
        // A logarithm is straight below only.
        let skewed = Transform::fit(normal.iter().map(|&z| 20.0 * z.exp()));
        assert!(skewed.range.0.is_finite() && skewed.range.1 == f64::INFINITY, "{skewed:?}");
    }

    /// Standard normal quantiles at evenly spaced probabilities, by bisection on a series for Φ.
    fn normal_scores(n: usize) -> Vec<f64> {
        let phi = |x: f64| {
            let (mut term, mut sum) = (x, x);
            for k in 1..200 {
                term *= x * x / f64::from(2 * k + 1);
                sum += term;
            }
            0.5 + sum * (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt()
        };
        let quantile = |p: f64| {
            let (mut low, mut high) = (-6.0, 6.0);
            for _ in 0..60 {
                let mid = 0.5 * (low + high);
                if phi(mid) < p { low = mid } else { high = mid }
            }
            0.5 * (low + high)
        };
        (0..n).map(|i| quantile((i as f64 + 0.5) / n as f64)).collect()
    }

    #[test]
    fn the_curve_fits_the_shape_of_the_values() {
        let normal = normal_scores(500);
        let fit = |f: &dyn Fn(f64) -> f64| Transform::fit(normal.iter().map(|&z| f(z)));
        assert_eq!(fit(&|z| 1e6 + 1e5 * z).curve, Curve::Linear);
        assert!(matches!(fit(&|z| 20.0 * z.exp()).curve, Curve::Log { .. }));
        assert!(matches!(fit(&|z| -(z.exp())).curve, Curve::Mirrored { .. }));
        assert!(matches!(fit(&|z| z.powi(3)).curve, Curve::Asinh { .. }));
        let outlier = normal.iter().copied().chain([1e9]);
        let map = Transform::fit(outlier);
        assert!(map.forward(1e9) < 30.0 && map.name().is_some(), "{map:?}");
        for scale in [1e-30, 1.0, 1e39, 1e300] {
            let map = fit(&|z| scale * (5.0 + z));
            let z: Vec<f64> = normal.iter().map(|&z| map.forward(scale * (5.0 + z))).collect();
            let variance = z.iter().map(|z| z * z).sum::<f64>() / 500.0;
            assert!((variance - 1.0).abs() < 1e-6, "{scale}: {variance}");
        }
    }

    #[test]
    fn constant_and_empty_columns_have_a_map() {
        assert_eq!(Transform::fit([]), Transform::IDENTITY);
        let map = Transform::fit([7.0; 20]);
        assert_eq!((map.forward(7.0), map.scale), (0.0, 1.0));
    }

    #[test]
    fn what_is_no_transform_is_refused() {
        for text in [
            "",
            "linear",
            "linear 1",
            "linear 1 0",
            "linear 1 nan",
            "log 1 0 0 1",
            "cubic 1 1",
            "linear 0 1 in 2 1",
            "linear 0 1 in 2",
        ] {
            assert!(text.parse::<Transform>().is_err(), "{text}");
        }
    }
}
