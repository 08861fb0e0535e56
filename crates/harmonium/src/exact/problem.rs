//! A machine cut into walked and traced layers, and the running sums of a walk through it.

use super::plan::Plan;
use crate::{Kind, Layer, Machine};
use ndarray::Array2;

/// Walks are cut into at least this many blocks, whatever the number of threads: partial sums are then
/// added in the same order everywhere.
const BLOCKS: usize = 64;

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
        self.kind.dense(self.column, self.nodes[a].0)
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
    pub(super) order: Vec<(usize, usize)>,
    pub(super) width: usize,
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
    match layer.kind().one_hot() {
        Some(q) => p[[0, j * q as usize + x as usize]],
        None => {
            let mut t = vec![0.0; p.nrows()];
            layer.stats_row(&[x], 1.0, &mut t);
            t.iter().zip(p.column(j)).map(|(t, p)| t * p).sum()
        }
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
            // The field includes only the units before this one, so that each pair counts once.
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

    pub(super) fn step(&mut self, u: usize, a: usize) {
        let [from, to] = self.step_walked(u, a);
        if from.0 == to.0 {
            axpy(to.1 - from.1, &self.p.cross, to.0, &mut self.inputs);
        } else {
            axpy(-from.1, &self.p.cross, from.0, &mut self.inputs);
            axpy(to.1, &self.p.cross, to.0, &mut self.inputs);
        }
    }

    pub(super) fn log_weight(&mut self) -> f64 {
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
