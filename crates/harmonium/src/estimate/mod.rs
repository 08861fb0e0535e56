//! Estimators of the negative phase, behind one interface.

mod applicable;
mod cd;
mod choice;
mod exact;
mod fpcd;
mod jarzynski;
mod labels;
mod pcd;
mod pl;
mod positive;
mod pt;
mod ptt;
mod rcm;
mod sweep_count;
mod tap;
mod ucd;

pub use applicable::applicable;
pub use cd::Cd;
pub(crate) use choice::Steps;
pub use choice::{Estimator, Setup};
pub use exact::Exact;
pub use fpcd::{Fpcd, FpcdParams};
pub use jarzynski::{Jarzynski, JarzynskiParams};
pub use labels::{Labels, LabelsParams, label_probabilities, label_probabilities_by};
pub use pcd::Pcd;
pub use pl::Pl;
pub use positive::{Averaging, Positive};
pub use pt::{Pt, PtParams};
pub use ptt::{Ptt, PttParams};
pub use rcm::{LowRank, RcmParams, low_rank_start};
pub use tap::{Expansion, Tap, TapParams};
pub use ucd::{Ucd, UcdParams};

use crate::machine::{Phase, Tempered};
use crate::sample::Stop;
use crate::{Archive, Chains, Error, Machine, Real, Result, Role, States};

/// The inputs of an estimator in one update.
#[derive(Clone, Copy)]
pub struct Context<'a, T: Real> {
    /// The machine at β = 1.
    pub model: &'a Tempered<'a, T>,
    /// The minibatch: visible (and conditioning) layers held, with missing entries drawn; hidden layers
    /// are held as well where the positive phase had to draw them.
    pub data: &'a States<T>,
    /// Weights of its rows.
    pub wts: Option<&'a [f64]>,
    /// The moments of the positive phase, already computed from the minibatch.
    pub positive: &'a Phase<T>,
    /// The run's seed.
    pub seed: u64,
    /// Number of this update, counted from 1.
    pub update: u64,
    /// Asked for between sweeps; the run then goes back to where the update began.
    pub stop: Stop<'a>,
}

/// Diagnostics of an estimator after an update: named numbers for the metrics file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Info {
    /// `("acceptance", 0.41)` and the like.
    pub metrics: Vec<(&'static str, f64)>,
}

/// Whether an estimator accepts a parameter update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Go on.
    Accept,
    /// The chains cannot follow: go back to the old parameters and lower the learning rate.
    Reject,
}

/// An estimator of $\langle t(x)\rangle$ with nothing clamped.
///
/// The gradient of the mean log-likelihood is `positive − negative`. An estimator whose gradient has another
/// form (pseudo-likelihood) writes the `negative` that makes this difference its gradient.
pub trait NegativePhase<T: Real>: Send {
    /// Name, as in configurations.
    fn name(&self) -> &'static str;

    /// Writes the moments into `out`.
    ///
    /// # Errors
    /// Errors of sampling or enumeration.
    fn estimate(&mut self, context: &Context<'_, T>, out: &mut Phase<T>) -> Result<Info>;

    /// The persistent chains, if the estimator has some.
    fn chains(&self) -> Option<&States<T>> {
        None
    }

    /// Called after every update, before it is final: the machine was `old` and is now `new`.
    ///
    /// # Errors
    /// Errors of sampling.
    fn updated(&mut self, _old: &Machine<T>, _new: &Machine<T>) -> Result<Decision> {
        Ok(Decision::Accept)
    }

    /// Saves everything that the next update depends on; an estimator without state saves nothing.
    fn save(&self, _archive: &mut Archive) {}

    /// Restores what [`save`](Self::save) stored; later updates are then bit-identical.
    ///
    /// # Errors
    /// An archive that does not hold it.
    fn load(&mut self, _archive: &Archive) -> Result<()> {
        Ok(())
    }
}

/// A closure that writes moments is an estimator without state.
impl<T: Real, F: FnMut(&Context<'_, T>, &mut Phase<T>) -> Result<Info> + Send> NegativePhase<T> for F {
    fn name(&self) -> &'static str {
        "own"
    }

    fn estimate(&mut self, context: &Context<'_, T>, out: &mut Phase<T>) -> Result<Info> {
        self(context, out)
    }
}

/// The layers whose conditional mean replaces a sample in the moments: hidden layers without lateral couplings, no two
/// of them coupled.
pub(crate) fn averaged<T: Real>(machine: &Machine<T>) -> Vec<usize> {
    let mut set = Vec::new();
    for l in machine.with_role(Role::Hidden) {
        set.push(l);
        if !machine.independent(&set) {
            set.pop();
        }
    }
    set
}

/// Chains from a checkpoint, when they have as many rows and layers as those they replace.
fn chains_like<T: Real>(old: &Chains<T>, new: Chains<T>) -> Result<Chains<T>> {
    let shape = |c: &Chains<T>| (c.states().len(), c.states().rows());
    if shape(old) != shape(&new) {
        let (expected, got) = (format!("{:?}", shape(old)), format!("{:?}", shape(&new)));
        return Err(Error::shape("layers and rows of the chains in a checkpoint", expected, got));
    }
    Ok(new)
}
