//! Inverse temperatures of an annealing run, and measures of where more of them are needed.

use super::weights::mean_var;
use crate::{Error, Result};

/// Inverse temperatures from 0 (the base model) to 1 (the machine).
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    betas: Vec<f64>,
}

impl Schedule {
    /// Any rising sequence from 0 to 1.
    ///
    /// # Errors
    /// A sequence that does not rise from 0 to 1.
    pub fn new(betas: Vec<f64>) -> Result<Self> {
        let rising = betas.windows(2).all(|b| b[0] < b[1]);
        if betas.len() < 2 || betas[0] != 0.0 || betas[betas.len() - 1] != 1.0 || !rising {
            return Err(Error::value("schedule", "numbers that rise from 0 to 1", format!("{betas:?}")));
        }
        Ok(Self { betas })
    }

    /// `n` equal steps.
    pub fn uniform(n: usize) -> Self {
        let n = n.max(1);
        Self { betas: (0..=n).map(|k| k as f64 / n as f64).collect() }
    }

    /// The schedule of the literature for RBMs of digits: 500 steps up to 0.5, 4000 up to 0.9, 10 000 up to 1.
    pub fn reference() -> Self {
        let mut betas = vec![0.0];
        for (from, to, n) in [(0.0, 0.5, 500), (0.5, 0.9, 4000), (0.9, 1.0, 10_000)] {
            betas.extend((1..=n).map(|k| from + (to - from) * f64::from(k) / f64::from(n)));
        }
        *betas.last_mut().expect("not empty") = 1.0;
        Self { betas }
    }

    /// The inverse temperatures, 0 and 1 included.
    pub fn betas(&self) -> &[f64] {
        &self.betas
    }

    /// Number of steps.
    pub fn steps(&self) -> usize {
        self.betas.len() - 1
    }
}

/// A length along β, piecewise linear, that a schedule divides evenly.
#[derive(Clone, Debug)]
pub(crate) struct Length {
    /// β and the length from 0 up to it.
    points: Vec<(f64, f64)>,
}

impl Length {
    /// From increments over consecutive intervals that begin at β = 0.
    pub(crate) fn new(intervals: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let mut points = vec![(0.0, 0.0)];
        let mut sum = 0.0;
        for (to, length) in intervals {
            sum += length;
            points.push((to, sum));
        }
        Self { points }
    }

    pub(crate) fn total(&self) -> f64 {
        self.points[self.points.len() - 1].1
    }

    /// The inverse temperatures that cut the length into `n` equal parts.
    pub(crate) fn divide(&self, n: usize) -> Schedule {
        // A small multiple of β keeps the map invertible where the measured length is zero.
        let floor = 1e-3 * self.total().max(1e-12);
        let at = |i: usize| self.points[i].1 + floor * self.points[i].0;
        let end = at(self.points.len() - 1);
        let (mut betas, mut i) = (vec![0.0], 0);
        for k in 1..n {
            let target = end * k as f64 / n as f64;
            while at(i + 1) < target && i + 2 < self.points.len() {
                i += 1;
            }
            let share = ((target - at(i)) / (at(i + 1) - at(i))).clamp(0.0, 1.0);
            let beta = self.points[i].0 + share * (self.points[i + 1].0 - self.points[i].0);
            // Rounding must not make two steps equal.
            if beta > betas[betas.len() - 1] && beta < 1.0 {
                betas.push(beta);
            }
        }
        betas.push(1.0);
        Schedule { betas }
    }
}

/// Watches the increments of the log-weights of a run.
///
/// Gives two lengths. Let V be the variance over chains of the log-weight that a stretch of n steps contributes. With n
/// times as many steps per stretch the excess work, and so V, falls as 1/n, whether neighbouring increments are
/// correlated or not; $c = nV$ is the stretch's difficulty, and $\sum c_s/n_s$ is smallest at a given total when $n_s
/// \propto \sqrt{c_s}$: the *annealing length* adds up these roots. The *equilibrium length* adds up the standard
/// deviations of single increments, which do not depend on how slowly the chains move: it gives the number of replicas
/// that exchange well.
pub(crate) struct LengthEstimator {
    steps: usize,
    sums: Vec<f64>,
    stretch: usize,
    annealing: Vec<(f64, f64)>,
    equilibrium: Vec<(f64, f64)>,
    inside: usize,
    spread: f64,
}

/// Stretches of a run whose variances are measured.
const STRETCHES: usize = 32;

impl LengthEstimator {
    pub(crate) fn new(chains: usize, steps: usize) -> Self {
        let stretch = steps.div_ceil(STRETCHES);
        let (annealing, equilibrium) = (Vec::new(), Vec::new());
        Self { steps, sums: vec![0.0; chains], stretch, annealing, equilibrium, inside: 0, spread: 0.0 }
    }

    /// Step number `k` (from 0) went to `to` with these increments.
    pub(crate) fn step(&mut self, k: usize, to: f64, increments: &[f64]) {
        self.sums.iter_mut().zip(increments).for_each(|(s, x)| *s += x);
        self.spread += mean_var(increments).1.sqrt();
        self.inside += 1;
        if (k + 1).is_multiple_of(self.stretch) || k + 1 == self.steps {
            let c = mean_var(&self.sums).1 * self.inside as f64;
            self.annealing.push((to, c.sqrt()));
            self.equilibrium.push((to, self.spread));
            self.sums.fill(0.0);
            (self.inside, self.spread) = (0, 0.0);
        }
    }

    pub(crate) fn annealing(&self) -> Length {
        Length::new(self.annealing.iter().copied())
    }

    pub(crate) fn equilibrium(&self) -> Length {
        Length::new(self.equilibrium.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_divided_evenly() {
        let length = Length::new([(0.5, 1.0), (1.0, 3.0)]);
        let s = length.divide(4);
        // Lengths 1, 2, 3 of 4: the end of the first half, then thirds of the second.
        for (b, e) in s.betas().iter().zip([0.0, 0.5, 2.0 / 3.0, 5.0 / 6.0, 1.0]) {
            assert!((b - e).abs() < 2e-3, "{s:?}");
        }
        assert!(Schedule::new(s.betas().to_vec()).is_ok());
        assert_eq!(Schedule::reference().steps(), 14_500);
        assert!(Schedule::new(Schedule::reference().betas).is_ok());
        assert!(Schedule::new(vec![0.0, 0.7, 0.6, 1.0]).is_err());
    }

    #[test]
    fn a_watch_finds_the_hard_part() {
        // Increments with the standard deviation 1 below ½ and 3 above, independent between steps.
        let mut watch = LengthEstimator::new(2, 320);
        for k in 0..320 {
            let sd = if k < 160 { 1.0 } else { 3.0 } / 2f64.sqrt();
            watch.step(k, (k + 1) as f64 / 320.0, &[sd, -sd]);
        }
        let s = watch.equilibrium().divide(100);
        let below = s.betas().iter().filter(|&&b| b < 0.5).count();
        assert!((24..=27).contains(&below), "{below}");
    }
}
