//! Independent draws from the exact distribution of a small machine.

use super::gray::Gray;
use super::plan::Plan;
use super::problem::{Problem, Runner};
use super::walk::REFRESH;
use crate::machine::Decoupled;
use crate::units::Form;
use crate::{Error, Key, Machine, Result, States};
use ndarray::Array2;
use rayon::prelude::*;

/// The probabilities of all states of the walked layers; the others are drawn given these.
pub(crate) struct Draws {
    machine: Machine<f64>,
    /// The machine that is walked, in coordinates that make coupled Gaussian units independent.
    decoupled: Option<Decoupled<f64>>,
    plan: Plan,
    /// States of each unit that moves, in the order of [`Problem::moving`].
    radix: Vec<usize>,
    held: usize,
    /// Sums of the weights up to and with each state, block after block in the order of the walk.
    upto: Vec<f64>,
}

impl Draws {
    /// Estimated seconds to compute the weights of all states; `None` where they are not finitely many.
    pub(crate) fn seconds(machine: &Machine<f64>) -> Result<Option<f64>> {
        let decoupled = machine.decoupled(|_| true);
        let machine = decoupled.as_ref().map_or(machine, |d| &d.machine);
        match Plan::new(machine, 1.0, &vec![None; machine.len()]) {
            Ok(plan) => Ok(is_finite(machine, &plan).then(|| 1e-9 * plan.cost(machine))),
            Err(Error::Undefined { .. }) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Computes the weights of all states of a machine for which [`seconds`](Self::seconds) gives a time.
    pub(crate) fn new(machine: Machine<f64>) -> Result<Self> {
        let decoupled = machine.decoupled(|_| true);
        let walked = decoupled.as_ref().map_or(&machine, |d| &d.machine);
        let plan = Plan::new(walked, 1.0, &vec![None; machine.len()])?;
        assert!(is_finite(walked, &plan), "a finite set of states");
        let problem = Problem::new(walked, 1.0, &plan);
        let (held, blocks) = problem.blocks();
        let parts: Vec<Vec<f64>> =
            (0..blocks).into_par_iter().map(|b| log_weights(&problem, held, b)).collect();
        let top = parts.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut sum = 0.0;
        let add = |log_w: f64| {
            sum += (log_w - top).exp();
            sum
        };
        let upto = parts.into_iter().flatten().map(add).collect();
        let radix = problem.moving.iter().map(|&u| problem.units[u].nodes.len()).collect();
        Ok(Self { machine, decoupled, plan, radix, held, upto })
    }

    /// The machine.
    pub(crate) fn machine(&self) -> &Machine<f64> {
        &self.machine
    }

    /// One configuration of all layers for each uniform number: it picks the state of the walked layers, and the traced
    /// layers are drawn given them from the streams of `key`.
    ///
    /// # Errors
    /// Only for broken invariants.
    pub(crate) fn draw(&self, uniforms: &[f64], key: Key) -> Result<States<f64>> {
        let total = self.upto.last().copied().unwrap_or(1.0);
        let walked: Vec<_> = self.plan.walked.iter().collect();
        let counts: Vec<usize> = walked.iter().map(|(_, nodes)| nodes.len()).collect();
        let mut values: Vec<Array2<f64>> =
            counts.iter().map(|&n| Array2::zeros((uniforms.len(), n))).collect();
        for (r, u) in uniforms.iter().enumerate() {
            let state = self.upto.partition_point(|&x| x <= u * total).min(self.upto.len() - 1);
            let mut digits = self.digits(state).into_iter();
            for (values, (_, nodes)) in values.iter_mut().zip(&walked) {
                for (j, nodes) in nodes.iter().enumerate() {
                    let digit = if nodes.len() > 1 { digits.next().expect("one per unit") } else { 0 };
                    values[[r, j]] = nodes[digit].0;
                }
            }
        }
        let mut states = States::empty(self.machine.len(), uniforms.len());
        for ((l, _), values) in walked.iter().zip(values) {
            states.set(*l, self.machine.layer(*l).batch(values.view())?);
        }
        let model = self.decoupled.as_ref().map_or(&self.machine, |d| &d.machine).at(1.0);
        for &l in &self.plan.traced {
            let key = Key { purpose: key.purpose << 8 | l as u32 & 0xff, ..key };
            let x = model.sample(l, &states, key)?;
            states.set(l, x);
        }
        Ok(match &self.decoupled {
            Some(d) => d.states_of_x(&states),
            None => states,
        })
    }

    /// The nodes of the moving units at a place of the walk.
    fn digits(&self, state: usize) -> Vec<usize> {
        let inside: usize = self.radix[self.held..].iter().product();
        let (mut block, mut place) = (state / inside, state % inside);
        let mut digits = Vec::with_capacity(self.radix.len());
        for &n in &self.radix[..self.held] {
            digits.push(block % n);
            block /= n;
        }
        // Reflected Gray order: a digit runs backwards whenever those above it make an odd number.
        for &n in &self.radix[self.held..] {
            let (digit, above) = (place % n, place / n);
            digits.push(if above.is_multiple_of(2) { digit } else { n - 1 - digit });
            place = above;
        }
        digits
    }
}

/// Quadrature nodes are not states.
fn is_finite(machine: &Machine<f64>, plan: &Plan) -> bool {
    plan.walked.iter().all(|&(l, _)| machine.layer(l).kind().form() != Form::Reals)
}

/// The log-weight of every state of a block, in the order of the walk.
fn log_weights(p: &Problem, held: usize, block: usize) -> Vec<f64> {
    let inner = &p.moving[held..];
    let mut gray = Gray::new(inner.iter().map(|&u| p.units[u].nodes.len()).collect());
    let mut runner = Runner::new(p, p.digits(block, held));
    let mut out = vec![runner.log_weight()];
    while let Some((j, a)) = gray.step() {
        runner.step(inner[j], a);
        if out.len().is_multiple_of(REFRESH as usize) {
            runner.refresh();
        }
        out.push(runner.log_weight());
    }
    out
}
