//! A coupling prepared for sampling: both directions in one fixed-point step.

use super::Side;
use super::plan::max_or_nan;
use super::quantise::DirectedWeights;
use super::rewrite::{self, BackwardTiles, Rounder};
use crate::isa::Isa;
use crate::strip::for_each_part;
use crate::x32::WIDTH;

/// The largest bound on the error of a logit, in nats, up to which fixed-point fields are
/// [trusted](Coupling::is_trusted).
///
/// The bound is for the worst of all states; the root mean square over states is smaller by about √n, n the
/// number of inputs: with 784 inputs and steps of 2^-11 the bound is 0.06 and the typical error 0.002 nat.
pub const TOLERANCE: f32 = 0.25;

/// Weights W between two layers, rounded to multiples of one step 2^-s for both directions.
///
/// As both directions use the same rounded weights, block-Gibbs sampling with them leaves *exactly* the
/// machine with the rounded weights invariant; nothing drifts. What rounding changes is the machine, and
/// [`Coupling::error_bound`] says by how much: it is computed from the weights at every refresh.
#[derive(Clone, Debug)]
pub struct Coupling {
    forward: DirectedWeights,
    backward: DirectedWeights,
    s: i32,
    bound: f32,
    /// For [`Coupling::rewrite`].
    tiles: BackwardTiles,
}

impl PartialEq for Coupling {
    fn eq(&self, other: &Self) -> bool {
        (&self.forward, &self.backward, self.s) == (&other.forward, &other.backward, other.s)
    }
}

/// One direction of a [`Coupling`].
#[derive(Clone, Copy, Debug)]
pub struct Direction<'a> {
    pub(super) half: &'a DirectedWeights,
    pub(super) target: Side,
    pub(super) s: i32,
    bound: f32,
}

impl Direction<'_> {
    /// The layer that is read.
    pub fn source(&self) -> Side {
        self.half.source
    }
    /// The layer that receives.
    pub fn target(&self) -> Side {
        self.target
    }
    /// Bound on the error of a logit through this direction, at β = 1, in nats.
    pub fn error_bound(&self) -> f32 {
        self.bound
    }
}

impl Coupling {
    /// A coupling between `a` and `b` with all weights zero until [`Coupling::refresh`].
    pub fn new(a: Side, b: Side) -> Self {
        let mut coupling = Self {
            forward: DirectedWeights::new(a, b.units()),
            backward: DirectedWeights::new(b, a.units()),
            s: preferred_step(a, b),
            bound: 0.0,
            tiles: BackwardTiles::default(),
        };
        let zeros = vec![0.0; a.units() * b.units()];
        coupling.refresh(&zeros);
        coupling
    }

    /// Rounds new weights, row-major (units of `a`) × (units of `b`).
    ///
    /// The step depends on these weights only, never on earlier ones.
    ///
    /// # Panics
    /// If the length does not fit.
    pub fn refresh(&mut self, w: &[f32]) {
        let (rows, n) = (self.forward.source.units(), self.backward.source.units());
        assert_eq!(w.len(), rows * n, "refresh: weights do not fit the layers");
        let isa = Isa::detect();
        // The largest block sum in nats is the same whatever step it was measured with (scaling by powers of
        // two is exact), so a second pass happens only when the step changes.
        loop {
            let round = |strip: usize, mut rounder: Rounder<'_>| rounder.take_all(w, n, WIDTH * strip);
            let rounded = self.rewrite().map(|rounders| for_each_part(rounders, rows * n, round));
            if rounded.is_some() {
                rewrite::finish(&mut self.backward, &self.tiles, self.s);
            } else {
                self.forward.quantise(isa, w, false, self.s);
                self.backward.quantise(isa, w, true, self.s);
            }
            if self.adopt_step() {
                break;
            }
        }
    }

    /// Sets the step that the weights require; whether it is the one they have been rounded with.
    fn adopt_step(&mut self) -> bool {
        let preferred = preferred_step(self.forward.source, self.backward.source);
        let s = finest_fitting_step(preferred, self.forward.largest().max(self.backward.largest()));
        self.bound = max_or_nan(self.forward().bound, self.backward().bound);
        std::mem::replace(&mut self.s, s) == s
    }

