//! The number of sweeps per update, adapted to the autocorrelation of the chains.

use crate::{Archive, Batch, Machine, Real, Result, States};
use ndarray::Array2;

/// Sweeps are doubled when the autocorrelation over one update exceeds the first number (an autocorrelation time of
/// some forty updates), and halved when it falls below the second.
const SLOW: f64 = 0.95;
const QUICK: f64 = 0.8;
/// Most sweeps for an update: where these do not suffice, tempering is needed.
pub(super) const MOST: usize = 16;
/// Updates between two decisions, and the weight of a new value in the running average.
const EVERY: u64 = 256;
const AVERAGING: f64 = 1.0 / 64.0;

/// The number of sweeps, fixed or adaptive.
#[derive(Clone, Debug)]
pub(super) struct SweepCount {
    sweeps: usize,
    /// The state of the adaptation, unless the number is fixed.
    adaptive: Option<Adaptive>,
}

#[derive(Clone, Debug)]
struct Adaptive {
    /// Running average of the autocorrelation over one update.
    autocorrelation: f64,
    /// Updates since the last decision.
    since: u64,
}

impl SweepCount {
    /// A fixed number of sweeps, or an adaptive one that starts at 1.
    pub(super) fn new(sweeps: Option<usize>) -> Self {
        let adaptive = sweeps.is_none().then_some(Adaptive { autocorrelation: QUICK, since: 0 });
        Self { sweeps: sweeps.unwrap_or(1), adaptive }
    }

    pub(super) fn sweeps(&self) -> usize {
        self.sweeps
    }

    /// Whether the number is adaptive.
    pub(super) fn is_adaptive(&self) -> bool {
        self.adaptive.is_some()
    }

    /// The number of the first sweep of an update: no two updates share one.
    pub(super) fn first_sweep(&self, update: u64) -> u64 {
        // A number that overflows is as good as another.
        update.wrapping_mul(if self.is_adaptive() { MOST } else { self.sweeps } as u64)
    }

    /// Records the autocorrelation over one update with the present number of sweeps.
    pub(super) fn record(&mut self, autocorrelation: f64) {
        let Some(adaptive) = &mut self.adaptive else { return };
        adaptive.autocorrelation += AVERAGING * (autocorrelation - adaptive.autocorrelation);
        adaptive.since += 1;
        if adaptive.since < EVERY {
            return;
        }
        adaptive.since = 0;
        // Correlations decay geometrically: twice the sweeps square them.
        if adaptive.autocorrelation > SLOW && self.sweeps < MOST {
            self.sweeps *= 2;
            adaptive.autocorrelation *= adaptive.autocorrelation;
        } else if adaptive.autocorrelation < QUICK && self.sweeps > 1 {
            self.sweeps /= 2;
            adaptive.autocorrelation = adaptive.autocorrelation.max(0.0).sqrt();
        }
    }

    /// Numbers for the metrics, if adaptive.
    pub(super) fn metrics(&self) -> Vec<(&'static str, f64)> {
        self.adaptive.as_ref().map_or_else(Vec::new, |adaptive| {
            vec![("sweeps", self.sweeps as f64), ("autocorrelation", adaptive.autocorrelation)]
        })
    }

    pub(super) fn save(&self, archive: &mut Archive) {
        if let Some(adaptive) = &self.adaptive {
            archive.put_u64s("pace", &[self.sweeps as u64, adaptive.since]);
            archive.put_f64s("memory", &[adaptive.autocorrelation]);
        }
    }

    pub(super) fn load(&mut self, archive: &Archive) -> Result<()> {
        if let Some(adaptive) = &mut self.adaptive {
            let (counters, average) = (archive.u64s("pace")?, archive.f64s("memory")?);
            if let ([sweeps, since], [autocorrelation]) = (&counters[..], &average[..]) {
                self.sweeps = (*sweeps as usize).clamp(1, MOST);
                (adaptive.since, adaptive.autocorrelation) = (*since, *autocorrelation);
            }
        }
        Ok(())
    }
}

