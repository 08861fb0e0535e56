//! Evaluating a machine on rows: ln Z, then the likelihood with its interval.

mod records;

pub(crate) use records::Records;

use crate::args::Common;
use crate::error::{Failure, Result};
use crate::model::Model;
use crate::output::{duration, grouped, is_live, say};
use harmonium::evaluate::{Estimate, FreeEnergies, LogZParams};
use harmonium::exact::whole_rows;
use harmonium::partition::{Progress, Verdict};
use harmonium::tasks;
use harmonium::train::{Data, Floor};
use harmonium::{Bits, Machine, Role, States};
use harmonium_data::Table;
use harmonium_table::{Layout, impossible_remark};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::cell::Cell;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How much an evaluation may cost.
pub(crate) struct Effort {
    seconds: Option<f64>,
    std_err: f64,
    chains: Option<usize>,
}

impl Effort {
    pub(crate) fn new(seconds: Option<f64>) -> Self {
        Self { seconds, std_err: LogZParams::default().std_err, chains: None }
    }

    /// The same at this precision and with this many chains of each annealing run.
    pub(crate) fn with(self, std_err: f64, chains: Option<usize>) -> Self {
        Self { std_err, chains, ..self }
    }

    /// A short time limit, for the end of `train`.
    pub(crate) fn after_training() -> Self {
        Self::new(Some(30.0))
    }

    /// A second or so, for points of a curve.
    pub(crate) fn quick() -> Self {
        Self { seconds: Some(2.0), std_err: 0.2, chains: Some(64) }
    }

    pub(crate) fn params(&self, seed: u64) -> LogZParams {
        let default = LogZParams::default();
        LogZParams {
            chains: self.chains.unwrap_or(default.chains),
            std_err: self.std_err,
            seed,
            ..default
        }
    }
}

/// The result of an evaluation, and the name of its rows.
pub(crate) struct Evaluation {
    found: tasks::Evaluation,
    /// What the rows are: `test`, `training`, or the data's name.
    name: String,
    /// Number of rows that are left out because the machine gives them probability 0.
    impossible: usize,
    seconds: f64,
}

impl Evaluation {
    /// Mean log-likelihood.
    pub(crate) fn mean(&self) -> f64 {
        self.found.mean()
    }
    /// Lower and upper end of its interval.
    pub(crate) fn ends(&self) -> (f64, f64) {
        (self.found.interval().lower, self.found.interval().upper)
    }
    /// Mean log-likelihood of independent columns, where it is known.
    pub(crate) fn independent(&self) -> Option<f64> {
        self.found.gain().map(|g| g.floor)
    }
    /// Whether the result is reliable.
    pub(crate) fn verdict(&self) -> Verdict {
        self.found.verdict()
    }
    fn rows(&self) -> usize {
        self.found.log_likelihood.rows.len()
    }

    /// The object of `evaluate --json`.
    pub(crate) fn json(&self) -> Value {
        let (lower, upper) = self.ends();
        let log_z = self.found.log_z.as_ref().map(|z| {
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
            "log_likelihood": {"mean": self.mean(), "lower": lower, "upper": upper},
            "independent": self.independent(),
            "gain": self.found.gain().map(|g| json!({"value": g.value, "std_err": g.std_err})),
            "verdict": self.verdict(),
            "reasons": self.found.reasons(),
            "rows": self.rows(),
            "impossible_rows": self.impossible,
            "data": self.name,
            "seconds": self.seconds,
        })
    }

