//! Where samples come from: plain chains, or chains that exchange places with hotter ones.

use crate::error::Result;
use crate::output::say;
use harmonium::sample::Replicas;
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

/// Chains with replicas at higher temperatures.
pub(super) struct Tempered {
    pub(super) machine: Machine,
    pub(super) replicas: Replicas,
}

impl Source for Tempered {
    fn sweep(&mut self, n: usize) -> Result {
        Ok(self.replicas.sweep(&self.machine, n)?)
    }

    fn states(&self) -> &States {
        self.replicas.states()
    }

    fn tell(&self) {
        let ladder = self.replicas.ladder();
        let lowest = ladder.acceptance().iter().copied().fold(1.0, f64::min);
        let trips = self.replicas.round_trips();
        say!(
            "replica exchange over {} temperatures: acceptance at least {lowest:.2}, {trips:.1} round trips per chain",
            ladder.betas().len()
        );
        if trips < 1.0 {
            say!(
                "that is too few to trust that all modes were found; use more --sweeps or more temperatures"
            );
        }
    }
}
