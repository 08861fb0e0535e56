//! A machine with another number of hidden units, blank or with what a smaller one has learnt.

use super::Data;
use crate::{Coupling, Kind, Layer, Machine, Member, Real, Result, Role};
use ndarray::Array2;

/// A blank machine like this one, but for its one hidden layer. `None` for machines with several or none.
///
/// # Errors
/// Weights with a mask, which has no meaning for other units.
pub(crate) fn resized<T: Real>(
    machine: &Machine<T>,
    hidden: usize,
    kind: Kind,
) -> Result<Option<Machine<T>>> {
    let [h] = machine.with_role(Role::Hidden).collect::<Vec<_>>()[..] else { return Ok(None) };
    let members: Vec<Member<T>> = machine
        .members()
        .iter()
        .enumerate()
        .map(|(l, m)| {
            let (kind, n) = if l == h { (kind, hidden) } else { (m.layer.kind(), m.layer.len()) };
            Member { layer: Layer::new(kind, n), ..m.clone() }
        })
        .collect();
    let coupling = |c: &Coupling<T>| {
        let (a, b) = c.ends();
        let shape = (members[a].layer.width(), members[b].layer.width());
        let new = Coupling::new(a, b, Array2::zeros(shape))?;
        match c.mask() {
            Some(mask) => new.with_mask(mask.clone()),
            None => Ok(new),
        }
    };
    let couplings = machine.couplings().iter().map(coupling).collect::<Result<Vec<_>>>()?;
    Machine::new(members, couplings).map(Some)
}

/// The machine with more hidden units, whose weights are random, N(0, std²) where columns are bits. With `std` 0 they are
/// independent of everything else, so that the distribution of the visible units is the old one: nothing has to be
/// compensated. `None` for machines with several hidden layers or none.
///
/// # Errors
/// Data that do not fit.
pub(crate) fn grown<T: Real>(
    machine: &Machine<T>,
    data: &Data<T>,
    hidden: usize,
    std: f64,
    seed: u64,
) -> Result<Option<Machine<T>>> {
    let Some(h) = machine.with_role(Role::Hidden).next() else { return Ok(None) };
    let Some(mut new) = resized(machine, hidden, machine.layer(h).kind())? else { return Ok(None) };
    super::init::from_data(&mut new, data, std, seed)?;
    let mut parameters = new.parameters();
    let old = machine.parameters();
    for (new, old) in parameters.arrays_mut().zip(old.arrays()) {
        old.indexed_iter().for_each(|(place, x)| new[place] = *x);
    }
    new.set_parameters(&parameters)?;
    Ok(Some(new))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batch, Bits};

    fn trained() -> (Machine<f64>, Data<f64>) {
        let mut machine = Machine::<f64>::rbm(Layer::new(Kind::Binary, 4), Layer::new(Kind::Spin, 2));
        let mut parameters = machine.parameters();
        for a in parameters.arrays_mut() {
            a.indexed_iter_mut().for_each(|((r, c), x)| *x = (1 + 3 * r + 5 * c) as f64 % 1.7 - 0.8);
        }
        machine.set_parameters(&parameters).unwrap();
        let bits = Bits::from_fn(16, 4, |r, j| (r >> j) & 1 == 1);
        let data = Data::new(machine.data(vec![Batch::Bits(bits)]).unwrap());
        (machine, data)
    }

    #[test]
    fn new_units_without_weights_change_nothing() {
        let (machine, data) = trained();
        let bigger = grown(&machine, &data, 5, 0.0, 1).unwrap().unwrap();
        assert_eq!(bigger.layer(1).len(), 5);
        let p = machine.exact().log_probability(data.states()).unwrap();
        let q = bigger.exact().log_probability(data.states()).unwrap();
        for (p, q) in p.iter().zip(&q) {
            assert!((p - q).abs() < 1e-12, "{p} {q}");
        }
        // With small weights, nearly nothing; but the units differ, so that they can learn different things.
        let bigger = grown(&machine, &data, 5, 0.01, 1).unwrap().unwrap();
        let q = bigger.exact().log_probability(data.states()).unwrap();
        assert!(p.iter().zip(&q).all(|(p, q)| p != q && (p - q).abs() < 0.01), "{p:?} {q:?}");
        let w = bigger.couplings()[0].w();
        assert!(w[[0, 2]] != w[[0, 3]]);
    }

    #[test]
    fn machines_without_one_hidden_layer_do_not_grow() {
        let machine = Machine::<f64>::fully_visible(Layer::new(Kind::Binary, 3));
        assert!(resized(&machine, 4, Kind::Binary).unwrap().is_none());
    }
}
