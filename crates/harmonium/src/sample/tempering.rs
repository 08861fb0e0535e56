//! Parallel tempering: replicas at a ladder of inverse temperatures that exchange configurations.

use super::{Stop, exchange, purpose};
use crate::units::Form;
use crate::{Archive, Chains, Clamps, Error, Key, Machine, Real, Result};

/// How fast the running acceptance of a gap follows the last exchange.
const MEMORY: f64 = 0.1;

/// The end of the ladder a configuration visited last, for counting round trips; it moves with the configuration.
const UNKNOWN: u64 = 0;
const SEEN_COLD: u64 = 1;
const COLD_THEN_HOT: u64 = 2;

/// Replicas of a machine at $1 = \beta_0 > \beta_1 > \dots$, each a set of chains of the same size.
///
/// A configuration that is stuck at β = 1 climbs to a hot rung, where it moves freely, and comes back as
/// another. Even and odd pairs of rungs are exchanged in turn, which carries configurations along the
/// ladder instead of letting them diffuse.
#[derive(Clone, Debug, PartialEq)]
pub struct Tempering<T: Real = f32> {
    betas: Vec<f64>,
    replicas: Vec<Chains<T>>,
    trips: Vec<Vec<u64>>,
    acceptance: Vec<f64>,
    seed: u64,
    exchanges: u64,
    round_trips: u64,
}

impl<T: Real> Tempering<T> {
    /// `rows` chains at each β, started from independent units.
    ///
    /// # Errors
    /// Inverse temperatures that do not fall from 1 to a number ≥ 0 (> 0 with real units, which have no
    /// distribution at β = 0); a machine that cannot be normalised, or with a conditioning layer.
    pub fn new(machine: &Machine<T>, betas: &[f64], rows: usize, seed: u64) -> Result<Self> {
        check_ladder(machine, betas)?;
        machine.check_rows(rows.saturating_mul(betas.len()))?;
        let replica = |k: usize| {
            // Every rung has its own streams.
            let key = Key { seed, purpose: purpose::NEGATIVE, block: k as u32, sweep: 0 };
            Chains::independent(machine, rows, key.hash(), purpose::NEGATIVE)
        };
        let replicas = (0..betas.len()).map(replica).collect::<Result<Vec<_>>>()?;
        let mut trips = vec![vec![UNKNOWN; rows]; betas.len()];
        trips[0].fill(SEEN_COLD);
        Ok(Self {
            betas: betas.to_vec(),
            replicas,
            trips,
            acceptance: vec![f64::NAN; betas.len() - 1],
            seed,
            exchanges: 0,
            round_trips: 0,
        })
    }

    /// A ladder of `rungs` inverse temperatures, evenly spaced from 1 down to 0, or to 0.1 where units are
    /// real and have no distribution at β = 0.
    pub fn even_ladder(machine: &Machine<T>, rungs: usize) -> Vec<f64> {
        let hottest = if has_reals(machine) { 0.1 } else { 0.0 };
        let gaps = rungs.max(2) - 1;
        (0..=gaps).map(|k| 1.0 - (1.0 - hottest) * k as f64 / gaps as f64).collect()
    }

    /// The inverse temperatures, from 1 down.
    pub fn betas(&self) -> &[f64] {
        &self.betas
    }
    /// The chains of rung `k`; rung 0 is β = 1.
    pub fn replica(&self, k: usize) -> &Chains<T> {
        &self.replicas[k]
    }
    /// The chains of rung `k`, mutable.
    pub fn replica_mut(&mut self, k: usize) -> &mut Chains<T> {
        &mut self.replicas[k]
    }
    /// Running acceptance between each rung and the next hotter one; `NaN` before the first exchange.
    pub fn acceptance(&self) -> &[f64] {
        &self.acceptance
    }
    /// How many configurations have gone from β = 1 to the hottest rung and back.
    pub fn round_trips(&self) -> u64 {
        self.round_trips
    }
    /// Number of exchanges so far, each of one half of the pairs.
    pub fn exchanges(&self) -> u64 {
        self.exchanges
    }

    /// Makes `n` sweeps at every rung.
    ///
    /// # Errors
    /// Errors of [`Chains::sweep`].
    pub fn sweep(&mut self, machine: &Machine<T>, n: usize) -> Result<()> {
        machine.check_normalisable()?;
        let clamps = Clamps::none(machine);
        for (&beta, chains) in self.betas.iter().zip(&mut self.replicas) {
            chains.sweep_checked(&machine.at(beta), &clamps, n, Stop::default())?;
        }
        Ok(())
    }

    /// Exchanges the even or the odd pairs of neighbouring rungs, in turn.
    ///
    /// # Errors
    /// When a layer that is read is not held.
    pub fn exchange(&mut self, machine: &Machine<T>) -> Result<()> {
        for k in ((self.exchanges % 2) as usize..self.betas.len() - 1).step_by(2) {
            let (cold, hot) = (machine.at(self.betas[k]), machine.at(self.betas[k + 1]));
            let (left, right) = self.replicas.split_at_mut(k + 1);
            let key =
                Key { seed: self.seed, purpose: purpose::SWAP, block: k as u32, sweep: self.exchanges };
            let x = (&cold, left[k].states_mut());
            let done = exchange(x, (&hot, right[0].states_mut()), key)?;
            let (left, right) = self.trips.split_at_mut(k + 1);
            for (r, _) in done.accepted.iter().enumerate().filter(|(_, yes)| **yes) {
                std::mem::swap(&mut left[k][r], &mut right[0][r]);
            }
            let old = self.acceptance[k];
            let rate = if old.is_nan() { 1.0 } else { MEMORY };
            self.acceptance[k] =
                rate * done.acceptance + if old.is_nan() { 0.0 } else { (1.0 - rate) * old };
        }
        self.exchanges += 1;
        self.count_trips();
        Ok(())
    }

