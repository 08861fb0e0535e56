//! Axes: from numbers to places, with ticks at round numbers.

/// How numbers become lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    Linear,
    Log,
}

/// An axis from `low` to `high`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    scale: Scale,
}

impl Axis {
    /// An axis that holds all finite numbers of `x`, with a little room (none on a logarithmic one).
    pub(super) fn around(x: impl Iterator<Item = f64>, scale: Scale) -> Self {
        let keep = |x: &f64| x.is_finite() && (scale == Scale::Linear || *x > 0.0);
        let (low, high) = x.filter(keep).fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(x), b.max(x)));
        let (low, high) = if low > high { (1.0, 10.0) } else { (low, high) };
        match scale {
            Scale::Log if high / low < 1.5 => Self { low: low / 1.5, high: high * 1.5, scale },
            Scale::Log => Self { low, high, scale },
            Scale::Linear => {
                let room = if high > low { 0.04 * (high - low) } else { 0.5 * high.abs().max(1.0) };
                Self { low: low - room, high: high + room, scale }
            }
        }
    }

    /// Where x stands, 0 at the low end and 1 at the high end.
    pub(super) fn at(&self, x: f64) -> f64 {
        match self.scale {
            Scale::Linear => (x - self.low) / (self.high - self.low),
            Scale::Log => (x.max(1e-300) / self.low).ln() / (self.high / self.low).ln(),
        }
    }

    /// Round numbers along the axis, about `n` of them.
    pub(super) fn ticks(&self, n: usize) -> Vec<f64> {
        if self.scale == Scale::Log {
            let (a, b) = (self.low.log10().ceil() as i32, self.high.log10().floor() as i32);
            if b > a {
                let step = ((b - a + 1) as usize).div_ceil(n).max(1);
                return (a..=b).step_by(step).map(|k| 10f64.powi(k)).collect();
            }
        }
        let rough = (self.high - self.low) / n as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step =
            [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= rough).unwrap_or(power);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        (first..=last).map(|k| k as f64 * step).collect()
    }
}

/// A number as a label.
pub(super) fn label(x: f64) -> String {
    match x.abs() {
        0.0 => "0".into(),
        a if !(1e-4..1e6).contains(&a) => {
            let text = format!("{x:e}");
            text.replace("e", "·10^")
        }
        a if a >= 1e4 => format!("{}k", short(x / 1e3)),
        _ => short(x),
    }
}

fn short(x: f64) -> String {
    let text = format!("{x:.4}");
    text.trim_end_matches('0').trim_end_matches('.').replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        let axis = Axis::around([0.0, 10.0].into_iter(), Scale::Linear);
        assert_eq!(axis.ticks(6), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        let axis = Axis::around([1.0, 5000.0].into_iter(), Scale::Log);
        assert_eq!(axis.ticks(6), [1.0, 10.0, 100.0, 1000.0]);
        assert!((axis.at(1.0), axis.at(5000.0)) == (0.0, 1.0));
        assert_eq!(label(-0.5), "−0.5");
        assert_eq!(label(20000.0), "20k");
        // One number, or none, is still an axis.
        assert!(!Axis::around([3.0].into_iter(), Scale::Linear).ticks(5).is_empty());
        assert!(!Axis::around(std::iter::empty(), Scale::Log).ticks(5).is_empty());
    }
}
