//! The log-likelihood of rows of a conditional machine, whose ln Z depends on the condition.

use super::likelihood::{FreeEnergies, LogLikelihood, T95, free_energies, wide};
use super::{Budget, LogZParams, log_z};
use crate::exact::whole_rows;
use crate::machine::{Known, Pattern, Rest};
use crate::partition::{Base, Interval, ProgressFn, Schedule, Verdict, ais_given};
use crate::{Bits, Error, Machine, Real, Result, Role, States};
use ndarray::Axis;

/// Most conditions for which ln Z is estimated from both sides, one after the other.
const FEW: usize = 16;
/// Steps of annealing for each of more conditions, and chains of each.
const STEPS: usize = 300;
const COPIES: usize = 8;

/// ln Z of each condition with the ends of its interval, and how they were found.
struct LogZs {
    values: Vec<(f64, Interval)>,
    verdict: Verdict,
    reasons: Vec<String>,
}

/// $\ln p(v\mid u)$ of each row of a conditional machine with the condition u of the row. `known` is as for
/// [`log_likelihood`](super::log_likelihood).
///
/// Rows of equal condition share $\ln Z(u)$. It is enumerated where that takes no longer than `exact_seconds` for all
/// conditions together; else, for at most 16 of them, estimated from both sides as [`log_z`](super::log_z()) does, with
/// an equal share of the budget for each; else it comes from AIS alone, one-sided, and the verdict is *not converged*.
///
/// # Errors
/// A machine that is not conditional, data that do not fit.
pub fn conditional_log_likelihood<T: Real>(
    machine: &Machine<T>,
    data: &States<T>,
    known: &[Option<Bits>],
    wts: Option<&[f64]>,
    params: &LogZParams,
    budget: Option<Budget<'_>>,
    observer: &mut ProgressFn<'_>,
) -> Result<LogLikelihood> {
    if machine.with_role(Role::Condition).next().is_none() {
        let why = "no layer conditions it".into();
        return Err(Error::Undefined { what: "a conditional likelihood", why });
    }
    machine.must_be_states("a likelihood", data)?;
    if machine.with_role(Role::Condition).any(|l| matches!(known.get(l), Some(Some(_)))) {
        let why = "a condition has missing entries, which nothing says how to sum over".into();
        return Err(Error::Undefined { what: "a conditional likelihood", why });
    }
    if data.rows() == 0 {
        return Err(Error::value("rows", "at least one", 0));
    }
    let f = free_energies(machine, data, known, params.seed, observer)?;
    let wholly: Vec<Known<'_>> = (0..machine.len())
        .map(|l| if machine.role(l) == Role::Condition { Known::All } else { Known::Nothing })
        .collect();
    let pattern = Pattern::of(machine, &wholly, data.rows()).remove(0);
    let rest = Rest::new(&machine.cast(), 1.0, data, &pattern)?;
    let groups = rest.alike();
    let z = match enumerated(&rest, &groups, params.exact_seconds) {
        Err(Error::TooManyStates { .. }) if groups.len() <= FEW => {
            let whole = whole_rows(data.rows(), known);
            from_both_sides(machine, &rest, &groups, (data, &whole), params, budget, observer)?
        }
        Err(Error::TooManyStates { .. }) => {
            annealed(machine, &rest, data, &groups, params.seed, observer)?
        }
        z => z?,
    };
    assembled(&rest, &groups, &f, z, wts)
}

/// ln Z of the free units under each condition, exactly.
fn enumerated(rest: &Rest, groups: &[Vec<usize>], seconds: f64) -> Result<LogZs> {
    let patience = seconds / groups.len() as f64;
    let exact = |group: &Vec<usize>| {
        let z = rest.row(group[0]).map_or(Ok(0.0), |m| m.exact().within(patience).log_z())?;
        Ok((z, Interval::around(z, 0.0)))
    };
    let values = groups.iter().map(exact).collect::<Result<_>>()?;
    let reasons = vec![format!("ln Z was enumerated for each of {} conditions", groups.len())];
    Ok(LogZs { values, verdict: Verdict::Exact, reasons })
}

