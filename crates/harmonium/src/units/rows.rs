//! Vectorised functions of whole rows for the most common kinds.

use super::Kind;
use crate::Real;

/// `out ← θ + I`.
fn fields<T: Real>(theta: &[T], inputs: &[T], out: &mut [T]) {
    for ((o, &t), &i) in out.iter_mut().zip(theta).zip(inputs) {
        *o = t + i;
    }
}

/// Σ Γ over the row, or `None` when the kind has no vectorised form; `scratch` is overwritten.
pub(super) fn cgf<T: Real>(kind: Kind, theta: &[T], inputs: &[T], scratch: &mut [T]) -> Option<f64> {
    let scratch = &mut scratch[..inputs.len()];
    match kind {
        Kind::Binary | Kind::Binomial { .. } | Kind::Spin | Kind::Potts { .. } => {
            fields(theta, inputs, scratch);
        }
        _ => return None,
    }
    Some(match kind {
        Kind::Spin => T::ln2cosh_sum(scratch),
        Kind::Potts { q } => T::logsumexp_sum(scratch, q as usize),
        Kind::Binomial { n } => f64::from(n) * T::softplus_sum(scratch),
        _ => T::softplus_sum(scratch),
    })
}

/// Writes the means of the row; returns whether the kind has a vectorised form.
pub(super) fn mean<T: Real>(kind: Kind, theta: &[T], inputs: &[T], out: &mut [T]) -> bool {
    if !matches!(kind, Kind::Binary | Kind::Binomial { .. } | Kind::Spin | Kind::Potts { .. }) {
        return false;
    }
    fields(theta, inputs, out);
    match kind {
        Kind::Spin => T::tanh_slice(out),
        Kind::Potts { q } => T::softmax_groups(out, q as usize),
        _ => T::sigmoid_slice(out),
    }
    if let Kind::Binomial { n } = kind {
        out.iter_mut().for_each(|m| *m *= T::of(f64::from(n)));
    }
    true
}

/// The logits of p(x = 1), for kinds stored as bits.
pub(super) fn logits<T: Real>(kind: Kind, theta: &[T], inputs: &[T], out: &mut [T]) {
    fields(theta, inputs, out);
    if kind == Kind::Spin {
        // p(+1) = e^y/(e^y+e^{-y}) = σ(2y)
        out.iter_mut().for_each(|y| *y += *y);
    }
}
