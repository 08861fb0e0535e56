//! Scores of the model during training: the likelihood where it is cheap, else a substitute.

use super::init::has_only_bits;
use super::{Data, Evaluated, Trainer};
use crate::estimate::Estimator;
use crate::exact::Exact;
use crate::partition::{Base, LogZ, Schedule, ais, silent};
use crate::sample::purpose;
use crate::{Batch, Bits, Key, Machine, Real, Result, Role, States};
use harmonium_kernels::Stream;
use rand::RngExt;
use std::cell::OnceCell;

/// Longest enumeration, in seconds, that an evaluation may take.
pub(super) const CHEAP: f64 = 0.02;

/// The same for a machine that has no other score, on few rows: for some of the evaluations, and for the last one.
const DEAR: f64 = 0.25;
const DEAREST: f64 = 3.0;
const SCORED_ROWS: usize = 200;

/// Evaluations from one that may enumerate for longer to the next.
const PATIENT_EVERY: u64 = 4;

/// How long an evaluation may enumerate where nothing that is quick scores the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    None,
    Some,
    /// For the last evaluation, which decides on the result.
    Last,
}

impl Patience {
    /// Seconds of an enumeration.
    fn seconds(self) -> Option<f64> {
        match self {
            Self::None => None,
            Self::Some => Some(DEAR),
            Self::Last => Some(DEAREST),
        }
    }
}

/// Chains and steps of the annealing used where no likelihood can be enumerated: enough to rank the models of a run, which
/// all use the same random numbers.
pub(super) const CHAINS: usize = 64;
pub(super) const STEPS: usize = 200;

/// Largest number of weights for which a model that has a pseudo-likelihood is annealed.
pub(super) const FEW_WEIGHTS: usize = 50_000;

/// Units of each row whose conditional probability is computed.
const UNITS: usize = 4;

