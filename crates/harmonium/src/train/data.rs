//! Training data: rows, their weights, and which entries are known.

use crate::exact::whole_rows;
use crate::{Bits, Error, Machine, Real, Result, Role, States};
use std::borrow::Cow;

/// Fewest rows without gaps that score a model in place of all rows.
const FEWEST_SCORED: usize = 20;

/// Rows of data with optional weights and missing entries.
#[derive(Clone, Debug, PartialEq)]
pub struct Data<T = f32> {
    states: States<T>,
    wts: Option<Vec<f64>>,
    known: Vec<Option<Bits>>,
    /// Log-likelihood of each row in the user's units minus that in the machine's.
    offsets: Option<Vec<f64>>,
}

impl<T: Real> Data<T> {
    /// Complete rows of equal weight, as [`Machine::data`] makes them.
    pub fn new(states: States<T>) -> Self {
        let known = vec![None; states.len()];
        Self { states, wts: None, known, offsets: None }
    }

    /// The same rows with weights.
    ///
    /// # Errors
    /// A wrong number of weights, one that is negative or not finite, or none that is positive.
    pub fn with_weights(mut self, wts: Vec<f64>) -> Result<Self> {
        if wts.len() != self.states.rows() {
            return Err(Error::shape("weights", self.states.rows(), wts.len()));
        }
        if let Some(r) = wts.iter().position(|w| !w.is_finite() || *w < 0.0) {
            return Err(Error::value(format!("weight of row {r}"), "a number ≥ 0", wts[r]));
        }
        if !wts.iter().any(|&w| w > 0.0) {
            return Err(Error::value("weights", "one that is positive", "none"));
        }
        self.wts = Some(wts);
        Ok(self)
    }

    /// The same rows, of which layer `l` is known only where the bit is set.
    ///
    /// # Errors
    /// A matrix of another shape.
    pub fn with_known(mut self, l: usize, known: Bits) -> Result<Self> {
        let x = self.states.layer(l)?;
        let (expected, got) = ((x.rows(), x.cols()), (known.rows(), known.cols()));
        if expected != got {
            let what = "known entries";
            return Err(Error::shape(what, format!("{expected:?}"), format!("{got:?}")));
        }
        self.known[l] = Some(known);
        Ok(self)
    }

    /// The same rows, measured in other units than the machine's: reported log-likelihoods are shifted by the offset of
    /// the row, $\ln|dz/dx|$ for numbers x that the machine sees as z.
    ///
    /// # Errors
    /// A wrong number of offsets, or one that is not finite.
    pub fn with_offsets(mut self, offsets: Vec<f64>) -> Result<Self> {
        if offsets.len() != self.states.rows() {
            return Err(Error::shape("offsets", self.states.rows(), offsets.len()));
        }
        if let Some(r) = offsets.iter().position(|x| !x.is_finite()) {
            return Err(Error::value(format!("offset of row {r}"), "a finite number", offsets[r]));
        }
        self.offsets = Some(offsets);
        Ok(self)
    }

