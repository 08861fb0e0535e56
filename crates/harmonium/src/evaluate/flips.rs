//! Pseudo-likelihood of rows of bits from one flipped unit of each: an estimate that costs one product with the weights.

use crate::sample::purpose;
use crate::units::{BLOCK, softplus};
use crate::{Batch, Error, Key, Machine, Real, Result, Role, States};
use harmonium_kernels::Stream;
use ndarray::Array2;
use rand::RngExt;
use rayon::prelude::*;

/// $n\ln p(v_i\mid v_{-i})$ of each row for one unit i of n, drawn for it from `seed`: over the draws this averages to
/// [`pseudo_log_likelihood`](super::pseudo_log_likelihood()). Equal seeds draw equal units, so that two machines are
/// compared on the same units.
///
/// The conditional is $\sigma(F(v^{i\to 1-v_i}) - F(v))$. For soft bits the same formula is used, as in scikit-learn,
/// although it is not a probability.
///
/// # Errors
/// [`Error::Undefined`] unless all visible units are Binary and coupled to hidden layers only, and these are independent
/// given the visible ones; data that do not fit.
pub fn pseudo_log_likelihood_by_flips<T: Real>(
    machine: &Machine<T>,
    data: &States<T>,
    seed: u64,
) -> Result<Vec<f64>> {
    let flips = Flips::new(machine, data)?;
    let blocks: Vec<Vec<f64>> = (0..data.rows().div_ceil(BLOCK))
        .into_par_iter()
        .map(|b| {
            let key = Key { seed, purpose: purpose::EVALUATE, block: b as u32, sweep: 0 };
            let mut rng = Stream::new(key);
            let rows = b * BLOCK..data.rows().min((b + 1) * BLOCK);
            let mut scratch = (Vec::new(), Vec::new());
            rows.map(|r| flips.row(r, rng.random_range(0..flips.x.cols()), &mut scratch)).collect()
        })
        .collect();
    Ok(blocks.concat())
}

/// Weights and parameters in the form that the flips of all rows use.
struct Flips<'a, T: Real> {
    machine: &'a Machine<T>,
    visible: usize,
    x: &'a Batch<T>,
    /// The hidden layers and their inputs.
    hidden: Vec<(usize, Array2<T>)>,
}

impl<'a, T: Real> Flips<'a, T> {
    fn new(machine: &'a Machine<T>, data: &'a States<T>) -> Result<Self> {
        let hidden: Vec<usize> = machine.with_role(Role::Hidden).collect();
        let visible: Vec<usize> =
            (0..machine.len()).filter(|&l| machine.role(l) != Role::Hidden).collect();
        let (&[v], true) = (&visible[..], machine.independent(&hidden) && machine.independent(&visible))
        else {
            let why = "it is more than one visible layer and hidden units that are independent given it";
            return Err(Error::Undefined { what: "a pseudo-likelihood by flips", why: why.into() });
        };
        let (layer, x) = (machine.layer(v), data.layer(v)?);
        if !layer.kind().takes_soft_data() || layer.is_empty() {
            let why = format!("its visible units are {} {}", layer.len(), layer.kind());
            return Err(Error::Undefined { what: "a pseudo-likelihood by flips", why });
        }
        layer.check_data(x)?;
        let inputs = |&h: &usize| Ok((h, machine.at(1.0).inputs(h, data)?));
        Ok(Self { machine, visible: v, x, hidden: hidden.iter().map(inputs).collect::<Result<_>>()? })
    }

