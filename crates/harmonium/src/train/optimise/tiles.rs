//! The pass over the weights of a coupling, piece by piece.
//!
//! Where the moments of both phases, or of the negative one, are still products, it goes strip by strip of columns, each
//! multiplied just before; else by blocks of rows.

use super::ROWS;
use super::pass::{CELLS, Cells, Pass, PassSums, Piece, array_of_mut, array_of_ref};
use crate::Real;
use crate::machine::Phase;
use harmonium_kernels::fixed::{self, Product, Rounder, for_each_strip};
use harmonium_kernels::{Columns, Loop, for_each_part, prefetch, split_columns, vectorised};
use ndarray::Array2;

/// A block of whole rows, its moments multiplied out.
pub(super) struct RowBlock<'a, T> {
    pub(super) pass: &'a Pass<'a, T>,
    pub(super) part: &'a mut PassSums<T>,
    pub(super) first_row: usize,
    pub(super) n: usize,
    pub(super) old: &'a [T],
    pub(super) new: &'a mut [T],
    pub(super) positive: &'a [T],
    pub(super) negative: &'a [T],
    pub(super) first: &'a mut [T],
    pub(super) second: &'a mut [T],
    pub(super) average: &'a mut [T],
}

impl<T: Real> Piece<T> for RowBlock<'_, T> {
    #[inline(always)]
    fn rows(&self) -> usize {
        self.old.len() / self.n.max(1)
    }
    #[inline(always)]
    fn difference<const N: usize>(&self, r: usize, k: usize) -> [T; N] {
        let at = r * self.n + k;
        let (p, q) = (&self.positive[at..at + N], &self.negative[at..at + N]);
        let mut out = [T::zero(); N];
        (0..N).for_each(|k| out[k] = p[k] - q[k]);
        out
    }
    #[inline(always)]
    fn cells<const N: usize, const MEMORY: usize>(&mut self, r: usize, k: usize) -> Cells<'_, T, N> {
        let at = r * self.n + k;
        Cells {
            old: array_of_ref(&self.old[at..]),
            new: array_of_mut(&mut self.new[at..]),
            first: if MEMORY > 0 { &mut self.first[at..at + N] } else { &mut [] },
            second: if MEMORY > 1 { &mut self.second[at..at + N] } else { &mut [] },
        }
    }
    #[inline(always)]
    fn average<const N: usize>(&mut self, r: usize, k: usize) -> &mut [T] {
        let at = r * self.n + k;
        if self.average.is_empty() { &mut [] } else { &mut self.average[at..at + N] }
    }
}

impl<T: Real> Loop for RowBlock<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let (n, pass, first) = (self.n, self.pass, (self.first_row, 0));
        let mut part = std::mem::take(self.part);
        part.reset(first, Piece::rows(&self), n);
        pass.run(&mut self, n, first, (0, 0), &mut part);
        *self.part = part;
    }
}

/// A strip of columns in the pass.
struct Strip<'a, T> {
    arrays: Arrays<'a, T>,
    part: &'a mut PassSums<T>,
    rounder: Option<Rounder<'a>>,
    /// First column of the strip, and columns of all strips.
    j: usize,
    n: usize,
}

impl<T: Real> Strip<'_, T> {
    /// Prefetches what the pass reads and writes in row `i`.
    #[inline(always)]
    fn prefetch(&self, old: &[T], i: usize, averages: bool) {
        let at = i * self.n + self.j;
        for k in [0, CELLS / 2, CELLS - 1] {
            prefetch(old, at + k);
        }
        self.arrays.new.prefetch(i);
        self.rounder.iter().for_each(|r| r.prefetch(i));
        if averages {
            self.arrays.average.iter().for_each(|a| a.prefetch(i));
        }
    }

    /// Rounds the next `rows` new rows into the tables, while these are in the cache.
    fn round(&mut self, rows: usize) {
        if let Some(rounder) = &mut self.rounder {
            rounder.take(&self.arrays.new, rows);
        }
    }
}

/// The columns of a strip that are written, where the arrays are there.
struct Arrays<'a, T> {
    new: Columns<'a, T>,
    first: Option<Columns<'a, T>>,
    second: Option<Columns<'a, T>>,
    average: Option<Columns<'a, T>>,
}