/// A fixed selection of at most `n` rows: one, at an irregular place, of each of as many stretches of equal length. Rows in
/// an order are covered evenly, and rows that alternate are not sampled in step with them.
pub(crate) fn sample_rows<T: Real>(data: &Data<T>, n: usize) -> Data<T> {
    let rows = data.positive_weight_rows();
    let step = rows.len().div_ceil(n.max(1)).max(1);
    // Multiples of the golden ratio, modulo 2^64: their upper halves are spread evenly.
    let place = |k: usize| ((k as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize;
    let picked = rows.chunks(step).enumerate().map(|(k, stretch)| stretch[place(k) % stretch.len()]);
    data.select(&picked.collect::<Vec<_>>())
}

/// The machine of an evaluation, with ln Z where enumerating it takes little time: one for all data sets.
pub(super) struct Scored<'a, T: Real> {
    machine: &'a Machine<T>,
    exact: Option<Exact>,
    conditional: bool,
    /// Whether a likelihood is annealed where there is a pseudo-likelihood.
    anneals: bool,
    /// ln Z by annealing, once it is asked for.
    annealed: OnceCell<Option<f64>>,
}

impl<'a, T: Real> Scored<'a, T> {
    /// An annealed likelihood is worth its time where there is a pseudo-likelihood too: this does not see how modes are
    /// weighted, and on few rows of categories it goes on rising long after the likelihood has fallen. Bits are the
    /// exception: their updates take less time than annealings, and pseudo-likelihoods have chosen well. Nor is a
    /// likelihood the aim of a run that learns to tell labels apart.
    pub(super) fn new(machine: &'a Machine<T>, estimator: &Estimator) -> Self {
        let conditional = machine.with_role(Role::Condition).next().is_some();
        let exact = machine.exact().within(CHEAP);
        let cheap = !conditional && matches!(exact.cost(), Ok((_, s)) if s < CHEAP);
        let exact = cheap.then(|| exact.with_log_z().ok()).flatten();
        let weights: usize = machine.couplings().iter().map(|c| c.w().len()).sum();
        let discriminative = matches!(estimator, Estimator::Labels(_));
        let anneals = !has_only_bits(machine) && !discriminative && weights <= FEW_WEIGHTS;
        Self { machine, exact, conditional, anneals, annealed: OnceCell::new() }
    }

    /// ln Z by an annealing from the marginals of the data for which it is asked first.
    fn annealed_log_z(&self, data: &Data<T>, seed: u64) -> Option<f64> {
        let effort = (CHAINS, STEPS);
        *self
            .annealed
            .get_or_init(|| annealed_log_z(self.machine, data, effort, seed).ok().map(|z| z.value))
    }
}

/// Named numbers of one data set, without its name.
pub(super) struct Quality {
    pub(super) log_likelihood: Option<f64>,
    /// Log-likelihood with ln Z from a short annealing: biased upwards.
    pub(super) estimate: Option<f64>,
    pub(super) pseudo_likelihood: Option<f64>,
    pub(super) free_energy: Option<f64>,
}

impl Quality {
    /// Where nothing that is cheap says how good the model is, `patience` has a likelihood enumerated that is not.
    pub(super) fn new<T: Real>(
        scored: &Scored<'_, T>,
        data: &Data<T>,
        seed: u64,
        patience: Patience,
    ) -> Result<Self> {
        let Scored { machine, conditional, .. } = *scored;
        let mut quality =
            Self { log_likelihood: None, estimate: None, pseudo_likelihood: None, free_energy: None };
        if data.is_missing() {
            quality.log_likelihood = likelihood_of_known(scored, data);
            if quality.log_likelihood.is_none()
                && let Some(whole) = data.without_gaps()
            {
                quality = Self::of_whole_rows(scored, &whole, seed, patience)?;
            }
            if quality.score().is_none() {
                quality.pseudo_likelihood = pseudo_of_known(machine, data, seed);
            }
            return Ok(quality);
        }
        let hidden: Vec<_> = machine.with_role(Role::Hidden).collect();
        let free_energy_costs_little = machine.independent(&hidden) || data.rows() <= 1000;
        if let (Some(exact), true) = (&scored.exact, free_energy_costs_little) {
            let found = exact.log_likelihood(data.states(), data.wts()).ok();
            quality.log_likelihood = found.map(|l| l + data.mean_offset());
        }
        if machine.independent(&hidden) {
            let f = machine.free_energy(data.states())?;
            quality.free_energy = Some(mean(&f, data.wts()));
            quality.pseudo_likelihood = pseudo_likelihood(machine, data, &f, seed)?;
            let wanted = quality.log_likelihood.is_none()
                && (quality.pseudo_likelihood.is_none() || scored.anneals);
            if wanted && !conditional {
                let log_z = scored.annealed_log_z(data, seed);
                quality.estimate = log_z.map(|z| likelihood_with(z, data, &f));
            }
        }
        if let (None, Some(seconds), false) = (quality.score(), patience.seconds(), conditional) {
            let few = sample_rows(data, SCORED_ROWS);
            let found = machine.exact().within(seconds).log_likelihood(few.states(), few.wts()).ok();
            quality.log_likelihood = found.map(|l| l + few.mean_offset());
        }
        Ok(quality)
    }

    /// The likelihood of the whole rows of data with gaps. The pseudo-likelihood is dropped: that of all rows, the others
    /// included, says more.
    fn of_whole_rows<T: Real>(
        scored: &Scored<'_, T>,
        whole: &Data<T>,
        seed: u64,
        patience: Patience,
    ) -> Result<Self> {
        Ok(Self { pseudo_likelihood: None, ..Self::new(scored, whole, seed, patience)? })
    }

    /// The likelihood, or its substitute.
    pub(super) fn score(&self) -> Option<f64> {
        self.log_likelihood.or(self.estimate).or(self.pseudo_likelihood)
    }
}

impl<T: Real> Trainer<'_, T> {
    /// How long the evaluation at this update may take where nothing that is quick scores the model.
    pub(super) fn patience(&self, update: u64) -> Patience {
        let number = update / self.plan.evaluate_every.max(1);
        match update {
            _ if update == self.plan.stop_after => Patience::Last,
            _ if number.is_multiple_of(PATIENT_EVERY) => Patience::Some,
            _ => Patience::None,
        }
    }

    /// Evaluates the averaged parameters on a fixed selection of rows.
    ///
    /// # Errors
    /// Errors of the free energy.
    pub fn evaluate(&self) -> Result<Evaluated> {
        let machine = self.averaged_inside();
        let (rows, seed) = (self.plan.evaluate_rows, self.plan.seed);
        let patience = self.patience(self.update);
        let scored = Scored::new(&machine, &self.plan.estimator);
        let train = Quality::new(&scored, &sample_rows(&self.data, rows), seed, patience)?;
        let valid = match &self.valid {
            Some(v) => Some(Quality::new(&scored, &sample_rows(v, rows), seed, patience)?),
            None => None,
        };
        let mut metrics = Vec::new();
        let mut push = |name, x: Option<f64>| metrics.extend(x.map(|x| (name, x)));
        push("train_log_likelihood", train.log_likelihood);
        push("train_log_likelihood_estimate", train.estimate);
        push("train_pseudo_likelihood", train.pseudo_likelihood);
        push("train_free_energy", train.free_energy);
        if let Some(v) = &valid {
            push("valid_log_likelihood", v.log_likelihood);
            push("valid_log_likelihood_estimate", v.estimate);
            push("valid_pseudo_likelihood", v.pseudo_likelihood);
            push("valid_free_energy", v.free_energy);
            let gap = v.free_energy.zip(train.free_energy).map(|(v, t)| v - t);
            push("free_energy_gap", gap);
        }
        let score = valid.as_ref().map_or(train.score(), Quality::score);
        Ok(Evaluated { update: self.update, epoch: self.epoch(), metrics, score })
    }
}

