//! Element-wise functions and their sums over slices, vectorised for the processor at run time.
//!
//! Sums are accumulated in `f64` in a fixed order of lanes, so they do not depend on the processor.

use crate::isa::{Isa, multiversion};
use crate::math;

/// Elements computed before their sum is taken: the function vectorises over the buffer on its own.
const BUFFER: usize = 64;
/// Partial sums kept side by side.
const LANES: usize = 8;

macro_rules! slices {
    ($module:ident, $t:ident) => {
        pub(crate) mod $module {
            use super::*;

            multiversion! {
                pub(crate) fn sigmoid(isa: Isa, x: &mut [$t]) {
                    for x in x {
                        *x = math::$t::sigmoid(*x);
                    }
                }
            }
            multiversion! {
                pub(crate) fn tanh(isa: Isa, x: &mut [$t]) {
                    for x in x {
                        *x = math::$t::tanh(*x);
                    }
                }
            }
            multiversion! {
                pub(crate) fn softplus_sum(isa: Isa, x: &[$t]) -> f64 {
                    sum(x, |x| math::$t::softplus(x))
                }
            }
            multiversion! {
                pub(crate) fn ln2cosh_sum(isa: Isa, x: &[$t]) -> f64 {
                    sum(x, |x| math::$t::ln2cosh(x))
                }
            }

            multiversion! {
                pub(crate) fn add_counts(isa: Isa, counts: &[u32], column: &[$t], factor: $t, row: $t, scale: $t, out: &mut [$t]) {
                    // Counts are below 2^31: the signed conversion is one instruction.
                    if column.is_empty() {
                        for (out, &count) in out.iter_mut().zip(counts) {
                            *out += scale * (factor * count as i32 as $t + row);
                        }
                        return;
                    }
                    for ((out, &count), &column) in out.iter_mut().zip(counts).zip(column) {
                        *out += scale * (factor * count as i32 as $t + column + row);
                    }
                }
            }

            multiversion! {
                /// `on` where a bit of the row is set, `off` where it is not.
                pub(crate) fn select(isa: Isa, row: &[u64], off: $t, on: $t, out: &mut [$t]) {
                    for (&word, out) in row.iter().zip(out.chunks_mut(64)) {
                        for (c, out) in out.iter_mut().enumerate() {
                            *out = if word >> c & 1 == 1 { on } else { off };
                        }
                    }
                }
            }
            multiversion! {
                /// out_j += Σ_r wt_r·x_{rj}.
                pub(crate) fn column_sums(isa: Isa, x: &[$t], n: usize, wts: Option<&[f64]>, out: &mut [f64]) {
                    for (r, x) in x.chunks_exact(n).enumerate() {
                        match wts {
                            None => out.iter_mut().zip(x).for_each(|(out, &x)| *out += f64::from(x)),
                            Some(wts) => {
                                let wt = wts[r];
                                out.iter_mut().zip(x).for_each(|(out, &x)| *out += wt * f64::from(x));
                            }
                        }
                    }
                }
            }

            #[inline(always)]
            fn sum(x: &[$t], f: impl Fn($t) -> $t) -> f64 {
                let mut lanes = [0f64; LANES];
                for part in x.chunks(BUFFER) {
                    let mut y = [0.0; BUFFER];
                    let y = &mut y[..part.len()];
                    for (y, &x) in y.iter_mut().zip(part) {
                        *y = f(x);
                    }
                    let mut whole = y.chunks_exact(LANES);
                    for y in &mut whole {
                        for (s, &y) in lanes.iter_mut().zip(y) {
                            *s += f64::from(y);
                        }
                    }
                    for (s, &y) in lanes.iter_mut().zip(whole.remainder()) {
                        *s += f64::from(y);
                    }
                }
                lanes.iter().sum()
            }

            multiversion! {
                /// Softmax of each group of `q`, in place; shifted by the maximum, so it cannot overflow.
                pub(crate) fn softmax(isa: Isa, x: &mut [$t], q: usize) {
                    for x in x.chunks_exact_mut(q * (BUFFER / q).max(1)) {
                        softmax_chunk(x, q);
                    }
                    let n = x.len();
                    let whole = n - n % (q * (BUFFER / q).max(1));
                    softmax_chunk(&mut x[whole..], q);
                }
            }

            #[inline(always)]
            fn softmax_chunk(x: &mut [$t], q: usize) {
                shift_by_max(x, q);
                for x in x.iter_mut() {
                    *x = math::$t::exp(*x);
                }
                for x in x.chunks_exact_mut(q) {
                    let total: $t = x.iter().sum();
                    let scale = 1.0 / total;
                    x.iter_mut().for_each(|x| *x *= scale);
                }
            }

            #[inline(always)]
            fn shift_by_max(x: &mut [$t], q: usize) {
                for x in x.chunks_exact_mut(q) {
                    let max = maximum(x);
                    x.iter_mut().for_each(|x| *x -= max);
                }
            }

            #[inline(always)]
            fn maximum(x: &[$t]) -> $t {
                x.iter().fold(<$t>::NEG_INFINITY, |m, &x| if x > m { x } else { m })
            }

            multiversion! {
                /// out_g = ln Σ_a e^{x_{ga}} for each group of `q`.
                fn logsumexp(isa: Isa, x: &[$t], q: usize, out: &mut [$t]) {
                    let mut buffer = [0.0; BUFFER];
                    for (x, out) in x.chunks_exact(q).zip(out) {
                        let max = maximum(x);
                        let mut total = 0.0;
                        for x in x.chunks(BUFFER) {
                            let e = &mut buffer[..x.len()];
                            for (e, &x) in e.iter_mut().zip(x) {
                                *e = math::$t::exp(x - max);
                            }
                            total += e.iter().sum::<$t>();
                        }
                        // A group of −∞ only has no finite maximum to shift by.
                        *out = if max == <$t>::NEG_INFINITY { max } else { max + total.ln() };
                    }
                }
            }

            /// Σ_g ln Σ_a e^{x_{ga}} over groups of `q`.
            pub(crate) fn logsumexp_sum(isa: Isa, x: &[$t], q: usize) -> f64 {
                let mut out = [0.0; BUFFER];
                let mut total = 0.0;
                for x in x.chunks(q * BUFFER) {
                    let out = &mut out[..x.len() / q];
                    logsumexp(isa, x, q, out);
                    total += out.iter().map(|&y| f64::from(y)).sum::<f64>();
                }
                total
            }
        }
    };
}
slices!(f32, f32);
slices!(f64, f64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bits_on_every_instruction_set() {
        let x: Vec<f64> = (0..1003).map(|k| f64::from(k - 500) * 0.0731).collect();
        let y: Vec<f32> = x.iter().map(|&x| x as f32).collect();
        let portable = Isa::all()[0];
        for isa in Isa::all() {
            for f in [f64::sigmoid, f64::tanh] {
                let (mut a, mut b) = (x.clone(), x.clone());
                f(portable, &mut a);
                f(isa, &mut b);
                assert_eq!(a, b, "{}", isa.name());
            }
            for f in [f32::sigmoid, f32::tanh] {
                let (mut a, mut b) = (y.clone(), y.clone());
                f(portable, &mut a);
                f(isa, &mut b);
                assert_eq!(a, b, "{}", isa.name());
            }
            for f in [f64::softplus_sum, f64::ln2cosh_sum] {
                assert_eq!(f(portable, &x), f(isa, &x), "{}", isa.name());
            }
            for f in [f32::softplus_sum, f32::ln2cosh_sum] {
                assert_eq!(f(portable, &y), f(isa, &y), "{}", isa.name());
            }
            assert_eq!(f64::logsumexp_sum(portable, &x, 17), f64::logsumexp_sum(isa, &x, 17));
            let (mut a, mut b) = (y[..17 * 59].to_vec(), y[..17 * 59].to_vec());
            f32::softmax(portable, &mut a, 17);
            f32::softmax(isa, &mut b, 17);
            assert_eq!(a, b, "{}", isa.name());
        }
    }
}
