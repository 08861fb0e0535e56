//! Checkpoints: the complete state of a run, so that a resumed run ends with the same bits.

use super::mixing::LikelihoodRange;
use super::watch::Best;
use super::white::White;
use super::{Control, Data, Event, Hooks, Observer, OffsetsAndScales, TrainParams, Trainer};
use crate::{Archive, Batch, Error, Machine, Real, Result, Tensor};
use ndarray::Array2;
use serde::Serialize;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// Seconds between two checkpoints of a run that front ends write where nothing else is set.
pub const CHECKPOINT_SECONDS: f64 = 30.0;

/// Version of the layout; others are refused.
const VERSION: u64 = 1;

impl<'d, T: Real> Trainer<'d, T> {
    /// Everything the rest of the run depends on: settings, parameters, optimiser, chains, averages,
    /// counters. Data order and random streams follow from the seed and the counters.
    pub fn checkpoint(&self) -> Archive {
        let mut archive = Archive::default();
        archive.put_u64s("version", &[VERSION]);
        archive.put("params", text(&self.plan.params()));
        archive.put("layers", text(&layers(&self.machine)));
        archive.put_u64s("data", &[fingerprint(&self.data)]);
        archive.put_u64s("counters", &[self.update, u64::from(self.undone_in_a_row)]);
        archive.put_f64s("factors", &[self.rate_factor, self.usual_norm]);
        archive.put_parameters("machine", &self.machine().parameters());
        if self.white.is_some() {
            // In the run's internal coordinates: a round trip would cost the last digits.
            archive.put_parameters("inside", &self.machine.parameters());
        }
        let mut below = |name: &str, save: &dyn Fn(&mut Archive)| {
            let mut part = Archive::default();
            save(&mut part);
            archive.put_below(name, part);
        };
        below("estimator", &|a| self.estimator.save(a));
        below("positive", &|a| self.positive.save(a));
        below("coordinates", &|a| self.coordinates.save(a));
        below("optimiser", &|a| self.stepper.save(a));
        below("best", &|a| self.best.save(a));
        below("safe", &|a| self.safe.save(a));
        below("climb", &|a| self.climb.save(a));
        below("own", &|a| self.hooks.save(a));
        archive
    }

    /// The run that `archive` is a checkpoint of; `machine` gives the layers and couplings only.
    ///
    /// # Errors
    /// A checkpoint of another format, machine or data.
    pub fn resume(machine: Machine<T>, data: &'d Data<T>, archive: &Archive) -> Result<Self> {
        Self::resume_with(machine, data, archive, Hooks::default())
    }

    /// As [`resume`](Self::resume), with the custom components that the run had, which a checkpoint does not contain.
    ///
    /// # Errors
    /// As for [`resume`](Self::resume); other custom components than the checkpoint lists.
    pub fn resume_with(
        mut machine: Machine<T>,
        data: &'d Data<T>,
        archive: &Archive,
        mut hooks: Hooks<'d, T>,
    ) -> Result<Self> {
        match archive.u64s("version")?[..] {
            [VERSION] => {}
            ref other => {
                let got = format!("{other:?}");
                return Err(Error::value("version of the checkpoint", VERSION, got));
            }
        }
        // Checkpoints of older versions do not say what their layers are.
        if let Ok(saved) = archive.get("layers")
            && *saved != text(&layers(&machine))
        {
            return Err(Error::value(
                "layers and couplings",
                "those of the checkpoint",
                "another machine",
            ));
        }
        hooks.load(&archive.below("own"))?;
        let plan = params(archive)?.plan(&machine, data)?;
        let white = White::new(&machine, data)?;
        let data = match &white {
            Some(white) => Cow::Owned(white.training_data(data)),
            None => Cow::Borrowed(data),
        };
        if archive.u64s("data")? != [fingerprint(&data)] {
            let what = "training data";
            return Err(Error::value(what, "those of the checkpoint", "other data"));
        }
        let name = if white.is_some() { "inside" } else { "machine" };
        let parameters = archive.parameters(name, &machine.parameters())?;
        machine.set_parameters(&parameters)?;
        // Chains are not drawn, because the checkpoint replaces them.
        let coordinates = OffsetsAndScales::blank(plan.form, &machine);
        let mut run = Self::assemble(machine, plan, data, white, coordinates, hooks, false)?;
        run.estimator.load(&archive.below("estimator"))?;
        run.positive.load(&archive.below("positive"))?;
        run.coordinates.load(&archive.below("coordinates"))?;
        run.stepper.load(&archive.below("optimiser"))?;
        run.best = Best::load(&archive.below("best"), &parameters)?;
        // Checkpoints of older versions have none.
        run.safe = Best::load(&archive.below("safe"), &parameters).unwrap_or_else(|_| Best::new());
        run.climb = LikelihoodRange::load(&archive.below("climb"));
        let damaged = |name: &str| Error::shape(format!("archive entry {name}"), 2, "other");
        let [update, undone] = archive.u64s("counters")?[..] else {
            return Err(damaged("counters"));
        };
        let [rate_factor, usual_norm] = archive.f64s("factors")?[..] else {
            return Err(damaged("factors"));
        };
        (run.update, run.undone_in_a_row) = (update, undone as u32);
        (run.rate_factor, run.usual_norm) = (rate_factor, usual_norm);
        Ok(run)
    }
}

