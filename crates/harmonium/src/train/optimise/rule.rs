//! The optimisers: from a gradient to a change.

use super::Optimiser;
use crate::Real;

/// What a pass over the arrays does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::train) enum Stage {
    /// Gradient, optimiser and step at once.
    Fused,
    /// The gradient, into the first vector; the parameters stay.
    Collect,
    /// Applies the step in the first vector.
    Apply,
}

/// An [`Optimiser`] with its numbers for the present update, or a [`Stage`] of a custom rule.
pub(super) enum Rule<T> {
    Collect,
    Apply,
    Sgd { rate: T },
    Momentum { rate: T, mu: T },
    Nesterov { rate: T, mu: T },
    Adam(Adam<T>),
    Cosine { rate: T },
}

/// The numbers of Adam, with the corrections for its start.
#[derive(Clone, Copy)]
pub(super) struct Adam<T> {
    rate: T,
    beta1: T,
    beta2: T,
    epsilon: T,
    scale1: T,
    scale2: T,
}

/// The product of a gradient with the previous one, and the square of the latter, for the cosine rule.
pub(super) type CosineTerms<'a, T> = (&'a mut T, &'a mut T);

// Each takes one number of the gradient and the optimiser's state for it.

#[inline(always)]
pub(super) fn collect<T: Real>(g: T, m: &mut T) -> T {
    *m = g;
    T::zero()
}

#[inline(always)]
pub(super) fn momentum<T: Real>(rate: T, mu: T, g: T, m: &mut T) -> T {
    *m = mu * *m + g;
    rate * *m
}

#[inline(always)]
pub(super) fn nesterov<T: Real>(rate: T, mu: T, g: T, m: &mut T) -> T {
    *m = mu * *m + g;
    rate * (g + mu * *m)
}

#[inline(always)]
pub(super) fn adam<T: Real>(a: Adam<T>, g: T, m: &mut T, s: &mut T) -> T {
    *m = a.beta1 * *m + (T::one() - a.beta1) * g;
    *s = a.beta2 * *s + (T::one() - a.beta2) * g * g;
    a.rate * (a.scale1 * *m) / ((a.scale2 * *s).sqrt() + a.epsilon)
}

#[inline(always)]
pub(super) fn cosine<T: Real>(rate: T, g: T, m: &mut T, (product, before): CosineTerms<'_, T>) -> T {
    *product += g * *m;
    *before += *m * *m;
    *m = g;
    rate * g
}

impl<T: Real> Rule<T> {
    pub(super) fn new(optimiser: Optimiser, stage: Stage, rate: f64, since: u64) -> Self {
        let r = T::of(rate);
        match stage {
            Stage::Fused => {}
            Stage::Collect => return Self::Collect,
            Stage::Apply => return Self::Apply,
        }
        match optimiser {
            Optimiser::Sgd => Self::Sgd { rate: r },
            Optimiser::Momentum { mu } => Self::Momentum { rate: r, mu: T::of(mu) },
            Optimiser::Nesterov { mu } => Self::Nesterov { rate: r, mu: T::of(mu) },
            Optimiser::Adam { beta1, beta2, epsilon } => {
                let scale = |beta: f64| T::of(1.0 / (1.0 - beta.powf(since as f64)));
                Self::Adam(Adam {
                    rate: r,
                    beta1: T::of(beta1),
                    beta2: T::of(beta2),
                    epsilon: T::of(epsilon),
                    scale1: scale(beta1),
                    scale2: scale(beta2),
                })
            }
            Optimiser::Cosine { .. } => Self::Cosine { rate: r },
        }
    }

    /// Turns the gradient of a layer into a change, in place, and updates the state; returns the product of the
    /// gradient with the previous one and the square of the latter, for the cosine rule.
    pub(super) fn turn(&self, x: &mut [T], first: &mut [T], second: &mut [T]) -> (f64, f64) {
        let (mut product, mut before) = (T::zero(), T::zero());
        let firsts = x.iter_mut().zip(first);
        match *self {
            Self::Collect => firsts.for_each(|(x, m)| *x = collect(*x, m)),
            Self::Apply => firsts.for_each(|(x, m)| *x = *m),
            Self::Sgd { rate } => x.iter_mut().for_each(|x| *x *= rate),
            Self::Momentum { rate, mu } => firsts.for_each(|(x, m)| *x = momentum(rate, mu, *x, m)),
            Self::Nesterov { rate, mu } => firsts.for_each(|(x, m)| *x = nesterov(rate, mu, *x, m)),
            Self::Adam(a) => firsts.zip(second).for_each(|((x, m), s)| *x = adam(a, *x, m, s)),
            Self::Cosine { rate } => {
                firsts.for_each(|(x, m)| *x = cosine(rate, *x, m, (&mut product, &mut before)));
            }
        }
        (product.f64(), before.f64())
    }
}
