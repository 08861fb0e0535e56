//! The walk: Gray-code steps through the states of the walked layers, sums over the traced ones.

use super::Moments;
use super::binary;
use super::gray::Gray;
use super::plan::Plan;
use super::problem::{Problem, Runner};
use crate::machine::{Parameters, clear_self};
use crate::{Machine, Real};
use ndarray::{Array1, Array2};
use rayon::prelude::*;

/// What to sum.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    /// Only ln Z.
    LogZ,
    /// First moments and the moments of all parameters.
    Stats,
    /// All second moments as well.
    Second,
}

/// States between two computations of the running sums from scratch: rounding stays below 1e-12.
pub(super) const REFRESH: u32 = 1 << 10;
/// States whose moments are added by one matrix product.
const CHUNK: usize = 128;

/// Sums of one block or of all, relative to `e^max`.
pub(super) struct Sum {
    pub(super) log_z: f64,
    max: f64,
    total: f64,
    first: Vec<f64>,
    stats: Vec<Vec<f64>>,
    gram: Array2<f64>,
    variance: Vec<f64>,
    order: Vec<(usize, usize)>,
    want: Want,
}

/// Walks all states.
pub(super) fn run(machine: &Machine<f64>, beta: f64, plan: &Plan, want: Want) -> Sum {
    let problem = Problem::new(machine, beta, plan);
    if want == Want::LogZ
        && let Some(log_z) = binary::log_z(&problem)
    {
        return Sum { log_z, ..Sum::zero(&problem, machine, want) };
    }
    let (held, blocks) = problem.blocks();
    let parts: Vec<Sum> = (0..blocks)
        .into_par_iter()
        .map(|b| {
            let mut sum = Sum::zero(&problem, machine, want);
            sum.walk(&problem, machine, held, b);
            sum
        })
        .collect();
    let mut total = Sum::zero(&problem, machine, want);
    for part in parts {
        total.absorb(part);
    }
    total.log_z = total.max + total.total.ln();
    total
}

impl Sum {
    fn zero(p: &Problem, machine: &Machine<f64>, want: Want) -> Self {
        let (width, rows) = match want {
            Want::LogZ => (0, 0),
            Want::Stats => (p.width, p.cross.nrows()),
            Want::Second => (p.width, p.width),
        };
        let stats = |&(l, _): &(usize, usize)| vec![0.0; machine.layer(l).params().len()];
        Self {
            log_z: 0.0,
            max: f64::NEG_INFINITY,
            total: 0.0,
            first: vec![0.0; width],
            stats: p.order.iter().map(stats).collect(),
            gram: Array2::zeros((rows, width)),
            variance: vec![0.0; width],
            order: p.order.clone(),
            want,
        }
    }

    /// Makes `max` at least `log_w` and returns `e^{log_w − max}`.
    fn relative_weight(&mut self, log_w: f64) -> f64 {
        if log_w > self.max {
            self.rescale((self.max - log_w).exp());
            self.max = log_w;
        }
        (log_w - self.max).exp()
    }

    fn rescale(&mut self, by: f64) {
        self.total *= by;
        if self.want != Want::LogZ {
            let lists = [&mut self.first, &mut self.variance].into_iter().chain(&mut self.stats);
            lists.flatten().for_each(|x| *x *= by);
            self.gram.mapv_inplace(|x| x * by);
        }
    }

    fn absorb(&mut self, mut part: Self) {
        if part.total == 0.0 {
            return;
        }
        let by = self.relative_weight(part.max);
        part.rescale(by);
        self.total += part.total;
        let lists = [&mut self.first, &mut self.variance].into_iter().chain(&mut self.stats).flatten();
        let more = [&part.first, &part.variance].into_iter().chain(&part.stats).flatten();
        lists.zip(more).for_each(|(a, b)| *a += b);
        self.gram += &part.gram;
    }

