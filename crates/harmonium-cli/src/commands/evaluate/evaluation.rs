//! Evaluating a machine on rows: ln Z, then the likelihood with its interval.

use crate::args::Common;
use crate::error::Result;
use crate::model::Model;
use crate::output::{duration, grouped, is_live, say};
use harmonium::evaluate::{
    Budget, Estimate, Filling, FreeEnergies, Gain, LogLikelihood, LogZParams, complete,
    conditional_log_likelihood, log_likelihood,
};
use harmonium::exact::whole_rows;
use harmonium::partition::{Progress, Verdict};
use harmonium::train::{Data, Floor};
use harmonium::{Bits, Machine, Role, States};
use harmonium_data::Table;
use harmonium_table::Layout;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::cell::Cell;
use std::ops::ControlFlow;
use std::time::Instant;

/// How much an evaluation may cost.
pub(crate) struct Effort {
    seconds: Option<f64>,
    std_err: f64,
    chains: Option<usize>,
}

impl Effort {
    pub(crate) fn new(seconds: Option<f64>) -> Self {
        Self { seconds, std_err: 0.1, chains: None }
    }

    /// The same at this precision and with this many chains of each annealing run.
    pub(super) fn with(self, std_err: f64, chains: Option<usize>) -> Self {
        Self { std_err, chains, ..self }
    }

    /// Little enough not to keep anybody waiting.
    pub(crate) fn after_training() -> Self {
        Self::new(Some(30.0))
    }

    /// A second or so, for points of a curve.
    pub(crate) fn quick() -> Self {
        Self { seconds: Some(2.0), std_err: 0.2, chains: Some(64) }
    }

    pub(super) fn params(&self, seed: u64) -> LogZParams {
        let default = LogZParams::default();
        LogZParams {
            chains: self.chains.unwrap_or(default.chains),
            std_err: self.std_err,
            seed,
            ..default
        }
    }
}

/// What was found.
pub(crate) struct Evaluation {
    /// ln Z with its verdict; conditional machines have one for each condition.
    z: Option<Estimate>,
    /// Why the verdict, in words.
    reasons: Vec<String>,
    /// Mean log-likelihood and its interval: ln Z and the choice of rows together.
    mean: f64,
    lower: f64,
    upper: f64,
    /// What the machine has over independent columns, where those are known.
    gain: Option<Gain>,
    verdict: Verdict,
    rows: usize,
    /// What the rows are: `test`, `training`, or the data's name.
    name: String,
    seconds: f64,
}

impl Evaluation {
    /// Mean log-likelihood.
    pub(crate) fn mean(&self) -> f64 {
        self.mean
    }
    /// Lower and upper end of its interval.
    pub(crate) fn ends(&self) -> (f64, f64) {
        (self.lower, self.upper)
    }
    /// Mean log-likelihood of independent columns, where it is known.
    pub(crate) fn independent(&self) -> Option<f64> {
        self.gain.map(|g| g.floor)
    }
    /// Whether it may be relied upon, and why.
    pub(crate) fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// The object of `evaluate --json`.
    pub(crate) fn json(&self) -> Value {
        let log_z = self.z.as_ref().map(|z| {
            let ess = if z.log_z.ess.is_finite() { json!(z.log_z.ess) } else { Value::Null };
            json!({
                "value": z.log_z.value,
                "lower": z.interval.lower,
                "upper": z.interval.upper,
                "std_err": z.log_z.std_err,
                "ess": ess,
                "method": z.log_z.method,
            })
        });
        json!({
            "log_z": log_z,
            "log_likelihood": {"mean": self.mean, "lower": self.lower, "upper": self.upper},
            "independent": self.gain.map(|g| g.floor),
            "gain": self.gain.map(|g| json!({"value": g.value, "std_err": g.std_err})),
            "verdict": self.verdict,
            "reasons": self.reasons,
            "rows": self.rows,
            "data": self.name,
            "seconds": self.seconds,
        })
    }

