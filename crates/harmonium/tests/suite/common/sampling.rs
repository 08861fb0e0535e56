//! Exact samples of small machines, and the distance of chains from the exact distribution.

use super::Dice;
use harmonium::{Kind, Layer, Machine, States};
use harmonium_oracle::State;
use std::collections::HashMap;

/// Every state of a machine with its probability, as the oracle lists them.
pub type Table = Vec<(State, f64)>;

/// One number per unit from a dense row.
pub fn values(kind: Kind, dense: &[f64]) -> Vec<f64> {
    match kind {
        Kind::Potts { q } => dense
            .chunks(q as usize)
            .map(|c| c.iter().position(|&x| x == 1.0).expect("one-hot") as f64)
            .collect(),
        _ => dense.to_vec(),
    }
}

pub fn batch(layer: &Layer<f64>, rows: &[Vec<f64>]) -> harmonium::Batch<f64> {
    let flat = rows.iter().flatten().copied().collect();
    let values = ndarray::Array2::from_shape_vec((rows.len(), layer.len()), flat).unwrap();
    layer.batch(values.view()).unwrap()
}

/// Independent exact samples of all layers.
pub fn samples(machine: &Machine<f64>, table: &Table, rows: usize, dice: &mut Dice) -> States<f64> {
    let mut pick = || {
        let mut u = dice.between(0.0, 1.0);
        let found = table.iter().find(|(_, p)| {
            u -= p;
            u <= 0.0
        });
        &found.unwrap_or(&table[table.len() - 1]).0
    };
    let picks: Vec<&State> = (0..rows).map(|_| pick()).collect();
    let mut states = States::empty(machine.len(), rows);
    for l in 0..machine.len() {
        let kind = machine.layer(l).kind();
        let rows: Vec<_> = picks.iter().map(|x| values(kind, &x[l])).collect();
        states.set(l, batch(machine.layer(l), &rows));
    }
    states
}

/// Total variation between the chains and the table over the given layers, in units of the mean for independent exact
/// samples, $\frac12\sum\sqrt{2p(1-p)/\pi N}$.
pub fn floors(machine: &Machine<f64>, table: &Table, states: &States<f64>, layers: &[usize]) -> f64 {
    let key = |x: &dyn Fn(usize) -> Vec<f64>| -> Vec<i64> {
        layers.iter().flat_map(|&l| x(l)).map(|x| x as i64).collect()
    };
    let n = states.rows() as f64;
    let mut exact: HashMap<Vec<i64>, f64> = HashMap::new();
    for (x, p) in table {
        *exact.entry(key(&|l| x[l].clone())).or_default() += p;
    }
    let dense: Vec<_> =
        (0..machine.len()).map(|l| states.get(l).map(|x| machine.layer(l).dense(x))).collect();
    let mut count: HashMap<Vec<i64>, f64> = HashMap::new();
    for r in 0..states.rows() {
        let row = |l: usize| dense[l].as_ref().expect("a held layer").row(r).to_vec();
        *count.entry(key(&row)).or_default() += 1.0 / n;
    }
    assert!(exact.len() >= 16, "too few states to tell");
    let tv = 0.5 * exact.iter().map(|(x, p)| (p - count.get(x).unwrap_or(&0.0)).abs()).sum::<f64>();
    let floor: f64 =
        exact.values().map(|p| (2.0 * p * (1.0 - p) / (std::f64::consts::PI * n)).sqrt()).sum();
    tv / (0.5 * floor)
}
