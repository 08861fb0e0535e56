//! A whole PCD-1 update through the library's trainer against the same update built on SGEMM.

use crate::data::Source;
use crate::measure::{Alternative, medians, on_threads, ratio};
use harmonium::estimate::Estimator;
use harmonium::train::{Coordinates, Data, TrainParams, Trainer};
use harmonium::{Batch, Bits, Kind, Layer, Machine};
use harmonium_kernels::bench_support::dense_bernoulli;
use harmonium_kernels::{Key, Real, bits};
use ndarray::Array2;
use rayon::prelude::*;
use std::time::Duration;

const VISIBLE: usize = 784;
const HIDDEN: usize = 500;
const BATCH: usize = 500;
const ROWS: usize = 10_000;
/// Updates that are timed together: they follow each other as in a run, with the caches as the last one left them.
const TURN: usize = 20;
/// Learning rate.
pub const RATE: f32 = 0.01;

/// The usual way: dense states, five products, vectorised sigmoid and sampling, one pass over the weights.
struct Dense {
    w: Vec<f32>,
    wt: Vec<f32>,
    b: Vec<f32>,
    c: Vec<f32>,
    data: Vec<f32>,
    v: Vec<f32>,
    h: Vec<f32>,
    mean: Vec<f32>,
    gradient: Vec<f32>,
    update: usize,
}

fn product(a: &[f32], w: &[f32], (rows, k, n): (usize, usize, usize), out: &mut [f32]) {
    f32::gemm((rows, n, k), 1.0, (a, k, 1), (w, n, 1), 0.0, (out, n, 1));
}

fn in_parts(x: &mut [f32], n: usize, f: impl Fn(usize, &mut [f32]) + Sync) {
    let part = (x.len() / n).div_ceil(rayon::current_num_threads());
    x.par_chunks_mut(part * n).enumerate().for_each(|(i, x)| f(i, x));
}

fn means(x: &mut [f32], bias: &[f32]) {
    in_parts(x, bias.len(), |_, x| {
        for row in x.chunks_exact_mut(bias.len()) {
            row.iter_mut().zip(bias).for_each(|(x, b)| *x += b);
        }
        f32::sigmoid_slice(x);
    });
}

fn sample(x: &mut [f32], bias: &[f32], sweep: u64) {
    in_parts(x, bias.len(), |i, x| {
        dense_bernoulli(x, bias, Key { seed: 3, purpose: bias.len() as u32, block: i as u32, sweep });
    });
}

impl Dense {
    fn new(data: &[u64]) -> Self {
        let dense = crate::data::dense(bits::BitMatrix::new(data, ROWS, VISIBLE));
        let w = Source::new(9).weights(VISIBLE * HIDDEN, 0.01);
        Self {
            wt: w.clone(),
            w,
            b: vec![-1.7; VISIBLE],
            c: vec![0.0; HIDDEN],
            v: dense[..BATCH * VISIBLE].to_vec(),
            data: dense,
            h: vec![0.0; BATCH * HIDDEN],
            mean: vec![0.0; BATCH * HIDDEN],
            gradient: vec![0.0; VISIBLE * HIDDEN],
            update: 0,
        }
    }

    fn outer(v: &[f32], p: &[f32], scale: f32, beta: f32, out: &mut [f32]) {
        let mnk = (VISIBLE, HIDDEN, BATCH);
        f32::gemm(mnk, scale, (v, 1, VISIBLE), (p, HIDDEN, 1), beta, (out, HIDDEN, 1));
    }

    fn update(&mut self) {
        let first = self.update * BATCH % ROWS * VISIBLE;
        let batch = &self.data[first..first + BATCH * VISIBLE];
        let sweep = self.update as u64;
        let scale = 1.0 / BATCH as f32;
        product(batch, &self.w, (BATCH, VISIBLE, HIDDEN), &mut self.mean);
        means(&mut self.mean, &self.c);
        Self::outer(batch, &self.mean, scale, 0.0, &mut self.gradient);
        let mut c = column_sums(&self.mean, HIDDEN);
        let mut b = column_sums(batch, VISIBLE);
        harmonium_kernels::transpose(&self.w, VISIBLE, HIDDEN, &mut self.wt);
        product(&self.h, &self.wt, (BATCH, HIDDEN, VISIBLE), &mut self.v);
        sample(&mut self.v, &self.b, sweep);
        // One product serves the sample and the means, as in the library.
        product(&self.v, &self.w, (BATCH, VISIBLE, HIDDEN), &mut self.mean);
        self.h.copy_from_slice(&self.mean);
        sample(&mut self.h, &self.c, sweep);
        means(&mut self.mean, &self.c);
        Self::outer(&self.v, &self.mean, -scale, 1.0, &mut self.gradient);
        c.iter_mut().zip(column_sums(&self.mean, HIDDEN)).for_each(|(a, b)| *a -= b);
        b.iter_mut().zip(column_sums(&self.v, VISIBLE)).for_each(|(a, b)| *a -= b);
        let rate = RATE;
        let gradient = &self.gradient;
        in_parts(&mut self.w, HIDDEN, |i, w| {
            let part = VISIBLE.div_ceil(rayon::current_num_threads()) * HIDDEN;
            w.iter_mut().zip(&gradient[i * part..]).for_each(|(w, g)| *w += rate * g);
        });
        self.b.iter_mut().zip(b).for_each(|(x, g)| *x += rate * scale * g);
        self.c.iter_mut().zip(c).for_each(|(x, g)| *x += rate * scale * g);
        self.update += 1;
    }
}

