//! Plefka's expansion of the free energy at given means, to third order in the weights.

use crate::machine::{Parameters, clear_self};
use crate::{Layer, Machine};
use ndarray::{Array2, Axis, Zip};

/// The free energy of a machine at given means m, expanded in its weights:
///
/// $$G(m) = \sum_i\big[x_i m_i - \Gamma_i(x_i)\big] - \sum_{i<j}\Big[w m_im_j + \tfrac12 w^2 V_iV_j +
/// \tfrac16 w^3\kappa_i\kappa_j\Big],$$
///
/// where $x_i$ is the input that gives unit i the mean $m_i$ on its own, V its variance and κ its third cumulant. Order
/// 1 is naive mean field, order 2 TAP. The third order is complete where no three units are coupled in a triangle,
/// which is required of the machine.
///
/// Every kind here has a variance that is a polynomial of its mean, $V = a + bm + cm^2$ (Morris 1982), so
/// that $\kappa = V V'$ and $\kappa' = V'^2 + 2cV$ with $V' = b + 2cm$: for binary units $V = m - m^2$,
/// $\kappa = V(1-2m)$ and the third term is $\tfrac23w^3V_i(\tfrac12-m_i)V_j(\tfrac12-m_j)$. Potts units have
/// a matrix in place of V and are treated at order 1 only.
#[derive(Clone, Debug)]
pub struct Expansion<'m> {
    machine: &'m Machine<f64>,
    order: u8,
    /// $w^2$ and $w^3$ of each coupling, as far as the order needs them.
    powers: Vec<Vec<Array2<f64>>>,
}

/// V, V′, κ and κ′ of every unit of a layer.
struct Cumulants {
    v: Array2<f64>,
    dv: Array2<f64>,
    k: Array2<f64>,
    dk: Array2<f64>,
}

impl<'m> Expansion<'m> {
    /// To the given order, 1 to 3.
    pub fn new(machine: &'m Machine<f64>, order: u8) -> Self {
        let powers = machine
            .couplings()
            .iter()
            .map(|c| (2..=i32::from(order)).map(|k| c.w().mapv(|w| w.powi(k))).collect::<Vec<_>>());
        Self { machine, order, powers: powers.collect() }
    }

    /// What layer `l` receives at these means: $-\partial G/\partial m$ without the layer's own part.
    fn field(&self, l: usize, means: &[Array2<f64>]) -> Array2<f64> {
        let own = cumulants(self.machine.layer(l), &means[l]);
        let mut field = Array2::zeros(means[l].dim());
        for (c, powers) in self.machine.couplings().iter().zip(&self.powers) {
            let Some(other) = c.other(l) else { continue };
            let forward = c.ends().1 == l;
            let times =
                |x: &Array2<f64>, w: &Array2<f64>| if forward { x.dot(w) } else { x.dot(&w.t()) };
            field += &times(&means[other], c.w());
            let far = cumulants(self.machine.layer(other), &means[other]);
            if let Some(w2) = powers.first() {
                field += &(0.5 * &own.dv * times(&far.v, w2));
            }
            if let Some(w3) = powers.get(1) {
                field += &(&own.dk * times(&far.k, w3) / 6.0);
            }
        }
        field
    }

    /// One damped pass over the layers, each given the present means of the others; returns the largest
    /// change. A fixed point is a stationary point of [`free_energy`](Self::free_energy).
    pub fn iterate(&self, means: &mut [Array2<f64>], damping: f64) -> f64 {
        let mut change = 0.0_f64;
        let order = crate::sample::Order::new(self.machine);
        for &l in order.layers() {
            let field = self.field(l, means);
            let mut new = Array2::zeros(field.dim());
            self.machine.layer(l).mean_into(&field, &mut new);
            Zip::from(&mut means[l]).and(&new).for_each(|m, &new| {
                let step = damping * (new - *m);
                change = change.max(step.abs());
                *m += step;
            });
        }
        change
    }

    /// $G$ of each row of means: an approximation of $-\ln Z$ at a fixed point.
    pub fn free_energy(&self, means: &[Array2<f64>]) -> Vec<f64> {
        let rows = means[0].nrows();
        let mut out = vec![0.0; rows];
        for (m, means) in self.machine.members().iter().zip(means) {
            let x = inputs_of(&m.layer, means);
            let mut cgf = vec![0.0; rows];
            m.layer.add_cgf(&x, &mut cgf);
            for (r, out) in out.iter_mut().enumerate() {
                *out += x.row(r).dot(&means.row(r)) - cgf[r];
            }
        }
        for (c, powers) in self.machine.couplings().iter().zip(&self.powers) {
            let (a, b) = c.ends();
            let half = if c.is_lateral() { 0.5 } else { 1.0 };
            let (p, q) = (self.cumulants(a, means), self.cumulants(b, means));
            let mut subtract = |factor: f64, x: &Array2<f64>, w: &Array2<f64>, y: &Array2<f64>| {
                let sums = (x.dot(w) * y).sum_axis(Axis(1));
                out.iter_mut().zip(sums).for_each(|(g, s)| *g -= half * factor * s);
            };
            subtract(1.0, &means[a], c.w(), &means[b]);
            powers.first().into_iter().for_each(|w2| subtract(0.5, &p.v, w2, &q.v));
            powers.get(1).into_iter().for_each(|w3| subtract(1.0 / 6.0, &p.k, w3, &q.k));
        }
        out
    }