    fn row(&self, r: usize, i: usize, (flipped, scratch): &mut (Vec<T>, Vec<T>)) -> f64 {
        let v = match self.x {
            Batch::Bits(b) => f64::from(u8::from(b.get(r, i))),
            Batch::Reals(x) => x[[r, i]].f64(),
            Batch::Codes(_) => unreachable!("the batch has been checked"),
        };
        let flip = 1.0 - 2.0 * v;
        // The decrease of F by the flip.
        let mut gain = flip * self.machine.layer(self.visible).params()[[0, i]].f64();
        for (h, inputs) in &self.hidden {
            let (layer, inputs) = (self.machine.layer(*h), inputs.row(r));
            let inputs = inputs.as_slice().expect("inputs are in standard layout");
            flipped.clear();
            flipped.extend_from_slice(inputs);
            if let Some(w) = self.machine.weights_of(self.visible, i, *h) {
                flipped.iter_mut().zip(w).for_each(|(f, &w)| *f += T::of(flip) * w);
            }
            scratch.resize(inputs.len(), T::zero());
            gain += layer.cgf_row(flipped, scratch) - layer.cgf_row(inputs, scratch);
        }
        -softplus(gain) * self.x.cols() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use crate::evaluate::pseudo_log_likelihood;
    use crate::{Bits, Layer};
    use ndarray::arr2;

    fn machine() -> Machine<f64> {
        let (v, h) = (Layer::new(Kind::Binary, 3), Layer::new(Kind::Binary, 2));
        let mut machine = Machine::rbm(v, h);
        machine.coupling_mut(0).w_mut().assign(&arr2(&[[0.4, -1.0], [1.5, 0.2], [-0.7, 0.9]]));
        machine.layer_mut(0).params_mut().assign(&arr2(&[[0.3, -0.2, 0.5]]));
        machine.layer_mut(1).params_mut().assign(&arr2(&[[-0.4, 0.1]]));
        machine
    }

    /// 30 000 copies of a row, each with its own random unit, average to the row's pseudo-likelihood: terms of at most
    /// 3 × 2 nats have a mean that is uncertain by less than 0.02, a fifth of what is allowed.
    #[test]
    fn flips_average_to_the_pseudo_likelihood() {
        let machine = machine();
        let bits = Bits::from_fn(30_000, 3, |_, j| j != 1);
        let data = machine.data(vec![Batch::Bits(bits)]).unwrap();
        let flips = pseudo_log_likelihood_by_flips(&machine, &data, 5).unwrap();
        let mean = flips.iter().sum::<f64>() / flips.len() as f64;
        let exact = pseudo_log_likelihood(&machine, &data.select(&[0])).unwrap()[0];
        assert!((mean - exact).abs() < 0.1, "{mean} and {exact}");
        assert!(flips.iter().any(|f| (f - flips[0]).abs() > 1e-3), "all rows have one unit");
    }

    /// A flip of a soft bit is the difference of two free energies.
    #[test]
    fn soft_rows_are_flipped_as_free_energies_say() {
        let machine = machine();
        let rows = arr2(&[[0.2, 0.9, 0.5], [0.0, 0.3, 1.0]]);
        let data = machine.data(vec![Batch::Reals(rows.clone())]).unwrap();
        let got = pseudo_log_likelihood_by_flips(&machine, &data, 1).unwrap();
        for (r, got) in got.into_iter().enumerate() {
            let free = |i: Option<usize>| {
                let mut v = rows.row(r).to_owned();
                i.into_iter().for_each(|i| v[i] = 1.0 - v[i]);
                let v = v.insert_axis(ndarray::Axis(0));
                machine.free_energy(&machine.data(vec![Batch::Reals(v)]).unwrap()).unwrap()[0]
            };
            let of_unit = |i: usize| -3.0 * softplus(free(None) - free(Some(i)));
            assert!((0..3).any(|i| (got - of_unit(i)).abs() < 1e-12), "row {r}: {got}");
        }
    }

    #[test]
    fn other_machines_are_refused() {
        let spins = Machine::<f64>::rbm(Layer::new(Kind::Spin, 2), Layer::new(Kind::Binary, 1));
        let data = spins.data(vec![spins.layer(0).zeros(1)]).unwrap();
        assert!(pseudo_log_likelihood_by_flips(&spins, &data, 0).is_err());
        let v = Layer::new(Kind::Binary, 2);
        let lateral = Machine::<f64>::semi_restricted(v, Layer::new(Kind::Binary, 1));
        let data = lateral.data(vec![lateral.layer(0).zeros(1)]).unwrap();
        assert!(pseudo_log_likelihood_by_flips(&lateral, &data, 0).is_err());
    }
}
