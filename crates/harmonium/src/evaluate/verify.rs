//! Verification of the sampler: its moments against enumeration, with p-values.

use crate::partition::ProgressFn;
use crate::sample::purpose;
use crate::{Chains, Clamps, Coupling, Error, Key, Layer, Machine, Member, Real, Result, Role};
use harmonium_kernels::Stream;
use ndarray::{Array2, Axis};
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// Longest enumeration of the whole machine, in seconds; otherwise a part of it is used.
const PATIENCE: f64 = 1.0;

/// A p-value below which the samples are not those of the machine.
const SMALL: f64 = 1e-3;
/// Chains and sweeps that front ends take where none are set.
pub const VERIFY_CHAINS: usize = 4000;
/// See [`VERIFY_CHAINS`].
pub const VERIFY_SWEEPS: usize = 200;

/// One moment of the sampler against the exact one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Which moment: `v[3]` or `v[3] h[1]`.
    pub what: String,
    /// By enumeration.
    pub exact: f64,
    /// Average over the chains.
    pub sampled: f64,
    /// Two-sided p-value of the difference under a normal law.
    pub p_value: f64,
}

/// All moments of the sampler against the exact ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// Moments compared, in the machine's order.
    pub checks: Vec<Check>,
    /// Bonferroni's p-value for the worst of them: small when the sampler does not sample this machine.
    pub p_value: f64,
    /// Units of each layer that were compared: fewer than the machine has if it was too large to enumerate.
    pub units: Vec<usize>,
    /// Whether only a part of the machine was compared.
    pub partial: bool,
}

impl Verification {
    /// Whether the samples agree with enumeration.
    pub fn agrees(&self) -> bool {
        self.p_value >= SMALL
    }
}

/// Sweeps `chains` independent chains `sweeps` times and compares the means of all units and of all coupled pairs with
/// enumeration. A machine too big for that is cut down to random units, with their own parameters and weights.
///
/// Slowly mixing chains fail the test just as a wrong sampler does: in both cases the samples are not those of the
/// machine.
///
/// # Errors
/// Fewer than 100 chains, a machine that cannot be normalised or is conditional.
pub fn verify<T: Real>(
    machine: &Machine<T>,
    chains: usize,
    sweeps: usize,
    seed: u64,
    observer: &mut ProgressFn<'_>,
) -> Result<Verification> {
    if chains < 100 {
        return Err(Error::value("chains", "at least 100, so that means are normal", chains));
    }
    if machine.with_role(Role::Condition).next().is_some() {
        let why = "it is conditional: moments differ from condition to condition".into();
        return Err(Error::Undefined { what: "verification against enumeration", why });
    }
    let part = enumerable_part(machine, seed)?;
    let units: Vec<usize> = part.members().iter().map(|m| m.layer.len()).collect();
    let partial = units.iter().zip(machine.members()).any(|(&n, m)| n < m.layer.len());
    let exact = part.exact().forced().moments()?;
    let mut run = Chains::independent(&part, chains, seed, purpose::EVALUATE)?;
    for k in 0..sweeps {
        run.sweep(&part.at(1.0), &Clamps::none(&part), 1)?;
        crate::partition::report_progress(observer, "verifying", k + 1, sweeps)?;
    }
    let dense: Vec<Array2<f64>> = (0..part.len())
        .map(|l| Ok(part.layer(l).dense(run.states().layer(l)?).mapv(Real::f64)))
        .collect::<Result<_>>()?;
    let mut checks = Vec::new();
    for (l, m) in part.members().iter().enumerate() {
        for (j, column) in dense[l].columns().into_iter().enumerate() {
            let what = format!("{}[{j}]", m.name);
            checks.push(check(what, exact.means[l][j], column.iter().copied()));
        }
    }
    for (c, moments) in part.couplings().iter().zip(&exact.stats.couplings) {
        let (a, b) = c.ends();
        for ((i, j), &expected) in moments.indexed_iter() {
            let allowed = c.mask().is_none_or(|m| m.get(i, j));
            let columns = part.layer(a).kind().columns();
            if allowed && (!c.is_lateral() || i / columns < j / columns) {
                let products = dense[a].column(i).to_owned() * dense[b].column(j);
                let what = format!("{}[{i}] {}[{j}]", part.members()[a].name, part.members()[b].name);
                checks.push(check(what, expected, products.into_iter()));
            }
        }
    }
    // What is not a number agrees with nothing.
    let p_value = |c: &Check| if c.p_value.is_nan() { 0.0 } else { c.p_value };
    let worst = checks.iter().map(p_value).fold(1.0, f64::min);
    Ok(Verification { p_value: (worst * checks.len() as f64).min(1.0), checks, units, partial })
}

fn check(what: String, exact: f64, values: impl Iterator<Item = f64>) -> Check {
    let values: Vec<f64> = values.collect();
    let n = values.len() as f64;
    let sampled = values.iter().sum::<f64>() / n;
    // Around the exact mean: a unit that never moved would otherwise have no spread at all. One pseudo-observation at a
    // typical distance keeps a single event from failing the test of a nearly deterministic moment.
    let square = values.iter().map(|x| (x - exact).powi(2)).sum::<f64>() + exact.abs().clamp(1e-6, 1.0);
    let z = (sampled - exact) * n / square.sqrt();
    Check { what, exact, sampled, p_value: libm::erfc(z.abs() / std::f64::consts::SQRT_2) }
}

/// The machine itself when it can be enumerated, else random units of it: as many as can.
fn enumerable_part<T: Real>(machine: &Machine<T>, seed: u64) -> Result<Machine<T>> {
    if machine.exact().cost()?.1 <= PATIENCE {
        return Ok(machine.clone());
    }
    let most = machine.members().iter().map(|m| m.layer.len()).max().unwrap_or(0);
    let mut size = most;
    loop {
        size = (size / 2).max(1);
        let part = random_part(machine, size, seed)?;
        if size == 1 || part.exact().cost()?.1 <= PATIENCE {
            return Ok(part);
        }
    }
}

/// At most `size` random units of each layer.
fn random_part<T: Real>(machine: &Machine<T>, size: usize, seed: u64) -> Result<Machine<T>> {
    let mut rng = Stream::new(Key { seed, purpose: purpose::EVALUATE << 8 | 0xfe, block: 0, sweep: 0 });
    let mut columns = Vec::new();
    for m in machine.members() {
        let mut units: Vec<usize> = (0..m.layer.len()).collect();
        for i in 0..size.min(units.len()) {
            let j = rng.random_range(i..units.len());
            units.swap(i, j);
        }
        units.truncate(size);
        units.sort_unstable();
        let c = m.layer.kind().columns();
        columns.push(units.into_iter().flat_map(|i| i * c..(i + 1) * c).collect::<Vec<_>>());
    }
    let members = machine.members().iter().zip(&columns).map(|(m, columns)| {
        let layer = Layer::with_params(m.layer.kind(), m.layer.params().select(Axis(1), columns))?;
        Ok(Member { name: m.name.clone(), role: m.role, layer })
    });
    let couplings = machine.couplings().iter().map(|c| {
        let (a, b) = c.ends();
        Coupling::new(a, b, c.w().select(Axis(0), &columns[a]).select(Axis(1), &columns[b]))
    });
    Machine::new(members.collect::<Result<_>>()?, couplings.collect::<Result<_>>()?)
}