    /// $-\partial G/\partial\theta$ at fixed means, averaged over the rows: the moments $\langle t\rangle$.
    ///
    /// $\langle x_ix_j\rangle \approx m_im_j + wV_iV_j + \tfrac12w^2\kappa_i\kappa_j$.
    pub fn moments(&self, means: &[Array2<f64>]) -> Parameters<f64> {
        let rows = means[0].nrows().max(1) as f64;
        let machine = self.machine;
        let layers = (0..machine.len()).map(|l| self.layer_moments(l, means)).collect();
        let couplings = machine.couplings().iter().zip(&self.powers).map(|(c, powers)| {
            let (a, b) = c.ends();
            let (p, q) = (self.cumulants(a, means), self.cumulants(b, means));
            let mut m = means[a].t().dot(&means[b]) / rows;
            if self.order >= 2 {
                m += &(p.v.t().dot(&q.v) * c.w() / rows);
            }
            if self.order >= 3 {
                m += &(0.5 * p.k.t().dot(&q.k) * &powers[0] / rows);
            }
            if c.is_lateral() {
                clear_self(&mut m, machine.layer(a).kind());
            }
            if let Some(mask) = c.mask() {
                m.indexed_iter_mut().filter(|((i, j), _)| !mask.get(*i, *j)).for_each(|(_, m)| *m = 0.0);
            }
            m
        });
        Parameters { layers, couplings: couplings.collect() }
    }

    /// $m$ for θ, and $-\tfrac12\big(m^2 + V + V^2\sum_jw_j^2V_j\big)$ for the γ of Gaussian units.
    fn layer_moments(&self, l: usize, means: &[Array2<f64>]) -> Array2<f64> {
        let layer = self.machine.layer(l);
        let average = |x: &Array2<f64>| x.mean_axis(Axis(0)).expect("at least one row");
        let mut out = Array2::zeros(layer.params().dim());
        out.row_mut(0).assign(&average(&means[l]));
        if layer.kind().is_normal() {
            let v = self.cumulants(l, means).v;
            let mut square = means[l].mapv(|m| m * m) + &v;
            for (c, powers) in self.machine.couplings().iter().zip(&self.powers) {
                if let (Some(other), Some(w2)) = (c.other(l), powers.first()) {
                    let far = self.cumulants(other, means).v;
                    let sum = if c.ends().1 == l { far.dot(w2) } else { far.dot(&w2.t()) };
                    square += &(&v * &v * sum);
                }
            }
            out.row_mut(1).assign(&(-0.5 * average(&square)));
        }
        out
    }

    fn cumulants(&self, l: usize, means: &[Array2<f64>]) -> Cumulants {
        cumulants(self.machine.layer(l), &means[l])
    }
}

/// V, V′, κ, κ′ from $V = a + bm + cm^2$.
fn cumulants(layer: &Layer<f64>, means: &Array2<f64>) -> Cumulants {
    let own = own_parameters(layer);
    let polynomial = |own: &Vec<f64>| layer.kind().variance_polynomial(own).expect(EXPANDED);
    let polynomials: Vec<[f64; 3]> = own.iter().map(polynomial).collect();
    let of = |f: &dyn Fn(f64, f64, f64) -> f64| {
        Array2::from_shape_fn(means.dim(), |(r, j)| {
            let (m, [a, b, c]) = (means[[r, j]], polynomials[j]);
            f(a + b * m + c * m * m, b + 2.0 * c * m, c)
        })
    };
    Cumulants {
        v: of(&|v, _, _| v),
        dv: of(&|_, dv, _| dv),
        k: of(&|v, dv, _| v * dv),
        dk: of(&|v, dv, c| dv * dv + 2.0 * c * v),
    }
}

/// The inputs that give the units these means: the inverse of the conditional mean.
fn inputs_of(layer: &Layer<f64>, means: &Array2<f64>) -> Array2<f64> {
    let own = own_parameters(layer);
    Array2::from_shape_fn(means.dim(), |(r, j)| {
        let m = means[[r, j]];
        layer.kind().field_of_mean(&own[j], m).expect(EXPANDED) - own[j][0]
    })
}

const EXPANDED: &str = "estimators are refused for other kinds";

/// The parameters of each column.
fn own_parameters(layer: &Layer<f64>) -> Vec<Vec<f64>> {
    layer.params().columns().into_iter().map(|p| p.to_vec()).collect()
}