/// The full estimate for each condition, with the base model from its rows without gaps.
fn from_both_sides<T: Real>(
    machine: &Machine<T>,
    rest: &Rest,
    groups: &[Vec<usize>],
    (data, whole): (&States<T>, &[usize]),
    params: &LogZParams,
    budget: Option<Budget<'_>>,
    observer: &mut ProgressFn<'_>,
) -> Result<LogZs> {
    let started = budget.map_or(0.0, |b| (b.clock)());
    let mut out = LogZs { values: Vec::new(), verdict: Verdict::Exact, reasons: Vec::new() };
    for (k, group) in groups.iter().enumerate() {
        let free = rest.row(group[0]).expect("enumerated where nothing is free").cast::<T>();
        let rows: Vec<usize> =
            group.iter().copied().filter(|r| whole.binary_search(r).is_ok()).collect();
        let mut base = States::empty(free.len(), rows.len());
        for (i, (l, _)) in
            rest.parts.iter().enumerate().filter(|(_, p)| machine.role(p.0) == Role::Visible)
        {
            let values = machine.layer(*l).values(data.layer(*l)?).select(Axis(0), &rows);
            base.set(i, free.layer(i).batch(values.view())?);
        }
        // Time that earlier conditions left unused is shared by the others.
        let budget = budget.map(|b| {
            let left = (b.seconds - (b.clock)() + started).max(0.0);
            Budget { seconds: left / (groups.len() - k) as f64, clock: b.clock }
        });
        let z = log_z(&free, (!rows.is_empty()).then_some(&base), params, budget, observer)?;
        out.values.push((z.log_z.value, z.interval));
        if worse(z.verdict, out.verdict) {
            (out.verdict, out.reasons) = (z.verdict, z.reasons);
        }
    }
    out.reasons.insert(
        0,
        format!("ln Z was estimated from both sides for each of {} conditions", groups.len()),
    );
    Ok(out)
}

fn worse(a: Verdict, b: Verdict) -> bool {
    let rank = |v| match v {
        Verdict::Exact => 0,
        Verdict::Converged => 1,
        _ => 2,
    };
    rank(a) > rank(b)
}

/// AIS for each condition.
fn annealed<T: Real>(
    machine: &Machine<T>,
    rest: &Rest,
    data: &States<T>,
    groups: &[Vec<usize>],
    seed: u64,
    observer: &mut ProgressFn<'_>,
) -> Result<LogZs> {
    let first: Vec<usize> = groups.iter().map(|g| g[0]).collect();
    let mut conditions = data.select(&first);
    for l in machine.with_role(Role::Visible) {
        conditions.take(l);
    }
    let (base, schedule) = (Base::own(machine), Schedule::uniform(STEPS));
    let z = ais_given(machine, &base, &schedule, &conditions, &[], COPIES, seed, observer)?;
    let values = z.iter().zip(&first).map(|(&(z, err), &r)| {
        let z = z - rest.log_weight[r];
        (z, Interval::around(z, T95 * err))
    });
    let why = format!(
        "ln Z of each of {} conditions comes from AIS alone: nothing bounds the likelihood from below",
        groups.len()
    );
    Ok(LogZs { values: values.collect(), verdict: Verdict::NotConverged, reasons: vec![why] })
}

/// −F(v, u) − ln Z(u) of every row. Rows of the same condition share its error.
fn assembled(
    rest: &Rest,
    groups: &[Vec<usize>],
    f: &FreeEnergies,
    z: LogZs,
    wts: Option<&[f64]>,
) -> Result<LogLikelihood> {
    let n = f.rows.len();
    let (mut rows, mut intervals) = (vec![0.0; n], vec![Interval::around(0.0, 0.0); n]);
    let total = wts.map_or(n as f64, |w| w.iter().sum());
    let (mut below, mut above) = (0.0f64, 0.0f64);
    for (group, (value, interval)) in groups.iter().zip(&z.values) {
        let ends = (interval.upper - value, value - interval.lower);
        for &r in group {
            rows[r] = -f.rows[r] - rest.log_weight[r] - value;
            intervals[r] = wide(rows[r], ends, f.errors[r]);
        }
        let share = group.iter().map(|&r| wts.map_or(1.0, |w| w[r])).sum::<f64>() / total;
        (below, above) = (below.hypot(share * ends.0), above.hypot(share * ends.1));
    }
    let own = f.mean_error();
    let mut reasons = z.reasons;
    reasons.extend(f.remark.clone());
    LogLikelihood::new(rows, intervals, wts, (below.hypot(own), above.hypot(own)), z.verdict, reasons)
}
