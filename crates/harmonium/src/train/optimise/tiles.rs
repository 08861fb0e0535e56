//! The pass over the weights of a coupling, piece by piece.
//!
//! Where the moments of both phases, or of the negative one, are still products, it goes strip by strip of columns, each
//! multiplied just before; else by blocks of rows.

use super::ROWS;
use super::pass::{CELLS, Cells, Part, Pass, Piece};
use crate::Real;
use crate::machine::Phase;
use harmonium_kernels::fixed::{self, Product, Rounder, map_strips};
use harmonium_kernels::{Columns, Loop, prefetch, split_columns, vectorised};
use ndarray::Array2;
use rayon::prelude::*;

/// A block of whole rows, its moments multiplied out.
pub(super) struct Rows<'a, T> {
    pub(super) pass: &'a Pass<'a, T>,
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

impl<T: Real> Piece<T> for Rows<'_, T> {
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
    fn cells(&mut self, r: usize) -> Cells<'_, T> {
        let all = Cells {
            old: self.old,
            new: &mut *self.new,
            first: &mut *self.first,
            second: &mut *self.second,
            average: &mut *self.average,
        };
        all.part(r * self.n, self.n)
    }
}

impl<T: Real> Loop for Rows<'_, T> {
    type Output = Part<T>;

    #[inline(always)]
    fn run(mut self) -> Part<T> {
        let (n, pass) = (self.n, self.pass);
        let mut part = Part::new(Piece::rows(&self), n);
        let first = (self.first_row, 0);
        pass.run(&mut self, n, first, (0, 0), &mut part);
        part
    }
}

/// A strip of columns on its way through the pass.
struct Strip<'a, T> {
    arrays: Arrays<'a, T>,
    part: Part<T>,
    rounder: Option<Rounder<'a>>,
    /// First column of the strip, and columns of all strips.
    j: usize,
    n: usize,
}

impl<T: Real> Strip<'_, T> {
    /// Asks for what the pass reads and writes in row `i`.
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

    /// The tables take over `rows` new rows from `first` on, while these are in the cache.
    fn round(&mut self, first: usize, rows: usize) {
        if let Some(rounder) = &mut self.rounder {
            let new = &self.arrays.new;
            let row = |i| T::as_f32(new.get(i)).expect("tables are for single precision");
            rounder.take(&(first..first + rows).map(row).collect::<Vec<_>>());
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
    fn cells(&mut self, r: usize) -> Cells<'_, T> {
        #[inline(always)]
        fn row<'a, T>(x: &'a mut Option<Columns<'_, T>>, i: usize) -> &'a mut [T] {
            x.as_mut().map_or(&mut [], |x| x.row(i))
        }
        let (i, (j, n)) = (self.first_row + r, self.strip);
        Cells {
            old: &self.old[i * n + j..][..CELLS.min(n - j)],
            new: self.arrays.new.row(i),
            first: row(&mut self.arrays.first, i),
            second: row(&mut self.arrays.second, i),
            average: row(&mut self.arrays.average, i),
        }
    }
}

/// The pass over a slab.
struct Sweep<'a, 'b, T> {
    pass: &'a Pass<'a, T>,
    slab: Slab<'a, 'b, T>,
    part: &'a mut Part<T>,
}

impl<T: Real> Loop for Sweep<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let (i, (j, n)) = (self.slab.first_row, self.slab.strip);
        self.pass.run(&mut self.slab, CELLS.min(n - j), (i, j), (i, 0), self.part);
    }
}

/// The arrays of a coupling that an update writes, new weights and what is kept beside them.
pub(super) struct Written<'a, T> {
    pub(super) new: &'a mut Array2<T>,
    /// Tables that are to follow the new weights.
    pub(super) tables: Option<&'a mut fixed::Coupling>,
    pub(super) first: Option<&'a mut Array2<T>>,
    pub(super) second: Option<&'a mut Array2<T>>,
    pub(super) average: Option<&'a mut Array2<T>>,
}

const STANDARD: &str = "arrays of a machine are in standard layout";

