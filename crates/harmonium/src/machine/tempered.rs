//! A machine at an inverse temperature: inputs, conditional means, samples and free energies under e^{−βE}.

use super::phase::Work;
use super::{Machine, Role, product};
use crate::{Batch, Error, Layer, Real, Result, States};
use harmonium_kernels::{Key, fixed};
use ndarray::Array2;

/// The distribution $\nu(x) e^{-\beta E(x)}/Z_\beta$ of a machine.
///
/// The energy is linear in the parameters, so an inverse temperature only scales the parameters: the layers are scaled
/// copies and inputs are multiplied by β on their way. The reference measure ν (the multiplicities of counts) is not
/// tempered.
///
/// [`Machine::between`] makes the same kind of view on the way from other layers without couplings to the
/// machine: its layers are mixtures, its couplings are scaled by β.
#[derive(Clone, Debug)]
pub struct Tempered<'m, T: Real = f32> {
    machine: &'m Machine<T>,
    /// Where they are not those of the machine.
    layers: Option<Vec<Layer<T>>>,
    beta: f64,
}

impl<'m, T: Real> Tempered<'m, T> {
    pub(super) fn new(machine: &'m Machine<T>, beta: f64) -> Self {
        let tempered = || machine.members().iter().map(|m| m.layer.tempered(beta)).collect();
        Self { machine, layers: (beta != 1.0).then(tempered), beta }
    }

    pub(super) fn between(machine: &'m Machine<T>, base: &[Layer<T>], beta: f64) -> Self {
        let mix = |(m, base): (&'m super::Member<T>, &Layer<T>)| m.layer.mixed(base, beta);
        let layers = machine.members().iter().zip(base).map(mix).collect();
        Self { machine, layers: Some(layers), beta }
    }

    /// The machine, untempered.
    pub fn machine(&self) -> &'m Machine<T> {
        self.machine
    }
    /// β, the factor of the couplings.
    pub fn beta(&self) -> f64 {
        self.beta
    }
    /// Layer `l` with its parameters times β (or mixed with those of the base).
    pub fn layer(&self, l: usize) -> &Layer<T> {
        self.layers.as_ref().map_or_else(|| self.machine.layer(l), |layers| &layers[l])
    }

    /// The input of layer `l` from the other layers, times β: $\beta\sum_a x_a W_{al}$. Lateral couplings are not
    /// included.
    ///
    /// # Errors
    /// When a layer coupled to `l` is not held in `states`.
    pub fn inputs(&self, l: usize, states: &States<T>) -> Result<Array2<T>> {
        let mut inputs = Array2::zeros((states.rows(), self.layer(l).width()));
        self.add_inputs(l, states, &mut inputs)?;
        Ok(inputs)
    }

    /// [`inputs`](Self::inputs) into the caller's buffer, which is overwritten.
    ///
    /// # Errors
    /// When a layer coupled to `l` is not held in `states`.
    pub fn inputs_into(&self, l: usize, states: &States<T>, out: &mut Array2<T>) -> Result<()> {
        out.fill(T::zero());
        self.add_inputs(l, states, out)
    }

    fn add_inputs(&self, l: usize, states: &States<T>, out: &mut Array2<T>) -> Result<()> {
        for c in self.machine.couplings().iter().filter(|c| !c.is_lateral()) {
            if let Some(from) = c.other(l) {
                let x = states.layer(from)?;
                product::add(from, self.machine.layer(from), x, c, T::of(self.beta), out);
            }
        }
        Ok(())
    }

    /// Conditional means of layer `l` given the others, in dense form.
    ///
    /// # Errors
    /// [`Error::Undefined`] when the layer has lateral couplings: its units are then not independent.
    pub fn mean(&self, l: usize, states: &States<T>) -> Result<Array2<T>> {
        self.must_factorise("the conditional mean of a layer", &[l])?;
        let inputs = self.inputs(l, states)?;
        let mut mean = Array2::zeros(inputs.dim());
        self.layer(l).mean_into(&inputs, &mut mean);
        Ok(mean)
    }

    /// A sample of layer `l` given the others.
    ///
    /// # Errors
    /// As for [`mean`](Self::mean).
    pub fn sample(&self, l: usize, states: &States<T>, key: Key) -> Result<Batch<T>> {
        let mut out = self.layer(l).zeros(states.rows());
        self.sample_into(l, states, key, &mut out)?;
        Ok(out)
    }

    /// [`sample`](Self::sample) into the caller's batch.
    ///
    /// A large machine in single precision is sampled in fixed point: exactly, except that its weights are rounded to a
    /// step (2⁻¹¹ or so) that shifts no logit by more than [`TOLERANCE`](harmonium_kernels::fixed::TOLERANCE) in the
    /// worst of all states, typically by some thousandths. Weights too large for that, and double precision, take the
    /// slower path without rounding.
    ///
    /// # Errors
    /// As for [`mean`](Self::mean).
    pub fn sample_into(&self, l: usize, states: &States<T>, key: Key, out: &mut Batch<T>) -> Result<()> {
        self.must_factorise("an independent sample of a layer", &[l])?;
        let layer = self.layer(l);
        assert_eq!((out.rows(), out.cols()), (states.rows(), layer.len()), "a batch that fits");
        if let Batch::Bits(bits) = out {
            let sample = |field: fixed::Field<'_>| field.sample(key, bits.words_mut());
            if self.machine.with_fixed_field(l, layer, self.beta, states, sample) {
                return Ok(());
            }
        }
        layer.sample_into(&self.inputs(l, states)?, key, out);
        Ok(())
    }