    /// The rows.
    pub fn states(&self) -> &States<T> {
        &self.states
    }
    /// Their weights; equal when `None`.
    pub fn wts(&self) -> Option<&[f64]> {
        self.wts.as_deref()
    }
    /// Log-likelihood of each row in the user's units minus that in the machine's; zero when `None`.
    pub fn offsets(&self) -> Option<&[f64]> {
        self.offsets.as_deref()
    }
    /// The weighted mean of the offsets.
    pub fn mean_offset(&self) -> f64 {
        let Some(offsets) = &self.offsets else { return 0.0 };
        let wt = |r: usize| self.wts.as_ref().map_or(1.0, |w| w[r]);
        let total: f64 = (0..offsets.len()).map(wt).sum();
        offsets.iter().enumerate().map(|(r, x)| wt(r) * x).sum::<f64>() / total
    }
    /// For each layer, which entries are known; all when `None`.
    pub fn known(&self) -> &[Option<Bits>] {
        &self.known
    }
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.states.rows()
    }
    /// Whether entries are missing.
    pub fn is_missing(&self) -> bool {
        self.known.iter().any(Option::is_some)
    }

    /// The same rows without layer `l`.
    #[must_use]
    pub fn without_layer(mut self, l: usize) -> Self {
        self.states.take(l);
        self.known[l] = None;
        self
    }

    /// The same rows, all of equal weight.
    #[must_use]
    pub fn unweighted(mut self) -> Self {
        self.wts = None;
        self
    }

    /// Number of rows with missing entries.
    pub fn rows_with_gaps(&self) -> usize {
        self.rows() - whole_rows(self.rows(), &self.known).len()
    }

    /// The rows without missing entries, if there are any.
    pub fn whole(&self) -> Option<Cow<'_, States<T>>> {
        match whole_rows(self.rows(), &self.known) {
            rows if rows.is_empty() => None,
            rows if rows.len() == self.rows() => Some(Cow::Borrowed(&self.states)),
            rows => Some(Cow::Owned(self.states.select(&rows))),
        }
    }

    /// The rows without missing entries, with their weights, if they are enough to score a model.
    pub(crate) fn without_gaps(&self) -> Option<Cow<'_, Self>> {
        if !self.is_missing() {
            return Some(Cow::Borrowed(self));
        }
        let mut whole = self.select(&whole_rows(self.rows(), &self.known));
        whole.known.fill(None);
        (whole.positive_weight_rows().len() >= FEWEST_SCORED).then_some(Cow::Owned(whole))
    }

    /// The given rows with their weights.
    pub fn select(&self, rows: &[usize]) -> Self {
        Self {
            states: self.states.select(rows),
            wts: self.wts.as_ref().map(|w| rows.iter().map(|&r| w[r]).collect()),
            known: self.known.iter().map(|k| k.as_ref().map(|k| k.select(rows))).collect(),
            offsets: self.offsets.as_ref().map(|x| rows.iter().map(|&r| x[r]).collect()),
        }
    }

    /// The same rows with other states of the same shape, each log-likelihood larger by `offset`.
    pub(super) fn with_states(&self, states: States<T>, offset: f64) -> Self {
        let offsets = self.offsets.clone().unwrap_or_else(|| vec![0.0; self.rows()]);
        let offsets = Some(offsets.into_iter().map(|x| x + offset).collect());
        Self { states, wts: self.wts.clone(), known: self.known.clone(), offsets }
    }

    /// The rows of positive weight.
    pub(crate) fn positive_weight_rows(&self) -> Vec<usize> {
        let wt = |r: usize| self.wts.as_ref().map_or(1.0, |w| w[r]);
        (0..self.rows()).filter(|&r| wt(r) > 0.0).collect()
    }

    /// Whether the machine's visible and conditioning layers, and nothing else, are held.
    pub(crate) fn check(&self, machine: &Machine<T>) -> Result<()> {
        if self.states.len() != machine.len() {
            return Err(Error::shape("layers of the data", machine.len(), self.states.len()));
        }
        if self.positive_weight_rows().is_empty() {
            return Err(Error::shape("rows of the data", "at least one", 0));
        }
        for (l, m) in machine.members().iter().enumerate() {
            match (m.role, self.states.get(l)) {
                (Role::Hidden, Some(_)) => {
                    let what = format!("data of the hidden layer {}", m.name);
                    return Err(Error::shape(what, "none", "a batch"));
                }
                (Role::Hidden, None) => {}
                (_, None) => {
                    let what = format!("data of the layer {}", m.name);
                    return Err(Error::shape(what, "a batch", "none"));
                }
                (_, Some(x)) => machine.check_given(l, x)?,
            }
            if m.role == Role::Condition && self.known[l].is_some() {
                let what = format!("known entries of the conditioning layer {}", m.name);
                return Err(Error::value(what, "all", "some"));
            }
        }
        Ok(())
    }
}
