//! The base model of an annealing path: independent units matched to the data.

use crate::units::{Form, Marginal};
use crate::{Batch, Error, Layer, Machine, Real, Result, Role, States};

/// Layers without couplings, whose ln Z is known: $\ln Z_0 = \sum_l \Gamma_l(0)$.
#[derive(Clone, Debug, PartialEq)]
pub struct Base<T: Real = f32> {
    layers: Vec<Layer<T>>,
}

impl<T: Real> Base<T> {
    /// The machine's visible layers with all couplings cut; hidden units with θ = 0 and their own γ.
    pub fn own(machine: &Machine<T>) -> Self {
        let layers = machine.members().iter().map(|m| match m.role {
            Role::Hidden => unbiased(&m.layer),
            _ => m.layer.clone(),
        });
        Self { layers: layers.collect() }
    }

    /// The visible units matched to the marginals of the data (smoothed by a few pseudo-rows), so that the path starts
    /// near the machine's distribution: the base-rate model.
    ///
    /// Bounded units take the mean, Gaussian and dReLU units mean and variance, ReLU units the mean with their
    /// own γ. Hidden and conditioning layers are as in [`own`](Self::own).
    ///
    /// # Errors
    /// Data without rows or without a visible layer.
    pub fn of_data(machine: &Machine<T>, data: &States<T>) -> Result<Self> {
        let mut base = Self::own(machine);
        if data.rows() == 0 {
            return Err(Error::shape("rows of the data", "at least one", 0));
        }
        for l in machine.with_role(Role::Visible) {
            let x = data.layer(l)?;
            machine.layer(l).check_batch(x)?;
            base.layers[l] = matched(machine.layer(l), x);
        }
        Ok(base)
    }

    /// Any layers.
    ///
    /// # Errors
    /// When kinds or sizes differ from the machine's.
    pub fn new(machine: &Machine<T>, layers: Vec<Layer<T>>) -> Result<Self> {
        machine.between(&layers, 0.0)?;
        layers.iter().try_for_each(Layer::check)?;
        Ok(Self { layers })
    }

    /// The layers.
    pub fn layers(&self) -> &[Layer<T>] {
        &self.layers
    }

    /// $\Gamma(0)$ summed over the given layers.
    pub(crate) fn log_z(&self, layers: impl IntoIterator<Item = usize>) -> f64 {
        let of = |l: usize| {
            let zeros = vec![T::zero(); self.layers[l].width()];
            self.layers[l].cgf_row(&zeros, &mut zeros.clone())
        };
        layers.into_iter().map(of).sum()
    }
}

/// The layer with θ = 0 and its own γ.
pub(crate) fn unbiased<T: Real>(layer: &Layer<T>) -> Layer<T> {
    let mut out = layer.clone();
    for (k, name) in layer.kind().params().iter().enumerate() {
        if name.starts_with("theta") {
            out.params_mut().row_mut(k).fill(T::zero());
        }
    }
    out
}

/// The layer of independent units with the marginals of `x`.
fn matched<T: Real>(layer: &Layer<T>, x: &Batch<T>) -> Layer<T> {
    let rows = x.rows() as f64;
    let sums = layer.stats(x, None);
    let values = layer.values(x);
    let mut out = layer.clone();
    let (kind, c) = (layer.kind(), layer.kind().columns());
    let is_real = kind.form() == Form::Reals;
    for unit in 0..layer.len() {
        let j = unit * c;
        let of_states: Vec<f64> = match kind.has_frequencies() {
            true => sums.column(j).iter().skip(kind.gamma_rows().end).copied().collect(),
            false => vec![],
        };
        let (mut mean, mut squares) = (0.0, 0.0);
        if is_real {
            let column = values.column(unit);
            mean = column.sum() / rows;
            squares = column.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
        }
        let own: Vec<f64> = layer.params().column(j).iter().map(|p| p.f64()).collect();
        let of_columns: Vec<f64> = (j..j + c).map(|j| sums[[0, j]]).collect();
        let m = Marginal {
            total: rows,
            sums: &of_columns,
            mean,
            variance: squares / rows,
            squares,
            counts: &of_states,
        };
        for (k, p) in kind.base(&m, &own).into_iter().enumerate() {
            out.params_mut()[[k / c, j + k % c]] = T::of(p);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Key, Kind};
    use ndarray::Array2;

    /// Independent units fitted to many samples of independent units have the same parameters.
    #[test]
    fn base_recovers_independent_units() {
        for kind in Kind::ALL {
            let mut v = Layer::<f64>::new(kind, 3);
            for (k, name) in kind.params().iter().enumerate() {
                for j in 0..v.width() {
                    let x = if name.starts_with("gamma") { 1.7 } else { 0.3 * j as f64 - 0.5 };
                    v.params_mut()[[k, j]] = x;
                }
            }
            let machine = Machine::rbm(v.clone(), Layer::new(Kind::Binary, 2));
            let (rows, key) = (40_000, Key { seed: 3, purpose: 77, block: 0, sweep: 0 });
            let mut x = v.zeros(rows);
            v.sample_into(&Array2::zeros((rows, v.width())), key, &mut x);
            let base = Base::of_data(&machine, &machine.data(vec![x]).unwrap()).unwrap();
            let mean = |l: &Layer<f64>| {
                let mut out = vec![0.0; l.width()];
                l.mean_row(&vec![0.0; l.width()], &mut out);
                out
            };
            // Six standard errors of a mean of 40 000 draws with a spread of at most two.
            for (a, b) in mean(&base.layers()[0]).iter().zip(mean(&v)) {
                assert!((a - b).abs() < 6.0 * 2.0 / 200.0, "{kind}: {a} against {b}");
            }
            assert_eq!(base.layers()[1].params(), &Array2::<f64>::zeros((1, 2)));
        }
    }

    #[test]
    fn base_log_z_is_exact() {
        let machine = Machine::<f64>::rbm(
            Layer::with_params(Kind::Binary, ndarray::array![[0.3, -1.0]]).unwrap(),
            Layer::new(Kind::Potts { q: 3 }, 2),
        );
        let base = Base::own(&machine);
        let exact = machine.exact().log_z().unwrap();
        assert!((base.log_z(0..2) - exact).abs() < 1e-12);
    }
}