    /// The result as text.
    pub(crate) fn words(&self) -> Vec<String> {
        let ((lower, upper), verdict) = (self.ends(), self.verdict());
        let half = 0.5 * (upper - lower);
        let reasons = || self.found.reasons().iter().map(|r| format!("  · {r}"));
        let mut out = Vec::new();
        if verdict.condemns_model() {
            out.push(format!("verdict: {verdict}: this model must not be used"));
            out.extend(reasons());
        }
        let given = if self.found.log_z.is_none() { " given the condition" } else { "" };
        out.push(format!(
            "{} log-likelihood{given} {:.3} ± {half:.3} nats per row ({} rows, 95 %)",
            self.name,
            self.mean(),
            self.rows()
        ));
        if let Some(gain) = self.found.gain() {
            out.push(format!(
                "{:+.3} ± {:.3} against independent columns ({:.3})",
                gain.value,
                1.96 * gain.std_err,
                gain.floor
            ));
        }
        let took = duration(self.seconds);
        out.push(match &self.found.log_z {
            None => format!("ln Z of every condition, in {took}"),
            Some(z) if z.verdict == Verdict::Exact => {
                format!("ln Z {:.3} exactly, in {took}", z.log_z.value)
            }
            Some(z) => format!(
                "ln Z {:.3} from {:.3} to {:.3}, by {}, in {took}",
                z.log_z.value, z.interval.lower, z.interval.upper, z.log_z.method
            ),
        });
        if verdict.condemns_model() {
            return out;
        }
        out.push(format!("verdict: {verdict}"));
        if verdict == Verdict::NotConverged {
            out.push("  do not rely on these numbers:".into());
        }
        out.extend(reasons());
        out
    }
}

/// The rows of a table that a machine gives a probability, and the places of the others.
///
/// # Errors
/// No row is left.
pub(crate) fn possible_rows<'t>(
    machine: &Machine,
    layout: &Layout,
    table: &'t Table,
) -> Result<(Cow<'t, Table>, Vec<usize>)> {
    let impossible = layout.impossible(machine, table);
    if impossible.is_empty() {
        return Ok((Cow::Borrowed(table), impossible));
    }
    let possible = |r: &usize| impossible.binary_search(r).is_err();
    let rows: Vec<usize> = (0..table.rows()).filter(possible).collect();
    match rows.len() {
        0 => Err(Failure::new("every row has a category or a count that no training row had")),
        _ => Ok((Cow::Owned(table.select(&rows)?), impossible)),
    }
}

/// Rows of a table as states of a machine.
pub(crate) struct TableStates<'a> {
    /// The machine, with the class among the hidden units where the rows have none.
    pub(crate) machine: Machine,
    data: Cow<'a, Data>,
    /// The rows of which nothing is missing.
    pub(crate) whole: Vec<usize>,
    /// Independent columns to compare with.
    floor: Option<&'a Floor>,
    /// A remark about the rows for the user.
    pub(crate) remark: Option<String>,
    /// Rows of the table that the machine gives probability 0, which are left out here.
    pub(crate) impossible: Vec<usize>,
}

impl<'a> TableStates<'a> {
    /// The rows that a machine has learned from.
    pub(crate) fn of_data(machine: &Machine, data: &'a Data, floor: Option<&'a Floor>) -> Self {
        let whole = whole_rows(data.rows(), data.known());
        let data = match data.wts() {
            Some(_) => Cow::Owned(data.clone().unweighted()),
            None => Cow::Borrowed(data),
        };
        Self { machine: machine.clone(), data, whole, floor, remark: None, impossible: Vec::new() }
    }

    pub(crate) fn new(
        machine: &Machine,
        layout: &Layout,
        table: &Table,
        floor: Option<&'a Floor>,
    ) -> Result<Self> {
        let mut machine = machine.clone();
        let (mut floor, mut remark) = (floor, None);
        let conditional = machine.with_role(Role::Condition).next().is_some();
        // The columns of a condition are none of the layout's.
        let (table, impossible) = match conditional {
            true => (Cow::Borrowed(table), Vec::new()),
            false => possible_rows(&machine, layout, table)?,
        };
        let table = &*table;
        let data = match conditional {
            true => {
                floor = None;
                harmonium_table::given_data(&machine, table)?
            }
            false => {
                let labelled =
                    table.labels().is_some_and(|y| (0..table.rows()).any(|r| y.get(r).is_some()));
                let data = layout.data(&machine, table)?;
                match layout.labels.filter(|_| !labelled) {
                    None => data,
                    Some(l) => {
                        machine = machine.with_hidden(l)?;
                        // The floor of a class machine includes the labels; without labels there is none.
                        floor = None;
                        remark = Some(
                            "the rows have no labels: this is ln p(v), summed over the classes".into(),
                        );
                        data.without_layer(l)
                    }
                }
            }
        };
        let whole = whole_rows(data.rows(), data.known());
        // Weights are for learning: every row counts once here.
        Ok(Self { machine, data: Cow::Owned(data.unweighted()), whole, floor, remark, impossible })
    }