/// Some rows of a strip, with the difference of the phases just made.
struct Slab<'a, 'b, T> {
    first_row: usize,
    difference: &'a [fixed::F32x32],
    /// All moments of the positive phase, where they are not in the difference yet.
    positive: Option<&'a [T]>,
    old: &'a [T],
    strip: (usize, usize),
    arrays: &'a mut Arrays<'b, T>,
}

impl<T: Real> Piece<T> for Slab<'_, '_, T> {
    #[inline(always)]
    fn rows(&self) -> usize {
        self.difference.len()
    }
    #[inline(always)]
    fn difference<const N: usize>(&self, r: usize, k: usize) -> [T; N] {
        let row = T::from_f32(&self.difference[r].0).expect("products are for single precision");
        let mut out: [T; N] = row[k..k + N].try_into().expect("as long as asked for");
        if let Some(positive) = self.positive {
            let (i, (j, n)) = (self.first_row + r, self.strip);
            out.iter_mut().zip(&positive[i * n + j + k..][..N]).for_each(|(o, &p)| *o += p);
        }
        out
    }
    #[inline(always)]
    fn cells<const N: usize, const MEMORY: usize>(&mut self, r: usize, k: usize) -> Cells<'_, T, N> {
        let (i, (j, n)) = (self.first_row + r, self.strip);
        let Arrays { new, first, second, .. } = &mut *self.arrays;
        Cells {
            old: array_of_ref(&self.old[i * n + j + k..]),
            new: array_of_mut(&mut new.row(i)[k..]),
            first: if MEMORY > 0 { columns_of(first, i, k, N) } else { &mut [] },
            second: if MEMORY > 1 { columns_of(second, i, k, N) } else { &mut [] },
        }
    }
    #[inline(always)]
    fn average<const N: usize>(&mut self, r: usize, k: usize) -> &mut [T] {
        columns_of(&mut self.arrays.average, self.first_row + r, k, N)
    }
}

/// `len` columns of row `i` from column `k` of the strip on, where the array is there.
#[inline(always)]
fn columns_of<'a, T>(x: &'a mut Option<Columns<'_, T>>, i: usize, k: usize, len: usize) -> &'a mut [T] {
    x.as_mut().map_or(&mut [], |x| &mut x.row(i)[k..k + len])
}

/// The pass over a slab.
struct Sweep<'a, 'b, T> {
    pass: &'a Pass<'a, T>,
    slab: Slab<'a, 'b, T>,
    part: &'a mut PassSums<T>,
}

impl<T: Real> Loop for Sweep<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let (i, (j, n)) = (self.slab.first_row, self.slab.strip);
        self.pass.run(&mut self.slab, CELLS.min(n - j), (i, j), (i, 0), self.part);
    }
}

/// The arrays of a coupling that an update writes: new weights, optimiser state, average.
pub(super) struct Written<'a, T> {
    pub(super) new: &'a mut Array2<T>,
    /// Tables to be updated with the new weights.
    pub(super) tables: Option<&'a mut fixed::Coupling>,
    pub(super) first: Option<&'a mut Array2<T>>,
    pub(super) second: Option<&'a mut Array2<T>>,
    pub(super) average: Option<&'a mut Array2<T>>,
}

const STANDARD: &str = "arrays of a machine are in standard layout";

impl<'a, T: Real> Written<'a, T> {
    /// Cut into strips of columns, with one of the `parts` for the sums of each; whether the tables follow.
    fn strips(
        self,
        parts: &'a mut [PassSums<T>],
    ) -> (impl ExactSizeIterator<Item = Strip<'a, T>>, bool) {
        let (rows, n) = self.new.dim();
        let strips = |a: &'a mut Array2<T>| split_columns(a.as_slice_mut().expect(STANDARD), n, CELLS);
        let mut new = strips(self.new);
        let [mut first, mut second, mut average] =
            [self.first, self.second, self.average].map(|a| a.map(strips));
        let mut rounders = self.tables.and_then(fixed::Coupling::rewrite);
        let (follows, mut parts) = (rounders.is_some(), parts.iter_mut());
        let strip = move |j: usize| {
            let part = parts.next().expect("a part for each strip");
            part.reset((0, j), rows, CELLS.min(n - j));
            let arrays = Arrays {
                new: new.next().expect("as many strips of each array"),
                first: first.as_mut().and_then(Iterator::next),
                second: second.as_mut().and_then(Iterator::next),
                average: average.as_mut().and_then(Iterator::next),
            };
            Strip { arrays, part, rounder: rounders.as_mut().and_then(Iterator::next), j, n }
        };
        ((0..n).step_by(CELLS).map(strip), follows)
    }

