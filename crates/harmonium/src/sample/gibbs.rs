//! One sweep: every layer is sampled once given the others.

use super::{Clamp, Clamps, gaussian};
use crate::{Batch, Bits, Coupling, Error, Layer, Machine, Real, Result, Role, States, Tempered};
use harmonium_kernels::{Key, Stream};
use ndarray::Array2;

/// The order in which a sweep visits the layers.
///
/// Layers are two-coloured along the couplings where that is possible, the hidden layers next to the visible ones
/// first: h, then v in an RBM; h1, h3 …, then v, h2 … in a deep machine. A sweep then reads only one colour before
/// writing it, and a chain need keep no more than that. Any order leaves the distribution unchanged, since each layer
/// is drawn from its conditional given the present states of all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    layers: Vec<usize>,
}

impl Order {
    /// The order for a machine.
    pub fn new<T: Real>(machine: &Machine<T>) -> Self {
        let n = machine.len();
        let mut late: Vec<bool> = (0..n).map(|l| machine.role(l) != Role::Hidden).collect();
        let mut known = late.clone();
        // Walk outwards from the given layers; hidden layers alternate.
        while let Some((l, colour)) = (0..n).filter(|&l| !known[l]).find_map(|l| {
            let next = |c: &Coupling<T>| c.other(l).filter(|&o| o != l && known[o]);
            machine.couplings().iter().find_map(next).map(|o| (l, !late[o]))
        }) {
            (late[l], known[l]) = (colour, true);
        }
        let (late, early): (Vec<_>, Vec<_>) = (0..n).partition(|&l| late[l]);
        Self { layers: early.into_iter().chain(late).collect() }
    }

    /// The layers in the order of the sweep.
    pub fn layers(&self) -> &[usize] {
        &self.layers
    }

    /// The layers whose states a sweep reads before it has drawn them: all that a chain must keep.
    pub fn needed<T: Real>(&self, machine: &Machine<T>, clamps: &Clamps) -> Vec<usize> {
        let position = |l: usize| self.layers.iter().position(|&k| k == l);
        let free = |l: usize| *clamps.layer(l) != Clamp::All;
        let read_early = |l: usize| {
            machine
                .couplings()
                .iter()
                .any(|c| c.other(l).is_some_and(|o| free(o) && (o == l || position(o) < position(l))))
        };
        (0..machine.len()).filter(|&l| *clamps.layer(l) != Clamp::Free || read_early(l)).collect()
    }
}

/// Stream of layer `l`: the low byte of a purpose is the layer.
pub(crate) fn layer_key(key: Key, l: usize) -> Key {
    Key { purpose: key.purpose << 8 | l as u32 & 0xff, ..key }
}

/// Draws every unit that is not clamped once, layer by layer: a layer without lateral couplings as one block, a
/// Gaussian layer with them jointly, any other layer with them unit by unit. `states` must hold the layers that are
/// read or clamped, and holds all layers afterwards.
///
/// # Errors
/// A layer that is not held, or clamps that do not fit.
pub fn sweep<T: Real>(
    model: &Tempered<'_, T>,
    order: &Order,
    states: &mut States<T>,
    clamps: &Clamps,
    key: Key,
) -> Result<()> {
    clamps.check(model.machine(), states.rows())?;
    for &l in order.layers() {
        if *clamps.layer(l) == Clamp::All {
            states.layer(l)?;
            continue;
        }
        let lateral = model.machine().couplings().iter().find(|c| c.ends() == (l, l));
        let mask = match clamps.layer(l) {
            Clamp::Units(mask) => Some(mask),
            _ => None,
        };
        let (layer, key) = (model.layer(l), layer_key(key, l));
        match lateral {
            Some(coupling) => {
                states.layer(l)?;
                let inputs = model.inputs(l, states)?;
                let mut x = states.take(l).expect("just seen");
                let is_drawn = layer.kind().is_normal()
                    && gaussian::jointly(layer, coupling, model.beta(), &inputs, mask, key, &mut x);
                if !is_drawn {
                    unit_by_unit(layer, coupling, T::of(model.beta()), &inputs, mask, key, &mut x);
                }
                states.set(l, if mask.is_none() { hardened(layer, x)? } else { x });
            }
            None => {
                let old = states.take(l);
                let (mut x, kept) = match mask {
                    None => {
                        let old = old.filter(|x| !layer.is_soft(x));
                        (old.unwrap_or_else(|| layer.zeros(states.rows())), None)
                    }
                    Some(mask) => {
                        let missing = || {
                            Error::shape(format!("states of the clamped layer {l}"), "a batch", "none")
                        };
                        (layer.zeros(states.rows()), Some((old.ok_or_else(missing)?, mask)))
                    }
                };
                model.sample_into(l, states, key, &mut x)?;
                if let Some((old, mask)) = kept {
                    if layer.is_soft(&old) {
                        x = Batch::Reals(layer.dense(&x));
                    }
                    x.copy_masked(&old, mask);
                }
                states.set(l, x);
            }
        }
    }
    Ok(())
}

/// Converts soft bits to states, after all their units have been drawn.
fn hardened<T: Real>(layer: &Layer<T>, x: Batch<T>) -> Result<Batch<T>> {
    match x {
        Batch::Reals(x) if layer.kind().takes_soft_data() => layer.batch(x.view()),
        x => Ok(x),
    }
}

/// One pass over the units of a layer with lateral couplings: each unit is drawn given the present states of the others
/// through its field $I + \beta xU$, which is updated whenever a unit changes.
fn unit_by_unit<T: Real>(
    layer: &Layer<T>,
    coupling: &Coupling<T>,
    beta: T,
    inputs: &Array2<T>,
    mask: Option<&Bits>,
    key: Key,
    x: &mut Batch<T>,
) {
    let u = coupling.w();
    let n = u.ncols();
    let u = u.as_slice().expect("weights are in standard layout");
    let row = |j: usize| &u[j * n..(j + 1) * n];
    let add = |field: &mut [T], scale: T, j: usize| {
        field.iter_mut().zip(row(j)).for_each(|(f, &w)| *f += scale * w);
    };
    let (c, one_hot) = (layer.kind().columns(), layer.kind().one_hot().is_some());
    let start = |block: usize| (Stream::new(Key { block: block as u32, ..key }), vec![T::zero(); n]);
    layer.rows_mut(inputs, x, true, start, |(rng, field), r, inputs, x| {
        field.copy_from_slice(inputs);
        for (j, &x) in x.iter().enumerate() {
            match one_hot {
                true => add(field, beta, j * c + x as usize),
                false => add(field, beta * T::of(x), j),
            }
        }
        for j in 0..x.len() {
            if mask.is_some_and(|m| m.get(r, j)) {
                continue;
            }
            let (old, new) = (x[j], layer.sample_unit(j, &field[j * c..(j + 1) * c], rng));
            if new != old {
                match one_hot {
                    true => {
                        add(field, -beta, j * c + old as usize);
                        add(field, beta, j * c + new as usize);
                    }
                    false => add(field, beta * T::of(new - old), j),
                }
                x[j] = new;
            }
        }
    });
}