    /// The rows of which nothing is missing, where there are some.
    pub(crate) fn complete(&self) -> Option<Cow<'_, States>> {
        self.data.whole()
    }

    /// For each row of the table, its place among those that are possible.
    pub(crate) fn places(&self) -> Vec<Option<usize>> {
        let n = self.data.rows() + self.impossible.len();
        let mut next = 0..;
        let place = |r| self.impossible.binary_search(&r).is_err().then(|| next.next()).flatten();
        (0..n).map(place).collect()
    }

    /// Numbers of the possible rows as numbers of all rows of the table: infinite ones for the others.
    pub(crate) fn with_impossible(&self, x: &[f64]) -> Vec<f64> {
        self.places().into_iter().map(|i| i.map_or(f64::INFINITY, |i| x[i])).collect()
    }

    /// For each layer, which entries are known; all when `None`.
    pub(crate) fn known(&self) -> &[Option<Bits>] {
        self.data.known()
    }

    /// All rows, with what is missing of them drawn from the machine given what is known.
    pub(crate) fn filled(&self, seed: u64) -> Result<States> {
        if self.whole.len() == self.data.rows() {
            return Ok(self.data.states().clone());
        }
        let drawn = self.machine.complete(&*self.data).chains(1).seed(seed).run()?.into_drawn();
        Ok(drawn)
    }

    /// ln p of every row in the units of the table, and ln Z; conditional machines have one for each condition instead.
    pub(crate) fn likelihood(
        &self,
        effort: &Effort,
        common: &Common,
        heard: &mut dyn FnMut(Progress),
    ) -> Result<tasks::Evaluation> {
        let bar = Bar::new("likelihood", common);
        let watch = |p: Progress| {
            let flow = bar.show(&p);
            heard(p);
            flow
        };
        let task = self.machine.log_likelihood(&*self.data).floor(self.floor).on_progress(watch);
        let task = task.params(effort.params(common.seed.unwrap_or(0)));
        Ok(match effort.seconds {
            Some(seconds) => task.budget(Duration::from_secs_f64(seconds)),
            None => task,
        }
        .run()?)
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
        let mut found = self.likelihood(effort, common, heard)?;
        found.log_likelihood.reasons.extend(self.remark);
        found.log_likelihood.reasons.extend(impossible_remark(self.impossible.len()));
        let impossible = self.impossible.len();
        Ok(Evaluation { found, name: name.into(), impossible, seconds: start.elapsed().as_secs_f64() })
    }

    /// What is added to the log-likelihood of a row to have it in the units of the table.
    pub(crate) fn offset(&self, row: usize) -> f64 {
        self.data.offsets().map_or(0.0, |x| x[row])
    }

    /// F(v) of each row in the units of the table: −ln p(v) − ln Z.
    pub(crate) fn free_energies(&self, common: &Common) -> Result<FreeEnergies> {
        let (seed, bar) = (common.seed.unwrap_or(0), Bar::new("F(v)", common));
        let mut observer = |p: Progress| bar.show(&p);
        let (machine, data) = (&self.machine, &self.data);
        let (states, known) = (data.states(), data.known());
        let mut f = harmonium::evaluate::free_energies(machine, states, known, seed, &mut observer)?;
        f.rows.iter_mut().enumerate().for_each(|(r, f)| *f -= self.offset(r));
        Ok(f)
    }
}

/// ln Z of a machine; the base of the estimate is its own.
pub(crate) fn log_z(machine: &Machine, effort: &Effort, common: &Common) -> Result<Estimate> {
    let bar = Bar::new("ln Z", common);
    let task = machine.log_z().params(effort.params(common.seed.unwrap_or(0)));
    let task = task.on_progress(|p| bar.show(&p));
    Ok(match effort.seconds {
        Some(seconds) => task.budget(Duration::from_secs_f64(seconds)),
        None => task,
    }
    .run()?)
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

/// Evaluates a machine with the columns of a model on a table.
pub(crate) fn evaluate(
    machine: &Machine,
    model: &Model,
    table: &Table,
    name: &str,
    effort: &Effort,
    common: &Common,
) -> Result<Evaluation> {
    let rows = TableStates::new(machine, &model.layout, table, model.floor.as_ref())?;
    rows.evaluate(name, effort, common, &mut |_| {})
}
