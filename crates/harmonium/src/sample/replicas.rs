//! Replica exchange as a source of samples: any units may be clamped, and the temperatures adapt during burn-in.

use super::{Stop, Tempering};
use crate::{Clamps, Machine, Real, Result, States};

/// Exchanges between two steps of the temperatures: enough to estimate the acceptance, few enough for the ladder to
/// converge.
const ADAPT_EVERY: usize = 25;

/// Chains at β = 1 with replicas at higher temperatures; units are clamped at all temperatures alike.
#[derive(Clone, Debug)]
pub struct Replicas<T: Real = f32> {
    ladder: Tempering<T>,
    clamps: Clamps,
    /// Sweeps left for adapting the temperatures.
    adapting: usize,
}

impl<T: Real> Replicas<T> {
    /// Replicas of `states` at `rungs` temperatures, which are adapted during the first half of the first `sweeps`
    /// sweeps; take samples after these.
    ///
    /// # Errors
    /// Errors of [`Tempering::new`].
    pub fn new(
        machine: &Machine<T>,
        clamps: Clamps,
        states: &States<T>,
        rungs: usize,
        seed: u64,
        sweeps: usize,
    ) -> Result<Self> {
        machine.check_rows(rungs.saturating_mul(states.rows()))?;
        let betas = Tempering::even_ladder(machine, rungs);
        let mut ladder = Tempering::new(machine, &betas, states.rows(), seed)?;
        for k in 0..betas.len() {
            *ladder.replica_mut(k).states_mut() = states.clone();
        }
        Ok(Self { ladder, clamps, adapting: sweeps / 2 })
    }

    /// `n` sweeps of all replicas, with an exchange after each.
    ///
    /// # Errors
    /// Errors of sampling.
    pub fn sweep(&mut self, machine: &Machine<T>, n: usize) -> Result<()> {
        for _ in 0..n {
            for k in 0..self.ladder.betas().len() {
                let beta = self.ladder.betas()[k];
                self.ladder.replica_mut(k).sweep_checked(
                    &machine.at(beta),
                    &self.clamps,
                    1,
                    Stop::default(),
                )?;
            }
            self.ladder.exchange(machine)?;
            if self.adapting > 0 {
                self.adapting -= 1;
                if self.adapting.is_multiple_of(ADAPT_EVERY) {
                    self.ladder.adapt();
                }
            }
        }
        Ok(())
    }

    /// The states at β = 1.
    pub fn states(&self) -> &States<T> {
        self.ladder.replica(0).states()
    }

    /// The ladder: temperatures and acceptance.
    pub fn ladder(&self) -> &Tempering<T> {
        &self.ladder
    }

    /// Round trips from the coldest to the hottest rung and back, for each chain. Below 1, it is not known whether all
    /// modes were found.
    pub fn round_trips(&self) -> f64 {
        self.ladder.round_trips() as f64 / self.states().rows() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::purpose;
    use crate::{Bits, Chains, Clamp, Kind, Layer};
    use ndarray::Array2;

    /// Three spins in a chain of strong couplings: at coupling 4 a plain chain hardly ever leaves the mode it starts
    /// in.
    #[test]
    fn both_modes_are_found_and_clamped_units_stay() {
        let mut machine: Machine = Machine::fully_visible(Layer::new(Kind::Spin, 3));
        let w = Array2::from_shape_fn((3, 3), |(i, j)| if i.abs_diff(j) == 1 { 4.0 } else { 0.0 });
        let mut parameters = machine.parameters();
        parameters.couplings[0] = w;
        machine.set_parameters(&parameters).unwrap();
        let start = Chains::independent(&machine, 200, 1, purpose::USER).unwrap();
        let mut states = start.states().clone();
        states.set(0, crate::Batch::Bits(Bits::from_fn(200, 3, |_, _| true)));
        let up = |states: &States| {
            let crate::Batch::Bits(bits) = states.layer(0).unwrap() else { unreachable!() };
            (0..200).filter(|&r| bits.get(r, 1)).count()
        };
        let mut free = Replicas::new(&machine, Clamps::none(&machine), &states, 6, 3, 300).unwrap();
        free.sweep(&machine, 300).unwrap();
        // The truth is one half: 200 chains have a standard deviation of 7.
        assert!((65..=135).contains(&up(free.states())), "{}", up(free.states()));
        assert!(free.round_trips() > 1.0);
        let held = Clamps::none(&machine).with(0, Clamp::Units(Bits::from_fn(200, 3, |_, j| j == 0)));
        let mut clamped = Replicas::new(&machine, held, &states, 6, 3, 300).unwrap();
        clamped.sweep(&machine, 300).unwrap();
        // Its neighbour follows but for a part of e^{-8} or so.
        assert!(up(clamped.states()) >= 198, "{}", up(clamped.states()));
    }
}