    fn count_trips(&mut self) {
        if let [cold, .., hot] = self.trips.as_mut_slice() {
            hot.iter_mut().filter(|t| **t == SEEN_COLD).for_each(|t| *t = COLD_THEN_HOT);
            self.round_trips += cold.iter().filter(|t| **t == COLD_THEN_HOT).count() as u64;
            cold.fill(SEEN_COLD);
        }
    }

    /// Moves the inner rungs so that all gaps would have the same acceptance: the rejection, summed along
    /// the ladder and interpolated, is divided evenly.
    ///
    /// Changes the distributions that the inner chains follow, so a few sweeps should come before their
    /// states are used; β = 1 and the hottest rung stay. Does nothing before every gap was tried.
    pub fn adapt(&mut self) {
        let gaps = self.acceptance.len();
        if self.acceptance.iter().any(|a| a.is_nan()) {
            return;
        }
        // A gap that never rejects gets a positive length, so that rungs stay apart.
        let rejection: Vec<f64> = self.acceptance.iter().map(|a| (1.0 - a).max(1e-3)).collect();
        let total: f64 = rejection.iter().sum();
        let old = self.betas.clone();
        let (mut gap, mut before) = (0, 0.0);
        for k in 1..gaps {
            let aim = total * k as f64 / gaps as f64;
            while gap + 1 < gaps && before + rejection[gap] < aim {
                before += rejection[gap];
                gap += 1;
            }
            let part = ((aim - before) / rejection[gap]).clamp(0.0, 1.0);
            self.betas[k] = old[gap] + part * (old[gap + 1] - old[gap]);
        }
    }

    /// Saves everything the next sweep depends on in `archive`, below `name`.
    pub fn save(&self, archive: &mut Archive, name: &str) {
        archive.put_f64s(format!("{name}/betas"), &self.betas);
        archive.put_f64s(format!("{name}/acceptance"), &self.acceptance);
        let counters = [self.seed, self.exchanges, self.round_trips];
        archive.put_u64s(format!("{name}/counters"), &counters);
        for (k, (chains, trips)) in self.replicas.iter().zip(&self.trips).enumerate() {
            chains.save(archive, &format!("{name}/replica{k}"));
            archive.put_u64s(format!("{name}/trips{k}"), trips);
        }
    }

    /// Replicas as [`save`](Self::save) left them.
    ///
    /// # Errors
    /// When the archive does not hold them.
    pub fn load(archive: &Archive, name: &str) -> Result<Self> {
        let betas = archive.f64s(&format!("{name}/betas"))?;
        let acceptance = archive.f64s(&format!("{name}/acceptance"))?;
        let counters = archive.u64s(&format!("{name}/counters"))?;
        let &[seed, exchanges, round_trips] = counters.as_slice() else {
            return Err(Error::shape("counters of replicas", 3, counters.len()));
        };
        if betas.len() < 2 || acceptance.len() + 1 != betas.len() {
            return Err(Error::shape("gaps of a ladder", betas.len().max(2) - 1, acceptance.len()));
        }
        let (mut replicas, mut trips) = (Vec::new(), Vec::new());
        for k in 0..betas.len() {
            let chains: Chains<T> = Chains::load(archive, &format!("{name}/replica{k}"))?;
            let labels = archive.u64s(&format!("{name}/trips{k}"))?;
            if labels.len() != chains.states().rows() {
                return Err(Error::shape("labels of replicas", chains.states().rows(), labels.len()));
            }
            replicas.push(chains);
            trips.push(labels);
        }
        Ok(Self { betas, replicas, trips, acceptance, seed, exchanges, round_trips })
    }
}

fn has_reals<T: Real>(machine: &Machine<T>) -> bool {
    machine.members().iter().any(|m| m.layer.kind().form() == Form::Reals)
}

fn check_ladder<T: Real>(machine: &Machine<T>, betas: &[f64]) -> Result<()> {
    let lowest = if has_reals(machine) { f64::MIN_POSITIVE } else { 0.0 };
    let falling = betas.windows(2).all(|b| b[0] > b[1]);
    if betas.len() < 2 || betas[0] != 1.0 || !falling || betas[betas.len() - 1] < lowest {
        let expected =
            if lowest > 0.0 { "from 1 down to more than 0" } else { "from 1 down to at least 0" };
        return Err(Error::value("inverse temperatures", expected, format!("{betas:?}")));
    }
    if let Some(l) = machine.with_role(crate::Role::Condition).next() {
        let why = format!("layer {} conditions each row on its own", machine.members()[l].name);
        return Err(Error::Undefined { what: "parallel tempering", why });
    }
    Ok(())
}