    /// Conditional means of layer `l` for moments; where `rounded` allows and the layer is sampled in fixed point,
    /// in that form and from the same rounded weights as the samples: both phases then belong to one machine.
    pub(super) fn mean_for_moments(
        &self,
        l: usize,
        states: &States<T>,
        rounded: bool,
        work: &mut Work<T>,
    ) -> Result<()> {
        let layer = self.layer(l);
        let Work { is_rounded, rounded: means, mean, inputs, .. } = work;
        let round = |field: fixed::Field<'_>| field.rounded_means(means);
        *is_rounded = rounded && self.machine.with_fixed_field(l, layer, self.beta, states, round);
        if *is_rounded {
            return Ok(());
        }
        reshape(mean, (states.rows(), layer.width()));
        let filled = T::as_f32_mut(product::slice_mut(mean)).is_some_and(|means| {
            self.machine.with_fixed_field(l, layer, self.beta, states, |field| field.means(means))
        });
        if !filled {
            reshape(inputs, mean.dim());
            self.inputs_into(l, states, inputs)?;
            layer.mean_into(inputs, mean);
        }
        Ok(())
    }

    /// As [`mean_for_moments`](Self::mean_for_moments), with a sample from the same inputs.
    pub(super) fn sample_with_mean(
        &self,
        l: usize,
        states: &States<T>,
        rounded: bool,
        key: Key,
        x: &mut Batch<T>,
        work: &mut Work<T>,
    ) -> Result<()> {
        let layer = self.layer(l);
        let Work { is_rounded, rounded: means, mean, inputs, .. } = work;
        *is_rounded = false;
        if let (Batch::Bits(bits), true) = (&mut *x, rounded) {
            let both = |field: fixed::Field<'_>| field.sample_with_means(key, bits.words_mut(), means);
            *is_rounded = self.machine.with_fixed_field(l, layer, self.beta, states, both);
        }
        if !*is_rounded {
            let shape = (states.rows(), layer.width());
            reshape(inputs, shape);
            self.inputs_into(l, states, inputs)?;
            layer.sample_into(inputs, key, x);
            reshape(mean, shape);
            layer.mean_into(inputs, mean);
        }
        Ok(())
    }

    /// The most probable state of each unit of layer `l` given the others.
    ///
    /// # Errors
    /// As for [`mean`](Self::mean).
    pub fn mode(&self, l: usize, states: &States<T>) -> Result<Batch<T>> {
        self.must_factorise("the mode of a layer", &[l])?;
        Ok(self.layer(l).mode(&self.inputs(l, states)?))
    }

    /// $\ln\nu(x) - \beta E(x)$ of each row: the logarithm of its unnormalised probability.
    ///
    /// # Errors
    /// When a layer is not held in `states`.
    pub fn log_weight(&self, states: &States<T>) -> Result<Vec<f64>> {
        self.log_weight_of(&(0..self.machine.len()).collect::<Vec<_>>(), states)
    }

    /// The part of [`log_weight`](Self::log_weight) that lies inside the given layers.
    pub(crate) fn log_weight_of(&self, set: &[usize], states: &States<T>) -> Result<Vec<f64>> {
        let mut energy = self.machine.coupling_energy(set, states)?;
        energy.iter_mut().for_each(|e| *e *= self.beta);
        for &l in set {
            self.layer(l).add_energy(states.layer(l)?, &mut energy);
        }
        let mut out: Vec<f64> = energy.into_iter().map(|e| -e).collect();
        for &l in set {
            self.layer(l).add_log_measure(states.layer(l)?, &mut out);
        }
        Ok(out)
    }

    /// $F(v) = -\ln\sum_h \nu(v,h) e^{-\beta E(v,h)}$ of each row of the visible layers, so that
    /// $p(v) = e^{-F(v)}/Z$; conditioning layers count as given.
    ///
    /// # Errors
    /// [`Error::Undefined`] when the hidden layers are not independent given the visible ones.
    pub fn free_energy(&self, states: &States<T>) -> Result<Vec<f64>> {
        let (hidden, given): (Vec<_>, Vec<_>) =
            (0..self.machine.len()).partition(|&l| self.machine.role(l) == Role::Hidden);
        self.must_factorise("the free energy F(v)", &hidden)?;
        let mut log_weight = self.log_weight_of(&given, states)?;
        for h in hidden {
            self.layer(h).add_cgf(&self.inputs(h, states)?, &mut log_weight);
        }
        Ok(log_weight.into_iter().map(|x| -x).collect())
    }

    pub(crate) fn must_factorise(&self, what: &'static str, set: &[usize]) -> Result<()> {
        let inside = |c: &&super::Coupling<T>| set.contains(&c.ends().0) && set.contains(&c.ends().1);
        match self.machine.couplings().iter().find(inside) {
            None => Ok(()),
            Some(c) => {
                let name = |l: usize| &self.machine.members()[l].name;
                let (a, b) = c.ends();
                let why = format!(
                    "the coupling {}-{} ties units together that would have to be independent",
                    name(a),
                    name(b)
                );
                Err(Error::Undefined { what, why })
            }
        }
    }
}

/// Reshapes an array that will be overwritten.
fn reshape<T: Real>(a: &mut Array2<T>, shape: (usize, usize)) {
    if a.dim() != shape {
        *a = Array2::zeros(shape);
    }
}
