//! Exchange of configurations between two ensembles of chains, in detailed balance.

use super::log_density;
use crate::units::uniform;
use crate::{Real, Result, States, Tempered};
use harmonium_kernels::{Key, Stream};

/// What an exchange of paired rows did.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// Which pairs were swapped.
    pub accepted: Vec<bool>,
    /// Mean acceptance probability.
    pub acceptance: f64,
    /// $u = \ln p_b^\ast - \ln p_a^\ast$ of the rows that came from `a`: with `u_b`, what
    /// [`bennett`](super::bennett) needs for $\ln Z_b/Z_a$.
    pub u_a: Vec<f64>,
    /// u of the rows that came from `b`.
    pub u_b: Vec<f64>,
}

/// $u = \ln p_b^\ast(x) - \ln p_a^\ast(x)$ of each row.
///
/// # Errors
/// When a layer that is read is not held.
pub fn log_ratio<T: Real>(a: &Tempered<'_, T>, b: &Tempered<'_, T>, x: &States<T>) -> Result<Vec<f64>> {
    let (a, b) = (log_density(a, x)?, log_density(b, x)?);
    Ok(b.into_iter().zip(a).map(|(b, a)| b - a).collect())
}

/// $\min(1, e^{u(x)-u(y)})$: the probability that x, of the first ensemble, and y trade places.
pub fn acceptance(u_x: f64, u_y: f64) -> f64 {
    (u_x - u_y).min(0.0).exp()
}

/// Swaps row r of `x`, which follows `a`, with row r of `y`, which follows `b`, with the probability
///
/// $$\min\Big(1, \frac{p_a^\ast(y) p_b^\ast(x)}{p_a^\ast(x) p_b^\ast(y)}\Big),$$
///
/// which leaves the product of both distributions unchanged. The normalisations cancel; the densities are
/// those of [`log_density`].
///
/// # Errors
/// When a layer that is read is not held.
pub fn exchange<T: Real>(
    (a, x): (&Tempered<'_, T>, &mut States<T>),
    (b, y): (&Tempered<'_, T>, &mut States<T>),
    key: Key,
) -> Result<Exchange> {
    let (u_a, u_b) = (log_ratio(a, b, x)?, log_ratio(a, b, y)?);
    let mut rng = Stream::new(key);
    let mut sum = 0.0;
    let mut accepted = Vec::with_capacity(u_a.len());
    for (r, (&u_x, &u_y)) in u_a.iter().zip(&u_b).enumerate() {
        let p = acceptance(u_x, u_y);
        sum += p;
        accepted.push(uniform(&mut rng) < p);
        if accepted[r] {
            x.swap_row(r, y, r);
        }
    }
    let acceptance = sum / accepted.len().max(1) as f64;
    Ok(Exchange { accepted, acceptance, u_a, u_b })
}
