//! Rows from a teacher: by enumeration of the visible or of the hidden states, else by long chains.

use super::teacher::uniform;
use harmonium::sample::purpose;
use harmonium::{Batch, Chains, Clamps, Key, Machine, Result, Role, States};
use harmonium_kernels::Stream;
use ndarray::Array2;
use std::fmt;

/// Sweeps of each chain: one chain for each row, from independent units.
const SWEEPS: usize = 500;
/// Most states that are tabulated.
const MOST: f64 = 20_000.0;

/// How rows were drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// From the table of all visible states.
    Visible,
    /// From the table of all states of the layers above, then from the exact conditional.
    Hidden,
    /// From chains.
    Gibbs,
}

impl fmt::Display for Draw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Visible => "table",
            Self::Hidden => "exact",
            Self::Gibbs => "chains",
        })
    }
}

/// `rows` independent visible rows of the teacher.
///
/// # Errors
/// Whatever enumeration or sampling may refuse.
pub fn draw(machine: &Machine, rows: usize, seed: u64) -> Result<(States<f32>, Draw)> {
    let small = |l: usize| {
        let layer = machine.layer(l);
        layer.kind().states().is_some_and(|q| f64::from(q).powi(layer.len() as i32) <= MOST)
    };
    let key = |sweep| Key { seed, purpose: 101, block: 0, sweep };
    if small(0) {
        let states = from_table(machine, 0, rows, key(0))?;
        return Ok((only(machine, states.layer(0)?.clone())?, Draw::Visible));
    }
    if machine.len() > 1 && small(1) && !machine.has_lateral(0) {
        let states = from_table(machine, 1, rows, key(0))?;
        return Ok((only(machine, machine.at(1.0).sample(0, &states, key(1))?)?, Draw::Hidden));
    }
    let mut chains = Chains::independent(machine, rows, seed, purpose::USER)?;
    chains.sweep(&machine.at(1.0), &Clamps::none(machine), SWEEPS)?;
    Ok((only(machine, chains.states().layer(0)?.clone())?, Draw::Gibbs))
}

/// States that hold the visible layer and nothing else.
fn only(machine: &Machine, v: Batch<f32>) -> Result<States<f32>> {
    debug_assert!(machine.with_role(Role::Visible).eq([0]));
    machine.data(vec![v])
}

/// Draws layer `l` from the table of its marginal probabilities.
fn from_table(machine: &Machine, l: usize, rows: usize, key: Key) -> Result<States<f32>> {
    let layer = machine.layer(l);
    let (q, n) = (layer.kind().states().expect("finitely many") as usize, layer.len());
    let value = |state: usize, j: usize| layer.kind().value((state / q.pow(j as u32) % q) as u32);
    let total = q.pow(n as u32);
    let held = |values: Array2<f64>| -> Result<States<f32>> {
        let mut states = States::empty(machine.len(), values.nrows());
        states.set(l, layer.batch(values.view())?);
        Ok(states)
    };
    let all = held(Array2::from_shape_fn((total, n), |(s, j)| value(s, j)))?;
    let free_energy = machine.exact().free_energy(&all)?;
    let least = free_energy.iter().copied().fold(f64::INFINITY, f64::min);
    let mut sum = 0.0;
    let cumulative: Vec<f64> = free_energy
        .iter()
        .map(|f| {
            sum += (least - f).exp();
            sum
        })
        .collect();
    let mut rng = Stream::new(key);
    let chosen: Vec<usize> = (0..rows)
        .map(|_| {
            let u = uniform(&mut rng) * sum;
            cumulative.partition_point(|&c| c <= u).min(total - 1)
        })
        .collect();
    held(Array2::from_shape_fn((rows, n), |(r, j)| value(chosen[r], j)))
}