    /// The same for people.
    pub(crate) fn words(&self) -> Vec<String> {
        let half = 0.5 * (self.upper - self.lower);
        let mut out = Vec::new();
        if self.verdict.condemns_model() {
            out.push(format!("verdict: {}: this model must not be used", self.verdict));
            out.extend(self.reasons.iter().map(|r| format!("  · {r}")));
        }
        let given = if self.z.is_none() { " given the condition" } else { "" };
        out.push(format!(
            "{} log-likelihood{given} {:.3} ± {half:.3} nats per row ({} rows, 95 %)",
            self.name, self.mean, self.rows
        ));
        if let Some(gain) = self.gain {
            out.push(format!(
                "{:+.3} ± {:.3} against independent columns ({:.3})",
                gain.value,
                1.96 * gain.std_err,
                gain.floor
            ));
        }
        let took = duration(self.seconds);
        out.push(match &self.z {
            None => format!("ln Z of every condition, in {took}"),
            Some(z) if z.verdict == Verdict::Exact => {
                format!("ln Z {:.3} exactly, in {took}", z.log_z.value)
            }
            Some(z) => format!(
                "ln Z {:.3} from {:.3} to {:.3}, by {}, in {took}",
                z.log_z.value, z.interval.lower, z.interval.upper, z.log_z.method
            ),
        });
        if self.verdict.condemns_model() {
            return out;
        }
        out.push(format!("verdict: {}", self.verdict));
        if self.verdict == Verdict::NotConverged {
            out.push("  do not rely on these numbers:".into());
        }
        out.extend(self.reasons.iter().map(|r| format!("  · {r}")));
        out
    }
}

/// Rows of a table as a machine sees them.
pub(crate) struct Rows<'a> {
    /// The machine, with the class among the hidden units where the rows have none.
    pub(crate) machine: Machine,
    /// The rows.
    states: Cow<'a, States>,
    /// For each layer, which entries are known; all when `None`.
    known: Vec<Option<Bits>>,
    /// The rows of which nothing is missing.
    pub(crate) whole: Vec<usize>,
    /// What their log-likelihoods have more in the units of the table, and those of independent columns.
    offsets: Option<Vec<f64>>,
    floor: Option<Vec<f64>>,
    /// What is to be known about them.
    pub(crate) remark: Option<String>,
}

impl<'a> Rows<'a> {
    /// The rows that a machine has learned from.
    pub(crate) fn of_data(machine: &Machine, data: &'a Data, floor: Option<&Floor>) -> Result<Self> {
        let known = data.known().to_vec();
        let whole = whole_rows(data.rows(), &known);
        let states = Cow::Borrowed(data.states());
        let floor = floor.map(|f| f.log_probability(data)).transpose()?;
        let offsets = data.offsets().map(<[f64]>::to_vec);
        Ok(Self { machine: machine.clone(), states, known, whole, offsets, floor, remark: None })
    }

    pub(crate) fn new(
        machine: &Machine,
        layout: &Layout,
        table: &Table,
        floor: Option<&Floor>,
    ) -> Result<Self> {
        if machine.with_role(Role::Condition).next().is_some() {
            let (states, known) = harmonium_table::given_states(machine, table)?;
            let (whole, states) = (whole_rows(table.rows(), &known), Cow::Owned(states));
            let machine = machine.clone();
            return Ok(Self { machine, states, known, whole, offsets: None, floor: None, remark: None });
        }
        let (mut states, gaps) = layout.states(machine, table)?;
        let mut known = vec![None; machine.len()];
        gaps.into_iter().for_each(|(l, bits)| known[l] = Some(bits));
        let mut machine = machine.clone();
        let mut remark = None;
        let labelled = table.labels().is_some_and(|y| (0..table.rows()).any(|r| y.get(r).is_some()));
        if let Some(l) = layout.labels.filter(|_| !labelled) {
            let mut members = machine.members().to_vec();
            members[l].role = Role::Hidden;
            machine = Machine::new(members, machine.couplings().to_vec())?;
            states.take(l);
            known[l] = None;
            remark = Some("the rows have no labels: this is ln p(v), summed over the classes".into());
        }
        let whole = whole_rows(table.rows(), &known);
        let mut data = Data::new(states);
        for (l, known) in known.iter().enumerate() {
            if let Some(known) = known {
                data = data.with_known(l, known.clone())?;
            }
        }
        let offsets = layout.log_slopes(data.states(), data.known());
        data = data.with_offsets(offsets)?;
        // The floor of a class machine knows labels; without them there is none.
        let floor = floor.filter(|_| remark.is_none()).map(|f| f.log_probability(&data)).transpose()?;
        let (offsets, states) = (data.offsets().map(<[f64]>::to_vec), Cow::Owned(data.into_states()));
        Ok(Self { machine, states, known, whole, offsets, floor, remark })
    }

