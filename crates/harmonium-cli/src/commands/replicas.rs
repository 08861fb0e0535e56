//! Where samples come from: plain chains, or chains that exchange places with hotter ones.

use crate::error::Result;
use crate::output::say;
use harmonium::sample::Tempering;
use harmonium::{Chains, Clamps, Machine, States};

/// Chains at the temperature that is asked for.
pub(super) trait Source {
    fn sweep(&mut self, n: usize) -> Result;
    fn states(&self) -> &States;
    /// What there is to say about how it went.
    fn tell(&self) {}
}

/// Chains that are on their own.
pub(super) struct Plain {
    pub(super) machine: Machine,
    pub(super) clamps: Clamps,
    pub(super) chains: Chains,
}

impl Source for Plain {
    fn sweep(&mut self, n: usize) -> Result {
        Ok(self.chains.sweep(&self.machine.at(1.0), &self.clamps, n)?)
    }

    fn states(&self) -> &States {
        self.chains.states()
    }
}

/// Chains with replicas at higher temperatures; what is clamped is so at all of them.
pub(super) struct Replicas {
    machine: Machine,
    clamps: Clamps,
    ladder: Tempering,
    /// Sweeps that are left for finding good temperatures.
    adapting: usize,
}

impl Replicas {
    /// Replicas of `states`; the temperatures are adapted during the first half of `sweeps`.
    pub(super) fn new(
        machine: Machine,
        clamps: Clamps,
        states: States,
        rungs: usize,
        seed: u64,
        sweeps: usize,
    ) -> Result<Self> {
        let betas = Tempering::even_ladder(&machine, rungs);
        let mut ladder = Tempering::new(&machine, &betas, states.rows(), seed)?;
        for k in 0..rungs {
            *ladder.replica_mut(k).states_mut() = states.clone();
        }
        Ok(Self { machine, clamps, ladder, adapting: sweeps / 2 })
    }
}

impl Source for Replicas {
    fn sweep(&mut self, n: usize) -> Result {
        for _ in 0..n {
            for k in 0..self.ladder.betas().len() {
                let beta = self.ladder.betas()[k];
                self.ladder.replica_mut(k).sweep(&self.machine.at(beta), &self.clamps, 1)?;
            }
            self.ladder.exchange(&self.machine)?;
            if self.adapting > 0 {
                self.adapting -= 1;
                // Often enough to settle, seldom enough for the acceptance to be known.
                if self.adapting.is_multiple_of(25) {
                    self.ladder.adapt();
                }
            }
        }
        Ok(())
    }

    fn states(&self) -> &States {
        self.ladder.replica(0).states()
    }

    fn tell(&self) {
        let lowest = self.ladder.acceptance().iter().copied().fold(1.0, f64::min);
        let trips = self.ladder.round_trips() as f64 / self.states().rows() as f64;
        say!(
            "replica exchange over {} temperatures: acceptance at least {lowest:.2}, {trips:.1} round trips per chain",
            self.ladder.betas().len()
        );
        if trips < 1.0 {
            say!(
                "that is too few to trust that all modes were found; use more --sweeps or more temperatures"
            );
        }
    }
}
