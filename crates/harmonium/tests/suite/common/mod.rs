//! Shared by the tests: generic machines of every kind, and their twins in the oracle.
#![allow(dead_code, missing_docs, unreachable_pub)]

pub mod sampling;

use harmonium::{Kind, Layer, Machine, Real, States};
use harmonium_oracle as oracle;
use ndarray::Array2;

/// A small deterministic generator for test parameters (splitmix64), independent of the library's streams.
pub struct Dice(pub u64);

impl Dice {
    /// Uniform in [lo, hi).
    pub fn between(&mut self, lo: f64, hi: f64) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        lo + (hi - lo) * ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A layer with generic parameters: every θ differs from zero, every γ from one.
pub fn layer(kind: Kind, n: usize, dice: &mut Dice) -> Layer<f64> {
    let mut params = Layer::<f64>::new(kind, n).params().clone();
    for (mut row, name) in params.rows_mut().into_iter().zip(kind.params()) {
        let (lo, hi) = if name.starts_with("gamma") { (1.6, 2.4) } else { (-0.9, 0.7) };
        row.mapv_inplace(|_| dice.between(lo, hi));
    }
    Layer::with_params(kind, params).expect("generic parameters are allowed")
}

/// Whether a unit has infinitely many states.
pub fn is_unbounded(kind: Kind) -> bool {
    kind.states().is_none()
}

/// Whether it has infinitely many states that are counts, whose measure falls more slowly than a normal density.
pub fn is_unbounded_count(kind: Kind) -> bool {
    is_unbounded(kind) && kind.is_count()
}

/// Gives every weight a generic value of order one, or as large as normalisability allows.
pub fn fill_weights(machine: &mut Machine<f64>, dice: &mut Dice) {
    for c in 0..machine.couplings().len() {
        let (a, b) = machine.couplings()[c].ends();
        let (ka, kb) = (machine.layer(a).kind(), machine.layer(b).kind());
        let (lo, hi) = if is_unbounded(ka) && is_unbounded(kb) {
            if is_unbounded_count(ka) || is_unbounded_count(kb) { (-0.8, -0.1) } else { (-0.7, 0.7) }
        } else {
            (-1.1, 1.2)
        };
        let columns = machine.layer(a).kind().columns();
        let lateral = machine.couplings()[c].is_lateral();
        let w = machine.coupling_mut(c).w_mut();
        for i in 0..w.nrows() {
            for j in 0..w.ncols() {
                if !lateral {
                    w[[i, j]] = dice.between(lo, hi);
                } else if i / columns < j / columns {
                    w[[i, j]] = dice.between(0.7 * lo, 0.7 * hi);
                    w[[j, i]] = w[[i, j]];
                }
            }
        }
        machine.coupling_mut(c).apply_mask();
    }
}

/// Whether a pair of kinds with non-zero weights has a finite Z at all.
pub fn integrable(a: Kind, b: Kind) -> bool {
    let wild = |a: Kind, b: Kind| is_unbounded_count(a) && is_unbounded(b) && b.lowest() < 0.0;
    !wild(a, b) && !wild(b, a)
}

/// The same machine for the oracle.
pub fn twin<T: Real>(machine: &Machine<T>, beta: f64) -> oracle::Machine {
    let rows = |a: &Array2<T>| -> Vec<Vec<f64>> {
        a.rows().into_iter().map(|r| r.iter().map(|x| x.f64()).collect()).collect()
    };
    let kind = |k: Kind| match k {
        Kind::Binary => oracle::Kind::Binary,
        Kind::Spin => oracle::Kind::Spin,
        Kind::Potts { q } => oracle::Kind::Potts { q: q as usize },
        Kind::Gaussian => oracle::Kind::Gaussian,
        Kind::Relu => oracle::Kind::Relu,
        Kind::Drelu => oracle::Kind::DRelu,
        Kind::Binomial { n } => oracle::Kind::Binomial { n: n as usize },
        Kind::Poisson => oracle::Kind::Poisson,
        Kind::NegativeBinomial { shape, n } => {
            oracle::Kind::NegativeBinomial { shape: shape as usize, n: n as usize }
        }
        Kind::Ordinal { n } => oracle::Kind::Ordinal { n: n as usize },
        other => panic!("no oracle row for {other}"),
    };
    oracle::Machine {
        layers: machine
            .members()
            .iter()
            .map(|m| oracle::Layer { kind: kind(m.layer.kind()), params: rows(m.layer.params()) })
            .collect(),
        couplings: machine
            .couplings()
            .iter()
            .map(|c| oracle::Coupling { a: c.ends().0, b: c.ends().1, w: rows(c.w()) })
            .collect(),
        beta,
    }
}

/// Row `r` of `states` for the oracle: the dense values of the layers that are held.
pub fn clamps<T: Real>(machine: &Machine<T>, states: &States<T>, r: usize) -> oracle::Clamps {
    (0..machine.len())
        .map(|l| {
            let dense = machine.layer(l).dense(states.get(l)?);
            Some(dense.row(r).iter().map(|x| x.f64()).collect())
        })
        .collect()
}

/// A few states of the given layers, drawn from independent units.
pub fn some_states(machine: &Machine<f64>, layers: &[usize], rows: usize, seed: u64) -> States<f64> {
    let chains = harmonium::Chains::independent(machine, rows, seed, 99).expect("a proper machine");
    let mut states = chains.states().clone();
    for l in (0..machine.len()).filter(|l| !layers.contains(l)) {
        states.take(l);
    }
    states
}

/// |a − b| ≤ tol·max(1, |a|, |b|).
pub fn assert_close(a: f64, b: f64, tol: f64, what: &str) {
    let scale = 1f64.max(a.abs()).max(b.abs());
    assert!((a - b).abs() <= tol * scale, "{what}: {a:.16e} against {b:.16e}");
}