    /// The rows of which nothing is missing, where there are some.
    pub(crate) fn complete(&self) -> Option<Cow<'_, States>> {
        match self.whole.len() {
            0 => None,
            n if n == self.states.rows() => Some(Cow::Borrowed(&*self.states)),
            _ => Some(Cow::Owned(self.states.select(&self.whole))),
        }
    }

    /// For each layer, which entries are known; all when `None`.
    pub(crate) fn known(&self) -> &[Option<Bits>] {
        &self.known
    }

    /// All rows, with what is missing of them drawn from the machine given what is known.
    pub(crate) fn filled(&self, seed: u64) -> Result<States> {
        if self.whole.len() == self.states.rows() {
            return Ok(self.states.clone().into_owned());
        }
        let filling = Filling { chains: 1, ..Filling::usual(seed) };
        let mut drawn = complete(&self.machine, &self.states, &self.known, filling, &mut || true)?.drawn;
        self.machine.with_role(Role::Hidden).for_each(|l| drop(drawn.take(l)));
        Ok(drawn)
    }

    /// ln p of every row in the units of the table, and ln Z; conditional machines have one for each condition instead.
    pub(crate) fn likelihood(
        &self,
        effort: &Effort,
        common: &Common,
        heard: &mut dyn FnMut(Progress),
    ) -> Result<(Option<Estimate>, LogLikelihood)> {
        let (machine, states, known) = (&self.machine, &self.states, &self.known);
        let (z, l) = match machine.with_role(Role::Condition).next() {
            None => {
                let z = estimate(machine, self.complete().as_deref(), effort, common, heard)?;
                let (seed, bar) = (common.seed.unwrap_or(0), Bar::new("F(v)", common));
                let mut observer = |p: Progress| bar.show(&p);
                let l = log_likelihood(machine, states, known, None, &z, seed, &mut observer)?;
                (Some(z), l)
            }
            Some(_) => {
                let of = |params: &LogZParams, budget: Option<Budget<'_>>, watch: &mut Watch<'_>| {
                    conditional_log_likelihood(machine, states, known, None, params, budget, watch)
                };
                (None, watched(effort, common, heard, of)?)
            }
        };
        match &self.offsets {
            Some(offsets) => Ok((z, l.in_units(offsets, None)?)),
            None => Ok((z, l)),
        }
    }

    /// The likelihood of the rows, which are called `name`.
    pub(crate) fn evaluate(
        self,
        name: &str,
        effort: &Effort,
        common: &Common,
        heard: &mut dyn FnMut(Progress),
    ) -> Result<Evaluation> {
        let start = Instant::now();
        let (z, mut l) = self.likelihood(effort, common, heard)?;
        if let Some(floor) = &self.floor {
            l = l.above(floor, None)?;
        }
        l.reasons.extend(self.remark.clone());
        let (gaps, rows) = (l.rows.len() - self.whole.len(), l.rows.len());
        if gaps > 0 {
            l.reasons.push(format!(
                "{gaps} of {rows} rows have missing entries and count with ln p of what is known of them"
            ));
        }
        Ok(Evaluation {
            mean: l.mean,
            lower: l.interval.lower,
            upper: l.interval.upper,
            gain: l.gain,
            verdict: l.verdict,
            rows: l.rows.len(),
            name: name.into(),
            seconds: start.elapsed().as_secs_f64(),
            reasons: l.reasons,
            z,
        })
    }

    /// What the log-likelihood of a row has more in the units of the table.
    pub(crate) fn offset(&self, row: usize) -> f64 {
        self.offsets.as_ref().map_or(0.0, |x| x[row])
    }

    /// F(v) of each row in the units of the table: −ln p(v) − ln Z.
    pub(crate) fn free_energies(&self, common: &Common) -> Result<FreeEnergies> {
        let (seed, bar) = (common.seed.unwrap_or(0), Bar::new("F(v)", common));
        let mut observer = |p: Progress| bar.show(&p);
        let (machine, known) = (&self.machine, &self.known);
        let mut f =
            harmonium::evaluate::free_energies(machine, &self.states, known, seed, &mut observer)?;
        f.rows.iter_mut().enumerate().for_each(|(r, f)| *f -= self.offset(r));
        Ok(f)
    }
}

