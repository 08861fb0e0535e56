//! Replica exchange along the path: equilibrium samples of the machine and estimates of ln Z from the rungs.

use super::anneal::RunSeed;
use super::path::{Fields, Path};
use super::trips::RoundTrips;
use crate::sample::{acceptance, purpose};
use crate::units::uniform;
use crate::{Key, Real, Result, States};
use harmonium_kernels::Stream;

/// Replicas at several β, each a batch of chains; chain r of all replicas is one ladder.
pub(crate) struct Ladder<'p, 'm, T: Real> {
    path: &'p Path<'m, T>,
    betas: Vec<f64>,
    replicas: Vec<States<T>>,
    run: RunSeed,
    sweeps: usize,
    trips: RoundTrips,
}

/// Measurements of one round, before its exchanges.
pub(crate) struct Seen {
    /// $\ln f_{i+1}(x) - \ln f_i(x)$ of the chains of replica i, and of those of replica i+1, for every pair.
    pub(crate) ratios: Vec<(Vec<f64>, Vec<f64>)>,
    /// $\partial\ln f_\beta/\partial\beta$ of the chains of every replica.
    pub(crate) derivatives: Vec<Vec<f64>>,
}

impl<'p, 'm, T: Real> Ladder<'p, 'm, T> {
    pub(crate) fn new(
        path: &'p Path<'m, T>,
        betas: Vec<f64>,
        replicas: Vec<States<T>>,
        run: RunSeed,
    ) -> Self {
        let trips = RoundTrips::new(betas.len(), replicas[0].rows());
        Self { path, betas, replicas, run, sweeps: 0, trips }
    }

    pub(crate) fn betas(&self) -> &[f64] {
        &self.betas
    }
    pub(crate) fn trips(&self) -> &RoundTrips {
        &self.trips
    }
    /// The samples at β = 1.
    pub(crate) fn top(&self) -> &States<T> {
        &self.replicas[self.replicas.len() - 1]
    }

    /// `n` sweeps of every replica, then exchanges of all pairs with an even or odd lower end.
    pub(crate) fn round(&mut self, n: usize) -> Result<Seen> {
        let chains = self.replicas[0].rows();
        let mut fields: Vec<Fields<T>> = Vec::with_capacity(self.betas.len());
        for (i, states) in self.replicas.iter_mut().enumerate() {
            for s in 0..n {
                let key = self.run.key((self.sweeps + s) * self.betas.len() + i + 1);
                self.path.sweep(states, self.betas[i], key)?;
            }
            fields.push(self.path.observe(states)?);
        }
        self.sweeps += n;
        let ratios = self.ratios(&fields);
        let derivatives =
            self.betas.iter().zip(&fields).map(|(&b, f)| self.path.derivative(f, b)).collect();
        let parity = (self.sweeps / n) % 2;
        let key = Key { purpose: purpose::SWAP << 8, ..self.run.key(self.sweeps) };
        let mut rng = Stream::new(key);
        for i in (parity..self.betas.len() - 1).step_by(2) {
            let (low, high) = &ratios[i];
            let (below, above) = self.replicas.split_at_mut(i + 1);
            for r in 0..chains {
                let accepted = uniform(&mut rng) < acceptance(low[r], high[r]);
                self.trips.exchange(i, r, accepted);
                if accepted {
                    below[i].swap_row(r, &mut above[0], r);
                }
            }
        }
        self.trips.visit();
        Ok(Seen { ratios, derivatives })
    }

    fn ratios(&self, fields: &[Fields<T>]) -> Vec<(Vec<f64>, Vec<f64>)> {
        let pair = |i: usize| {
            let of = |f: &Fields<T>| self.path.log_ratio(f, self.betas[i], self.betas[i + 1]);
            (of(&fields[i]), of(&fields[i + 1]))
        };
        (0..fields.len() - 1).map(pair).collect()
    }
}