    fn walk(&mut self, p: &Problem, machine: &Machine<f64>, held: usize, block: usize) {
        let inner = &p.moving[held..];
        let mut gray = Gray::new(inner.iter().map(|&u| p.units[u].nodes.len()).collect());
        let mut runner = Runner::new(p, p.digits(block, held));
        // A block of few states needs no room for a full chunk.
        let states = inner.iter().fold(1usize, |n, &u| n.saturating_mul(p.units[u].nodes.len()));
        let mut chunk = Chunk::new(p, states.min(CHUNK));
        let mut since = 0;
        loop {
            if self.want == Want::LogZ {
                let weight = self.relative_weight(runner.log_weight());
                self.total += weight;
            } else {
                chunk.push(&mut runner);
                if chunk.len == CHUNK {
                    self.add_chunk(p, machine, &mut chunk);
                }
            }
            let Some((j, a)) = gray.step() else { break };
            runner.step(inner[j], a);
            since += 1;
            if since == REFRESH {
                since = 0;
                runner.refresh();
            }
        }
        if chunk.len > 0 {
            self.add_chunk(p, machine, &mut chunk);
        }
    }

    /// Adds the moments of the states of a chunk: means of the traced layers, then one matrix product.
    fn add_chunk(&mut self, p: &Problem, machine: &Machine<f64>, chunk: &mut Chunk) {
        let n = chunk.len;
        let ww = p.cross.nrows();
        let top = chunk.log_w[..n].iter().copied().fold(f64::NEG_INFINITY, f64::max);
        self.relative_weight(top);
        let mut weighted = Array2::zeros((n, self.gram.nrows()));
        for r in 0..n {
            let wt = (chunk.log_w[r] - self.max).exp();
            self.total += wt;
            let mut at = ww;
            for (k, layer) in p.traced.iter().enumerate() {
                let (from, to) = (at - ww, at - ww + layer.width());
                let inputs = &chunk.inputs.as_slice().expect("a new array")
                    [r * chunk.inputs.ncols() + from..r * chunk.inputs.ncols() + to];
                let dense = chunk.dense.as_slice_mut().expect("a new array");
                let row = r * p.width + at;
                layer.mean_row(inputs, &mut dense[row..row + layer.width()]);
                let stats = &mut self.stats[self.order.len() - p.traced.len() + k];
                layer.mean_stats_row(inputs, wt, stats);
                if self.want == Want::Second {
                    let mut v = vec![0.0; layer.width()];
                    layer.variance_row(inputs, &mut v);
                    let sums = &mut self.variance[at..at + layer.width()];
                    sums.iter_mut().zip(v).for_each(|(s, v)| *s += wt * v);
                }
                at += layer.width();
            }
            let mut first_unit = 0;
            for (k, &(l, _)) in self.order[..self.order.len() - p.traced.len()].iter().enumerate() {
                let layer = machine.layer(l);
                let values: Vec<f64> = (first_unit..first_unit + layer.len())
                    .map(|u| p.units[u].nodes[chunk.digits[[r, u]]].0)
                    .collect();
                layer.stats_row(&values, wt, &mut self.stats[k]);
                first_unit += layer.len();
            }
            for (c, first) in self.first.iter_mut().enumerate() {
                *first += wt * chunk.dense[[r, c]];
            }
            for c in 0..self.gram.nrows() {
                weighted[[r, c]] = wt * chunk.dense[[r, c]];
            }
        }
        let (rows, width) = self.gram.dim();
        let slice = "new arrays are in standard layout";
        f64::gemm(
            (rows, width, n),
            1.0,
            (weighted.as_slice().expect(slice), 1, rows),
            (chunk.dense.as_slice().expect(slice), width, 1),
            1.0,
            (self.gram.as_slice_mut().expect(slice), width, 1),
        );
        chunk.len = 0;
    }
}

