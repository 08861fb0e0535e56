//! Rows from a teacher: from its exact distribution wherever states can be weighed, else from chains long enough to be independent of their start.

use super::Deadline;
use harmonium::sample::{Sampler, SamplingMethod, purpose};
use harmonium::{Chains, Clamps, Machine, Result, Role, States};
use std::fmt;

/// Sweeps of each chain where there must be chains: one chain for each row, from independent units.
const SWEEPS: usize = 300;

/// How rows were drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// Independently from the exact distribution.
    Exact,
    /// From chains whose ends are independent of their starts, according to pairs of chains.
    Chains,
    /// By replica exchange, because the ends of plain chains are not.
    Replicas,
}

impl fmt::Display for Draw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Exact => "exact",
            Self::Chains => "chains",
            Self::Replicas => "replicas",
        })
    }
}

/// `rows` independent visible rows of the teacher.
///
/// Real units that are coupled to others than those which can be summed have no table of states: their rows come from
/// chains, as many as rows, so that the rows are independent all the same.
///
/// # Errors
/// Errors of enumeration or sampling, and when the time is over.
pub fn draw(
    machine: &Machine,
    rows: usize,
    seed: u64,
    deadline: &Deadline,
) -> Result<(States<f32>, Draw)> {
    let start = Chains::independent(machine, rows, seed, purpose::USER)?.states().clone();
    let none = Clamps::none(machine);
    let in_time = || deadline.left() > 0.0;
    let mut go_on = in_time;
    let mut sampler =
        Sampler::new(machine.clone(), none, start, SamplingMethod::Auto, seed, SWEEPS, &mut go_on)?;
    sampler.sweep_while(SWEEPS, &in_time)?;
    deadline.check("rows")?;
    let how = match (sampler.is_exact(), sampler.replicas().is_some()) {
        (true, _) => Draw::Exact,
        (false, false) => Draw::Chains,
        (false, true) => Draw::Replicas,
    };
    debug_assert!(machine.with_role(Role::Visible).eq([0]));
    Ok((machine.data(vec![sampler.states().layer(0)?.clone()])?, how))
}
