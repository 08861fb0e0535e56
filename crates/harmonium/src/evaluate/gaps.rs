//! Rows with missing entries: completions, classes and features.

use super::likelihood::{free_energies, select};
use crate::exact::whole_rows;
use crate::partition::ProgressFn;
use crate::sample::{Sampler, SamplingMethod, purpose};
use crate::{Batch, Bits, Chains, Clamps, Error, Machine, Real, Result, Role, States};
use ndarray::Array2;

/// Longest enumeration for all rows together, in seconds.
const PATIENCE: f64 = 2.0;
/// Chains of each row, and their sweeps before and again while they are averaged, by default.
pub const CHAINS: usize = 4;
/// See [`CHAINS`].
pub const SWEEPS: usize = 200;

/// Settings of the chains that fill gaps where enumeration is too slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filling {
    /// Chains of each row.
    pub chains: usize,
    /// Sweeps of every chain before, and again while, it is averaged.
    pub sweeps: usize,
    /// Seed of all random numbers.
    pub seed: u64,
}

impl Filling {
    /// The default settings.
    pub fn usual(seed: u64) -> Self {
        Self { chains: CHAINS, sweeps: SWEEPS, seed }
    }
}

/// Rows with their gaps filled.
#[derive(Clone, Debug)]
pub struct Completion<T> {
    /// $\langle x\rangle$ of every visible layer given the known entries of each row, in dense form; empty for others.
    pub means: Vec<Array2<f64>>,
    /// One joint draw of all layers for each row.
    pub drawn: States<T>,
}

