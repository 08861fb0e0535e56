//! Discriminative and hybrid training of class machines: the labels are averaged over exactly.

use super::{Context, Estimator, Info, NegativePhase, Setup};
use crate::machine::{Parameters, Phase, Tempered};
use crate::{Archive, Batch, Error, Machine, Real, Result, Role, States};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

/// Settings of [`Labels`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LabelsParams {
    /// Name of the layer of the class: a visible Potts unit. The only such layer when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<String>,
    /// Weight of the discriminative gradient: 1 trains $\ln p(y|v)$, less mixes in $\ln p(v,y)$.
    pub part: f64,
    /// Estimator of the generative part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generative: Option<Box<Estimator>>,
}

impl LabelsParams {
    pub(crate) const DEFAULT: Self = Self { layer: None, part: 1.0, generative: None };
}

impl Default for LabelsParams {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The layer of the class.
pub(super) fn label_layer<T: Real>(
    params: &LabelsParams,
    machine: &Machine<T>,
) -> std::result::Result<usize, String> {
    let is_label = |&l: &usize| {
        let layer = machine.layer(l);
        layer.kind().one_hot().is_some() && layer.len() == 1
    };
    let hidden: Vec<_> = machine.with_role(Role::Hidden).collect();
    if !machine.independent(&hidden) {
        return Err("p(y|v) needs hidden layers that are independent given the visible ones".into());
    }
    let all: Vec<usize> = machine.with_role(Role::Visible).filter(is_label).collect();
    match (&params.layer, &all[..]) {
        (Some(name), _) => all
            .iter()
            .copied()
            .find(|&l| machine.members()[l].name == *name)
            .ok_or_else(|| format!("no visible layer `{name}` is a single Potts unit")),
        (None, [l]) => Ok(*l),
        (None, []) => Err("no visible layer is a single Potts unit".into()),
        (None, _) => Err("several visible layers are single Potts units: name one".into()),
    }
}

/// $p(y\mid v) = e^{-F(v,y)}/\sum_{y'}e^{-F(v,y')}$ of each row and class; the row's own label is not read.
///
/// # Errors
/// When layer `l` is not a Potts unit, or the hidden layers are not independent given the visible ones.
pub fn label_probabilities<T: Real>(
    model: &Tempered<'_, T>,
    l: usize,
    states: &States<T>,
) -> Result<Array2<f64>> {
    label_probabilities_by(model.machine(), l, states, |states| model.free_energy(states))
}

/// As [`label_probabilities`], with F(v,y) computed by `free_energy`, for example by enumeration where hidden layers
/// are coupled.
///
/// # Errors
/// When layer `l` is not a Potts unit; errors of the free energy.
pub fn label_probabilities_by<T: Real>(
    machine: &Machine<T>,
    l: usize,
    states: &States<T>,
    free_energy: impl Fn(&States<T>) -> Result<Vec<f64>>,
) -> Result<Array2<f64>> {
    let Some(q) = machine.layer(l).kind().one_hot() else {
        return Err(Error::value("label layer", "a Potts unit", machine.layer(l).kind()));
    };
    let mut p = Array2::zeros((states.rows(), q as usize));
    for a in 0..q {
        let f = free_energy(&labelled(states, l, a))?;
        p.column_mut(a as usize).iter_mut().zip(f).for_each(|(p, f)| *p = -f);
    }
    for mut row in p.rows_mut() {
        let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        row.mapv_inplace(|x| (x - top).exp());
        let sum = row.sum();
        row.mapv_inplace(|x| x / sum);
    }
    Ok(p)
}

/// The states with label `a` in every row.
fn labelled<T: Real>(states: &States<T>, l: usize, a: u32) -> States<T> {
    let mut out = states.clone();
    out.set(l, Batch::Codes(Array2::from_elem((states.rows(), 1), a)));
    out
}

/// Negative phase with v clamped and the label free, mixed with a generative one.
pub struct Labels<T: Real> {
    layer: usize,
    part: f64,
    generative: Option<Box<dyn NegativePhase<T>>>,
    buffer: Parameters<T>,
}

impl<T: Real> Labels<T> {
    /// The estimator of these settings.
    ///
    /// # Errors
    /// A machine without labels, a part outside [0, 1].
    pub fn new(setup: &Setup<'_, T>, params: &LabelsParams) -> Result<Self> {
        let layer = label_layer(params, setup.machine).map_err(|why| Error::Inapplicable {
            what: "estimator labels".into(),
            why,
            instead: super::applicable(setup.machine).into_iter().map(Into::into).collect(),
        })?;
        if !(0.0..=1.0).contains(&params.part) {
            return Err(Error::value("estimator.part", "a number in [0, 1]", params.part));
        }
        let generative = match &params.generative {
            Some(e) => Some(e.build(setup)?),
            None if params.part < 1.0 => {
                Some(Estimator::Pcd { sweeps: None, chains: None }.build(setup)?)
            }
            None => None,
        };
        Ok(Self { layer, part: params.part, generative, buffer: setup.machine.zero_parameters() })
    }
}

impl<T: Real> NegativePhase<T> for Labels<T> {
    fn name(&self) -> &'static str {
        "labels"
    }

