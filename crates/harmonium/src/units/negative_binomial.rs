//! Negative binomial units {0…n}: over-dispersed counts; Γ(I) = −r·ln(1−e^{θ+I}) up to the truncation at n.
//!
//! The bound n makes Z finite for every input, even for θ + I ≥ 0, where unbounded counts would diverge. Where the states
//! beyond n would contribute less than the precision of a double, closed forms are used, elsewhere sums over the states.

use super::family::{Family, Marginal, Square, Values};
use super::{Unit, uniform};
use rand::Rng;
use rand_distr::Distribution;

/// Closed forms are used where the part beyond n is this many nats below the mean: less than the last digit.
const NEGLIGIBLE: f64 = 36.0;

#[derive(Clone, Copy)]
pub(super) struct NegativeBinomial {
    r: f64,
    n: f64,
    /// θ + I up to which the closed forms hold.
    closed: f64,
}

/// Consecutive states with falling weights, and the weight of the first.
struct FallingRange {
    from: f64,
    to: f64,
    weight: f64,
}

/// Sums over the weights w(x) of all states but the heaviest, $a$, relative to its weight.
struct Sums {
    /// $a$ and the logarithm of its weight.
    heaviest: f64,
    log_weight: f64,
    /// $\sum w$, $\sum w(x-a)$ and $\sum w(x-a)^2$.
    moments: [f64; 3],
}

impl NegativeBinomial {
    /// Units with r = `shape`/16.
    ///
    /// For x > n and any s > 2/(n+1), $x^2 \le (n+1)^2 e^{s(x-n-1)}$, so that
    /// $\sum_{x>n}x^2\nu(x)e^{yx} \le (n+1)^2e^{-s(n+1)}(1-e^{y+s})^{-r}$. The best s gives the tilted distribution the
    /// mean n+1. The bound is compared with $re^y$, which Γ, mean and variance all exceed.
    pub(super) fn new(shape: u32, n: u32) -> Self {
        let (r, n) = (f64::from(shape) / 16.0, f64::from(n));
        let edge = n + 1.0;
        let p = edge / (edge + r);
        let tail = -edge * p.ln() - r * (1.0 - p).ln();
        let closed = (r.ln() - NEGLIGIBLE - tail - 2.0 * edge.ln()) / n;
        Self { r, n, closed: closed.min(p.ln() - 2.0 / edge) }
    }

    /// θ of an uncoupled unit with this mean, by bisection: the mean rises with θ.
    pub(super) fn theta(self, mean: f64) -> f64 {
        // Without the bound the mean is r/(e^{−θ}−1); the bound can only lower it.
        let free = -(self.r / mean).ln_1p();
        if free <= self.closed {
            return free;
        }
        let (mut lo, mut hi) = (free, 50.0);
        for _ in 0..100 {
            let mid = 0.5 * (lo + hi);
            if self.mean([mid], 0.0) < mean { lo = mid } else { hi = mid }
        }
        0.5 * (lo + hi)
    }

    /// Ranges of falling weights that together cover all states, the heaviest state first.
    ///
    /// The ratio of neighbours $\frac{x+r}{x+1}e^y$ falls with x for r > 1: there is one peak, from which the ranges go down
    /// and up. For r < 1 it rises: the peaks are the ends, and the ranges meet in the minimum between them.
    fn runs(self, y: f64) -> (f64, [Option<FallingRange>; 2]) {
        let Self { r, n, .. } = self;
        let log_weight = |x: f64| self.log_measure(x) + y * x;
        if r < 1.0 && y > 0.0 {
            let valley = (((-y).exp() - r) / -(-y).exp_m1()).ceil().clamp(0.0, n - 1.0);
            let (low, high) = (0.0, log_weight(n));
            let top = high.max(low);
            let down = FallingRange { from: n, to: valley + 1.0, weight: (high - top).exp() };
            let up = FallingRange { from: 0.0, to: valley, weight: (low - top).exp() };
            return (top, if high >= low { [Some(down), Some(up)] } else { [Some(up), Some(down)] });
        }
        let peak = match y < 0.0 && r > 1.0 {
            true => ((r - 1.0) / (-y).exp_m1()).floor().min(n),
            false if r >= 1.0 && y >= 0.0 => n,
            false => 0.0,
        };
        let down = FallingRange { from: peak, to: 0.0, weight: 1.0 };
        let first = peak + 1.0;
        let up =
            (peak < n).then(|| FallingRange { from: first, to: n, weight: self.rise(peak, y.exp()) });
        (log_weight(peak), [Some(down), up])
    }

