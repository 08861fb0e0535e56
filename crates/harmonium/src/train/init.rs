//! Where training starts: visible layers that reproduce the marginals of the data, small random weights.

use super::Data;
use super::white::{Normal, set_normal};
use crate::estimate::{RcmParams, low_rank_start};
use crate::sample::purpose;
use crate::units::{Form, Marginal};
use crate::{Batch, Bits, Error, Key, Kind, Machine, Real, Result, Role};
use harmonium_kernels::{Stream, bits};
use ndarray::{Array1, Array2, Axis};
use rand_distr::{Distribution, StandardNormal};

/// Weighted sums over the known entries of a layer, and their total weight.
pub(super) struct Marginals {
    /// $\sum x$ and $\sum x^2$ for each column of the dense form.
    pub(super) sum: Array1<f64>,
    pub(super) square: Array1<f64>,
    /// Total weight behind each column.
    pub(super) total: Array1<f64>,
    /// Weight of each state of each unit, for kinds with a parameter per frequency; empty for others.
    pub(super) counts: Vec<Vec<f64>>,
}

impl Marginals {
    pub(super) fn new<T: Real>(machine: &Machine<T>, data: &Data<T>, l: usize) -> Result<Self> {
        let (layer, x) = (machine.layer(l), data.states().layer(l)?);
        let (width, c) = (layer.width(), layer.kind().columns());
        let mut m = Self {
            sum: Array1::zeros(width),
            square: Array1::zeros(width),
            total: Array1::zeros(width),
            counts: match (layer.kind().has_frequencies(), layer.kind().states()) {
                (true, Some(states)) => vec![vec![0.0; states as usize]; width],
                _ => vec![],
            },
        };
        if let (Batch::Bits(b), None) = (x, &data.known()[l]) {
            m.count(layer.kind(), b, data.wts());
            return Ok(m);
        }
        if let (Batch::Reals(x), None) = (x, &data.known()[l]) {
            m.add(x, data.wts());
            return Ok(m);
        }
        let mut values = vec![0.0; layer.len()];
        let mut dense = vec![T::zero(); width];
        for r in 0..x.rows() {
            let wt = data.wts().map_or(1.0, |w| w[r]);
            layer.read_row(x, r, &mut values);
            layer.dense_row(&values, &mut dense);
            let known = data.known()[l].as_ref();
            for (j, x) in dense.iter().enumerate() {
                if known.is_none_or(|k| k.get(r, j / c)) {
                    m.sum[j] += wt * x.f64();
                    m.square[j] += wt * x.f64() * x.f64();
                    m.total[j] += wt;
                    if let Some(counts) = m.counts.get_mut(j) {
                        counts[x.f64() as usize] += wt;
                    }
                }
            }
        }
        Ok(m)
    }

    /// Complete rows of reals, which are their own dense form.
    fn add<T: Real>(&mut self, x: &Array2<T>, wts: Option<&[f64]>) {
        let [sum, square, total] = [&mut self.sum, &mut self.square, &mut self.total]
            .map(|a| a.as_slice_mut().expect("arrays of one dimension"));
        for (r, row) in x.rows().into_iter().enumerate() {
            let wt = wts.map_or(1.0, |w| w[r]);
            let row = row.to_slice().expect("reals are in standard layout");
            for (((sum, square), total), x) in sum.iter_mut().zip(&mut *square).zip(&mut *total).zip(row)
            {
                *sum += wt * x.f64();
                *square += wt * x.f64() * x.f64();
                *total += wt;
            }
        }
    }

    /// Complete rows of bits: only ones are counted.
    fn count(&mut self, kind: Kind, bits: &Bits, wts: Option<&[f64]>) {
        let mut total = 0.0;
        for r in 0..bits.rows() {
            let wt = wts.map_or(1.0, |w| w[r]);
            total += wt;
            bits::ones(bits.row(r)).for_each(|j| self.sum[j] += wt);
        }
        self.total.fill(total);
        self.square.assign(&self.sum);
        if kind.lowest() < 0.0 {
            self.sum.mapv_inplace(|ones| 2.0 * ones - total);
            self.square.fill(total);
        }
    }

