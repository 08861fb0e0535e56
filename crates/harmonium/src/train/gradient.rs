//! The gradient of an update, between the two phases and the step.

use crate::machine::{Parameters, Phase};
use crate::{Machine, Real, Result};
use ndarray::Array2;

/// The gradient of the mean log-likelihood by the plain parameters, $\omega(\langle t\rangle_+ - \langle t\rangle_-)$, kept as
/// its two phases.
///
/// Moments of a coupling may be factored (see [`Phase`]); the optimiser then multiplies them strip by strip. Dense
/// access to the gradient, or adding to it, multiplies them out.
#[derive(Clone, Debug)]
pub struct Gradient<T = f32> {
    pub(super) positive: Phase<T>,
    pub(super) negative: Phase<T>,
    /// ω, the weight of the minibatch in units of an average minibatch: 1 where rows have no weights.
    pub(super) wt: f64,
}

/// The contribution of one process to the gradient of an update: sums that can be added over processes.
#[derive(Clone, Debug)]
pub struct Share<T = f32> {
    /// Moments of the positive phase times `wt`.
    pub positive: Parameters<T>,
    /// Moments of the negative phase times `wt`.
    pub negative: Parameters<T>,
    /// Total weight of the rows of the minibatch; their number where they have no weights.
    pub wt: f64,
    /// Number of rows of the minibatch.
    pub rows: f64,
}

/// Adds the contributions of all processes, as MPI's all-reduce does; every process must end with the same sums.
///
/// Nothing else may depend on the rows of a single process: start all of them from the same machine
/// ([`Init::Keep`](super::Init::Keep)) with [`Coordinates::Plain`](super::Coordinates::Plain) and no evaluations, and
/// give each rows of the same mean weight.
pub trait Reduce<T: Real>: Send {
    /// Replaces the numbers of `share` by their sums over all processes.
    ///
    /// # Errors
    /// Ends the run with this error.
    fn reduce(&mut self, share: &mut Share<T>) -> Result<()>;
}

impl<T: Real, F: FnMut(&mut Share<T>) -> Result<()> + Send> Reduce<T> for F {
    fn reduce(&mut self, share: &mut Share<T>) -> Result<()> {
        self(share)
    }
}

impl<T: Real> Gradient<T> {
    pub(super) fn new(machine: &Machine<T>) -> Self {
        Self { positive: Phase::new(machine), negative: Phase::new(machine), wt: 1.0 }
    }

    /// The moments with the visible layers clamped to the minibatch.
    pub fn positive(&self) -> &Phase<T> {
        &self.positive
    }
    /// The moments with nothing clamped.
    pub fn negative(&self) -> &Phase<T> {
        &self.negative
    }

    /// All numbers of the gradient.
    pub fn dense(&self) -> Parameters<T> {
        let mut out = self.positive.parameters();
        out.add(-T::one(), &self.negative.parameters());
        out.scale(T::of(self.wt));
        out
    }

    /// Adds `scale` times `other`: the effect of a penalty whose derivative by the plain parameters is `−other`.
    ///
    /// The positive moments stay those of the data, which offsets and scales of hidden units follow.
    pub fn add(&mut self, scale: T, other: &Parameters<T>) {
        let scale = T::of(-scale.f64() / self.wt);
        self.negative.parameters_mut().add(scale, other);
    }

    /// The gradient of all processes together, this one having `rows` rows of total weight `wt`.
    pub(super) fn reduce(&mut self, by: &mut dyn Reduce<T>, rows: usize, wt: f64) -> Result<()> {
        let summed = |phase: &Phase<T>| {
            let mut sums = phase.parameters();
            sums.scale(T::of(wt));
            sums
        };
        let (positive, negative) = (summed(&self.positive), summed(&self.negative));
        let mut share = Share { positive, negative, wt, rows: rows as f64 };
        by.reduce(&mut share)?;
        // The mean weight of a row, against that of this process's minibatch.
        self.wt *= (share.wt / share.rows) / (wt / rows as f64);
        for (phase, sums) in [(&mut self.positive, share.positive), (&mut self.negative, share.negative)]
        {
            *phase.parameters_mut() = sums;
            phase.parameters_mut().scale(T::of(1.0 / share.wt));
        }
        Ok(())
    }

    /// The moments of layer `l` in the two phases.
    pub(super) fn layer(&self, l: usize) -> (&Array2<T>, &Array2<T>) {
        (&self.positive.layers()[l], &self.negative.layers()[l])
    }
}