fn column_sums(x: &[f32], n: usize) -> Vec<f32> {
    let mut sums = vec![0.0; n];
    for row in x.chunks_exact(n) {
        sums.iter_mut().zip(row).for_each(|(s, x)| *s += x);
    }
    sums
}

/// The update to be measured: a machine of binary units, its data and the settings of its run.
pub struct Problem {
    words: Vec<u64>,
    machine: Machine<f32>,
    data: Data<f32>,
    batch: usize,
}

impl Problem {
    /// The usual size of an RBM on digits, with rows of independent bits.
    ///
    /// # Panics
    /// If the library rejects its data.
    #[expect(clippy::new_without_default, reason = "it has work to do")]
    pub fn new() -> Self {
        let words = Source::new(5).bits(ROWS, VISIBLE, 0.15);
        let machine =
            Machine::<f32>::rbm(Layer::new(Kind::Binary, VISIBLE), Layer::new(Kind::Binary, HIDDEN));
        let bits = Bits::from_words(ROWS, VISIBLE, words.clone()).expect("packed rows");
        let data = Data::new(machine.data(vec![Batch::Bits(bits)]).expect("rows that fit"));
        Self { words, machine, data, batch: BATCH }
    }

    /// The size of scikit-learn's example of digits, 64 × 100 with minibatches of 10, on bits or on values from 0 to 1:
    /// what an update costs beside its products.
    ///
    /// # Panics
    /// If the library rejects its data.
    pub fn small(values: bool) -> Self {
        let (rows, visible, hidden) = (1797, 64, 100);
        let mut source = Source::new(5);
        let words = source.bits(rows, visible, 0.3);
        let machine =
            Machine::<f32>::rbm(Layer::new(Kind::Binary, visible), Layer::new(Kind::Binary, hidden));
        let batch = if values {
            let grey = source.weights(rows * visible, 1.0).into_iter().map(|x| x.abs().min(1.0));
            Batch::Reals(Array2::from_shape_vec((rows, visible), grey.collect()).expect("whole rows"))
        } else {
            Batch::Bits(Bits::from_words(rows, visible, words.clone()).expect("packed rows"))
        };
        let data = Data::new(machine.data(vec![batch]).expect("rows that fit"));
        Self { words, machine, data, batch: 10 }
    }

    /// A run of the library's trainer: PCD-1 with the given rate, other settings by default, no evaluations. `plain`
    /// switches off what it does beyond the textbook: centred gradients and averaged parameters.
    ///
    /// # Panics
    /// If the library rejects its settings.
    pub fn trainer(&self, plain: bool) -> Trainer<'_, f32> {
        let params = TrainParams {
            seed: Some(1),
            estimator: Some(Estimator::Pcd { sweeps: Some(1), chains: Some(self.batch) }),
            batch: Some(self.batch),
            updates: Some(1 << 40),
            rate: Some(f64::from(RATE)),
            evaluate_every: Some(0),
            form: plain.then_some(Coordinates::Plain),
            average: plain.then_some(0),
            ..TrainParams::default()
        };
        let plan = params.plan(&self.machine, &self.data).expect("settings that fit");
        Trainer::new(self.machine.clone(), plan, &self.data).expect("a trainer")
    }
}

/// Runs with one and two threads.
pub fn run(budget: Duration) {
    let problem = Problem::new();
    for threads in [1, 2] {
        on_threads(threads, || {
            let mut trainer = problem.trainer(false);
            let mut dense = Dense::new(&problem.words);
            let times = medians(
                &mut [
                    Alternative::new("gemm", || (0..TURN).for_each(|_| dense.update())),
                    Alternative::new("trainer", || {
                        (0..TURN).for_each(|_| drop(trainer.update().expect("an update")));
                    }),
                ],
                budget,
            );
            println!(
                "PCD-1 update {VISIBLE}×{HIDDEN}, batch {BATCH}, {BATCH} chains, {threads} threads: gemm {:.2} ms, trainer {:.2} ms",
                times[0] * 1e3 / TURN as f64,
                times[1] * 1e3 / TURN as f64
            );
            ratio(&format!("pcd-update-t{threads}"), times[0] / times[1], 5.5);
        });
    }
}