/// Mean log-likelihood of whole rows, whose free energies are given, with ln Z from a short annealing: biased upwards.
pub(super) fn annealed_likelihood<T: Real>(
    machine: &Machine<T>,
    data: &Data<T>,
    free_energy: &[f64],
    seed: u64,
) -> Option<f64> {
    let z = annealed_log_z(machine, data, (CHAINS, STEPS), seed).ok()?;
    Some(likelihood_with(z.value, data, free_energy))
}

/// Mean log-likelihood of rows from their free energies and ln Z.
pub(crate) fn likelihood_with<T: Real>(log_z: f64, data: &Data<T>, free_energy: &[f64]) -> f64 {
    data.mean_offset() - mean(free_energy, data.wts()) - log_z
}

/// ln Z by an annealing of so many chains and steps from the marginals of the data.
pub(crate) fn annealed_log_z<T: Real>(
    machine: &Machine<T>,
    data: &Data<T>,
    (chains, steps): (usize, usize),
    seed: u64,
) -> Result<LogZ> {
    let decoupled = machine.decoupled(|_| true);
    let (machine, shift) = decoupled.as_ref().map_or((machine, 0.0), |d| (&d.machine, d.log_z_shift()));
    let states = decoupled.as_ref().map(|d| d.states(data.states()));
    let base = Base::of_data(machine, states.as_ref().unwrap_or(data.states()))?;
    let z = ais(machine, &base, &Schedule::uniform(steps), chains, seed, &mut silent)?;
    Ok(LogZ { value: z.value + shift, ..z })
}

/// Mean ln p of the known entries of each row, where ln Z and the sums over missing entries are cheap.
fn likelihood_of_known<T: Real>(scored: &Scored<'_, T>, data: &Data<T>) -> Option<f64> {
    let exact = scored.exact.clone()?.within(10.0 * CHEAP);
    let rows = exact.log_probability_known(data.states(), data.known());
    rows.ok().map(|rows| mean(&rows, data.wts()) + data.mean_offset())
}

/// The pseudo-likelihood of the known entries: $\sum_i\ln p(x_i\mid x_{K\setminus i}) = \sum_i F(x_{K\setminus i}) -
/// F(x_K)$ from a few of the known units of each row, always the same ones, where the sums over missing entries are
/// cheap.
fn pseudo_of_known<T: Real>(machine: &Machine<T>, data: &Data<T>, seed: u64) -> Option<f64> {
    let exact = machine.exact().within(10.0 * CHEAP);
    let whole = exact.free_energy_known(data.states(), data.known()).ok()?;
    let is_known = |l: usize, r: usize, i: usize| data.known()[l].as_ref().is_none_or(|k| k.get(r, i));
    let units = |r: usize| -> Vec<(usize, usize)> {
        let of = |l: usize| (0..machine.layer(l).len()).map(move |i| (l, i));
        machine.with_role(Role::Visible).flat_map(of).filter(|&(l, i)| is_known(l, r, i)).collect()
    };
    let units: Vec<_> = (0..data.rows()).map(units).collect();
    let mut sums = vec![0.0; data.rows()];
    for k in 0..UNITS {
        let mut rng = Stream::new(Key { seed, purpose: purpose::EVALUATE, block: 1, sweep: k as u64 });
        let chosen = units.iter().map(|u| (!u.is_empty()).then(|| u[rng.random_range(0..u.len())]));
        let chosen: Vec<_> = chosen.collect();
        let known = |l: usize| {
            let n = machine.layer(l).len();
            let left = |r: usize, i: usize| is_known(l, r, i) && chosen[r] != Some((l, i));
            (machine.role(l) == Role::Visible).then(|| Bits::from_fn(data.rows(), n, left))
        };
        let known: Vec<_> = (0..machine.len()).map(known).collect();
        let without = exact.free_energy_known(data.states(), &known).ok()?;
        for (r, s) in sums.iter_mut().enumerate() {
            *s += (without[r] - whole[r]) * units[r].len() as f64 / UNITS as f64;
        }
    }
    Some(mean(&sums, data.wts()))
}