/// The missing entries of each row given the known ones: exactly where the sums over hidden and missing units are fast,
/// else by chains with the known entries clamped. Stops when `go_on` returns false.
///
/// # Errors
/// Data that do not fit, a machine that cannot be normalised.
pub fn complete<T: Real>(
    machine: &Machine<T>,
    data: &States<T>,
    known: &[Option<Bits>],
    filling: Filling,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Completion<T>> {
    let visible: Vec<usize> = machine.with_role(Role::Visible).collect();
    let mut means: Vec<Array2<f64>> = (0..machine.len())
        .map(|l| match machine.role(l) {
            Role::Visible => Ok(machine.layer(l).dense(data.layer(l)?).mapv(Real::f64)),
            _ => Ok(Array2::zeros((data.rows(), 0))),
        })
        .collect::<Result<_>>()?;
    let exact = machine.exact().within(PATIENCE).moments_where_cheap(data, known)?;
    let mut long = Vec::new();
    for (r, found) in exact.into_iter().enumerate() {
        match found {
            None => long.push(r),
            Some(parts) => {
                for (l, columns, part) in parts.into_iter().filter(|p| visible.contains(&p.0)) {
                    columns.into_iter().zip(part).for_each(|(c, m)| means[l][[r, c]] = m);
                }
            }
        }
    }
    if !long.is_empty() {
        let (some, gaps) = (data.select(&long), select(known, &long));
        let model = machine.at(1.0);
        let each = |states: &States<T>| {
            // The conditional mean, where it is defined, has less noise than the state.
            let of = |&l: &usize| match machine.has_lateral(l) {
                false => model.mean(l, states),
                true => Ok(machine.layer(l).dense(states.layer(l)?)),
            };
            visible.iter().map(of).collect::<Result<Vec<_>>>()
        };
        let sums = averaged(machine, &some, &gaps, filling, go_on, each)?;
        for (&l, sum) in visible.iter().zip(sums) {
            long.iter().zip(sum.rows()).for_each(|(&r, row)| means[l].row_mut(r).assign(&row));
        }
    }
    let (clamps, states) = started(machine, data, known, 1, filling.seed)?;
    let sweeps = 2 * filling.sweeps;
    let mut sampler = Sampler::new(
        machine.clone(),
        clamps,
        states,
        SamplingMethod::Auto,
        filling.seed,
        sweeps,
        go_on,
    )?;
    for _ in (0..if sampler.is_exact() { 1 } else { sweeps }).take_while(|_| go_on()) {
        sampler.sweep(1)?;
    }
    Ok(Completion { means, drawn: sampler.states().clone() })
}

/// Chains with the known entries of each row clamped, `copies` times all rows.
fn started<T: Real>(
    machine: &Machine<T>,
    data: &States<T>,
    known: &[Option<Bits>],
    copies: usize,
    seed: u64,
) -> Result<(Clamps, States<T>)> {
    let rows: Vec<usize> = (0..copies).flat_map(|_| 0..data.rows()).collect();
    let first = Chains::independent(machine, rows.len(), seed, purpose::USER)?;
    let mut states = first.states().clone();
    let clamps = Clamps::known(machine, rows.len(), &select(known, &rows));
    clamps.put(&data.select(&rows), &mut states);
    Ok((clamps, states))
}

/// The mean of `each(states)` over chains with the known entries of each row clamped.
fn averaged<T: Real>(
    machine: &Machine<T>,
    data: &States<T>,
    known: &[Option<Bits>],
    Filling { chains, sweeps, seed }: Filling,
    go_on: &mut dyn FnMut() -> bool,
    mut each: impl FnMut(&States<T>) -> Result<Vec<Array2<T>>>,
) -> Result<Vec<Array2<f64>>> {
    let (clamps, states) = started(machine, data, known, chains, seed)?;
    let mut walk = Chains::new(states, seed, purpose::USER);
    let model = machine.at(1.0);
    let mut sums: Vec<Array2<f64>> = Vec::new();
    for k in (0..2 * sweeps).take_while(|_| go_on()) {
        walk.sweep(&model, &clamps, 1)?;
        if k < sweeps {
            continue;
        }
        for (i, x) in each(walk.states())?.into_iter().enumerate() {
            if sums.len() == i {
                sums.push(Array2::zeros((data.rows(), x.ncols())));
            }
            for (r, x) in x.rows().into_iter().enumerate() {
                sums[i].row_mut(r % data.rows()).zip_mut_with(&x, |s, x| *s += x.f64());
            }
        }
    }
    let scale = 1.0 / (chains * sweeps).max(1) as f64;
    sums.iter_mut().for_each(|s| *s *= scale);
    Ok(sums)
}

/// $p(y\mid v_K) = e^{-F(v_K,y)}/\sum_{y'}e^{-F(v_K,y')}$ of each row and class of the single Potts unit in layer `l`,
/// whose own entry is not read; and a note where F comes from AIS.
///
/// # Errors
/// When layer `l` is not a single Potts unit; data that do not fit.
pub fn class_probabilities<T: Real>(
    machine: &Machine<T>,
    l: usize,
    data: &States<T>,
    known: &[Option<Bits>],
    seed: u64,
    observer: &mut ProgressFn<'_>,
) -> Result<(Array2<f64>, Option<String>)> {
    let layer = machine.layer(l);
    let (Some(q), 1) = (layer.kind().one_hot(), layer.len()) else {
        return Err(Error::value("label layer", "a Potts unit", layer.kind()));
    };
    let mut known = known.to_vec();
    if let Some(own) = known.get_mut(l) {
        *own = None;
    }
    let mut p = Array2::zeros((data.rows(), q as usize));
    let mut remark = None;
    let mut labelled = data.clone();
    for a in 0..q {
        labelled.set(l, Batch::Codes(Array2::from_elem((data.rows(), 1), a)));
        let f = free_energies(machine, &labelled, &known, seed, observer)?;
        p.column_mut(a as usize).iter_mut().zip(f.rows).for_each(|(p, f)| *p = -f);
        remark = remark.or(f.remark);
    }
    for mut row in p.rows_mut() {
        let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        row.mapv_inplace(|x| (x - top).exp());
        let sum = row.sum();
        row.mapv_inplace(|x| x / sum);
    }
    Ok((p, remark))
}

/// The mean of every hidden layer given each row, or its inputs (`inputs`), one array for each. Deeper layers get their
/// input from the most probable states of the layer below, and none from above. For rows with missing entries it is the
/// mean over their completions: in an RBM $\langle h\rangle$ given the known entries, enumerated where that is fast,
/// else averaged over chains.
///
/// # Errors
/// Data that do not fit.
pub fn features<T: Real>(
    machine: &Machine<T>,
    data: &States<T>,
    known: &[Option<Bits>],
    inputs: bool,
    seed: u64,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Vec<Array2<T>>> {
    let mut out = upwards(machine, data, inputs)?;
    let whole = whole_rows(data.rows(), known);
    let gaps: Vec<usize> = (0..data.rows()).filter(|r| whole.binary_search(r).is_err()).collect();
    if gaps.is_empty() {
        return Ok(out);
    }
    let hidden: Vec<usize> = machine.with_role(Role::Hidden).collect();
    let (data, known) = (data.select(&gaps), select(known, &gaps));
    let single = machine.independent(&hidden) && !inputs;
    let exact = match single {
        true => machine.exact().within(PATIENCE).moments_where_cheap(&data, &known)?,
        false => vec![None; gaps.len()],
    };
    let mut long = Vec::new();
    for (i, found) in exact.into_iter().enumerate() {
        let Some(parts) = found else {
            long.push(i);
            continue;
        };
        for (l, columns, part) in parts {
            if let Some(h) = hidden.iter().position(|&h| h == l) {
                let means = columns.into_iter().zip(part);
                means.for_each(|(c, m)| out[h][[gaps[i], c]] = T::of(m));
            }
        }
    }
    if !long.is_empty() {
        let each = |states: &States<T>| {
            let mut given = states.clone();
            hidden.iter().for_each(|&h| drop(given.take(h)));
            upwards(machine, &given, inputs)
        };
        let (data, known) = (data.select(&long), select(&known, &long));
        let means = averaged(machine, &data, &known, Filling::usual(seed), go_on, each)?;
        for (out, means) in out.iter_mut().zip(means) {
            for (&i, row) in long.iter().zip(means.rows()) {
                out.row_mut(gaps[i]).assign(&row.mapv(T::of));
            }
        }
    }
    Ok(out)
}

/// A pass upwards from whole rows.
fn upwards<T: Real>(machine: &Machine<T>, data: &States<T>, inputs: bool) -> Result<Vec<Array2<T>>> {
    let model = machine.at(1.0);
    let mut states = data.clone();
    let mut parts = Vec::new();
    for l in machine.with_role(Role::Hidden) {
        for other in machine.couplings().iter().filter_map(|c| c.other(l)) {
            if states.get(other).is_none() {
                states.set(other, machine.layer(other).zeros(states.rows()));
            }
        }
        parts.push(if inputs { model.inputs(l, &states)? } else { model.mean(l, &states)? });
        states.set(l, model.mode(l, &states)?);
    }
    Ok(parts)
}
