//! Weights in the fixed point of the kernels: made when a layer is first sampled, kept until they change.

use super::{Coupling, Machine, product};
use crate::units::Form;
use crate::{Batch, Layer, Real, States};
use harmonium_kernels::{Codes, fixed};
use ndarray::Array2;
use std::borrow::Cow;
use std::sync::OnceLock;

/// Fewest weights for which tables pay off. Smaller machines are fast to sample anyway, and their samples are compared
/// with exact enumeration, so their weights are not rounded.
const MIN_WEIGHTS: usize = 4096;

fn side<T: Real>(layer: &Layer<T>) -> Option<fixed::Side> {
    let (kind, n) = (layer.kind(), layer.len());
    match (kind.form(), kind.one_hot()) {
        (Form::Bits, _) if kind.lowest() < 0.0 => Some(fixed::Side::Spin(n)),
        (Form::Bits, _) => Some(fixed::Side::Binary(n)),
        (_, Some(q)) => Some(fixed::Side::Potts { sites: n, q: q as usize }),
        _ => None,
    }
}

/// The weights of a coupling in the form that sampling uses: tables exist in single precision with bits or codes at
/// both ends. They belong to the coupling, which makes them when it is first sampled and drops them when a weight may
/// change; an update, which writes all weights, takes them out and brings them back rewritten. Copies start empty.
#[derive(Debug, Default)]
pub(super) struct Tables {
    ready: OnceLock<Option<fixed::Coupling>>,
    /// Memory for the tables of weights that are about to be written.
    spare: Option<fixed::Coupling>,
}

impl Clone for Tables {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Tables {
    /// To be called when a weight may change.
    pub(super) fn invalidate(&mut self) {
        self.ready.take();
    }

    /// Takes the tables out.
    fn take(&mut self) -> Option<fixed::Coupling> {
        self.ready.take().flatten().or(self.spare.take())
    }

    fn get<T: Real>(&self, machine: &Machine<T>, c: &Coupling<T>) -> Option<&fixed::Coupling> {
        let make = || {
            let (a, b) = c.ends();
            if c.w().len() < MIN_WEIGHTS || c.is_lateral() {
                return None;
            }
            let (a, b) = (side(machine.layer(a))?, side(machine.layer(b))?);
            let w = T::as_f32(product::slice(c.w()))?;
            let mut tables = fixed::Coupling::new(a, b);
            tables.refresh(w);
            Some(tables)
        };
        self.ready.get_or_init(make).as_ref()
    }
}

impl<T: Real> Coupling<T> {
    /// The weights, all of which are about to be written, and tables that may follow them, to be given back
    /// by [`put_tables`](Self::put_tables).
    pub(crate) fn rewrite(&mut self) -> (&mut Array2<T>, Option<fixed::Coupling>) {
        let tables = self.tables.take();
        (&mut self.w, tables)
    }

    /// Takes tables back, to which all strips of the present weights have been given if they have followed them; else they are
    /// made from the weights.
    pub(crate) fn put_tables(&mut self, mut tables: fixed::Coupling, followed: bool) {
        let w = T::as_f32(product::slice(&self.w)).expect("tables are for single precision");
        if followed {
            tables.rewritten(w)
        } else {
            tables.refresh(w)
        }
        self.tables.ready = OnceLock::from(Some(tables));
    }
}

impl<T: Real> Machine<T> {
    /// Takes the memory of the other's prepared weights, which that one would have to make again: for a machine of the same
    /// shape that takes its place, so that one set stays in the cache of the processor.
    pub(crate) fn inherit(&mut self, other: &mut Self) {
        for (mine, theirs) in self.couplings.iter_mut().zip(&mut other.couplings) {
            if let Some(tables) = theirs.tables.take() {
                mine.tables.spare = Some(tables);
                mine.tables.invalidate();
            }
        }
    }

    /// Calls `f` with the fixed-point field β(θ+I) of layer `l`, unless the layer, its precision or one of its inputs
    /// has no fixed-point form or the weights are too large for it; returns whether `f` was called.
    ///
    /// `layer` is the layer with β in its parameters.
    pub(super) fn with_fixed_field(
        &self,
        l: usize,
        layer: &Layer<T>,
        beta: f64,
        states: &States<T>,
        f: impl FnOnce(fixed::Field<'_>),
    ) -> bool {
        let target = match side(layer) {
            Some(side @ (fixed::Side::Binary(_) | fixed::Side::Spin(_))) => side,
            _ => return false,
        };
        let Some(theta) = T::as_f32(product::slice(layer.params())) else { return false };
        let mut f = Some(f);
        // At such a small β, the hot end of a ladder, dividing θ by it would lose digits.
        if beta < 1e-3 || states.rows() == 0 {
            return false;
        }
        let mut couplings = self.couplings().iter().filter(|c| c.other(l).is_some_and(|from| from != l));
        let Some(first) = couplings.next() else { return false };
        let Some(first) = self.fixed_input(l, first, states) else { return false };
        let theta = match beta {
            1.0 => Cow::Borrowed(theta),
            _ => Cow::Owned(theta.iter().map(|t| t / beta as f32).collect()),
        };
        let mut call = |inputs: &[fixed::Input<'_>]| {
            let f = f.take().expect("called once");
            f(fixed::Field::new(target, states.rows(), &theta, beta as f32, inputs));
        };
        // Most layers have one coupling, for which nothing need be allocated.
        let Some(second) = couplings.next() else {
            call(&[first]);
            return true;
        };
        let rest = [second].into_iter().chain(couplings).map(|c| self.fixed_input(l, c, states));
        let Some(inputs) = [Some(first)].into_iter().chain(rest).collect::<Option<Vec<_>>>() else {
            return false;
        };
        call(&inputs);
        true
    }

    /// The coupling as an input in fixed point to its end `l`, if it has that form.
    fn fixed_input<'a>(
        &'a self,
        l: usize,
        c: &'a Coupling<T>,
        states: &'a States<T>,
    ) -> Option<fixed::Input<'a>> {
        let from = c.other(l)?;
        let (fixed, x) = (c.tables.get(self, c)?, states.get(from)?);
        if !fixed.is_trusted() {
            return None;
        }
        let direction = if from == c.ends().0 { fixed.forward() } else { fixed.backward() };
        let states = match (x, self.layer(from).kind().one_hot()) {
            (Batch::Bits(b), _) => fixed::States::Bits(b.view()),
            (Batch::Codes(x), Some(q)) => {
                let codes = x.as_slice().expect("codes are in standard layout");
                fixed::States::Codes(Codes::new(codes, x.ncols(), q as usize))
            }
            _ => return None,
        };
        Some(fixed::Input { direction, states })
    }
}
