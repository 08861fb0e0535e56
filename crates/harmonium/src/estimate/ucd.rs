//! Unbiased contrastive divergence: two coupled chains, run until they meet.

use super::{Context, Info, NegativePhase, Setup, averaged};
use crate::machine::{Parameters, Phase, Tempered};
use crate::sample::{Order, coupled_sweep, purpose, sweep};
use crate::{Archive, Clamps, Error, Key, Real, Result, States};
use serde::{Deserialize, Serialize};

/// Settings of [`Ucd`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UcdParams {
    /// k, the sweeps before the first contribution: more of them mean less variance.
    pub sweeps: usize,
    /// Sweeps after which a pair that has not met is abandoned. This causes a bias: the fraction of such pairs is
    /// reported as `truncated`.
    pub most: usize,
}

impl UcdParams {
    /// k = 10, at most 1000 sweeps.
    pub const DEFAULT: Self = Self { sweeps: 10, most: 1000 };
}

impl Default for UcdParams {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// An estimate without bias from finitely many sweeps (Jacob, O'Leary and Atchadé 2020; Qiu, Zhang and Wang 2020).
///
/// Two chains ξ and η start at a row of the minibatch, ξ one sweep ahead, and sweep together such that they
/// meet at a random time τ and are equal from then on. Then
///
/// $$\hat f = f(\xi_k) + \sum_{t=k+1}^{\tau-1}\big[f(\xi_t) - f(\eta_{t-1})\big]$$
///
/// has the model's mean: the sum telescopes to the limit of $f(\xi_t)$. Meeting times explode where the
/// model has several modes.
#[derive(Clone, Debug)]
pub struct Ucd {
    params: UcdParams,
}

impl Ucd {
    /// The estimator, which has no state between updates.
    ///
    /// # Errors
    /// A machine it does not apply to, or no sweeps at all.
    pub fn new<T: Real>(setup: &Setup<'_, T>, params: UcdParams) -> Result<Self> {
        super::Estimator::Ucd(params.clone()).check(setup.machine)?;
        if params.sweeps == 0 || params.most < params.sweeps {
            let got = format!("{} and {}", params.sweeps, params.most);
            return Err(Error::value("sweeps and most of ucd", "1 ≤ sweeps ≤ most", got));
        }
        Ok(Self { params })
    }
}

/// The pairs that have not met yet.
struct Pairs<'a, T: Real> {
    ahead: States<T>,
    behind: States<T>,
    wts: Option<Vec<f64>>,
    total: f64,
    model: &'a Tempered<'a, T>,
}

impl<T: Real> Pairs<'_, T> {
    /// `out ← out + sign · Σ w f(x)/Σ w`, the denominator over all pairs, met or not.
    fn add(&self, sign: f64, x: &States<T>, averaged: &[usize], out: &mut Parameters<T>) -> Result<()> {
        let wts = self.wts.as_deref();
        let part = wts.map_or(x.rows() as f64, |w| w.iter().sum());
        if part > 0.0 {
            let moments = self.model.moments(x, averaged, wts)?;
            out.add(T::of(sign * part / self.total), &moments);
        }
        Ok(())
    }

    /// Drops the pairs that have met.
    fn drop_met(&mut self, layers: &[usize]) {
        let rows: Vec<usize> = (0..self.ahead.rows())
            .filter(|&r| !self.ahead.row_equals(&self.behind, layers, r))
            .collect();
        self.ahead = self.ahead.select(&rows);
        self.behind = self.behind.select(&rows);
        self.wts = self.wts.as_ref().map(|w| rows.iter().map(|&r| w[r]).collect());
    }
}

impl<T: Real> NegativePhase<T> for Ucd {
    fn name(&self) -> &'static str {
        "ucd"
    }

    fn estimate(&mut self, context: &Context<'_, T>, out: &mut Phase<T>) -> Result<Info> {
        let model = context.model;
        let machine = model.machine();
        let (order, clamps, averaged) = (Order::new(machine), Clamps::none(machine), averaged(machine));
        let layers = order.needed(machine, &clamps);
        // Pairs of all updates share one count of sweeps, so that no number is used twice.
        let first = context.update * (self.params.most as u64 + 1);
        let key = |t: usize| Key {
            seed: context.seed,
            purpose: purpose::NEGATIVE,
            block: 0,
            sweep: first + t as u64,
        };
        let rows = context.data.rows();
        let total = context.wts.map_or(rows as f64, |w| w.iter().sum());
        let (behind, wts) = (context.data.clone(), context.wts.map(<[f64]>::to_vec));
        let mut pairs = Pairs { ahead: behind.clone(), behind, wts, total, model };
        sweep(model, &order, &mut pairs.ahead, &clamps, key(0))?;
        let out = out.parameters_mut();
        out.fill(T::zero());
        let mut sweeps = 0;
        for t in 1..=self.params.most {
            context.stop.check_before(t as u64 - 1)?;
            if t == self.params.sweeps {
                pairs.add(1.0, &pairs.ahead, &averaged, out)?;
            }
            if t >= self.params.sweeps {
                pairs.drop_met(&layers);
            }
            if t > self.params.sweeps {
                pairs.add(1.0, &pairs.ahead, &averaged, out)?;
                pairs.add(-1.0, &pairs.behind, &averaged, out)?;
            }
            sweeps += pairs.ahead.rows();
            if pairs.ahead.rows() == 0 || t == self.params.most {
                break;
            }
            coupled_sweep(model, &order, &mut pairs.ahead, &mut pairs.behind, key(t))?;
        }
        let part = |x: usize| x as f64 / rows.max(1) as f64;
        let truncated = part(pairs.ahead.rows());
        Ok(Info { metrics: vec![("truncated", truncated), ("sweeps_per_pair", part(sweeps))] })
    }

    fn save(&self, _archive: &mut Archive) {}

    fn load(&mut self, _archive: &Archive) -> Result<()> {
        Ok(())
    }
}
