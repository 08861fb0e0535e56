//! Markov chains: their states, seed and number of sweeps.

use super::{Clamps, Order, Stop, sweep};
use crate::{Archive, Error, Machine, Real, Result, States, Tempered};
use harmonium_kernels::Key;

/// A set of chains that sweep together.
///
/// A chain is its states, the seed and the number of sweeps done: the random streams follow from these, so that a saved
/// chain continues exactly where it stopped, on any number of threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Chains<T = f32> {
    states: States<T>,
    seed: u64,
    purpose: u32,
    sweeps: u64,
}

impl<T: Real> Chains<T> {
    /// Chains that start from the given states.
    pub fn new(states: States<T>, seed: u64, purpose: u32) -> Self {
        Self { states, seed, purpose, sweeps: 0 }
    }

    /// Chains that start from independent units: the machine with all couplings set to zero.
    ///
    /// # Errors
    /// When the machine cannot be normalised, or there is no memory for so many rows.
    pub fn independent(machine: &Machine<T>, rows: usize, seed: u64, purpose: u32) -> Result<Self> {
        machine.check_normalisable()?;
        machine.check_rows(rows)?;
        let mut states = States::empty(machine.len(), rows);
        for (l, m) in machine.members().iter().enumerate() {
            let mut x = m.layer.zeros(rows);
            let inputs = ndarray::Array2::zeros((rows, m.layer.width()));
            // Sweeps are counted from 1, so that no sweep draws the numbers of the start again.
            let key = Key { seed, purpose: purpose << 8 | l as u32, block: 0, sweep: 0 };
            m.layer.sample_into(&inputs, key, &mut x);
            states.set(l, x);
        }
        Ok(Self { states, seed, purpose, sweeps: 0 })
    }

    /// The present states.
    pub fn states(&self) -> &States<T> {
        &self.states
    }
    /// The present states, mutable (to swap tempered chains, or for a new clamp).
    pub fn states_mut(&mut self) -> &mut States<T> {
        &mut self.states
    }
    /// Number of sweeps done.
    pub fn sweeps(&self) -> u64 {
        self.sweeps
    }

    /// Makes `n` sweeps under the given clamps.
    ///
    /// # Errors
    /// A machine that cannot be normalised, clamps that do not fit, states that are not held.
    pub fn sweep(&mut self, model: &Tempered<'_, T>, clamps: &Clamps, n: usize) -> Result<()> {
        self.sweep_until(model, clamps, n, Stop::default())
    }

    /// As [`sweep`](Self::sweep), with a request to stop in between, after which some of the sweeps are done.
    ///
    /// # Errors
    /// As for [`sweep`](Self::sweep); [`Error::Stopped`].
    pub fn sweep_until(
        &mut self,
        model: &Tempered<'_, T>,
        clamps: &Clamps,
        n: usize,
        stop: Stop<'_>,
    ) -> Result<()> {
        model.machine().check_normalisable()?;
        self.sweep_checked(model, clamps, n, stop)
    }

    /// As [`sweep_until`](Self::sweep_until), of a machine that is known to be normalisable.
    pub(crate) fn sweep_checked(
        &mut self,
        model: &Tempered<'_, T>,
        clamps: &Clamps,
        n: usize,
        stop: Stop<'_>,
    ) -> Result<()> {
        let order = Order::new(model.machine());
        for k in 0..n as u64 {
            stop.check_before(k)?;
            let key = Key { seed: self.seed, purpose: self.purpose, block: 0, sweep: self.sweeps + 1 };
            sweep(model, &order, &mut self.states, clamps, key)?;
            self.sweeps += 1;
        }
        Ok(())
    }

    /// Drops the layers that the next sweep draws before it reads them.
    pub fn shrink(&mut self, machine: &Machine<T>, clamps: &Clamps) {
        let needed = Order::new(machine).needed(machine, clamps);
        for l in (0..machine.len()).filter(|l| !needed.contains(l)) {
            self.states.take(l);
        }
    }
    /// Saves everything the next sweep depends on in `archive`, below `name`.
    pub fn save(&self, archive: &mut Archive, name: &str) {
        archive.put_states(&format!("{name}/states"), &self.states);
        let counters = [self.seed, u64::from(self.purpose), self.sweeps];
        archive.put_u64s(format!("{name}/counters"), &counters);
    }

    /// Chains as [`save`](Self::save) left them: they continue bit for bit.
    ///
    /// # Errors
    /// When the archive does not hold them.
    pub fn load(archive: &Archive, name: &str) -> Result<Self> {
        let counters = archive.u64s(&format!("{name}/counters"))?;
        let &[seed, purpose, sweeps] = counters.as_slice() else {
            return Err(Error::shape("counters of chains", 3, counters.len()));
        };
        Ok(Self {
            states: archive.states(&format!("{name}/states"))?,
            seed,
            purpose: purpose as u32,
            sweeps,
        })
    }
}