    /// Rounds new weights in strips of 32 columns, with one [`Rounder`] per strip, which may run on different threads; call
    /// [`Coupling::rewritten`] when all rows have been given. The result is that of [`Coupling::refresh`], without another
    /// pass over the weights. `None` if an end is a Potts layer.
    pub fn rewrite(&mut self) -> Option<impl ExactSizeIterator<Item = Rounder<'_>>> {
        rewrite::rounders(&mut self.forward, &mut self.backward, &mut self.tiles, self.s)
    }

    /// Ends [`Coupling::rewrite`], all the strips of `w` having been given.
    ///
    /// # Panics
    /// If the length does not fit.
    pub fn rewritten(&mut self, w: &[f32]) {
        rewrite::finish(&mut self.backward, &self.tiles, self.s);
        if !self.adopt_step() {
            self.refresh(w);
        }
    }

    /// The weights are rounded to multiples of 2^-this.
    pub fn step_exponent(&self) -> i32 {
        self.s
    }

    /// Bound on the error that rounding the weights makes in any logit of either layer, over all states, at
    /// β = 1, in nats. Infinite when the weights do not fit, NaN when one is NaN.
    pub fn error_bound(&self) -> f32 {
        self.bound
    }

    /// Whether the bound is within [`TOLERANCE`]; otherwise compute the fields in f32.
    pub fn is_trusted(&self) -> bool {
        self.bound <= TOLERANCE
    }

    /// From `a` to `b`.
    pub fn forward(&self) -> Direction<'_> {
        direction(&self.forward, self.backward.source, self.s)
    }

    /// From `b` to `a`.
    pub fn backward(&self) -> Direction<'_> {
        direction(&self.backward, self.forward.source, self.s)
    }
}

fn direction(half: &DirectedWeights, target: Side, s: i32) -> Direction<'_> {
    // The logit of a spin is twice its field.
    let factor = if matches!(target, Side::Spin(_)) { 2.0 } else { 1.0 };
    Direction { half, target, s, bound: half.error() * factor * (-s as f32).exp2() }
}

/// The step that makes 16-bit sums the logits themselves in the sampler's unit (2^-11 for two binary layers;
/// every spin layer doubles the worth of a sum), made finer when so many inputs would add up to a bound near
/// the tolerance: n rounding errors of at most 2^-(s+1) of random sign leave n·2^-(s+3) for the worst states.
fn preferred_step(a: Side, b: Side) -> i32 {
    let spins = [a, b].iter().filter(|side| matches!(side, Side::Spin(_))).count() as i32;
    let inputs = a.inputs().max(b.inputs()) as f32;
    11 + spins + (inputs / (0.6 * TOLERANCE * 16384.0)).log2().ceil().max(0.0) as i32
}

/// The finest step not beyond `preferred` with which the largest block sum fits 16 bits.
fn finest_fitting_step(preferred: i32, largest: f32) -> i32 {
    // A margin of 200 steps for the rounding of up to 384 weights.
    let mut s = preferred;
    while s > 0 && largest * (s as f32).exp2() + 200.0 > 32766.0 {
        s -= 1;
    }
    s
}

#[cfg(test)]
mod tests {
    use super::super::plan::{EMPTY, FLUSH};
    use super::*;
    use crate::reference::{extreme_sums, rounded_weight, transpose};
    use crate::stream::mix;
    use crate::strip::split_columns;
    use proptest::prelude::*;

    fn side(kind: u32, n: usize) -> Side {
        match kind {
            0 => Side::Binary(n),
            1 => Side::Spin(n),
            _ => Side::Potts { sites: n.div_ceil(7), q: 5 },
        }
    }

    /// In a third of the strips every third weight is zero, in another third all weights from inputs 64 to 127.
    fn weights(seed: u64, n: usize, len: usize, size: i32) -> Vec<f32> {
        let at = |i: usize| mix(mix(seed) ^ i as u64) as f64 / 2f64.powi(64);
        let weight = |i: usize| {
            let strip = mix(seed ^ (i % n / 32) as u64) % 3;
            let zero = strip == 0 && i.is_multiple_of(3) || strip == 1 && i / n / 64 == 1;
            if zero { 0.0 } else { ((at(i) - 0.4) * 2f64.powi(size)) as f32 }
        };
        (0..len).map(weight).collect()
    }