impl Sum {
    /// The sums in the machine's order and normalised.
    pub(super) fn moments(self, machine: &Machine<f64>) -> Moments {
        let z = self.total;
        let place =
            |l: usize| self.order.iter().position(|&(k, _)| k == l).expect("every layer has a place");
        let columns = |l: usize| {
            let start = self.order[place(l)].1;
            start..start + machine.layer(l).width()
        };
        let layers = (0..machine.len()).map(|l| {
            let stats = self.stats[place(l)].iter().map(|t| t / z).collect();
            Array2::from_shape_vec(machine.layer(l).params().dim(), stats).expect("one per parameter")
        });
        let couplings = machine.couplings().iter().map(|c| {
            let (a, b) = c.ends();
            // The rows of the sums are the walked columns, and at least one end is walked.
            let (ca, cb) = (columns(a), columns(b));
            let walked = ca.end <= self.gram.nrows();
            let mut m = Array2::from_shape_fn((ca.len(), cb.len()), |(i, j)| {
                let (i, j) = (ca.start + i, cb.start + j);
                if walked { self.gram[[i, j]] } else { self.gram[[j, i]] }
            });
            m /= z;
            if c.is_lateral() {
                clear_self(&mut m, machine.layer(a).kind());
            }
            if let Some(mask) = c.mask() {
                m.indexed_iter_mut().filter(|((i, j), _)| !mask.get(*i, *j)).for_each(|(_, x)| *x = 0.0);
            }
            m
        });
        let stats = Parameters { layers: layers.collect(), couplings: couplings.collect() };
        let means = (0..machine.len())
            .map(|l| columns(l).map(|c| self.first[c] / z).collect::<Array1<f64>>())
            .collect();
        let second = (self.want == Want::Second).then(|| self.second(machine, z));
        Moments { log_z: self.log_z, means, stats, second }
    }

    fn second(&self, machine: &Machine<f64>, z: f64) -> Array2<f64> {
        let n = self.first.len();
        let mut joint = self.gram.mapv(|x| x / z);
        for &(l, start) in &self.order {
            let c = machine.layer(l).kind().columns();
            let width = machine.layer(l).width();
            for i in start..start + width {
                if c == 1 {
                    joint[[i, i]] += self.variance[i] / z;
                } else {
                    // A Potts unit is in one state: ⟨x_a x_b⟩ = δ_ab ⟨x_a⟩.
                    let unit = start + (i - start) / c * c;
                    for j in unit..unit + c {
                        joint[[i, j]] = if i == j { self.first[i] / z } else { 0.0 };
                    }
                }
            }
        }
        // From the walk's order of layers to the machine's.
        let old: Vec<usize> = (0..machine.len())
            .flat_map(|l| {
                let start = self.order.iter().find(|&&(k, _)| k == l).expect("every layer").1;
                start..start + machine.layer(l).width()
            })
            .collect();
        Array2::from_shape_fn((n, n), |(i, j)| joint[[old[i], old[j]]])
    }
}

/// States waiting for their moments.
struct Chunk {
    len: usize,
    log_w: Vec<f64>,
    inputs: Array2<f64>,
    dense: Array2<f64>,
    digits: Array2<usize>,
}

impl Chunk {
    fn new(p: &Problem, rows: usize) -> Self {
        Self {
            len: 0,
            log_w: vec![0.0; rows],
            inputs: Array2::zeros((rows, p.cross.ncols())),
            dense: Array2::zeros((rows, p.width)),
            digits: Array2::zeros((rows, p.units.len())),
        }
    }

    fn push(&mut self, runner: &mut Runner<'_>) {
        let r = self.len;
        self.log_w[r] = runner.log_weight();
        self.inputs.row_mut(r).iter_mut().zip(&runner.inputs).for_each(|(to, &x)| *to = x);
        self.digits.row_mut(r).iter_mut().zip(&runner.digits).for_each(|(to, &x)| *to = x);
        let mut dense = self.dense.row_mut(r);
        dense.fill(0.0);
        for (u, unit) in runner.p.units.iter().enumerate() {
            let (column, x) = unit.dense(runner.digits[u]);
            dense[column] = x;
        }
        self.len += 1;
    }
}
