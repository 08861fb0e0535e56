//! The machine as plain data, and its energy by definition.

use crate::layer::{Kind, Layer};

/// One dense vector of values per layer.
pub type State = Vec<Vec<f64>>;

/// For every layer, either the dense values it is held at or `None` when it is summed over.
pub type Clamps = Vec<Option<Vec<f64>>>;

/// A block of pairwise couplings.
///
/// Between two layers a ≠ b it adds −x_aᵀ W x_b to E; within one layer, a = b, it adds −½ xᵀWx and
/// W must be symmetric with a zero diagonal (for Potts: zero q × q blocks on the diagonal).
#[derive(Clone, Debug, PartialEq)]
pub struct Coupling {
    /// Index of the layer on the rows of `w`.
    pub a: usize,
    /// Index of the layer on the columns of `w`.
    pub b: usize,
    /// Weights: one row per dense column of layer a, one entry in it per dense column of layer b.
    pub w: Vec<Vec<f64>>,
}

impl Coupling {
    /// −x_aᵀ W x_b, or half of it within one layer.
    fn energy(&self, x: &[Vec<f64>]) -> f64 {
        let (x_a, x_b) = (&x[self.a], &x[self.b]);
        let row = |w: &Vec<f64>| w.iter().zip(x_b).map(|(w, x)| w * x).sum::<f64>();
        let product: f64 = self.w.iter().zip(x_a).map(|(w, x)| x * row(w)).sum();
        if self.a == self.b { -product / 2.0 } else { -product }
    }
}

/// Layers, couplings and an inverse temperature: p(x) = ν(x) e^{−βE(x)} / Z.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// The layers, in the order used by every [`State`] and [`Clamps`].
    pub layers: Vec<Layer>,
    /// Couplings; blocks on the same pair of layers add up.
    pub couplings: Vec<Coupling>,
    /// Inverse temperature. Multiplies E, never ln ν.
    pub beta: f64,
}

impl Machine {
    /// E(x): base energies and couplings, without β and without ν.
    pub fn energy(&self, x: &[Vec<f64>]) -> f64 {
        let layers: f64 = self.layers.iter().zip(x).map(|(l, x)| l.energy(x)).sum();
        let couplings: f64 = self.couplings.iter().map(|c| c.energy(x)).sum();
        layers + couplings
    }

    /// ln ν(x), the reference measure; −∞ outside the support.
    pub fn log_nu(&self, x: &[Vec<f64>]) -> f64 {
        self.layers.iter().zip(x).map(|(l, x)| l.log_nu(x)).sum()
    }

    /// ln ν(x) − βE(x) = ln p(x) + ln Z.
    pub fn log_weight(&self, x: &[Vec<f64>]) -> f64 {
        self.log_nu(x) - self.beta * self.energy(x)
    }

    /// Clamps that hold nothing.
    pub fn free(&self) -> Clamps {
        vec![None; self.layers.len()]
    }

    /// Panics with a reason when shapes, symmetry or γ > 0 are violated.
    ///
    /// Called before every sum, so a malformed machine never yields a number.
    pub fn check(&self) {
        assert!(self.beta.is_finite(), "beta must be finite");
        for (l, layer) in self.layers.iter().enumerate() {
            check_layer(l, layer, self.beta);
        }
        for (k, coupling) in self.couplings.iter().enumerate() {
            self.check_coupling(k, coupling);
        }
    }

    fn check_coupling(&self, k: usize, coupling: &Coupling) {
        let Coupling { a, b, w } = coupling;
        let (n_a, n_b) = (self.layers[*a].width(), self.layers[*b].width());
        assert_eq!(w.len(), n_a, "coupling {k}: rows");
        assert!(w.iter().all(|r| r.len() == n_b), "coupling {k}: columns");
        let finite = w.iter().flatten().all(|w| w.is_finite());
        assert!(finite, "coupling {k}: weights must be finite");
        if a != b {
            return;
        }
        let block = self.layers[*a].kind.columns_per_unit();
        for (i, row) in w.iter().enumerate() {
            for (j, &w_ij) in row.iter().enumerate() {
                assert_eq!(w_ij, w[j][i], "coupling {k}: symmetric");
                let same_unit = i / block == j / block;
                assert!(!same_unit || w_ij == 0.0, "coupling {k}: zero diagonal");
            }
        }
    }
}

fn check_layer(l: usize, layer: &Layer, beta: f64) {
    let Layer { kind, params } = layer;
    assert_eq!(params.len(), kind.n_params(), "layer {l}: parameter arrays");
    let width = layer.width();
    assert!(params.iter().all(|p| p.len() == width), "layer {l}: widths");
    let finite = params.iter().flatten().all(|p| p.is_finite());
    assert!(finite, "layer {l}: parameters must be finite");
    let columns = kind.columns_per_unit();
    assert!(columns > 0 && width.is_multiple_of(columns), "layer {l}: n·q columns");
    let gammas = match kind {
        Kind::Gaussian | Kind::Relu => &params[1..],
        Kind::DRelu => &params[2..],
        _ => &[],
    };
    let confined = gammas.iter().flatten().all(|gamma| beta * gamma > 0.0);
    assert!(confined, "layer {l}: βγ must be positive");
}