    /// The inputs of one block of rows. Spins are summed as bits, their constant is added once.
    fn block_side(source: Side, rows: usize) -> Side {
        match source {
            Side::Binary(_) | Side::Spin(_) => Side::Binary(rows),
            Side::Potts { q, .. } => Side::Potts { sites: rows / q, q },
        }
    }

    /// One direction against its weights, row-major (units of its source) × n: every rounded weight and total, the bound on
    /// the error, and that no sum within a run leaves 16 bits.
    fn check(half: &DirectedWeights, w: &[f32], s: i32) -> Result<f64, TestCaseError> {
        let (rows, n) = (half.source.units(), half.n);
        let (mut bound, mut largest) = (0f64, 0f64);
        for j in 0..n {
            let steps = |i: usize| f64::from(w[i * n + j]) * f64::from(s).exp2();
            let rounded = |i: usize| f64::from(rounded_weight(w[i * n + j], s));
            for i in 0..rows {
                let stored = half.weights[j / WIDTH * rows + i].0[j % WIDTH];
                prop_assert_eq!(stored, rounded_weight(w[i * n + j], s));
            }
            let total: f64 = (0..rows).map(rounded).sum();
            prop_assert_eq!(f64::from(half.totals(j / WIDTH)[j % WIDTH]), total);
            let (low, high) = extreme_sums(half.source, |i| steps(i) - rounded(i));
            bound = bound.max(high).max(-low);
            let (mut at, mut run) = (0, (0.0, 0.0));
            for (flags, block) in half.blocks(j / WIDTH) {
                let here = block_side(half.source, block.len());
                let (low, high) = extreme_sums(here, |i| steps(at + i));
                largest = largest.max(high).max(-low);
                let (low, high) = extreme_sums(here, |i| rounded(at + i));
                at += block.len();
                if flags & EMPTY != 0 {
                    prop_assert_eq!((low, high), (0.0, 0.0));
                    continue;
                }
                run = (run.0 + low, run.1 + high);
                prop_assert!(run.0 >= -32768.0 && run.1 <= 32767.0, "{run:?}");
                if flags & FLUSH != 0 {
                    run = (0.0, 0.0);
                }
            }
        }
        let got = f64::from(half.error());
        let tolerance = 0.01 * bound + 1e-4 * largest + 1e-3;
        prop_assert!(got >= bound * (1.0 - 1e-6) && got <= bound + tolerance, "{got}, exactly {bound}");
        Ok(largest * f64::from(-s).exp2())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]
        #[test]
        fn weights_are_rounded_and_planned(seed: u64, k in 1usize..200, n in 1usize..150, kinds in 0u32..9, size in -6i32..2) {
            let (a, b) = (side(kinds % 3, k), side(kinds / 3, n));
            let (k, n) = (a.units(), b.units());
            let w = weights(seed, n, k * n, size);
            let mut coupling = Coupling::new(a, b);
            coupling.refresh(&w);
            let s = coupling.s;
            let largest = check(&coupling.forward, &w, s)?.max(check(&coupling.backward, &transpose(&w, k, n), s)?);
            prop_assert_eq!(s, finest_fitting_step(preferred_step(a, b), largest as f32));
        }

        /// Large weights change the step and break runs.
        #[test]
        fn a_rewrite_gives_what_a_refresh_gives(seed: u64, k in 1usize..200, n in 1usize..150, spins in 0u32..4, size in -6i32..6, piece in 1usize..4) {
            let (a, b) = (side(spins % 2, k), side(spins / 2, n));
            let w = weights(seed, n, k * n, size);
            let (mut want, mut got) = (Coupling::new(a, b), Coupling::new(a, b));
            want.refresh(&w);
            got.refresh(&vec![0.01; k * n]);
            let mut new = w.clone();
            let strips = split_columns(&mut new, n, WIDTH);
            for (mut rounder, strip) in got.rewrite().expect("no Potts layer").zip(strips) {
                for first in (0..k).step_by(32 * piece) {
                    rounder.take(&strip, (32 * piece).min(k - first));
                }
            }
            got.rewritten(&w);
            prop_assert!(got == want);
            prop_assert!(got.error_bound() == want.error_bound());
        }
    }
}
