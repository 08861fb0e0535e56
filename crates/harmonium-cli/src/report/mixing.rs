//! Chains: how they evolve, whether those started from data and from random states agree.

use super::{Material, Section};
use crate::error::Result;
use crate::figure::{Chart, image_grid};
use crate::picture;
use harmonium::evaluate::mixing;
use harmonium::sample::purpose;
use harmonium::{Chains, Clamps, Machine, States};
use ndarray::Array2;

/// Chains of each start, and sweeps.
const CHAINS: usize = 24;
const SWEEPS: usize = 400;
/// Sweeps at which the states of chains are drawn.
const MOMENTS: [usize; 12] = [0, 1, 2, 5, 10, 20, 50, 100, 200, 400, 700, 1000];

/// A number that says where a chain is: F(v), or the energy where F is not to be had.
fn place(machine: &Machine, states: &States) -> Result<Vec<f64>> {
    match machine.free_energy(states) {
        Ok(f) => Ok(f),
        Err(_) => Ok(machine.energy(states)?),
    }
}

fn trace(machine: &Machine, mut chains: Chains) -> Result<Array2<f64>> {
    let mut out = Array2::zeros((chains.states().rows(), SWEEPS));
    for t in 0..SWEEPS {
        chains.sweep(&machine.at(1.0), &Clamps::none(machine), 1)?;
        for (r, f) in place(machine, chains.states())?.into_iter().enumerate() {
            out[[r, t]] = f;
        }
    }
    Ok(out)
}

/// Points of a line, and of a band: position, lower and upper edge.
type LineAndBand = (Vec<(f64, f64)>, Vec<(f64, f64, f64)>);

/// Mean and spread over the chains at every sweep.
fn summary(x: &Array2<f64>) -> LineAndBand {
    let column = |t: usize| {
        let mean = x.column(t).mean().unwrap_or(0.0);
        let var = x.column(t).iter().map(|v| (v - mean).powi(2)).sum::<f64>() / x.nrows() as f64;
        (mean, var.sqrt())
    };
    let of = |t: usize| (t as f64 + 1.0, column(t));
    let line = (0..x.ncols()).map(of).map(|(t, (m, _))| (t, m)).collect();
    let band = (0..x.ncols()).map(of).map(|(t, (m, s))| (t, m - s, m + s)).collect();
    (line, band)
}

pub(super) fn section(m: &Material<'_>, seed: u64) -> Result<Section> {
    let machine = &m.model.machine;
    let mut figures = Vec::new();
    let random = Chains::independent(machine, CHAINS, seed ^ 1, purpose::EVALUATE)?;
    let mut start = random.states().clone();
    let step = (m.data.rows() / CHAINS).max(1);
    let rows: Vec<usize> = (0..CHAINS).map(|r| (r * step) % m.data.rows()).collect();
    let data = m.data.select(&rows);
    for l in 0..machine.len() {
        if let Some(batch) = data.get(l) {
            start.set(l, batch.clone());
        }
    }
    let from_data = trace(machine, Chains::new(start, seed ^ 2, purpose::EVALUATE))?;
    let from_random = trace(machine, random)?;
    let (line, band) = summary(&from_data);
    let (line2, band2) = summary(&from_random);
    let what = match machine.free_energy(&m.data) {
        Ok(_) => "free energy of the chains",
        Err(_) => "energy of the chains",
    };
    let chart =
        Chart::new("sweep", what).scales(crate::figure::Scale::Log, crate::figure::Scale::Linear);
    let chart = chart.band(band, 0).band(band2, 1).line(line, 0, Some("started from data")).line(
        line2,
        1,
        Some("started at random"),
    );
    figures.push(("chains".into(), chart.svg()));
    let half = SWEEPS / 2;
    let late = Array2::from_shape_fn((2 * CHAINS, half), |(r, t)| {
        if r < CHAINS { from_data[[r, half + t]] } else { from_random[[r - CHAINS, half + t]] }
    });
    let d = mixing(late.view())?;
    if let Some(film) = film(m, seed)? {
        figures.push(("chains-over-sweeps".into(), film));
    }
    let verdict = match d.r_hat {
        r if r < 1.05 => "chains from either start reach the same distribution: they equilibrate",
        r if r < 1.2 => {
            "chains from either start come close but do not quite agree after the sweeps shown"
        }
        _ => {
            "chains from data and from random states stay apart: samples depend on where they start, so use --tempering"
        }
    };
    let data_f = machine.free_energy(&m.data).map(|f| f.iter().sum::<f64>() / f.len() as f64).ok();
    let words = format!(
        "In the second half of {SWEEPS} sweeps R-hat is {:.3}, the autocorrelation time {:.1} sweeps, and {:.0} of {} draws are \
         effective: {verdict}.{}",
        d.r_hat,
        d.autocorrelation,
        d.ess_bulk,
        2 * CHAINS * half,
        data_f.map(|f| format!(" The mean free energy of the data is {f:.2}.")).unwrap_or_default()
    );
    Ok(Section { title: "Chains", words, figures })
}

/// Some chains at several moments: one line for each chain, time to the right.
fn film(m: &Material<'_>, seed: u64) -> Result<Option<crate::figure::Figure>> {
    let machine = &m.model.machine;
    if m.model.layout.shape().is_none() {
        return Ok(None);
    }
    let mut chains = Chains::independent(machine, 6, seed ^ 3, purpose::EVALUATE)?;
    let mut frames = Vec::new();
    let mut done = 0;
    for t in MOMENTS {
        chains.sweep(&machine.at(1.0), &Clamps::none(machine), t - done)?;
        done = t;
        let table = m.model.layout.table(machine, chains.states())?;
        let Some(images) = picture::images(&table, 0..6) else { return Ok(None) };
        frames.push(images);
    }
    let ordered: Vec<_> = (0..6).flat_map(|r| frames.iter().map(move |f| f[r].clone())).collect();
    Ok(Some(image_grid(&ordered, MOMENTS.len(), 720, None)))
}
