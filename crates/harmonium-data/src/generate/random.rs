//! Random draws whose values are pinned by this crate, not by the version of a dependency.

use rand::SeedableRng;
use rand::rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// A seeded source of the few kinds of draws that generators and splits need.
#[derive(Clone, Debug)]
pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    /// `purpose` keeps the draws of different uses of one seed apart.
    pub(crate) fn new(seed: u64, purpose: &str) -> Self {
        // FNV-1a of the purpose: short words only, collisions would merely share a stream.
        let tag = purpose.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(Xoshiro256PlusPlus::seed_from_u64(seed.rotate_left(32) ^ tag))
    }

    /// Uniform in [0, 1), 53 bits.
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform among 0, …, n − 1; the bias is below n / 2⁶⁴.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.0.next_u64()) * n as u128) >> 64) as usize
    }

    /// True with probability `p`.
    pub(crate) fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// A normal number of mean 0 and variance 1 (Box and Muller; the second one is thrown away).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * libm::log(1.0 - self.uniform())).sqrt();
        radius * libm::cos(std::f64::consts::TAU * self.uniform())
    }

    /// Shuffles by Fisher and Yates.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end + 1));
        }
    }

    /// Running sums of exp(`log_weights`), up to a factor, for [`Random::pick`].
    pub(crate) fn cumulative(log_weights: &[f64]) -> Vec<f64> {
        let max = log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut sum = 0.0;
        log_weights
            .iter()
            .map(|weight| {
                sum += libm::exp(weight - max);
                sum
            })
            .collect()
    }

    /// An index drawn from cumulated weights.
    pub(crate) fn pick(&mut self, cumulative: &[f64]) -> usize {
        let Some(total) = cumulative.last() else {
            return 0;
        };
        let target = self.uniform() * total;
        cumulative.partition_point(|sum| *sum <= target).min(cumulative.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_seed_are_pinned() {
        let mut random = Random::new(0, "test");
        let draws: Vec<usize> = (0..6).map(|_| random.below(100)).collect();
        assert_eq!(draws, [28, 32, 76, 72, 88, 60]);
        assert_ne!(random.uniform(), Random::new(0, "other").uniform());
    }

    #[test]
    fn normals_have_the_right_moments() {
        let mut random = Random::new(3, "test");
        let draws: Vec<f64> = (0..100_000).map(|_| random.normal()).collect();
        let mean = draws.iter().sum::<f64>() / 1e5;
        let square = draws.iter().map(|x| x * x).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.015 && (square - 1.0).abs() < 0.02);
    }
}
