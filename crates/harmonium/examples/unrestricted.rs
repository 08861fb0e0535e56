//! An unrestricted Boltzmann machine: every unit may be coupled to every other; Gibbs sampling against enumeration.
//!
//! Four visible and three hidden binary units with couplings between and inside the layers. Given v the
//! hidden units are not independent, so there is no closed form for F(v), and a sweep visits them one by one.
#![allow(clippy::print_stdout)]

use harmonium::sample::purpose;
use harmonium::{Chains, Clamps, Kind, Layer, Machine, Result};
use ndarray::{Array2, array};

const CHAINS: usize = 4096;
const SWEEPS: usize = 40;

fn main() -> Result<()> {
    let v = Layer::with_params(Kind::Binary, array![[0.4, -0.6, 0.2, -0.1]])?;
    let h = Layer::with_params(Kind::Binary, array![[-0.3, 0.5, 0.1]])?;
    let mut machine = Machine::<f64>::unrestricted(v, h);
    let between = array![[0.9, -0.4, 0.3], [-0.8, 0.7, 0.5], [0.2, 0.6, -0.9], [0.4, -0.2, 0.8]];
    let ring = [(0, 1, 0.7), (1, 2, -0.5), (2, 3, 0.6), (0, 3, -0.8)];
    let pair = [(0, 1, -0.9), (1, 2, 0.5)];
    machine.coupling_mut(0).w_mut().assign(&between);
    machine.coupling_mut(1).w_mut().assign(&symmetric(4, &ring));
    machine.coupling_mut(2).w_mut().assign(&symmetric(3, &pair));

    let data = machine.data(vec![machine.layer(0).zeros(1)])?;
    let refused = machine.free_energy(&data).expect_err("the hidden units are coupled");
    println!("F(v) in closed form? {refused}");
    println!("F(0000) by enumeration: {:.6}\n", machine.exact().free_energy(&data)?[0]);

    let mut chains = Chains::independent(&machine, CHAINS, 1, purpose::USER)?;
    chains.sweep(&machine.at(1.0), &Clamps::none(&machine), SWEEPS)?;
    let sampled = machine.at(1.0).moments(chains.states(), &[], None)?;
    let exact = machine.exact().moments()?.stats;

    println!("{CHAINS} chains, {SWEEPS} sweeps");
    let names = ["⟨v⟩", "⟨h⟩", "⟨v hᵀ⟩", "⟨v vᵀ⟩", "⟨h hᵀ⟩"];
    for ((name, sampled), exact) in names.iter().zip(sampled.arrays()).zip(exact.arrays()) {
        let mut worst = 0.0f64;
        for (s, p) in sampled.iter().zip(exact) {
            // All moments are probabilities of "on" or "both on": p(1 − p) is the variance of one chain.
            let error = (p * (1.0 - p) / CHAINS as f64).sqrt();
            assert!((s - p).abs() <= 5.0 * error, "{name}: {s} against {p} ± {error}");
            worst = worst.max((s - p).abs());
        }
        println!("{name:7} largest deviation from the exact value {worst:.4}");
    }
    let (w, s) = (exact.layers[0].row(0).to_vec(), sampled.layers[0].row(0).to_vec());
    println!("\np(v_i = 1) exactly {w:.4?}\n           sampled {s:.4?}");
    Ok(())
}

/// A symmetric matrix with the given weights and zeros elsewhere.
fn symmetric(n: usize, weights: &[(usize, usize, f64)]) -> Array2<f64> {
    let mut u = Array2::zeros((n, n));
    for &(i, j, x) in weights {
        u[[i, j]] = x;
        u[[j, i]] = x;
    }
    u
}
