//! ln Z, moments and the gradient of ln Z, as averages over all states.

use crate::machine::{Clamps, Machine, State};
use crate::nodes::for_each_state;
use crate::sums::WeightedSums;

/// Averages under p(x), or under p(x | clamped values).
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    /// ln Σ ν e^{−βE} over the free units: ln Z when nothing is clamped, else −F(clamped values).
    pub log_z: f64,
    /// ⟨x⟩ for every layer and dense column.
    pub first: Vec<Vec<f64>>,
    /// ⟨x xᵀ⟩ over the dense columns of all layers, one layer after the other.
    pub second: Vec<Vec<f64>>,
    /// Expected [`Layer::statistics`](crate::Layer::statistics): `[layer][parameter array][column]`.
    pub statistics: Vec<Vec<Vec<f64>>>,
    /// Row (and column) of `second` at which each layer starts.
    pub offsets: Vec<usize>,
}

/// Derivatives of a scalar by every number in a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Gradient {
    /// By the layers' parameters: `[layer][parameter array][column]`.
    pub params: Vec<Vec<Vec<f64>>>,
    /// By the weights: `[coupling][row][column]`, see [`Moments::gradient`] for lateral ones.
    pub couplings: Vec<Vec<Vec<f64>>>,
}

impl Moments {
    /// ⟨x_a x_bᵀ⟩ of layers a and b (which may be the same).
    pub fn second_block(&self, a: usize, b: usize) -> Vec<Vec<f64>> {
        let (rows, columns) = (self.range(a), self.range(b));
        let row = |i: usize| self.second[i][columns.clone()].to_vec();
        rows.map(row).collect()
    }

    /// Joint covariance ⟨x xᵀ⟩ − ⟨x⟩⟨x⟩ᵀ, laid out like `second`.
    pub fn covariance(&self) -> Vec<Vec<f64>> {
        let mean = self.first.concat();
        let mut covariance = self.second.clone();
        for (row, mean_i) in covariance.iter_mut().zip(&mean) {
            for (c, mean_j) in row.iter_mut().zip(&mean) {
                *c -= mean_i * mean_j;
            }
        }
        covariance
    }

    /// ∂(ln Σ ν e^{−βE}) / ∂(every parameter) = −β⟨∂E/∂param⟩.
    ///
    /// A lateral matrix is symmetric, so its entries (i,j) and (j,i) are one parameter: both hold the
    /// derivative by their common value, β⟨x_i x_j⟩. Entries within one unit, fixed at zero, get 0.
    pub fn gradient(&self, machine: &Machine) -> Gradient {
        let mut params = self.statistics.clone();
        let numbers = params.iter_mut().flatten().flatten();
        numbers.for_each(|s| *s *= machine.beta);
        let mut couplings = vec![];
        for c in &machine.couplings {
            let mut block = self.second_block(c.a, c.b);
            let columns = machine.layers[c.a].kind.columns_per_unit();
            for (i, row) in block.iter_mut().enumerate() {
                for (j, xx) in row.iter_mut().enumerate() {
                    let same_unit = c.a == c.b && i / columns == j / columns;
                    *xx *= if same_unit { 0.0 } else { machine.beta };
                }
            }
            couplings.push(block);
        }
        Gradient { params, couplings }
    }

    fn range(&self, layer: usize) -> std::ops::Range<usize> {
        let start = self.offsets[layer];
        start..start + self.first[layer].len()
    }
}

impl Machine {
    /// ln Z = ln Σ_x ν(x) e^{−βE(x)} over all units.
    pub fn log_z(&self) -> f64 {
        self.log_sum(&self.free())
    }

    /// ln Σ ν e^{−βE} over the units that `clamps` leaves free, ν of the clamped ones included.
    pub fn log_sum(&self, clamps: &Clamps) -> f64 {
        self.average(clamps, 0, |_, _| ()).0
    }

    /// Moments under p(x).
    pub fn moments(&self) -> Moments {
        self.moments_given(&self.free())
    }

    /// ∂(ln Z) / ∂(every parameter).
    pub fn grad_log_z(&self) -> Gradient {
        self.moments().gradient(self)
    }

    /// The average of any `n` functions of the state under p(x | clamps), after ln Σ ν e^{−βE}.
    ///
    /// `f` writes the functions' values at a state into its second argument.
    pub fn average(
        &self,
        clamps: &Clamps,
        n: usize,
        mut f: impl FnMut(&State, &mut [f64]),
    ) -> (f64, Vec<f64>) {
        let mut sums = WeightedSums::new(n);
        let mut buffer = vec![0.0; n];
        for_each_state(self, clamps, |x, log_weight| {
            sums.add(log_weight, &mut buffer, |buffer| f(x, buffer));
        });
        let averages = if n == 0 { vec![] } else { sums.averages() };
        (sums.log_total(), averages)
    }

    /// Moments under p(x | clamps). Clamped layers appear in them with their clamped values.
    pub fn moments_given(&self, clamps: &Clamps) -> Moments {
        let widths: Vec<usize> = self.layers.iter().map(|l| l.width()).collect();
        let width: usize = widths.iter().sum();
        let n_params = |layer: &crate::Layer| layer.kind.n_params() * layer.width();
        let n_statistics: usize = self.layers.iter().map(n_params).sum();

        let n = width + width * width + n_statistics;
        let (log_z, averages) = self.average(clamps, n, |x, out| {
            let (first, rest) = out.split_at_mut(width);
            let (second, statistics) = rest.split_at_mut(width * width);
            for (slot, value) in first.iter_mut().zip(x.iter().flatten()) {
                *slot = *value;
            }
            for (row, x_i) in second.chunks_mut(width).zip(first.iter()) {
                for (xx, x_j) in row.iter_mut().zip(first.iter()) {
                    *xx = x_i * x_j;
                }
            }
            let mut slots = statistics.iter_mut();
            for (layer, x) in self.layers.iter().zip(x) {
                for k in 0..layer.kind.n_params() {
                    for (&x, slot) in x.iter().zip(&mut slots) {
                        *slot = layer.statistic(k, x);
                    }
                }
            }
        });

        let mut numbers = averages.into_iter();
        let mut take = |n: usize| numbers.by_ref().take(n).collect::<Vec<f64>>();
        let first = widths.iter().map(|&w| take(w)).collect();
        let second = (0..width).map(|_| take(width)).collect();
        let mut statistics = vec![];
        for layer in &self.layers {
            let arrays = 0..layer.kind.n_params();
            statistics.push(arrays.map(|_| take(layer.width())).collect());
        }
        let before = |l: usize| widths[..l].iter().sum();
        let offsets = (0..widths.len()).map(before).collect();
        Moments { log_z, first, second, statistics, offsets }
    }
}