    /// $\pi\sum_{y}p(y|v)\langle t\rangle_{v,y} + (1-\pi)\langle t\rangle_{\text{model}}$.
    fn estimate(&mut self, context: &Context<'_, T>, out: &mut Phase<T>) -> Result<Info> {
        let mut info = match &mut self.generative {
            Some(g) if self.part < 1.0 => g.estimate(context, out)?,
            _ => Info::default(),
        };
        let machine = context.model.machine();
        let hidden: Vec<_> = machine.with_role(Role::Hidden).collect();
        let p = label_probabilities(context.model, self.layer, context.data)?;
        let wt = |r: usize| context.wts.map_or(1.0, |w| w[r]);
        let total: f64 = (0..p.nrows()).map(wt).sum();
        self.buffer.fill(T::zero());
        for (a, p) in p.columns().into_iter().enumerate() {
            let wts: Vec<f64> = p.iter().enumerate().map(|(r, p)| wt(r) * p).collect();
            let mass = wts.iter().sum::<f64>() / total;
            if mass > 0.0 {
                let states = labelled(context.data, self.layer, a as u32);
                let wts = Some(&wts[..]);
                context.model.add_moments(&states, &hidden, wts, mass, &mut self.buffer)?;
            }
        }
        let out = out.parameters_mut();
        out.scale(T::of(if self.part < 1.0 { 1.0 - self.part } else { 0.0 }));
        if self.part == 1.0 {
            out.fill(T::zero());
        }
        out.add(T::of(self.part), &self.buffer);
        info.metrics.push(("label_log_likelihood", label_score(&p, context, self.layer)?));
        Ok(info)
    }

    fn save(&self, archive: &mut Archive) {
        if let Some(g) = &self.generative {
            let mut part = Archive::default();
            g.save(&mut part);
            archive.put_below("generative", part);
        }
    }

    fn load(&mut self, archive: &Archive) -> Result<()> {
        self.generative.as_mut().map_or(Ok(()), |g| g.load(&archive.below("generative")))
    }
}

/// Mean of $\ln p(y|v)$ over the minibatch.
fn label_score<T: Real>(p: &Array2<f64>, context: &Context<'_, T>, l: usize) -> Result<f64> {
    let Batch::Codes(y) = context.data.layer(l)? else {
        return Err(Error::value("labels", "codes", "something else"));
    };
    let wt = |r: usize| context.wts.map_or(1.0, |w| w[r]);
    let (sum, total) = (0..p.nrows()).fold((0.0, 0.0), |(sum, total), r| {
        (sum + wt(r) * p[[r, y[[r, 0]] as usize]].ln(), total + wt(r))
    });
    Ok(sum / total)
}