fn mean(x: &[f64], wts: Option<&[f64]>) -> f64 {
    let wt = |r: usize| wts.map_or(1.0, |w| w[r]);
    let total: f64 = (0..x.len()).map(wt).sum();
    x.iter().enumerate().map(|(r, x)| wt(r) * x).sum::<f64>() / total
}

/// $\sum_i \ln p(x_i \mid x_{\setminus i})$ averaged over the rows, from a few units of each row: always the same ones,
/// so that two evaluations differ only by the model. `None` for machines with visible units that have infinitely many
/// states.
fn pseudo_likelihood<T: Real>(
    machine: &Machine<T>,
    data: &Data<T>,
    free_energy: &[f64],
    seed: u64,
) -> Result<Option<f64>> {
    let visible: Vec<usize> = machine.with_role(Role::Visible).collect();
    let units: Vec<(usize, usize)> =
        visible.iter().flat_map(|&l| (0..machine.layer(l).len()).map(move |i| (l, i))).collect();
    if visible.iter().any(|&l| machine.layer(l).kind().states().is_none_or(|n| n > 64))
        || units.is_empty()
    {
        return Ok(None);
    }
    let mut sums = vec![0.0; data.rows()];
    for k in 0..UNITS {
        let key = Key { seed, purpose: purpose::EVALUATE, block: 0, sweep: k as u64 };
        let mut rng = Stream::new(key);
        let chosen: Vec<_> = (0..data.rows()).map(|_| units[rng.random_range(0..units.len())]).collect();
        // ln Σ_a e^{−F(x with x_i = a)} over the states of the chosen unit, the row's own included.
        let largest = visible.iter().filter_map(|&l| machine.layer(l).kind().states()).max();
        let mut total: Vec<f64> = free_energy.iter().map(|f| -f).collect();
        for turn in 1..largest.unwrap_or(1) {
            let (other, differs) = advanced(machine, data.states(), &chosen, turn);
            for (r, f) in machine.free_energy(&other)?.into_iter().enumerate() {
                if differs[r] {
                    total[r] = crate::units::log_add_exp(total[r], -f);
                }
            }
        }
        for (r, s) in sums.iter_mut().enumerate() {
            *s += (-free_energy[r] - total[r]) * units.len() as f64 / UNITS as f64;
        }
    }
    Ok(Some(mean(&sums, data.wts())))
}

/// The states with the chosen unit of each row advanced by `turn` states; rows whose unit has no more states stay
/// unchanged.
fn advanced<T: Real>(
    machine: &Machine<T>,
    states: &States<T>,
    chosen: &[(usize, usize)],
    turn: u32,
) -> (States<T>, Vec<bool>) {
    let mut out = states.clone();
    let mut differs = vec![false; chosen.len()];
    for l in machine.with_role(Role::Visible) {
        let count = machine.layer(l).kind().states().unwrap_or(1);
        let mut x = out.take(l).expect("data hold the visible layers");
        for (r, &(_, i)) in chosen.iter().enumerate().filter(|(_, c)| c.0 == l) {
            if turn >= count {
                continue;
            }
            differs[r] = true;
            match &mut x {
                Batch::Bits(b) => b.set(r, i, !b.get(r, i)),
                Batch::Codes(c) => c[[r, i]] = (c[[r, i]] + turn) % count,
                // Soft bits are inverted.
                Batch::Reals(x) => x[[r, i]] = T::one() - x[[r, i]],
            }
        }
        out.set(l, x);
    }
    (out, differs)
}
