//! Spins in equilibrium: the square-lattice Ising model, and the Curie–Weiss model sampled exactly.

use super::random::Random;
use crate::{Bits, Kind, Result, Table};

/// Sweeps before the first row, and between rows. Each is a heat-bath sweep and a number of Wolff clusters:
/// the first is quick far from criticality, the second at it.
const BURN_IN: usize = 200;
const BETWEEN: usize = 3;

/// Rows drawn from exp(β Σ s_i s_j) over the bonds of a `height` × `width` torus.
pub(super) fn ising(height: usize, width: usize, beta: f64, rows: usize, seed: u64) -> Result<Table> {
    let mut lattice = Lattice::new(height, width, beta, seed);
    lattice.burn_in();
    let mut bits = Bits::zeros(rows, height * width);
    for row in 0..rows {
        for _ in 0..BETWEEN {
            lattice.sweep();
        }
        for (site, up) in lattice.up.iter().enumerate() {
            bits.set(row, site, *up);
        }
    }
    Table::from_bits(Kind::Spin, bits, Some([height, width]))
}

struct Lattice {
    neighbours: Vec<[usize; 4]>,
    up: Vec<bool>,
    /// P(up) for 0 to 4 neighbours that are up.
    heat_bath: [f64; 5],
    /// Probability that a bond between equal spins joins them: 1 − exp(−2β).
    join: f64,
    /// Clusters per sweep.
    clusters: usize,
    stack: Vec<usize>,
    random: Random,
}

impl Lattice {
    fn new(height: usize, width: usize, beta: f64, seed: u64) -> Self {
        let site = |y: usize, x: usize| (y % height) * width + x % width;
        let neighbours = (0..height * width)
            .map(|at| {
                let (y, x) = (at / width, at % width);
                [site(y + 1, x), site(y + height - 1, x), site(y, x + 1), site(y, x + width - 1)]
            })
            .collect();
        let heat_bath =
            [-4.0, -2.0, 0.0, 2.0, 4.0].map(|field| 1.0 / (1.0 + libm::exp(-2.0 * beta * field)));
        Self {
            neighbours,
            up: vec![true; height * width],
            heat_bath,
            join: -libm::expm1(-2.0 * beta),
            clusters: 1,
            stack: Vec::new(),
            random: Random::new(seed, "ising"),
        }
    }

    /// Burn-in, which also finds how many clusters flip about as many spins as there are. The number is
    /// fixed from then on: stopping as soon as enough spins are flipped would favour large clusters.
    fn burn_in(&mut self) {
        for _ in 0..BURN_IN {
            let flipped = self.sweep();
            let next = self.clusters * self.up.len() / flipped.max(1);
            self.clusters = next.clamp(1, 2 * self.clusters);
        }
    }

    /// One sweep; says how many spins the clusters flipped.
    fn sweep(&mut self) -> usize {
        for site in 0..self.up.len() {
            let ups = self.neighbours[site].iter().filter(|&&n| self.up[n]).count();
            self.up[site] = self.random.chance(self.heat_bath[ups]);
        }
        (0..self.clusters).map(|_| self.flip_cluster()).sum()
    }

    /// Wolff's update: grow a cluster of equal spins from a random one, flip it, and say how large it was.
    fn flip_cluster(&mut self) -> usize {
        let start = self.random.below(self.up.len());
        let old = self.up[start];
        self.up[start] = !old;
        self.stack.push(start);
        let mut size = 0;
        while let Some(site) = self.stack.pop() {
            size += 1;
            for next in self.neighbours[site] {
                if self.up[next] == old && self.random.chance(self.join) {
                    self.up[next] = !old;
                    self.stack.push(next);
                }
            }
        }
        size
    }
}

/// Rows drawn exactly from exp(β M² / 2N), M the sum of N spins.
pub(super) fn curie_weiss(spins: usize, beta: f64, rows: usize, seed: u64) -> Result<Table> {
    let n = spins as f64;
    let log_weights: Vec<f64> = (0..=spins)
        .map(|ups| {
            let (up, down) = (ups as f64, n - ups as f64);
            let magnetisation = up - down;
            libm::lgamma(n + 1.0) - libm::lgamma(up + 1.0) - libm::lgamma(down + 1.0)
                + beta * magnetisation * magnetisation / (2.0 * n)
        })
        .collect();
    let cumulative = Random::cumulative(&log_weights);
    let mut random = Random::new(seed, "curie-weiss");
    let mut sites: Vec<usize> = (0..spins).collect();
    let mut bits = Bits::zeros(rows, spins);
    for row in 0..rows {
        let ups = random.pick(&cumulative);
        for k in 0..ups {
            let other = k + random.below(spins - k);
            sites.swap(k, other);
            bits.set(row, sites[k], true);
        }
    }
    Table::from_bits(Kind::Spin, bits, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and mean square of `f` over the rows.
    fn moments(table: &Table, f: impl Fn(&dyn Fn(usize) -> f64) -> f64) -> (f64, f64) {
        let block = &table.blocks()[0];
        let values: Vec<f64> =
            (0..table.rows()).map(|row| f(&|col| block.number(row, col).unwrap())).collect();
        let n = values.len() as f64;
        (values.iter().sum::<f64>() / n, values.iter().map(|v| v * v).sum::<f64>() / n)
    }

    /// Exact moments over all configurations of `n` spins.
    fn exact(n: usize, log_p: impl Fn(&dyn Fn(usize) -> f64) -> f64) -> (f64, f64) {
        let (mut z, mut first, mut second) = (0.0, 0.0, 0.0);
        for code in 0..1usize << n {
            let value = log_p(&|i| if code >> i & 1 == 1 { 1.0 } else { -1.0 });
            let weight = value.exp();
            z += weight;
            first += weight * value;
            second += weight * value * value;
        }
        (first / z, second / z)
    }

    #[test]
    fn ising_energies_agree_with_enumeration() {
        for beta in [0.2, 0.4407, 0.8] {
            let log_p = |spin: &dyn Fn(usize) -> f64| -> f64 {
                let bonds: f64 = (0..16)
                    .map(|at| {
                        let (y, x) = (at / 4, at % 4);
                        spin(at) * (spin((y + 1) % 4 * 4 + x) + spin(y * 4 + (x + 1) % 4))
                    })
                    .sum();
                beta * bonds
            };
            let table = ising(4, 4, beta, 20_000, 1).unwrap();
            let (mean, square) = moments(&table, log_p);
            let (exact_mean, exact_square) = exact(16, log_p);
            let error = ((exact_square - exact_mean * exact_mean) / 20_000.0).sqrt();
            // Rows are slightly correlated: five standard errors of independent ones.
            assert!((mean - exact_mean).abs() < 5.0 * error, "{beta}: {mean} {exact_mean}");
            assert!((square / exact_square - 1.0).abs() < 0.05, "{beta}: {square} {exact_square}");
        }
    }

    #[test]
    fn curie_weiss_magnetisations_agree_with_enumeration() {
        for beta in [0.5, 1.2] {
            let log_p = |spin: &dyn Fn(usize) -> f64| -> f64 {
                let m: f64 = (0..10).map(spin).sum();
                beta * m * m / 20.0
            };
            let table = curie_weiss(10, beta, 20_000, 2).unwrap();
            let (mean, _) = moments(&table, log_p);
            let (exact_mean, exact_square) = exact(10, log_p);
            let error = ((exact_square - exact_mean * exact_mean) / 20_000.0).sqrt();
            assert!((mean - exact_mean).abs() < 5.0 * error, "{beta}: {mean} {exact_mean}");
        }
    }
}