impl<'a, T: Real> Written<'a, T> {
    /// Cut into strips of columns; whether the tables follow.
    fn strips(self) -> (Vec<Strip<'a, T>>, bool) {
        let (rows, n) = self.new.dim();
        let strips = |a: &'a mut Array2<T>| split_columns(a.as_slice_mut().expect(STANDARD), n, CELLS);
        let maybe = |a: Option<&'a mut Array2<T>>| {
            let strips = a.map_or(Vec::new(), strips);
            strips.into_iter().map(Some).chain(std::iter::repeat_with(|| None))
        };
        let rounders = self.tables.and_then(fixed::Coupling::rewrite);
        let follows = rounders.is_some();
        let rounders = rounders.unwrap_or_default().into_iter().map(Some);
        let rounders = rounders.chain(std::iter::repeat_with(|| None));
        let beside = maybe(self.first).zip(maybe(self.second)).zip(maybe(self.average)).zip(rounders);
        let all = strips(self.new).into_iter().zip(beside).enumerate();
        let strip = |(k, (new, (((first, second), average), rounder)))| Strip {
            arrays: Arrays { new, first, second, average },
            part: Part::new(rows, CELLS.min(n - k * CELLS)),
            rounder,
            j: k * CELLS,
            n,
        };
        (all.map(strip).collect(), follows)
    }

    /// Cut into blocks of rows, with those of the arrays that are read.
    fn rows(
        self,
        pass: &'a Pass<'a, T>,
        old: &'a Array2<T>,
        (positive, negative): (&'a Array2<T>, &'a Array2<T>),
    ) -> Vec<Rows<'a, T>> {
        let n = old.ncols();
        let size = ROWS * n.max(1);
        let read = |a: &'a Array2<T>| a.as_slice().expect(STANDARD).chunks(size);
        let write = |a: Option<&'a mut Array2<T>>| {
            let data: &mut [T] = a.map_or(&mut [], |a| a.as_slice_mut().expect(STANDARD));
            data.chunks_mut(size).map(Some).chain(std::iter::repeat_with(|| None))
        };
        let beside = write(self.first).zip(write(self.second)).zip(write(self.average));
        let reads = read(old).zip(read(positive)).zip(read(negative));
        let all = reads.zip(write(Some(self.new))).zip(beside).enumerate();
        all.map(|(k, ((((old, positive), negative), new), ((first, second), average)))| Rows {
            pass,
            first_row: k * ROWS,
            n,
            old,
            new: new.unwrap_or_default(),
            positive,
            negative,
            first: first.unwrap_or_default(),
            second: second.unwrap_or_default(),
            average: average.unwrap_or_default(),
        })
        .collect()
    }
}

/// The pass over coupling `c`; each part comes with the row and the column that it starts at. Says whether the tables have
/// followed.
pub(super) fn run<'a, T: Real>(
    pass: &'a Pass<'a, T>,
    old: &'a Array2<T>,
    (positive, negative): (&'a mut Phase<T>, &'a mut Phase<T>),
    c: usize,
    written: Written<'a, T>,
) -> (Vec<(usize, usize, Part<T>)>, bool) {
    let n = old.ncols();
    if let Some(q) = negative.product(c) {
        let q = Product { scale: -q.scale, ..q };
        let products: Vec<_> = positive.product(c).into_iter().chain([q]).collect();
        let positive = positive.array(c).map(|p| p.as_slice().expect(STANDARD));
        let old = old.as_slice().expect(STANDARD);
        let (strips, follows) = written.strips();
        let prefetch_hook =
            |strip: &Strip<'_, T>, i: usize| strip.prefetch(old, i, pass.step.average != 0.0);
        let strips = map_strips(&products, strips, prefetch_hook, |j, i, difference, strip| {
            let Strip { arrays, part, .. } = strip;
            let slab = Slab { first_row: i, difference, positive, old, strip: (j, n), arrays };
            vectorised(Sweep { pass, slab, part });
            strip.round(i, difference.len());
        });
        let parts = strips.into_iter().enumerate().map(|(k, s)| (0, k * CELLS, s.part)).collect();
        return (parts, follows);
    }
    let blocks = written.rows(pass, old, (positive.coupling(c), negative.coupling(c)));
    (blocks.into_par_iter().map(|block| (block.first_row, 0, vectorised(block))).collect(), false)
}

#[cfg(test)]
mod tests {
    use super::super::super::{Data, Form, Optimiser, Regulariser};
    use super::super::{Coordinates, Phases, Step, Stepper};
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
            (Form::Plain, penalty),
            (Form::Centred, Regulariser::default()),
            (Form::Standardised, penalty),
        ] {
            for optimiser in optimisers {
                let run = |multiplied: bool| {
                    let data_ = Data::new(data.clone());
                    let mut coordinates =
                        Coordinates::new(form, machine, &data_).expect("data that fit");
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
                    let mut stepper = Stepper::new(optimiser, regulariser, 0.1, true, machine);
                    let (mut old, mut new) = (machine.clone(), machine.clone());
                    let mut norms = Vec::new();
                    // The second update has something to remember.
                    for _ in 0..2 {
                        let (positive, negative) = (&mut positive, &mut negative);
                        let mut phases = Phases { positive, negative, coordinates: &coordinates };
                        let step = Step { rate: 0.1, wt: 0.8, average: 0.25 };
                        norms.push(stepper.apply(&old, &mut new, &mut phases, step));
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
