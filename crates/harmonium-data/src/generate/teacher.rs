//! A random RBM as teacher, whose parameters can be compared with those of a student.

use super::random::Random;
use crate::{Bits, Kind, Result, Table};

/// Up to so many hidden units the states of the hidden layer are enumerated and rows are exact.
const ENUMERATED: usize = 16;

/// Otherwise rows come from block Gibbs sampling with so many sweeps before the first and between rows.
const BURN_IN: usize = 2000;
const BETWEEN: usize = 50;

/// A random RBM with binary units, E(v, h) = −a·v − b·h − vᵀWh.
///
/// The weights are normal with standard deviation `scale` / √visible; the biases a = −½ Σ_j W_ij and
/// b = −½ Σ_i W_ij make the distribution symmetric under flipping every unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Teacher {
    /// Number of visible units.
    pub visible: usize,
    /// Number of hidden units.
    pub hidden: usize,
    /// W, row by row: `weights[i * hidden + j]` joins visible i and hidden j.
    pub weights: Vec<f64>,
    /// a.
    pub visible_bias: Vec<f64>,
    /// b.
    pub hidden_bias: Vec<f64>,
}

impl Teacher {
    /// The teacher of this size, scale and seed.
    pub fn new(visible: usize, hidden: usize, scale: f64, seed: u64) -> Self {
        let mut random = Random::new(seed, "teacher weights");
        let deviation = scale / (visible as f64).sqrt();
        let weights: Vec<f64> = (0..visible * hidden).map(|_| deviation * random.normal()).collect();
        let visible_bias = (0..visible)
            .map(|i| -0.5 * weights[i * hidden..(i + 1) * hidden].iter().sum::<f64>())
            .collect();
        let hidden_bias =
            (0..hidden).map(|j| -0.5 * weights.iter().skip(j).step_by(hidden).sum::<f64>()).collect();
        Self { visible, hidden, weights, visible_bias, hidden_bias }
    }

    /// ln Z by enumerating the hidden layer; `None` when it is too large for that (more than 16 units).
    pub fn ln_z(&self) -> Option<f64> {
        let weights = (self.hidden <= ENUMERATED).then(|| self.hidden_log_weights())?;
        let max = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(max + libm::log(weights.iter().map(|w| libm::exp(w - max)).sum()))
    }

    /// ln Σ_v exp(−E(v, h)) for every h, whose units are the bits of the index.
    fn hidden_log_weights(&self) -> Vec<f64> {
        (0..1usize << self.hidden)
            .map(|code| {
                let on = |j: usize| code >> j & 1 == 1;
                let bias: f64 = (0..self.hidden).filter(|j| on(*j)).map(|j| self.hidden_bias[j]).sum();
                let fields = (0..self.visible).map(|i| softplus(self.visible_field(i, on)));
                bias + fields.sum::<f64>()
            })
            .collect()
    }

    fn visible_field(&self, i: usize, hidden_on: impl Fn(usize) -> bool) -> f64 {
        let row = &self.weights[i * self.hidden..(i + 1) * self.hidden];
        let inputs = row.iter().enumerate().filter(|(j, _)| hidden_on(*j));
        self.visible_bias[i] + inputs.map(|(_, w)| w).sum::<f64>()
    }

    /// `rows` visible states.
    pub fn sample(&self, rows: usize, seed: u64) -> Result<Table> {
        let mut random = Random::new(seed, "teacher rows");
        let mut bits = Bits::zeros(rows, self.visible);
        if self.hidden <= ENUMERATED {
            let cumulative = Random::cumulative(&self.hidden_log_weights());
            for row in 0..rows {
                let code = random.pick(&cumulative);
                for i in 0..self.visible {
                    let field = self.visible_field(i, |j| code >> j & 1 == 1);
                    bits.set(row, i, random.chance(sigmoid(field)));
                }
            }
        } else {
            let mut v: Vec<bool> = (0..self.visible).map(|_| random.chance(0.5)).collect();
            for row in 0..rows {
                let sweeps = if row == 0 { BURN_IN } else { BETWEEN };
                (0..sweeps).for_each(|_| self.sweep(&mut v, &mut random));
                v.iter().enumerate().for_each(|(i, on)| bits.set(row, i, *on));
            }
        }
        Table::from_bits(Kind::Binary, bits, None)
    }

    fn sweep(&self, v: &mut [bool], random: &mut Random) {
        let mut fields = self.hidden_bias.clone();
        for (i, _) in v.iter().enumerate().filter(|(_, on)| **on) {
            let row = &self.weights[i * self.hidden..(i + 1) * self.hidden];
            fields.iter_mut().zip(row).for_each(|(field, w)| *field += w);
        }
        let h: Vec<bool> = fields.iter().map(|f| random.chance(sigmoid(*f))).collect();
        for (i, on) in v.iter_mut().enumerate() {
            *on = random.chance(sigmoid(self.visible_field(i, |j| h[j])));
        }
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}

fn softplus(x: f64) -> f64 {
    x.max(0.0) + libm::log1p(libm::exp(-x.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pair frequencies of the rows against enumeration of both layers.
    #[test]
    fn rows_follow_the_teacher() {
        let teacher = Teacher::new(6, 3, 5.0, 4);
        let mut z = 0.0;
        let mut both = 0.0;
        for v in 0..64usize {
            for h in 0..8usize {
                let mut energy = 0.0;
                for i in (0..6).filter(|i| v >> i & 1 == 1) {
                    energy -= teacher.visible_bias[i];
                    for j in (0..3).filter(|j| h >> j & 1 == 1) {
                        energy -= teacher.weights[i * 3 + j];
                    }
                }
                for j in (0..3).filter(|j| h >> j & 1 == 1) {
                    energy -= teacher.hidden_bias[j];
                }
                let weight = (-energy).exp();
                z += weight;
                both += weight * ((v & 3) == 3) as u8 as f64;
            }
        }
        assert!((teacher.ln_z().unwrap() - z.ln()).abs() < 1e-10);
        let rows = 40_000;
        let table = teacher.sample(rows, 5).unwrap();
        let bits = table.blocks()[0].bits().unwrap();
        let seen = (0..rows).filter(|&row| bits.get(row, 0) && bits.get(row, 1)).count();
        let (p, seen) = (both / z, seen as f64 / rows as f64);
        assert!((p - seen).abs() < 5.0 * (p * (1.0 - p) / rows as f64).sqrt(), "{p} {seen}");
    }

    #[test]
    fn gibbs_sampling_serves_larger_teachers() {
        let teacher = Teacher::new(20, 18, 2.0, 1);
        assert_eq!(teacher.ln_z(), None);
        let table = teacher.sample(200, 1).unwrap();
        let ones = table.blocks()[0].bits().unwrap().count_ones();
        assert!((1500..2500).contains(&ones), "{ones}");
    }
}
