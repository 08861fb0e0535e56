//! Fast persistent contrastive divergence: chains driven by extra weights that decay quickly.

use super::{Context, Info, NegativePhase, Setup, averaged, chains_like};
use crate::machine::{Parameters, Phase};
use crate::sample::purpose;
use crate::{Archive, Chains, Clamps, Machine, Real, Result, States};
use serde::{Deserialize, Serialize};

/// Settings of [`Fpcd`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FpcdParams {
    /// Number of chains; the size of a minibatch when left out.
    pub chains: Option<usize>,
    /// Sweeps for each update.
    pub sweeps: usize,
    /// $\eta_f$, the constant learning rate of the fast parameters.
    pub rate: f64,
    /// Factor on the fast parameters at every update.
    pub decay: f64,
}

impl FpcdParams {
    /// One sweep, $\eta_f$ = 0.05 and the decay 19/20 of Tieleman and Hinton (2009).
    pub const DEFAULT: Self = Self { chains: None, sweeps: 1, rate: 0.05, decay: 0.95 };
}

impl Default for FpcdParams {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Fast PCD: chains sweep under $\theta + \theta_f$, where
///
/// $$\theta_f \leftarrow \alpha \theta_f + \eta_f (\text{positive} - \text{negative}).$$
///
/// The fast parameters push chains away from states they visit too often, so that they mix although η is small.
/// Precisions γ have no fast part: it could make them negative.
#[derive(Clone, Debug)]
pub struct Fpcd<T: Real = f32> {
    params: FpcdParams,
    chains: Chains<T>,
    fast: Parameters<T>,
}

impl<T: Real> Fpcd<T> {
    /// Chains that start as [`Setup::chains`] starts them, with no fast parameters yet.
    ///
    /// # Errors
    /// A machine it does not apply to, or an error of sampling.
    pub fn new(setup: &Setup<'_, T>, params: FpcdParams) -> Result<Self> {
        super::Estimator::Fpcd(params.clone()).check(setup.machine)?;
        let n = params.chains.unwrap_or(setup.batch);
        let states = setup.chains(n, purpose::NEGATIVE)?;
        let chains = Chains::new(states, setup.seed, purpose::NEGATIVE);
        Ok(Self { params, chains, fast: setup.machine.zero_parameters() })
    }

    /// The chains.
    pub fn chains(&self) -> &Chains<T> {
        &self.chains
    }

    /// The machine of $\theta + \theta_f$.
    fn fast_machine(&self, machine: &Machine<T>) -> Result<Machine<T>> {
        let mut parameters = machine.parameters();
        parameters.add(T::one(), &self.fast);
        let mut fast = machine.clone();
        fast.set_parameters(&parameters)?;
        Ok(fast)
    }

    fn update_fast(&mut self, machine: &Machine<T>, positive: &Parameters<T>, negative: &Parameters<T>) {
        let rate = T::of(self.params.rate);
        self.fast.scale(T::of(self.params.decay));
        self.fast.add(rate, positive);
        self.fast.add(-rate, negative);
        for (m, fast) in machine.members().iter().zip(&mut self.fast.layers) {
            for (name, mut row) in m.layer.kind().params().iter().zip(fast.rows_mut()) {
                if name.starts_with("gamma") {
                    row.fill(T::zero());
                }
            }
        }
        // Rounding must not make a lateral weight differ from its mirror image.
        for (_, w) in
            machine.couplings().iter().zip(&mut self.fast.couplings).filter(|(c, _)| c.is_lateral())
        {
            for i in 0..w.nrows() {
                for j in 0..i {
                    w[[i, j]] = w[[j, i]];
                }
            }
        }
    }
}

impl<T: Real> NegativePhase<T> for Fpcd<T> {
    fn name(&self) -> &'static str {
        "fpcd"
    }

    fn estimate(&mut self, context: &Context<'_, T>, out: &mut Phase<T>) -> Result<Info> {
        let machine = context.model.machine();
        let fast = self.fast_machine(machine)?;
        let (model, clamps) = (fast.at(1.0), Clamps::none(machine));
        self.chains.sweep_until(&model, &clamps, self.params.sweeps, context.stop)?;
        // The gradient needs the hidden means under the slow parameters.
        context.model.moments_into(self.chains.states(), &averaged(machine), None, out)?;
        self.update_fast(machine, &context.positive.parameters(), out.parameters_mut());
        Ok(Info { metrics: vec![("fast_norm", self.fast.norm())] })
    }

    fn chains(&self) -> Option<&States<T>> {
        Some(self.chains.states())
    }

    fn save(&self, archive: &mut Archive) {
        self.chains.save(archive, "chains");
        archive.put_parameters("fast", &self.fast);
    }

    fn load(&mut self, archive: &Archive) -> Result<()> {
        self.chains = chains_like(&self.chains, Chains::load(archive, "chains")?)?;
        self.fast = archive.parameters("fast", &self.fast)?;
        Ok(())
    }
}
