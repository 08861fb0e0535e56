//! The base model of an annealing path: the machine's units on their own, matched to the data.

use crate::units::{NegativeBinomial, ordinal};
use crate::{Batch, Error, Kind, Layer, Machine, Real, Result, Role, States};
use ndarray::Array2;

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

    /// The visible units matched to the marginals of the data (smoothed as if a few more rows had been seen),
    /// so that the path starts where the machine's probability is: the base-rate model.
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

/// The layer whose units on their own have the marginals of `x`.
fn matched<T: Real>(layer: &Layer<T>, x: &Batch<T>) -> Layer<T> {
    let rows = x.rows() as f64;
    let sums = layer.stats(x, None);
    let values = layer.values(x);
    let mut out = layer.clone();
    let q = layer.kind().columns() as f64;
    for j in 0..layer.width() {
        let sum = sums[[0, j]];
        let logit = |ones: f64, trials: f64| ((ones + 1.0) / (trials - ones + 1.0)).ln();
        let p: Vec<f64> = match layer.kind() {
            Kind::Binary => vec![logit(sum, rows)],
            Kind::Spin => vec![0.5 * logit(0.5 * (rows + sum), rows)],
            Kind::Binomial { n } => vec![logit(sum, rows * f64::from(n))],
            Kind::Potts { .. } => vec![((sum + 1.0) / (rows + q)).ln()],
            Kind::Poisson => vec![((sum + 0.5) / (rows + 1.0)).ln()],
            Kind::NegativeBinomial { shape, n } => {
                vec![NegativeBinomial::new(shape, n).theta((sum + 0.5) / (rows + 1.0))]
            }
            Kind::Ordinal { .. } => {
                let counts: Vec<f64> = sums.column(j).iter().skip(1).copied().collect();
                ordinal::fitted(&counts)
            }
            Kind::Relu => {
                let gamma = layer.params()[[1, j]].f64();
                vec![relu_theta(gamma, (sum + 0.1 / gamma.sqrt()) / (rows + 0.1)), gamma]
            }
            kind @ (Kind::Gaussian | Kind::Drelu) => {
                let column = values.column(j);
                let mean = column.sum() / rows;
                let own = |k: usize| layer.params()[[k, j]].f64();
                let gamma = if kind == Kind::Gaussian { own(1) } else { own(2).min(own(3)) };
                let square = column.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
                let precision = (rows + 1.0) / (square + 1.0 / gamma);
                let theta = precision * mean;
                match kind {
                    Kind::Gaussian => vec![theta, precision],
                    _ => vec![theta, theta, precision, precision],
                }
            }
        };
        p.into_iter().enumerate().for_each(|(k, p)| out.params_mut()[[k, j]] = T::of(p));
    }
    out
}

/// θ of a ReLU unit with the given mean, by bisection: the mean rises with θ.
fn relu_theta(gamma: f64, mean: f64) -> f64 {
    let of = |theta: f64| {
        let params = Array2::from_shape_vec((2, 1), vec![theta, gamma]).expect("two numbers");
        let mut out = [0.0];
        Layer::with_params(Kind::Relu, params).expect("γ > 0").mean_row(&[0.0], &mut out);
        out[0]
    };
    // The mean is at least θ/γ, and about 1/|θ| far on the negative side.
    let (mut lo, mut hi) = (-2.0 / mean - gamma.sqrt(), gamma * mean + gamma.sqrt());
    for _ in 0..80 {
        let mid = 0.5 * (lo + hi);
        if of(mid) < mean { lo = mid } else { hi = mid }
    }
    0.5 * (lo + hi)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;

    /// Units on their own, matched to many samples of units on their own, are the same units.
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