    pub(super) fn mean(&self, j: usize) -> f64 {
        if self.total[j] > 0.0 { self.sum[j] / self.total[j] } else { 0.0 }
    }

    pub(super) fn variance(&self, j: usize) -> f64 {
        let m = self.mean(j);
        if self.total[j] > 0.0 { (self.square[j] / self.total[j] - m * m).max(0.0) } else { 0.0 }
    }
}

/// Sets the visible layers to the marginals of the data, hidden parameters to those of a new layer and
/// draws the weights, N(0, std²).
pub(super) fn from_data<T: Real>(
    machine: &mut Machine<T>,
    data: &Data<T>,
    std: f64,
    seed: u64,
) -> Result<()> {
    for l in 0..machine.len() {
        let (kind, n) = (machine.layer(l).kind(), machine.layer(l).len());
        let mut layer = crate::Layer::new(kind, n);
        if machine.role(l) == Role::Visible {
            let m = Marginals::new(machine, data, l)?;
            layer.params_mut().assign(&fitted::<T>(kind, &m));
        }
        *machine.layer_mut(l) = layer;
    }
    for c in 0..machine.couplings().len() {
        draw_weights(machine, c, std, seed);
        scale_weights(machine, data, c)?;
    }
    couple_measured(machine, data)?;
    super::sides::shape(machine, data, seed)
}

/// Divides the weights of units by the standard deviation of their values where it exceeds one, so that the inputs that
/// they cause are as small as those from bits.
fn scale_weights<T: Real>(machine: &mut Machine<T>, data: &Data<T>, c: usize) -> Result<()> {
    let scales = |l: usize| -> Result<Vec<f64>> {
        let layer = machine.layer(l);
        if machine.role(l) == Role::Hidden || layer.kind().form() == Form::Bits {
            return Ok(vec![1.0; layer.width()]);
        }
        let m = Marginals::new(machine, data, l)?;
        Ok((0..m.sum.len()).map(|j| 1.0 / m.variance(j).sqrt().max(1.0)).collect())
    };
    let (a, b) = machine.couplings()[c].ends();
    let (rows, columns) = (scales(a)?, scales(b)?);
    // One factor for each weight: two in turn would be rounded in another order in its mirror image.
    let w = machine.coupling_mut(c).w_mut();
    w.indexed_iter_mut().for_each(|((i, j), w)| *w *= T::of(rows[i] * columns[j]));
    Ok(())
}

/// Real columns that are coupled to each other start from their joint normal distribution.
fn couple_measured<T: Real>(machine: &mut Machine<T>, data: &Data<T>) -> Result<()> {
    let coupled = |l: usize| machine.layer(l).kind().is_normal() && machine.has_lateral(l);
    let layers: Vec<usize> = machine.with_role(Role::Visible).filter(|&l| coupled(l)).collect();
    for l in layers {
        let Batch::Reals(x) = data.states().layer(l)? else { continue };
        let x = x.mapv(Real::f64);
        if let Some(normal) = Normal::new(&x, data.wts(), data.known()[l].as_ref()) {
            set_normal(machine, l, &normal);
        }
    }
    Ok(())
}

/// The low-rank start, with random weights for the hidden units that it does not use: with zero weights they would all
/// learn the same.
pub(super) fn low_rank<T: Real>(
    machine: &mut Machine<T>,
    data: &Data<T>,
    directions: usize,
    std: f64,
    seed: u64,
) -> Result<()> {
    if data.known().iter().any(Option::is_some) {
        let why = "it looks at whole rows, and some entries are missing".into();
        return Err(Error::Undefined { what: "the low-rank start", why });
    }
    let params = RcmParams { directions, mesh: None };
    *machine = low_rank_start(machine, data.states(), data.wts(), &params, seed)?.machine;
    let mut drawn = machine.clone();
    draw_weights(&mut drawn, 0, std, seed);
    let drawn = drawn.couplings()[0].w();
    let hidden = machine.with_role(Role::Hidden).next();
    let transposed = Some(machine.couplings()[0].ends().0) == hidden;
    let w = machine.coupling_mut(0).w_mut();
    let lanes = if transposed { Axis(0) } else { Axis(1) };
    for (mut w, drawn) in w.axis_iter_mut(lanes).zip(drawn.axis_iter(lanes)) {
        if w.iter().all(|w| *w == T::zero()) {
            w.assign(&drawn);
        }
    }
    Ok(())
}