    /// ν(x+1)/ν(x), times e^y.
    fn rise(self, x: f64, p: f64) -> f64 {
        (x + self.r) / (x + 1.0) * p
    }

    /// The states of a range with their weights.
    fn states(self, run: &FallingRange, y: f64) -> impl Iterator<Item = (f64, f64)> {
        let (to, up) = (run.to, run.from < run.to);
        let p = if up { y.exp() } else { (-y).exp() };
        std::iter::successors(Some((run.from, run.weight)), move |&(x, w)| {
            (x != to).then(|| match up {
                true => (x + 1.0, w * self.rise(x, p)),
                false => (x - 1.0, w * x / (x + self.r - 1.0) * p),
            })
        })
    }

    fn sums(self, y: f64) -> Sums {
        let (log_weight, runs) = self.runs(y);
        let heaviest = runs[0].as_ref().map_or(0.0, |run| run.from);
        let mut moments = [0.0; 3];
        // At most n states follow in a range, each of at most the present weight and at a distance of at most n.
        let rest = 1e-17 / self.n.powi(3);
        for run in runs.iter().flatten() {
            for (x, w) in self.states(run, y).filter(|&(x, _)| x != heaviest) {
                let d = x - heaviest;
                moments = [moments[0] + w, moments[1] + w * d, moments[2] + w * d * d];
                if w <= rest * moments[2] {
                    break;
                }
            }
        }
        Sums { heaviest, log_weight, moments }
    }
}

impl Unit<1> for NegativeBinomial {
    fn stats(self, x: f64) -> [f64; 1] {
        [x]
    }
    fn log_measure(self, x: f64) -> f64 {
        libm::lgamma(x + self.r) - libm::lgamma(self.r) - libm::lgamma(x + 1.0)
    }
    fn cgf(self, [theta]: [f64; 1], input: f64) -> f64 {
        let y = theta + input;
        if y <= self.closed {
            return -self.r * (-y.exp()).ln_1p();
        }
        let sums = self.sums(y);
        sums.log_weight + sums.moments[0].ln_1p()
    }
    fn mean(self, [theta]: [f64; 1], input: f64) -> f64 {
        let y = theta + input;
        if y <= self.closed {
            return self.r / (-y).exp_m1();
        }
        let Sums { heaviest, moments: [w, d, _], .. } = self.sums(y);
        heaviest + d / (1.0 + w)
    }
    fn variance(self, [theta]: [f64; 1], input: f64) -> f64 {
        let y = theta + input;
        if y <= self.closed {
            let odds = 1.0 / (-y).exp_m1();
            return self.r * odds * (1.0 + odds);
        }
        let [w, d, dd] = self.sums(y).moments;
        (dd / (1.0 + w) - (d / (1.0 + w)).powi(2)).max(0.0)
    }
    fn mode(self, [theta]: [f64; 1], input: f64) -> f64 {
        let (_, [heaviest, _]) = self.runs(theta + input);
        heaviest.map_or(0.0, |run| run.from)
    }
    fn mean_stats(self, p: [f64; 1], input: f64) -> [f64; 1] {
        [self.mean(p, input)]
    }
    fn sample<R: Rng>(self, [theta]: [f64; 1], input: f64, rng: &mut R) -> f64 {
        let y = theta + input;
        if y <= self.closed {
            // A Poisson count whose rate is drawn from a gamma distribution; an underflowed rate gives zero.
            let Ok(rate) = rand_distr::Gamma::new(self.r, 1.0 / (-y).exp_m1()) else { return 0.0 };
            let count = rand_distr::Poisson::new(rate.sample(rng)).map_or(0.0, |p| p.sample(rng));
            return count.min(self.n);
        }
        let (_, runs) = self.runs(y);
        let Sums { heaviest, moments, .. } = self.sums(y);
        let mut left = uniform(rng) * (1.0 + moments[0]);
        for run in runs.iter().flatten() {
            for (x, w) in self.states(run, y) {
                left -= w;
                if left <= 0.0 {
                    return x;
                }
            }
        }
        heaviest
    }
}

