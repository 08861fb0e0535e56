//! The walk itself: Gray-code steps through the states of the walked layers, sums over the traced ones.

use super::Moments;
use super::binary;
use super::plan::Plan;
use crate::machine::{Parameters, clear_self};
use crate::{Kind, Layer, Machine, Real};
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

/// Walks are cut into at least this many blocks, whatever the number of threads: partial sums are then
/// added in the same order everywhere.
const BLOCKS: usize = 64;
/// States between two computations of the running sums from scratch: rounding stays below 1e-12.
pub(super) const REFRESH: u32 = 1 << 10;
/// States whose moments are added by one matrix product.
const CHUNK: usize = 128;

/// A unit that is walked.
pub(super) struct Walked {
    /// First of its columns among the walked ones.
    pub(super) column: usize,
    kind: Kind,
    /// Values with the logarithm of their weight: the unit's own energy and measure.
    pub(super) nodes: Vec<(f64, f64)>,
}

impl Walked {
    /// The column and its value when the unit is at node `a`.
    pub(super) fn dense(&self, a: usize) -> (usize, f64) {
        match self.kind {
            Kind::Potts { .. } => (self.column + self.nodes[a].0 as usize, 1.0),
            _ => (self.column, self.nodes[a].0),
        }
    }
}

/// A machine cut into walked and traced layers; β is in all numbers.
pub(super) struct Problem {
    pub(super) units: Vec<Walked>,
    /// Units with more than one state, slowest first.
    pub(super) moving: Vec<usize>,
    /// Weights from walked to traced columns.
    pub(super) cross: Array2<f64>,
    /// Weights among the walked columns, where there are any.
    pub(super) inner: Option<Array2<f64>>,
    pub(super) traced: Vec<Layer<f64>>,
    /// (layer, first column) in the walk's order of columns: walked layers first.
    order: Vec<(usize, usize)>,
    width: usize,
}

impl Problem {
    pub(super) fn new(machine: &Machine<f64>, beta: f64, plan: &Plan) -> Self {
        let walked: Vec<usize> = plan.walked.iter().map(|&(l, _)| l).collect();
        let mut width = 0;
        let order: Vec<_> = walked
            .iter()
            .chain(&plan.traced)
            .map(|&l| {
                width += machine.layer(l).width();
                (l, width - machine.layer(l).width())
            })
            .collect();
        let ww: usize = walked.iter().map(|&l| machine.layer(l).width()).sum();
        let at = |l: usize| order.iter().find(|&&(k, _)| k == l).expect("every layer has a place").1;
        let mut cross = Array2::zeros((ww, width - ww));
        let mut inner = Array2::zeros((ww, ww));
        let mut has_inner = false;
        for c in machine.couplings() {
            let (a, b) = c.ends();
            for ((i, j), &w) in c.w().indexed_iter() {
                let (i, j, w) = (at(a) + i, at(b) + j, beta * w);
                match (i < ww, j < ww) {
                    (true, true) => {
                        has_inner = true;
                        (inner[[i, j]], inner[[j, i]]) = (w, w);
                    }
                    (true, false) => cross[[i, j - ww]] = w,
                    (false, true) => cross[[j, i - ww]] = w,
                    (false, false) => unreachable!("traced layers are independent"),
                }
            }
        }
        let mut units = Vec::new();
        for (l, nodes) in &plan.walked {
            let layer = machine.layer(*l).tempered(beta);
            for (j, nodes) in nodes.iter().enumerate() {
                let nodes = nodes.iter().map(|&(x, lw)| (x, lw + own(&layer, j, x))).collect();
                let column = at(*l) + j * layer.kind().columns();
                units.push(Walked { column, kind: layer.kind(), nodes });
            }
        }
        let moving = (0..units.len()).filter(|&u| units[u].nodes.len() > 1).collect();
        let traced = plan.traced.iter().map(|&l| machine.layer(l).tempered(beta)).collect();
        Self { units, moving, cross, inner: has_inner.then_some(inner), traced, order, width }
    }

    /// How many of the moving units are held still inside a block, and the number of blocks.
    pub(super) fn blocks(&self) -> (usize, usize) {
        let mut blocks = 1;
        let mut held = 0;
        while blocks < BLOCKS && held < self.moving.len() {
            blocks *= self.units[self.moving[held]].nodes.len();
            held += 1;
        }
        (held, blocks)
    }

    /// The digits of all units at the start of a block.
    pub(super) fn digits(&self, mut block: usize, held: usize) -> Vec<usize> {
        let mut digits = vec![0; self.units.len()];
        for &u in &self.moving[..held] {
            digits[u] = block % self.units[u].nodes.len();
            block /= self.units[u].nodes.len();
        }
        digits
    }
}

/// $\sum_k \eta_k t_k(x)$ of unit `j`.
fn own(layer: &Layer<f64>, j: usize, x: f64) -> f64 {
    let p = layer.params();
    match layer.kind() {
        Kind::Potts { q } => p[[0, j * q as usize + x as usize]],
        _ => {
            let mut t = [0.0; 4];
            layer.stats_row(&[x], 1.0, &mut t[..p.nrows()]);
            t.iter().zip(p.column(j)).map(|(t, p)| t * p).sum()
        }
    }
}

