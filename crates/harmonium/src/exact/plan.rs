//! Which layers to walk, over which states, and how long that takes.

use super::quadrature;
use crate::units::Tail;
use crate::{Error, Layer, Machine, Result, Role};

/// The states of one walked unit: values with the logarithms of their weights.
pub(super) type Nodes = Vec<(f64, f64)>;

/// Most free layers of a machine: every subset of them is tried as the traced ones.
const MAX_LAYERS: usize = 12;

/// A walk: the chosen layers with the nodes of their units, and the layers traced out analytically.
pub(super) struct Plan {
    /// Layers walked, each with the nodes of its units. A clamped unit has one node.
    pub(super) walked: Vec<(usize, Vec<Nodes>)>,
    /// Layers traced out: independent of each other given the walked ones.
    pub(super) traced: Vec<usize>,
    /// Number of states of the walk.
    pub(super) states: f64,
}

impl Plan {
    /// The cheapest walk of the machine, with the layers that have values in `fixed` clamped to them.
    pub(super) fn new(machine: &Machine<f64>, beta: f64, fixed: &[Option<Vec<f64>>]) -> Result<Self> {
        machine.check_normalisable()?;
        check_beta(machine, beta, fixed)?;
        for l in machine.with_role(Role::Condition) {
            if fixed[l].is_none() {
                let why = format!(
                    "layer {} conditions the machine and must be given",
                    machine.members()[l].name
                );
                return Err(Error::Undefined { what: "Z without its condition", why });
            }
        }
        let free = fixed.iter().filter(|f| f.is_none()).count();
        if free > MAX_LAYERS {
            let why =
                format!("{free} layers are free, and plans for more than {MAX_LAYERS} are not searched");
            return Err(Error::Undefined { what: "exact enumeration", why });
        }
        let finite = |l: usize| machine.layer(l).kind().states().is_some();
        // Quadrature only where no walk over finitely many states exists.
        match Self::cheapest(machine, beta, fixed, finite)? {
            Some(plan) => Ok(plan),
            None => {
                let plan = Self::cheapest(machine, beta, fixed, |_| true)?;
                Ok(plan.expect("walking every layer is always a plan"))
            }
        }
    }

    /// The cheapest walk over layers that may be walked.
    fn cheapest(
        machine: &Machine<f64>,
        beta: f64,
        fixed: &[Option<Vec<f64>>],
        may_walk: impl Fn(usize) -> bool,
    ) -> Result<Option<Self>> {
        let free: Vec<usize> = (0..machine.len()).filter(|&l| fixed[l].is_none()).collect();
        let mut best: Option<Self> = None;
        // The set of layers is small: try every subset of the free ones as the traced layers.
        for subset in 0..1u64 << free.len() {
            let traced: Vec<usize> =
                free.iter().enumerate().filter(|(i, _)| subset >> i & 1 == 1).map(|(_, &l)| l).collect();
            let walked_free = free.iter().filter(|l| !traced.contains(l));
            if !machine.independent(&traced) || !walked_free.copied().all(&may_walk) {
                continue;
            }
            let mut states = 1.0;
            let mut walked = Vec::new();
            for l in (0..machine.len()).filter(|l| !traced.contains(l)) {
                let nodes = match &fixed[l] {
                    Some(x) => x.iter().map(|&x| vec![(x, log_measure(machine.layer(l), x))]).collect(),
                    None => nodes(machine, l, beta, fixed)?,
                };
                states *= nodes.iter().map(|n| n.len() as f64).product::<f64>();
                walked.push((l, nodes));
            }
            let plan = Self { walked, traced, states };
            if best.as_ref().is_none_or(|b| plan.cost(machine) < b.cost(machine)) {
                best = Some(plan);
            }
        }
        Ok(best)
    }

    /// Nanoseconds on one thread, from measured costs per state and traced column.
    pub(super) fn cost(&self, machine: &Machine<f64>) -> f64 {
        let per_state: f64 = self
            .traced
            .iter()
            .map(|&l| machine.layer(l).kind().cgf_cost() * machine.layer(l).width() as f64)
            .sum();
        self.states * (20.0 + per_state)
    }
}

fn check_beta(machine: &Machine<f64>, beta: f64, fixed: &[Option<Vec<f64>>]) -> Result<()> {
    if !beta.is_finite() || beta < 0.0 {
        return Err(Error::value("beta", "a finite number ≥ 0", beta));
    }
    let infinite = |&l: &usize| {
        beta == 0.0 && fixed[l].is_none() && !machine.layer(l).kind().tail().is_finite_at_zero()
    };
    match (0..machine.len()).find(infinite) {
        Some(l) => {
            let (kind, name) = (machine.layer(l).kind(), &machine.members()[l].name);
            let why = format!("at β = 0 nothing holds the {kind} units of {name}");
            Err(Error::NotNormalisable { why })
        }
        None => Ok(()),
    }
}

fn nodes(machine: &Machine<f64>, l: usize, beta: f64, fixed: &[Option<Vec<f64>>]) -> Result<Vec<Nodes>> {
    let layer = machine.layer(l);
    let kind = layer.kind();
    // No catch-all: a new tail needs nodes of its own.
    match kind.tail() {
        Tail::Bounded => {
            let states = kind.states().expect("a bounded unit has finitely many states");
            let one = (0..states).map(|a| kind.value(a)).map(|x| (x, log_measure(layer, x))).collect();
            Ok(vec![one; layer.len()])
        }
        Tail::Quadratic => quadrature::reals(machine, l, beta, fixed),
        Tail::Factorial => Ok(quadrature::counts(machine, l, beta, fixed)),
    }
}

fn log_measure(layer: &Layer<f64>, x: f64) -> f64 {
    layer.log_measure_row(&[x])
}
