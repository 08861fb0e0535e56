//! Persistent contrastive divergence: chains that continue from update to update.

use super::sweep_count::{SweepCount, overlap};
use super::{Context, Info, NegativePhase, Setup, averaged};
use crate::machine::Phase;
use crate::sample::{Order, layer_key, purpose, sweep};
use crate::{Archive, Clamp, Clamps, Error, Key, Machine, Real, Result, Role, States};

/// PCD-k: the chains of the last update make k more sweeps under the new parameters.
#[derive(Clone, Debug)]
pub struct Pcd<T = f32> {
    sweep_count: SweepCount,
    chains: States<T>,
    /// A copy of the chains before the update, for the adaptive number of sweeps; kept to reuse its memory.
    before: States<T>,
    visit: Visit,
}

/// The order of a sweep, in two parts.
#[derive(Clone, Debug)]
struct Visit {
    order: Order,
    /// The layers whose means enter the moments. They come last, so that the inputs of the last sweep serve for both;
    /// any order of the layers leaves the distribution invariant.
    last: Vec<usize>,
    first_part: Clamps,
    last_part: Clamps,
}

impl Visit {
    fn new<T: Real>(machine: &Machine<T>) -> Self {
        let last = averaged(machine);
        let clamped = |others: bool| {
            let set = (0..machine.len()).filter(|l| last.contains(l) != others);
            set.fold(Clamps::none(machine), |c, l| c.with(l, Clamp::All))
        };
        let (first_part, last_part) = (clamped(false), clamped(true));
        Self { order: Order::new(machine), last, first_part, last_part }
    }
}

impl<T: Real> Pcd<T> {
    /// `chains` chains that make `sweeps` sweeps for each update (`None`: 1 to 16, adapted to their autocorrelation),
    /// started as [`Setup::chains`] starts them.
    ///
    /// # Errors
    /// Errors of sampling.
    pub fn new(setup: &Setup<'_, T>, chains: usize, sweeps: Option<usize>) -> Result<Self> {
        Ok(Self {
            sweep_count: SweepCount::new(sweeps),
            chains: setup.chains(chains, purpose::NEGATIVE)?,
            before: States::empty(setup.machine.len(), 0),
            visit: Visit::new(setup.machine),
        })
    }

    /// The present states of the chains.
    pub fn chains(&self) -> &States<T> {
        &self.chains
    }
}

impl<T: Real> NegativePhase<T> for Pcd<T> {
    fn name(&self) -> &'static str {
        "pcd"
    }

    fn estimate(&mut self, context: &Context<'_, T>, out: &mut Phase<T>) -> Result<Info> {
        let machine = context.model.machine();
        let Visit { order, last, first_part, last_part } = &self.visit;
        // Conditioning layers follow the minibatch: chain r samples the machine given the condition of row r.
        for l in machine.with_role(Role::Condition) {
            let rows: Vec<usize> = (0..self.chains.rows()).map(|r| r % context.data.rows()).collect();
            self.chains.set(l, context.data.layer(l)?.select(&rows));
        }
        if self.sweep_count.is_adaptive() {
            self.before.clone_from(&self.chains);
        }
        let (sweeps, number) =
            (self.sweep_count.sweeps() as u64, self.sweep_count.first_sweep(context.update));
        for k in 0..sweeps {
            context.stop.check_before(k)?;
            let key = Key {
                seed: context.seed,
                purpose: purpose::NEGATIVE,
                block: 0,
                sweep: number.wrapping_add(k),
            };
            sweep(context.model, order, &mut self.chains, first_part, key)?;
            if k + 1 < sweeps {
                sweep(context.model, order, &mut self.chains, last_part, key)?;
            } else {
                let keys = |l| layer_key(key, l);
                context.model.sample_with_moments(&mut self.chains, last, keys, out)?;
            }
        }
        if self.sweep_count.is_adaptive()
            && let Some(r) = overlap(machine, &self.before, &self.chains, out.layers())
        {
            self.sweep_count.record(r);
        }
        Ok(Info { metrics: self.sweep_count.metrics() })
    }

    fn chains(&self) -> Option<&States<T>> {
        Some(&self.chains)
    }

    fn save(&self, archive: &mut Archive) {
        archive.put_states("chains", &self.chains);
        self.sweep_count.save(archive);
    }

    fn load(&mut self, archive: &Archive) -> Result<()> {
        let chains: States<T> = archive.states("chains")?;
        let (expected, got) = (self.chains.rows(), chains.rows());
        if (chains.len(), got) != (self.chains.len(), expected) {
            return Err(Error::shape("chains of the checkpoint", expected, got));
        }
        self.chains = chains;
        self.sweep_count.load(archive)
    }
}
