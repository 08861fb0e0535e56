//! The optimisers: from a gradient to a change.

use super::Optimiser;
use super::pass::{dot, squares};
use crate::Real;

/// An [`Optimiser`] with its numbers for the present update.
pub(super) enum Rule<T> {
    Sgd { rate: T },
    Momentum { rate: T, mu: T },
    Nesterov { rate: T, mu: T },
    Adam { rate: T, beta1: T, beta2: T, epsilon: T, scale1: T, scale2: T },
    Cosine { rate: T },
}

impl<T: Real> Rule<T> {
    pub(super) fn new(optimiser: Optimiser, rate: f64, since: u64) -> Self {
        let r = T::of(rate);
        match optimiser {
            Optimiser::Sgd => Self::Sgd { rate: r },
            Optimiser::Momentum { mu } => Self::Momentum { rate: r, mu: T::of(mu) },
            Optimiser::Nesterov { mu } => Self::Nesterov { rate: r, mu: T::of(mu) },
            Optimiser::Adam { beta1, beta2, epsilon } => {
                let scale = |beta: f64| T::of(1.0 / (1.0 - beta.powf(since as f64)));
                Self::Adam {
                    rate: r,
                    beta1: T::of(beta1),
                    beta2: T::of(beta2),
                    epsilon: T::of(epsilon),
                    scale1: scale(beta1),
                    scale2: scale(beta2),
                }
            }
            Optimiser::Cosine { .. } => Self::Cosine { rate: r },
        }
    }

    /// Turns the gradient of a layer into a change, in place, and moves the memory along; gives the product of the
    /// gradient with the one before and the square of the latter, for the rule that asks.
    pub(super) fn turn(&self, x: &mut [T], first: &mut [T], second: &mut [T]) -> (f64, f64) {
        match *self {
            Self::Sgd { rate } => x.iter_mut().for_each(|x| *x *= rate),
            Self::Momentum { rate, mu } => {
                for (x, m) in x.iter_mut().zip(first) {
                    *m = mu * *m + *x;
                    *x = rate * *m;
                }
            }
            Self::Nesterov { rate, mu } => {
                for (x, m) in x.iter_mut().zip(first) {
                    *m = mu * *m + *x;
                    *x = rate * (*x + mu * *m);
                }
            }
            Self::Adam { rate, beta1, beta2, epsilon, scale1, scale2 } => {
                for ((x, m), s) in x.iter_mut().zip(first).zip(second) {
                    *m = beta1 * *m + (T::one() - beta1) * *x;
                    *s = beta2 * *s + (T::one() - beta2) * *x * *x;
                    *x = rate * (scale1 * *m) / ((scale2 * *s).sqrt() + epsilon);
                }
            }
            Self::Cosine { rate } => {
                let (product, before) = (dot(x, first), squares(first));
                first.copy_from_slice(x);
                x.iter_mut().for_each(|x| *x *= rate);
                return (product, before);
            }
        }
        (0.0, 0.0)
    }
}