    /// Cut into blocks of rows, with those of the arrays that are read and one of the `parts` for the sums of each.
    fn rows(
        self,
        pass: &'a Pass<'a, T>,
        old: &'a Array2<T>,
        (positive, negative): (&'a Array2<T>, &'a Array2<T>),
        parts: &'a mut [PassSums<T>],
    ) -> impl ExactSizeIterator<Item = RowBlock<'a, T>> {
        let n = old.ncols();
        let size = ROWS * n.max(1);
        let read = |a: &'a Array2<T>| a.as_slice().expect(STANDARD).chunks(size);
        let write = |a: &'a mut Array2<T>| a.as_slice_mut().expect(STANDARD).chunks_mut(size);
        let mut new = write(self.new);
        let [mut first, mut second, mut average] =
            [self.first, self.second, self.average].map(|a| a.map(write));
        let reads = read(old).zip(read(positive)).zip(read(negative)).zip(parts).enumerate();
        reads.map(move |(k, (((old, positive), negative), part))| RowBlock {
            pass,
            part,
            first_row: k * ROWS,
            n,
            old,
            new: new.next().expect("as many blocks of each array"),
            positive,
            negative,
            first: first.as_mut().and_then(Iterator::next).unwrap_or_default(),
            second: second.as_mut().and_then(Iterator::next).unwrap_or_default(),
            average: average.as_mut().and_then(Iterator::next).unwrap_or_default(),
        })
    }
}

/// The pass over coupling `c`, with its sums in the returned parts, which reuse the memory of `parts`; also returns
/// whether the tables were updated.
pub(super) fn run<'a, T: Real>(
    pass: &'a Pass<'a, T>,
    old: &'a Array2<T>,
    (positive, negative): (&'a mut Phase<T>, &'a mut Phase<T>),
    c: usize,
    written: Written<'a, T>,
    parts: &'a mut Vec<PassSums<T>>,
) -> (usize, bool) {
    let n = old.ncols();
    if let Some(q) = negative.product(c) {
        let q = Product { scale: -q.scale, ..q };
        let both = [positive.product(c).unwrap_or(q), q];
        let products = if positive.product(c).is_some() { &both[..] } else { &both[1..] };
        let positive = positive.array(c).map(|p| p.as_slice().expect(STANDARD));
        let old = old.as_slice().expect(STANDARD);
        let used = at_least(parts, n.div_ceil(CELLS));
        let (strips, follows) = written.strips(&mut parts[..used]);
        let prefetch_hook =
            |strip: &Strip<'_, T>, i: usize| strip.prefetch(old, i, pass.step.average != 0.0);
        for_each_strip(products, strips, prefetch_hook, |j, i, difference, strip| {
            let Strip { arrays, part, .. } = strip;
            let slab = Slab { first_row: i, difference, positive, old, strip: (j, n), arrays };
            vectorised(Sweep { pass, slab, part });
            strip.round(difference.len());
        });
        return (used, follows);
    }
    let used = at_least(parts, old.nrows().div_ceil(ROWS));
    let phases = (positive.coupling(c), negative.coupling(c));
    let blocks = written.rows(pass, old, phases, &mut parts[..used]);
    // Some operations for each of 16 weights at a time.
    for_each_part(blocks, old.len(), |_, block| vectorised(block));
    (used, false)
}

