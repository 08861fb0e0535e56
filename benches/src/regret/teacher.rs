//! Teachers: machines with random parameters of moderate strength that can be normalised.

use harmonium::{Kind, Machine, Result};
use harmonium_kernels::{Key, Stream};
use ndarray::Array1;
use rand_distr::{Distribution, StandardNormal};

/// Standard deviation of the fields.
const FIELD: f64 = 0.5;
/// Factor by which couplings are reduced until the machine can be normalised, and once more for a margin.
const SHRINK: f64 = 0.9;
/// Shrinking steps after which a machine counts as one that cannot be normalised.
const STEPS: usize = 40;

/// A teacher and how it was made normalisable.
#[derive(Clone, Debug)]
pub struct Teacher {
    /// The machine.
    pub machine: Machine,
    /// By which its couplings were scaled.
    pub scale: f64,
}

/// A teacher of the given shape: fields of standard deviation 0.5 and weights that, taken between standardised units,
/// are normal with standard deviation `strength`/√n between layers and half of that inside one, n being the units of
/// the lower layer.
///
/// Where that cannot be normalised, couplings among unbounded units are scaled down; where that does not help, they
/// are made repulsive, and then fields of unbounded units negative.
///
/// # Errors
/// Why it cannot be normalised, when nothing helps.
pub fn teacher(blank: &Machine, strength: f64, seed: u64) -> Result<Teacher> {
    let mut refused = None;
    for (repulsive, low) in [(false, false), (true, false), (true, true)] {
        let drawn = drawn(blank, strength, seed, repulsive, low);
        let mut scale = 1.0;
        for _ in 0..STEPS {
            let machine = scaled(&drawn, scale);
            match check(&machine) {
                Ok(()) => {
                    // At the margin the tails are too long for any sampler.
                    let scale = if scale < 1.0 { scale * SHRINK } else { scale };
                    return Ok(Teacher { machine: scaled(&drawn, scale), scale });
                }
                Err(e) => refused = refused.or(Some(e)),
            }
            scale *= SHRINK;
        }
    }
    Err(refused.expect("at least one attempt"))
}

fn check(machine: &Machine) -> Result<()> {
    machine.members().iter().try_for_each(|m| m.layer.check())?;
    machine.check_normalisable()
}

fn unbounded(machine: &Machine, l: usize) -> bool {
    machine.layer(l).kind().states().is_none()
}

/// Typical standard deviation of a column of units of this kind.
fn spread(kind: Kind) -> f64 {
    match kind {
        Kind::Binary => 0.5,
        Kind::Potts { .. } => 0.47,
        Kind::Relu => 0.6,
        Kind::Binomial { n } => f64::from(n).sqrt() / 2.0,
        _ => 1.0,
    }
}

fn drawn(blank: &Machine, strength: f64, seed: u64, repulsive: bool, low: bool) -> Machine {
    let mut machine = blank.clone();
    let mut rng = Stream::new(Key { seed, purpose: 100, block: 0, sweep: 0 });
    let mut normal = |std: f64| -> f64 {
        let x: f64 = StandardNormal.sample(&mut rng);
        std * x
    };
    for l in 0..machine.len() {
        let low = low && unbounded(&machine, l);
        let layer = machine.layer_mut(l);
        let names = layer.kind().params();
        for (mut row, name) in layer.params_mut().rows_mut().into_iter().zip(names) {
            for p in &mut row {
                match name {
                    _ if name.starts_with("theta") && low => *p = (-1.0 - normal(FIELD).abs()) as f32,
                    _ if name.starts_with("theta") => *p = normal(FIELD) as f32,
                    _ if name.starts_with("gamma") => *p = (normal(0.15)).exp() as f32,
                    _ => {}
                }
            }
        }
    }
    for c in 0..machine.couplings().len() {
        let (a, b) = machine.couplings()[c].ends();
        let (lower, upper) = (machine.layer(a), machine.layer(b));
        let std = strength / (lower.len() as f64).sqrt() / spread(lower.kind()) / spread(upper.kind());
        let (q, both) = (lower.kind().columns(), unbounded(&machine, a) && unbounded(&machine, b));
        let w = machine.coupling_mut(c).w_mut();
        for ((i, j), w) in w.indexed_iter_mut() {
            let x = normal(if a == b { 0.5 * std } else { std });
            *w = if repulsive && both { -x.abs() as f32 } else { x as f32 };
            if a == b && i / q == j / q {
                *w = 0.0;
            }
        }
        if a == b {
            let upper = w.clone();
            w.indexed_iter_mut().filter(|((i, j), _)| i > j).for_each(|((i, j), w)| *w = upper[[j, i]]);
        }
    }
    machine
}

/// The machine with the couplings of unbounded units scaled, and its fields moved so that couplings act on the
/// deviations of units from their means: else strong weights only freeze them.
fn scaled(machine: &Machine, scale: f64) -> Machine {
    let mut out = machine.clone();
    let free = Machine::new(machine.members().to_vec(), vec![]).expect("members of a machine");
    for c in 0..machine.couplings().len() {
        let (a, b) = machine.couplings()[c].ends();
        if unbounded(machine, a) || unbounded(machine, b) {
            out.coupling_mut(c).w_mut().mapv_inplace(|w| (f64::from(w) * scale) as f32);
        }
    }
    let nothing = free.zeros(1);
    let mean = |l: usize| free.at(1.0).mean(l, &nothing).expect("every layer is held").row(0).to_owned();
    let means: Vec<_> = (0..machine.len()).map(mean).collect();
    for c in 0..machine.couplings().len() {
        let (a, b) = machine.couplings()[c].ends();
        let w = out.couplings()[c].w().clone();
        lower_fields(&mut out, a, &w.dot(&means[b]));
        if a != b {
            lower_fields(&mut out, b, &w.t().dot(&means[a]));
        }
    }
    out
}

fn lower_fields(machine: &mut Machine, l: usize, by: &Array1<f32>) {
    let layer = machine.layer_mut(l);
    let names = layer.kind().params();
    for (mut row, name) in layer.params_mut().rows_mut().into_iter().zip(names) {
        if name.starts_with("theta") {
            row -= by;
        }
    }
}