fn draw_weights<T: Real>(machine: &mut Machine<T>, c: usize, std: f64, seed: u64) {
    let key = Key { seed, purpose: purpose::INIT, block: 1 << 16 | c as u32, sweep: 0 };
    let mut rng = Stream::new(key);
    let a = machine.couplings()[c].ends().0;
    let columns = machine.layer(a).kind().columns();
    let lateral = machine.couplings()[c].is_lateral();
    if lateral && machine.layer(a).kind().is_normal() {
        // Such couplings start from the covariance of the data.
        return;
    }
    let repels = machine.only_repels(c);
    let w = machine.coupling_mut(c).w_mut();
    for i in 0..w.nrows() {
        for j in 0..w.ncols() {
            let x: f64 = StandardNormal.sample(&mut rng);
            let x = if repels { -x.abs() } else { x };
            match lateral {
                false => w[[i, j]] = T::of(std * x),
                true if i / columns < j / columns => {
                    w[[i, j]] = T::of(std * x);
                    w[[j, i]] = T::of(std * x);
                }
                true => {}
            }
        }
    }
    machine.coupling_mut(c).apply_mask();
}

/// The parameters of independent units with the given marginals. One observation of each state is added, so that no
/// state has probability 0.
pub(super) fn fitted<T: Real>(kind: Kind, m: &Marginals) -> Array2<T> {
    let (width, c) = (m.sum.len(), kind.columns());
    let mut p = crate::Layer::<T>::new(kind, width / c).params().clone();
    for unit in 0..width / c {
        let (j, columns) = (unit * c, unit * c..(unit + 1) * c);
        let sums: Vec<f64> = columns.clone().map(|j| m.sum[j]).collect();
        let mean = m.mean(j);
        let fitted = kind.start(&Marginal {
            total: m.total[j],
            sums: &sums,
            mean,
            variance: m.variance(j) + spare_variance(mean),
            squares: m.variance(j) * m.total[j],
            counts: m.counts.get(j).map_or(&[], |counts| counts),
        });
        for (k, x) in fitted.into_iter().enumerate() {
            p[[k / c, j + k % c]] = T::of(x);
        }
    }
    p
}

/// For each visible layer with a parameter per frequency, the moments of independent units with smoothed frequencies
/// minus those of the data. Added to the data's moments, they keep training from giving probability 0 to states that
/// are absent from few rows.
pub(super) fn smoothing<T: Real>(
    machine: &Machine<T>,
    data: &Data<T>,
) -> Result<Vec<(usize, Array2<T>)>> {
    let mut out = Vec::new();
    for l in machine.with_role(Role::Visible) {
        let kind = machine.layer(l).kind();
        if !kind.has_frequencies() {
            continue;
        }
        let m = Marginals::new(machine, data, l)?;
        let units = crate::Layer::<f64>::with_params(kind, fitted(kind, &m))?;
        let mut gap = units.mean_stats(&Array2::zeros((1, units.width())), None);
        for (j, counts) in m.counts.iter().enumerate() {
            let total = m.total[j].max(f64::MIN_POSITIVE);
            gap[[0, j]] -= m.mean(j);
            counts.iter().enumerate().for_each(|(x, c)| gap[[1 + x, j]] -= c / total);
        }
        out.push((l, gap.mapv(T::of)));
    }
    Ok(out)
}

/// Variance added to that of a real column, which may be constant.
pub(super) fn spare_variance(mean: f64) -> f64 {
    1e-3 * (mean * mean + 1e-3)
}

/// Whether every weight of the machine is zero: it has not been initialised yet.
pub(super) fn is_blank<T: Real>(machine: &Machine<T>) -> bool {
    machine.couplings().iter().all(|c| c.w().iter().all(|w| *w == T::zero()))
}

/// Whether all visible units are two-valued, which bounds the gradient.
pub(crate) fn has_only_bits<T: Real>(machine: &Machine<T>) -> bool {
    machine.with_role(Role::Visible).all(|l| machine.layer(l).kind().form() == Form::Bits)
}