/// The overlap of the visible units between two states of the same chains, $r = 1 - P(x\ne x')/P(x\ne y)$ (1 for equal states, 0 for independent ones), y
/// being independent of x with the means of `moments`, pooled over the discrete units. `None` where there are none, or
/// where they never change.
pub(super) fn overlap<T: Real>(
    machine: &Machine<T>,
    before: &States<T>,
    after: &States<T>,
    moments: &[Array2<T>],
) -> Option<f64> {
    let (mut changed, mut independent) = (0.0, 0.0);
    for l in machine.with_role(crate::Role::Visible) {
        let mean = &moments[l];
        match (before.get(l)?, after.get(l)?) {
            (Batch::Bits(x), Batch::Bits(y)) => {
                let flips = x.words().iter().zip(y.words()).map(|(x, y)| (x ^ y).count_ones());
                changed += f64::from(flips.sum::<u32>());
                let kind = machine.layer(l).kind();
                let p = |m: &T| kind.upper_probability(m.f64()).expect("bits have two states");
                let pairs: f64 = mean.iter().map(p).map(|p| 2.0 * p * (1.0 - p)).sum();
                independent += pairs * x.rows() as f64;
            }
            (Batch::Codes(x), Batch::Codes(y)) if machine.layer(l).kind().one_hot().is_some() => {
                changed += x.iter().zip(y).filter(|(x, y)| x != y).count() as f64;
                let same: f64 = mean.iter().map(|p| p.f64().powi(2)).sum();
                independent += (x.ncols() as f64 - same) * x.nrows() as f64;
            }
            _ => {}
        }
    }
    (independent > 0.0).then(|| 1.0 - changed / independent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    /// Chains with the autocorrelation r over one sweep, and r^k over k.
    fn settle(r: f64) -> usize {
        let mut count = SweepCount::new(None);
        for _ in 0..100 * EVERY {
            count.record(r.powi(count.sweeps() as i32));
        }
        count.sweeps()
    }

    #[test]
    fn slow_chains_get_more_sweeps() {
        assert_eq!([0.5, 0.9, 0.97, 0.99, 0.9999].map(settle), [1, 1, 2, 8, MOST]);
    }

    #[test]
    fn sweeps_are_taken_back() {
        let mut count = SweepCount::new(None);
        (0..20 * EVERY).for_each(|_| count.record(0.999));
        assert_eq!(count.sweeps(), MOST);
        (0..20 * EVERY).for_each(|_| count.record(0.1));
        assert_eq!(count.sweeps(), 1);
    }

    #[test]
    fn a_given_number_stays() {
        let mut count = SweepCount::new(Some(3));
        (0..10 * EVERY).for_each(|_| count.record(0.999));
        assert_eq!((count.sweeps(), count.first_sweep(7)), (3, 21));
    }

    #[test]
    fn overlap_of_equal_and_of_independent_states() {
        let machine =
            Machine::<f64>::rbm(crate::Layer::new(Kind::Binary, 64), crate::Layer::new(Kind::Binary, 1));
        let rows = 2000;
        let state = |seed: u64| {
            let word = |r: u64| {
                harmonium_kernels::Stream::new(crate::Key { seed, purpose: 0, block: 0, sweep: r })
            };
            let words = (0..rows as u64).map(|r| rand::RngExt::random(&mut word(r))).collect();
            let bits = crate::Bits::from_words(rows, 64, words).expect("packed rows");
            machine.data(vec![Batch::Bits(bits)]).expect("rows that fit")
        };
        let (x, y) = (state(1), state(2));
        let mut moments = machine.zero_parameters();
        moments.layers[0].fill(0.5);
        let r = |a, b| overlap(&machine, a, b, &moments.layers).expect("binary units");
        assert_eq!(r(&x, &x), 1.0);
        // 128 000 pairs of bits: the standard error is 1/√128 000 = 0.0028.
        assert!(r(&x, &y).abs() < 4.0 * 0.0028, "{}", r(&x, &y));
    }
}
