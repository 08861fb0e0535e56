//! Draws of Potts codes from logits: one of q values per site, by inversion of the cumulated weights.
//!
//! The weights e^{x − max} are vectorised over whole rows of sites; a uniform number of 53 bits times their sum
//! (in f64) then falls into the share of one value. Rows are cut into blocks of [`ROWS`] with a stream each, so
//! that codes do not depend on the number of threads.

use crate::isa::{Isa, multiversion};
use crate::math;
use crate::stream::{Key, Stream};
use crate::strip::{Strips, for_each_task};
use rand::rand_core::Rng;

/// Rows that share a stream.
const ROWS: usize = 64;
/// Logits turned into weights at a time.
const BUFFER: usize = 512;

macro_rules! categorical {
    ($t:ident) => {
        pub(crate) mod $t {
            use super::*;

            /// Draws `out.len()` codes from groups of `q` logits; rows have `sites` sites.
            pub(crate) fn sample(isa: Isa, logits: &[$t], q: usize, sites: usize, key: Key, out: &mut [u32]) {
                assert!(q > 0 && logits.len() == q * out.len(), "sample: logits do not fit codes × q");
                if sites == 0 {
                    assert!(out.is_empty(), "sample: rows of no sites");
                    return;
                }
                assert!(out.len().is_multiple_of(sites), "sample: codes do not fit rows × sites");
                let rows = out.len() / sites;
                let chunk = ROWS * sites;
                let len = out.len();
                let strips = Strips::new(out, len);
                for_each_task(rows.div_ceil(ROWS), logits.len(), |block| {
                    let first = block * chunk;
                    let here = chunk.min(len - first);
                    // SAFETY: no other task has these rows.
                    let out = unsafe { strips.segment(0, first, here) };
                    let mut stream = Stream::new(Key { block: block as u32, ..key });
                    draw(isa, &logits[first * q..(first + here) * q], q, &mut stream, out);
                });
            }

            multiversion! {
                fn draw(logits: &[$t], q: usize, stream: &mut Stream, out: &mut [u32]) {
                    let mut buffer = [0.0; BUFFER];
                    if q > BUFFER {
                        for (logits, out) in logits.chunks_exact(q).zip(out) {
                            *out = large(logits, stream);
                        }
                        return;
                    }
                    let sites = BUFFER / q;
                    for (logits, out) in logits.chunks(sites * q).zip(out.chunks_mut(sites)) {
                        let weights = &mut buffer[..logits.len()];
                        for (w, x) in weights.chunks_exact_mut(q).zip(logits.chunks_exact(q)) {
                            let max = x.iter().fold(<$t>::NEG_INFINITY, |m, &x| if x > m { x } else { m });
                            for (w, &x) in w.iter_mut().zip(x) {
                                *w = x - max;
                            }
                        }
                        for w in weights.iter_mut() {
                            *w = math::$t::exp(*w);
                        }
                        for (w, out) in weights.chunks_exact(q).zip(out) {
                            *out = invert(w, uniform(stream));
                        }
                    }
                }
            }

            /// The value whose share of the sum of the weights contains `u`.
            #[inline(always)]
            fn invert(weights: &[$t], u: f64) -> u32 {
                let total: f64 = weights.iter().map(|&w| f64::from(w)).sum();
                let (mut sum, mut code) = (0.0, 0);
                for &w in &weights[..weights.len() - 1] {
                    sum += f64::from(w);
                    code += u32::from(sum <= u * total);
                }
                code
            }

            fn large(logits: &[$t], stream: &mut Stream) -> u32 {
                let max = logits.iter().fold(<$t>::NEG_INFINITY, |m, &x| if x > m { x } else { m });
                let weights = || logits.iter().map(|&x| f64::from(math::$t::exp(x - max)));
                let threshold = uniform(stream) * weights().sum::<f64>();
                let mut sum = 0.0;
                weights().take(logits.len() - 1).map(|w| { sum += w; u32::from(sum <= threshold) }).sum()
            }
        }
    };
}
categorical!(f32);
categorical!(f64);

#[inline(always)]
fn uniform(stream: &mut Stream) -> f64 {
    (stream.next_u64() >> 11) as f64 * 2f64.powi(-53)
}