/// What a machine is apart from its numbers: the name, role, kind and size of its layers, and which are coupled.
fn layers<T: Real>(machine: &Machine<T>) -> impl Serialize {
    let members = machine.members().iter();
    let members = members.map(|m| (m.name.clone(), m.role, m.layer.kind().word(), m.layer.len()));
    let couplings = machine.couplings().iter().map(|c| c.ends());
    (members.collect::<Vec<_>>(), couplings.collect::<Vec<_>>())
}

/// Settings as text, one code per byte, because archives hold numbers only.
fn text(params: &impl Serialize) -> Tensor {
    let json = serde_json::to_vec(params).expect("settings are plain data");
    let codes = json.iter().map(|&b| u32::from(b)).collect();
    Tensor::U32(Array2::from_shape_vec((1, json.len()), codes).expect("one row"))
}

/// The settings of the run that `archive` is a checkpoint of.
///
/// # Errors
/// An archive that holds none.
pub fn params(archive: &Archive) -> Result<TrainParams> {
    let bad = |got: String| Error::value("settings in the checkpoint", "JSON of settings", got);
    let Tensor::U32(codes) = archive.get("params")? else {
        return Err(bad("numbers".into()));
    };
    let json: Vec<u8> = codes.iter().map(|&c| c as u8).collect();
    serde_json::from_slice(&json).map_err(|e| bad(e.to_string()))
}

/// The checkpoint of a run that goes on with other settings.
pub(crate) fn with_params(mut archive: Archive, params: &TrainParams) -> Archive {
    archive.put("params", text(params));
    archive
}

/// A hash of all values and weights, to detect different data: each is mixed in by exclusive or, multiplication by the prime of FNV and
/// a rotation.
fn fingerprint<T: Real>(data: &Data<T>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut eat = |x: u64| hash = (hash ^ x).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
    for l in 0..data.states().len() {
        match data.states().get(l) {
            None => eat(0),
            Some(Batch::Bits(b)) => b.words().iter().for_each(|&w| eat(w)),
            Some(Batch::Codes(c)) => c.iter().for_each(|&c| eat(u64::from(c))),
            Some(Batch::Reals(x)) => x.iter().for_each(|x| eat(x.f64().to_bits())),
        }
    }
    data.known().iter().flatten().for_each(|k| k.words().iter().for_each(|&w| eat(w)));
    data.wts().into_iter().flatten().for_each(|w| eat(w.to_bits()));
    hash
}

/// Writes a checkpoint at regular intervals and at the end, replacing the one before.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    path: PathBuf,
    every: u64,
}

impl Checkpoints {
    /// Checkpoints in `path`, every `every` updates.
    pub fn new(path: impl AsRef<Path>, every: u64) -> Self {
        Self { path: path.as_ref().into(), every: every.max(1) }
    }
}

impl<T: Real> Observer<T> for Checkpoints {
    fn on_event(&mut self, event: &Event, run: &Trainer<'_, T>) -> Result<Control> {
        let due = match event {
            Event::UpdateFinished { update } => update.is_multiple_of(self.every),
            Event::Stopped { .. } => true,
            _ => false,
        };
        if due {
            run.checkpoint().save(&self.path)?;
        }
        Ok(Control::Continue)
    }
}

/// Saves the parameters at exponentially spaced updates, each in its own file.
#[derive(Clone, Debug)]
pub struct Snapshots {
    folder: PathBuf,
    ratio: f64,
}

impl Snapshots {
    /// Files `update-00000123.safetensors` in `folder`, at updates that grow by `ratio` (at least 1.01).
    pub fn new(folder: impl AsRef<Path>, ratio: f64) -> Self {
        Self { folder: folder.as_ref().into(), ratio: ratio.max(1.01) }
    }

    /// Whether to save at this update: the first one at or past each power of the ratio.
    pub fn keeps(&self, update: u64) -> bool {
        let power = |u: u64| ((u as f64).ln() / self.ratio.ln()).floor();
        update == 1 || update > 1 && power(update) > power(update - 1)
    }
}

impl<T: Real> Observer<T> for Snapshots {
    fn on_event(&mut self, event: &Event, run: &Trainer<'_, T>) -> Result<Control> {
        if let Event::Updated(u) = event
            && self.keeps(u.update)
        {
            let mut archive = Archive::default();
            archive.put_u64s("update", &[u.update]);
            archive.put_parameters("machine", &run.machine().parameters());
            archive.save(self.folder.join(format!("update-{:08}.safetensors", u.update)))?;
        }
        Ok(Control::Continue)
    }
}
