//! Layers, weights and parameters by name.

use super::{Machine, Role};
use crate::{Error, Real, Result, States};
use ndarray::{Array2, ArrayView1};
use std::borrow::Cow;

impl<T: Real> Machine<T> {
    /// The index of the layer of this name.
    ///
    /// # Errors
    /// No layer of this name; the message lists the names.
    pub fn layer_named(&self, name: &str) -> Result<usize> {
        self.find(name).ok_or_else(|| {
            let names: Vec<&str> = self.members.iter().map(|m| m.name.as_str()).collect();
            Error::value("layer", format!("one of {}", names.join(", ")), name)
        })
    }

    fn coupling_named(&self, a: &str, b: &str) -> Result<usize> {
        let (x, y) = (self.layer_named(a)?, self.layer_named(b)?);
        self.coupling_between(x, y).ok_or_else(|| {
            let pair = |c: &super::Coupling<T>| {
                let (a, b) = c.ends();
                format!("{}-{}", self.members[a].name, self.members[b].name)
            };
            let pairs: Vec<String> = self.couplings.iter().map(pair).collect();
            Error::value("coupling", format!("one of {}", pairs.join(", ")), format!("{a}-{b}"))
        })
    }

    /// The weights between two layers: a row for each column of the layer that comes first in the machine.
    ///
    /// # Errors
    /// Layers that do not exist or are not coupled.
    ///
    /// ```
    /// use harmonium::{Machine, binary};
    /// let mut rbm = Machine::rbm(binary(2), binary(3));
    /// rbm.set_weights("v", "h", ndarray::array![[0.0, 1.0, -1.0], [0.5, 0.0, 2.0]])?;
    /// assert_eq!(rbm.weights("v", "h")?[[1, 2]], 2.0);
    /// assert!(rbm.set_weights("v", "h", ndarray::array![[1.0]]).is_err());
    /// # Ok::<(), harmonium::Error>(())
    /// ```
    pub fn weights(&self, a: &str, b: &str) -> Result<&Array2<T>> {
        Ok(self.couplings[self.coupling_named(a, b)?].w())
    }

    /// Replaces the weights between two layers. Entries that the coupling's mask excludes become zero.
    ///
    /// # Errors
    /// Layers that are not coupled, another shape, a number that is not finite; weights within a layer that are not
    /// symmetric or couple a unit to itself. The machine is unchanged then.
    pub fn set_weights(&mut self, a: &str, b: &str, w: Array2<T>) -> Result<()> {
        let c = self.coupling_named(a, b)?;
        let (x, y) = self.couplings[c].ends();
        let expected = self.couplings[c].w().dim();
        if w.dim() != expected {
            let what = format!("weights {a}-{b}");
            return Err(Error::shape(what, format!("{expected:?}"), format!("{:?}", w.dim())));
        }
        let mut next = self.couplings[c].clone();
        next.w_mut().assign(&w);
        next.apply_mask();
        next.check(&self.members[x], &self.members[y])?;
        self.couplings[c] = next;
        Ok(())
    }

    /// A parameter of a layer, as `theta` or `gamma`: see [`Kind::params`](crate::Kind::params).
    ///
    /// # Errors
    /// No such layer or parameter.
    pub fn parameter(&self, layer: &str, name: &str) -> Result<ArrayView1<'_, T>> {
        let l = self.layer_named(layer)?;
        Ok(self.layer(l).params().row(self.parameter_row(l, name)?))
    }

    /// Replaces a parameter of a layer.
    ///
    /// # Errors
    /// No such layer or parameter, another length, a number that is not allowed. The machine is unchanged then.
    pub fn set_parameter(&mut self, layer: &str, name: &str, values: &[T]) -> Result<()> {
        let l = self.layer_named(layer)?;
        let row = self.parameter_row(l, name)?;
        let mut next = self.layer(l).clone();
        if values.len() != next.width() {
            return Err(Error::shape(format!("{name} of layer {layer}"), next.width(), values.len()));
        }
        next.params_mut().row_mut(row).assign(&ArrayView1::from(values));
        next.check()?;
        self.members[l].layer = next;
        Ok(())
    }

    fn parameter_row(&self, l: usize, name: &str) -> Result<usize> {
        let names = self.layer(l).kind().params();
        let what = || format!("parameter of layer {}", self.members[l].name);
        let row = names.iter().position(|n| *n == name);
        row.ok_or_else(|| Error::value(what(), format!("one of {}", names.join(", ")), name))
    }

    /// Whether every parameter and weight is a number that its layer or coupling allows.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn check(&self) -> Result<()> {
        for m in &self.members {
            m.layer
                .check()
                .map_err(|e| Error::value(format!("layer {}", m.name), "sound parameters", e))?;
        }
        for c in &self.couplings {
            let (a, b) = c.ends();
            c.check(&self.members[a], &self.members[b])?;
        }
        Ok(())
    }

    /// The machine of $e^{-\beta E}$: the energy is linear in the parameters, all of which are scaled.
    pub(crate) fn tempered_by(&self, beta: f64) -> Result<Self> {
        let mut machine = self.clone();
        if beta != 1.0 {
            let mut parameters = machine.parameters();
            parameters.scale(T::of(beta));
            machine.set_parameters(&parameters)?;
        }
        Ok(machine)
    }

    /// The machine with the class layer among the hidden ones where the rows do not hold it, and whether that is so.
    pub(crate) fn summing_over_unheld(&self, rows: &States<T>) -> Result<(Cow<'_, Self>, bool)> {
        match self.class_layer().filter(|&l| rows.get(l).is_none()) {
            None => Ok((Cow::Borrowed(self), false)),
            Some(l) => Ok((Cow::Owned(self.with_hidden(l)?), true)),
        }
    }

    /// The machine with layer `l` among the hidden ones, to be summed over.
    ///
    /// # Errors
    /// Never for a layer of a sound machine.
    pub fn with_hidden(&self, l: usize) -> Result<Self> {
        let mut members = self.members.clone();
        members[l].role = Role::Hidden;
        Self::new(members, self.couplings.clone())
    }
}