/// Ensures that there are at least `count` parts.
fn at_least<T: Real>(parts: &mut Vec<PassSums<T>>, count: usize) -> usize {
    if parts.len() < count {
        parts.resize_with(count, PassSums::default);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::super::super::{Coordinates, Data, Gradient, Optimiser, Regulariser};
    use super::super::{OffsetsAndScales, Source, Stage, Step, Stepper};
    use super::*;
    use crate::{Batch, Bits, Kind, Layer, Machine, States};
    use harmonium_kernels::{Key, Stream};
    use rand::RngExt;

    fn machine_and_rows() -> (Machine<f32>, States<f32>, States<f32>) {
        let mut rng = Stream::new(Key { seed: 3, purpose: 0, block: 0, sweep: 0 });
        let (visible, hidden) = (Layer::new(Kind::Binary, 75), Layer::new(Kind::Spin, 71));
        let mut machine = Machine::<f32>::rbm(visible, hidden);
        machine.coupling_mut(0).w_mut().mapv_inplace(|_| rng.random_range(-0.3..0.3));
        let mut rows = |n: usize| {
            let mut bits = Bits::zeros(n, 75);
            (0..n * 75).for_each(|k| bits.set(k / 75, k % 75, rng.random_range(0..3) == 0));
            machine.data(vec![Batch::Bits(bits)]).expect("rows that fit")
        };
        let (data, chains) = (rows(90), rows(130));
        (machine, data, chains)
    }

    /// Products, strip by strip, give the same update as their moments, row by row.
    #[test]
    fn strips_and_rows_agree() {
        let (machine, data, chains) = machine_and_rows();
        agree(&machine, &data, &chains, true);
    }

    /// So does a product for the negative phase alone: soft bits have none.
    #[test]
    fn strips_take_positive_moments_from_an_array() {
        let (machine, data, chains) = machine_and_rows();
        let grey = machine.layer(0).values(data.layer(0).expect("rows")).mapv(|x| 0.2 + 0.7 * x as f32);
        let data = machine.data(vec![Batch::Reals(grey)]).expect("rows that fit");
        agree(&machine, &data, &chains, false);
    }

    fn agree(machine: &Machine<f32>, data: &States<f32>, chains: &States<f32>, both: bool) {
        let phase = |states: &States<f32>| {
            let mut out = Phase::new(machine);
            machine.at(1.0).moments_into(states, &[1], None, &mut out).expect("moments");
            out
        };
        let optimisers = [
            Optimiser::Sgd,
            Optimiser::Momentum { mu: 0.9 },
            Optimiser::Nesterov { mu: 0.9 },
            Optimiser::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-3 },
            Optimiser::COSINE,
        ];
        let penalty = Regulariser { l1: 1e-3, l2: 0.1, l1b: 1e-4, ..Regulariser::default() };
        for (form, regulariser) in [
            (Coordinates::Plain, penalty),
            (Coordinates::Centred, Regulariser::default()),
            (Coordinates::Standardised, penalty),
        ] {
            for optimiser in optimisers {
                let run = |multiplied: bool| {
                    let data_ = Data::new(data.clone());
                    let mut coordinates =
                        OffsetsAndScales::new(form, machine, &data_).expect("data that fit");
                    let (mut positive, mut negative) = (phase(data), phase(chains));
                    assert_eq!(
                        (positive.product(0).is_some(), negative.product(0).is_some()),
                        (both, true)
                    );
                    if multiplied {
                        (positive, negative) =
                            (positive.parameters().into(), negative.parameters().into());
                    }
                    coordinates.follow(machine, positive.layers(), 1.0);
                    let mut gradient = Gradient { positive, negative, wt: 0.8 };
                    let mut stepper = Stepper::new(optimiser, regulariser, 0.1, true, machine);
                    let (mut old, mut new) = (machine.clone(), machine.clone());
                    let mut norms = Vec::new();
                    // The second update uses the optimiser's state.
                    for _ in 0..2 {
                        let mut source = Source { gradient: &mut gradient, coordinates: &coordinates };
                        let step = Step { rate: 0.1, wt: 0.8, average: 0.25, stage: Stage::Fused };
                        let norm = stepper.apply(&old, &mut new, &mut source, step, None);
                        norms.push(norm.expect("this rule does not fail"));
                        std::mem::swap(&mut old, &mut new);
                    }
                    (old.parameters(), stepper.average().expect("an average").clone(), norms)
                };
                let (strips, rows) = (run(false), run(true));
                for (a, b) in [(&strips.0, &rows.0), (&strips.1, &rows.1)] {
                    for (a, b) in a.arrays().flatten().zip(b.arrays().flatten()) {
                        assert!((a - b).abs() < 2e-5, "{form:?}, {optimiser:?}: {a} and {b}");
                    }
                }
                for (a, b) in strips.2.iter().zip(&rows.2) {
                    assert!((a.gradient - b.gradient).abs() < 1e-4 * b.gradient);
                    assert!((a.change - b.change).abs() < 1e-4 * b.change && b.change > 0.0);
                }
            }
        }
    }
}