/// ln Z of a machine; the base of the estimate is its own.
pub(crate) fn log_z(machine: &Machine, effort: &Effort, common: &Common) -> Result<Estimate> {
    estimate(machine, None, effort, common, &mut |_| {})
}

/// Seconds between lines where no live bar can be drawn.
const CALM: f64 = 5.0;

/// How far a computation has come: a bar on a terminal, a line now and then elsewhere.
struct Bar {
    what: &'static str,
    bar: Option<ProgressBar>,
    quiet: bool,
    start: Instant,
    said: Cell<f64>,
}

impl Bar {
    fn new(what: &'static str, common: &Common) -> Self {
        let bar = (!common.quiet && is_live()).then(|| {
            let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr_with_hz(8));
            let style = ProgressStyle::with_template("{bar:24.cyan/dim} {prefix}: {msg} ({elapsed})");
            bar.set_style(style.expect("a valid template").progress_chars("━╸─"));
            bar.with_prefix(what)
        });
        Self { what, bar, quiet: common.quiet, start: Instant::now(), said: Cell::new(0.0) }
    }

    fn show(&self, p: &Progress) -> ControlFlow<()> {
        let now = self.start.elapsed().as_secs_f64();
        if let Some(bar) = &self.bar {
            bar.set_length(p.total.max(1));
            bar.set_position(p.done);
            bar.set_message(p.stage);
        } else if !self.quiet && now - self.said.get() > CALM {
            self.said.set(now);
            say!("{}: {}, step {} of {}", self.what, p.stage, grouped(p.done), grouped(p.total));
        }
        ControlFlow::Continue(())
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }
}

/// What a computation tells its progress to.
type Watch<'a> = dyn FnMut(Progress) -> ControlFlow<()> + 'a;

fn estimate(
    machine: &Machine,
    data: Option<&States>,
    effort: &Effort,
    common: &Common,
    heard: &mut dyn FnMut(Progress),
) -> Result<Estimate> {
    watched(effort, common, heard, |params, budget, watch| {
        harmonium::evaluate::log_z(machine, data, params, budget, watch)
    })
}

/// An estimate of ln Z under a progress bar and with the clock of its budget.
fn watched<R>(
    effort: &Effort,
    common: &Common,
    heard: &mut dyn FnMut(Progress),
    work: impl FnOnce(&LogZParams, Option<Budget<'_>>, &mut Watch<'_>) -> harmonium::Result<R>,
) -> Result<R> {
    let params = effort.params(common.seed.unwrap_or(0));
    let bar = Bar::new("ln Z", common);
    let start = Instant::now();
    let clock = || start.elapsed().as_secs_f64();
    let budget = effort.seconds.map(|seconds| Budget { seconds, clock: &clock });
    let mut watch = |p: Progress| {
        let flow = bar.show(&p);
        heard(p);
        flow
    };
    Ok(work(&params, budget, &mut watch)?)
}

/// Evaluates a machine with the columns of a model on a table.
pub(crate) fn evaluate(
    machine: &Machine,
    model: &Model,
    table: &Table,
    name: &str,
    effort: &Effort,
    common: &Common,
) -> Result<Evaluation> {
    let rows = Rows::new(machine, &model.layout, table, model.floor.as_ref())?;
    rows.evaluate(name, effort, common, &mut |_| {})
}
