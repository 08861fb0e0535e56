//! Moments of coupled Gaussian units from those of the independent units that were walked in their place.

use super::Moments;
use crate::Machine;
use crate::machine::{Decoupled, clear_self};
use ndarray::{Array2, Axis, Slice};

/// The moments of `machine` from those of its decoupled form, which include all second ones.
pub(super) fn moments(machine: &Machine<f64>, d: &Decoupled<f64>, mut moments: Moments) -> Moments {
    let mut second = moments.second.take().expect("second moments were asked for");
    let start = |l: usize| (0..l).map(|k| machine.layer(k).width()).sum::<usize>();
    let columns = |l: usize| start(l)..start(l) + machine.layer(l).width();
    let part = |l: usize| Slice::from(columns(l));
    for map in &d.maps {
        let l = map.layer();
        let mut mean = moments.means[l].clone().insert_axis(Axis(1));
        map.moments_of_x(&mut mean);
        moments.means[l] = mean.remove_axis(Axis(1));
        for _ in 0..2 {
            let mut rows = second.slice_axis(Axis(0), part(l)).to_owned();
            map.moments_of_x(&mut rows);
            second.slice_axis_mut(Axis(0), part(l)).assign(&rows);
            second = second.t().to_owned();
        }
        let stats = &mut moments.stats.layers[l];
        for (j, c) in columns(l).enumerate() {
            stats[[0, j]] = moments.means[l][j];
            stats[[1, j]] = -0.5 * second[[c, c]];
        }
    }
    let couplings = machine.couplings().iter().map(|c| {
        let (a, b) = c.ends();
        let rows = second.slice_axis(Axis(0), part(a));
        let mut m: Array2<f64> = rows.slice_axis(Axis(1), part(b)).to_owned();
        if c.is_lateral() {
            clear_self(&mut m, machine.layer(a).kind());
        }
        if let Some(mask) = c.mask() {
            m.indexed_iter_mut().filter(|((i, j), _)| !mask.get(*i, *j)).for_each(|(_, x)| *x = 0.0);
        }
        m
    });
    moments.stats.couplings = couplings.collect();
    moments.second = Some(second);
    moments
}