/// The sizes of the kind, without the constants that [`NegativeBinomial`] derives from them.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) shape: u32,
    pub(super) n: u32,
}

impl Family for Sizes {
    fn name(&self) -> String {
        format!("NegativeBinomial(r={}, n={})", f64::from(self.shape) / 16.0, self.n)
    }
    fn word(&self) -> String {
        format!("neg_binomial:{}:{}", f64::from(self.shape) / 16.0, self.n)
    }
    fn values(&self) -> Values {
        Values::Codes { states: self.n.saturating_add(1) }
    }
    fn square(&self) -> Square {
        Square::Absent
    }
    fn start(&self, m: &Marginal<'_>) -> Vec<f64> {
        vec![NegativeBinomial::new(self.shape, self.n).theta((m.sums[0] + 0.5) / (m.total + 0.5))]
    }
    fn base(&self, m: &Marginal<'_>, _own: &[f64]) -> Vec<f64> {
        vec![NegativeBinomial::new(self.shape, self.n).theta((m.sums[0] + 0.5) / (m.total + 1.0))]
    }
    /// At most m(n − m), the largest variance of any number in 0…n with mean m.
    fn variance(&self, mean: f64, _stats: &dyn Fn(usize) -> f64) -> f64 {
        mean * (1.0 + 16.0 * mean / f64::from(self.shape)).min(f64::from(self.n) - mean)
    }
    fn cgf_cost(&self) -> f64 {
        40.0
    }
    fn has_states(&self) -> bool {
        self.shape > 0 && self.n > 0
    }
    fn has_measure(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPES: [u32; 7] = [1, 5, 15, 16, 17, 40, 1024];
    const LARGEST: [u32; 5] = [1, 2, 7, 60, 1024];

    fn close(got: f64, want: f64, tol: f64, what: &str) {
        assert!((got - want).abs() <= tol * want.abs().max(1e-300), "{what}: {got:e} against {want:e}");
    }

    /// Γ, mean and variance by adding up all states: weights by products of ratios, moments about `centre`.
    fn by_hand(shape: u32, n: u32, y: f64, centre: f64) -> [f64; 3] {
        let r = f64::from(shape) / 16.0;
        let mut log_w = vec![0.0];
        for x in 0..n {
            log_w.push(log_w[x as usize] + ((f64::from(x) + r) / f64::from(x + 1)).ln() + y);
        }
        let top = log_w.iter().copied().fold(f64::MIN, f64::max);
        let moment = |k: i32| -> f64 {
            let d = |x: usize| (x as f64 - centre).powi(k);
            log_w.iter().enumerate().map(|(x, l)| d(x) * (l - top).exp()).sum()
        };
        let (z, d) = (moment(0), moment(1) / moment(0));
        [top + z.ln(), centre + d, moment(2) / z - d * d]
    }

    #[test]
    fn sums_over_the_states() {
        for shape in SHAPES {
            for n in LARGEST {
                let unit = NegativeBinomial::new(shape, n);
                let near = [-1e-3, 0.0, 1e-3].map(|d| unit.closed + d);
                let inputs =
                    [-1e4, -30.0, -3.0, -0.7, -0.1, -1e-3, -1e-9, 0.0, 1e-9, 1e-3, 0.1, 0.7, 3.0];
                for y in inputs.into_iter().chain(near).chain([1e4]) {
                    let what = format!("r = {shape}/16, n = {n}, y = {y}");
                    let mode = unit.mode([y], 0.0);
                    let [cgf, mean, variance] = by_hand(shape, n, y, mode);
                    assert!((unit.cgf([y], 0.0) - cgf).abs() < 1e-10 * cgf.abs().max(1.0), "{what}: Γ");
                    close(unit.mean([y], 0.0), mean, 1e-11, &format!("{what}: mean"));
                    let got = unit.variance([y], 0.0);
                    assert!((got - variance).abs() <= 1e-9 * variance.max(1e-12), "{what}: variance");
                }
            }
        }
    }

    /// The closed forms and the sums agree where one replaces the other.
    #[test]
    fn closed_forms_end_without_a_step() {
        for shape in SHAPES {
            for n in LARGEST {
                let at = NegativeBinomial::new(shape, n);
                let summed = NegativeBinomial { closed: f64::NEG_INFINITY, ..at };
                for y in [at.closed, at.closed - 0.1, 2.0 * at.closed] {
                    let what = format!("r = {shape}/16, n = {n}, y = {y}");
                    assert!(y < 0.0 && at.closed > f64::NEG_INFINITY);
                    close(summed.mean([y], 0.0), at.mean([y], 0.0), 1e-12, &what);
                    close(summed.variance([y], 0.0), at.variance([y], 0.0), 1e-11, &what);
                    // A large Γ is ν at the mode, a difference of logarithms of Γ functions.
                    close(summed.cgf([y], 0.0), at.cgf([y], 0.0), 1e-11, &what);
                }
            }
        }
    }

    /// The effect of the bound vanishes as n grows: Γ → −r ln(1−e^y), mean → r e^y/(1−e^y).
    #[test]
    fn far_bounds_are_not_felt() {
        let (r, y) = (2.5f64, -0.2f64);
        let free = [-r * (1.0 - y.exp()).ln(), r / ((-y).exp() - 1.0)];
        let mut before = [f64::INFINITY; 2];
        for n in [10, 20, 40, 80, 1000] {
            let unit = NegativeBinomial::new(40, n);
            let error = [free[0] - unit.cgf([y], 0.0), free[1] - unit.mean([y], 0.0)];
            for k in 0..2 {
                let felt = n < 1000;
                assert!(
                    if felt { error[k] > 0.0 } else { error[k].abs() < 1e-10 },
                    "n = {n}: {error:?}"
                );
                assert!(error[k] < before[k] || !felt, "n = {n}: {error:?} after {before:?}");
            }
            before = error;
        }
    }

    /// With r → ∞ at a fixed mean the counts become Poisson: ln p(x) differs by about (x − m)²/2r.
    #[test]
    fn many_sixteenths_are_poisson() {
        let m = 3.0f64;
        let mut before = f64::INFINITY;
        for r in [16u32, 256, 4096] {
            let unit = NegativeBinomial::new(16 * r, 512);
            let theta = unit.theta(m);
            let worst = (0..12).map(f64::from).map(|x| {
                let log_p = unit.log_measure(x) + theta * x - unit.cgf([theta], 0.0);
                (log_p - (x * m.ln() - m - libm::lgamma(x + 1.0))).abs()
            });
            let worst = worst.fold(0.0, f64::max);
            assert!(worst < 50.0 / f64::from(r) && worst < 0.1 * before, "r = {r}: {worst}");
            before = worst;
        }
    }

    #[test]
    fn theta_gives_the_mean() {
        for shape in SHAPES {
            for n in LARGEST {
                let unit = NegativeBinomial::new(shape, n);
                for part in [1e-6, 0.01, 0.3, 0.5, 0.9, 0.999] {
                    let mean = part * f64::from(n);
                    close(
                        unit.mean([unit.theta(mean)], 0.0),
                        mean,
                        1e-10,
                        &format!("{shape} {n} {part}"),
                    );
                }
            }
        }
    }

    /// Both ways to draw against the exact probabilities: χ² of ten classes stays below 30 (p ≈ 5e-4) for a fixed seed.
    #[test]
    fn draws_have_the_right_frequencies() {
        let draws = 20_000;
        for (shape, n, y) in
            [(40, 500, -0.6), (8, 500, -0.6), (40, 30, -0.1), (8, 30, 0.03), (24, 9, 0.4)]
        {
            let unit = NegativeBinomial::new(shape, n);
            let mut rng =
                harmonium_kernels::Stream::new(crate::Key { seed: 5, purpose: 1, block: 0, sweep: 0 });
            let (mut seen, mut expected) = ([0.0; 10], [0.0; 10]);
            let class = |x: f64| ((10.0 * x / f64::from(n.min(20) + 1)) as usize).min(9);
            for _ in 0..draws {
                seen[class(unit.sample([y], 0.0, &mut rng))] += 1.0;
            }
            for x in (0..=n).map(f64::from) {
                let p = (unit.log_measure(x) + y * x - unit.cgf([y], 0.0)).exp();
                expected[class(x)] += f64::from(draws) * p;
            }
            let chi2: f64 = seen.iter().zip(expected).map(|(s, e)| (s - e).powi(2) / e).sum();
            assert!(chi2 < 30.0, "r = {shape}/16, n = {n}, y = {y}: {chi2:.1} {seen:?} {expected:?}");
        }
    }
}