/// Digits in reflected mixed-radix Gray order: each step changes one digit by one (Knuth, TAOCP 7.2.1.1, H).
pub(super) struct Gray {
    radix: Vec<usize>,
    digit: Vec<usize>,
    up: Vec<bool>,
    focus: Vec<usize>,
}

impl Gray {
    pub(super) fn new(radix: Vec<usize>) -> Self {
        let n = radix.len();
        Self { radix, digit: vec![0; n], up: vec![true; n], focus: (0..=n).collect() }
    }

    /// The position that changes and its new digit, or `None` at the end.
    pub(super) fn step(&mut self) -> Option<(usize, usize)> {
        let j = std::mem::replace(&mut self.focus[0], 0);
        if j == self.radix.len() {
            return None;
        }
        self.digit[j] = if self.up[j] { self.digit[j] + 1 } else { self.digit[j] - 1 };
        let now = self.digit[j];
        if now == 0 || now == self.radix[j] - 1 {
            self.up[j] = !self.up[j];
            self.focus[j] = self.focus[j + 1];
            self.focus[j + 1] = j + 1;
        }
        Some((j, now))
    }
}

/// The running sums of one block.
pub(super) struct Runner<'p> {
    pub(super) p: &'p Problem,
    pub(super) digits: Vec<usize>,
    /// Log-weight of the walked units.
    pub(super) log_w: f64,
    /// Field of the walked columns on each other.
    field: Vec<f64>,
    /// Inputs of the traced columns.
    pub(super) inputs: Vec<f64>,
    scratch: Vec<f64>,
}

impl<'p> Runner<'p> {
    pub(super) fn new(p: &'p Problem, digits: Vec<usize>) -> Self {
        let (ww, wt) = p.cross.dim();
        let mut r = Self {
            p,
            digits,
            log_w: 0.0,
            field: vec![0.0; ww],
            inputs: vec![0.0; wt],
            scratch: vec![0.0; wt],
        };
        r.refresh();
        r
    }

    /// All sums from scratch.
    pub(super) fn refresh(&mut self) {
        self.inputs.fill(0.0);
        self.field.fill(0.0);
        self.log_w = 0.0;
        for (u, unit) in self.p.units.iter().enumerate() {
            let a = self.digits[u];
            let (column, x) = unit.dense(a);
            // Half of the inner weights is met from each side: the field holds the units before this one.
            self.log_w += unit.nodes[a].1 + x * self.field[column];
            self.add(column, x);
        }
    }

    fn add(&mut self, column: usize, x: f64) {
        axpy(x, &self.p.cross, column, &mut self.inputs);
        if let Some(inner) = &self.p.inner {
            axpy(x, inner, column, &mut self.field);
        }
    }

    /// Moves unit `u` to node `a`, but for the inputs.
    pub(super) fn step_walked(&mut self, u: usize, a: usize) -> [(usize, f64); 2] {
        let unit = &self.p.units[u];
        let old = std::mem::replace(&mut self.digits[u], a);
        let (from, to) = (unit.dense(old), unit.dense(a));
        self.log_w += unit.nodes[a].1 - unit.nodes[old].1;
        if let Some(inner) = &self.p.inner {
            self.log_w += to.1 * self.field[to.0] - from.1 * self.field[from.0];
            axpy(-from.1, inner, from.0, &mut self.field);
            axpy(to.1, inner, to.0, &mut self.field);
        }
        [from, to]
    }

    fn step(&mut self, u: usize, a: usize) {
        let [from, to] = self.step_walked(u, a);
        if from.0 == to.0 {
            axpy(to.1 - from.1, &self.p.cross, to.0, &mut self.inputs);
        } else {
            axpy(-from.1, &self.p.cross, from.0, &mut self.inputs);
            axpy(to.1, &self.p.cross, to.0, &mut self.inputs);
        }
    }

    fn log_weight(&mut self) -> f64 {
        let (mut at, mut sum) = (0, self.log_w);
        for layer in &self.p.traced {
            let inputs = &self.inputs[at..at + layer.width()];
            sum += layer.cgf_row(inputs, &mut self.scratch[..layer.width()]);
            at += layer.width();
        }
        sum
    }
}

/// `y ← y + a · row of m`.
fn axpy(a: f64, m: &Array2<f64>, row: usize, y: &mut [f64]) {
    let n = m.ncols();
    let row = &m.as_slice().expect("weights are in standard layout")[row * n..(row + 1) * n];
    y.iter_mut().zip(row).for_each(|(y, w)| *y += a * w);
}

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
    if want == Want::LogZ {
        if let Some(log_z) = binary::log_z(&problem) {
            return Sum { log_z, ..Sum::zero(&problem, machine, want) };
        }
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
    fn weigh(&mut self, log_w: f64) -> f64 {
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
        let by = self.weigh(part.max);
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
        let mut chunk = Chunk::new(p);
        let mut since = 0;
        loop {
            if self.want == Want::LogZ {
                let weight = self.weigh(runner.log_weight());
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
        self.weigh(top);
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
    fn new(p: &Problem) -> Self {
        Self {
            len: 0,
            log_w: vec![0.0; CHUNK],
            inputs: Array2::zeros((CHUNK, p.cross.ncols())),
            dense: Array2::zeros((CHUNK, p.width)),
            digits: Array2::zeros((CHUNK, p.units.len())),
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
