//! A tiny restricted Boltzmann machine: the probability of every visible state, checked by hand.
//!
//! Three visible and two hidden binary units. The library traces the hidden units out analytically and enumerates the
//! rest; the check sums e^{−E(v,h)} over all 2³·2² joint states with only the formula E(v,h) = −bᵀv − cᵀh − vᵀWh.
#![allow(clippy::print_stdout)]

use harmonium::{Kind, Layer, Machine, Result};
use ndarray::{Array2, array};

fn main() -> Result<()> {
    let b = [0.3, -0.4, 0.1];
    let c = [-0.2, 0.5];
    let w = array![[1.2, -0.7], [-0.5, 0.9], [0.8, 0.4]];

    let mut machine = Machine::rbm(
        Layer::with_params(Kind::Binary, array![b])?,
        Layer::with_params(Kind::Binary, array![c])?,
    );
    machine.coupling_mut(0).w_mut().assign(&w);

    // All eight visible states, one per row.
    let all = Array2::from_shape_fn((8, 3), |(r, i)| f64::from(u8::from(r >> (2 - i) & 1 == 1)));
    let v = machine.data(vec![machine.layer(0).batch(all.view())?])?;
    let free_energy = machine.free_energy(&v)?;
    let log_p = machine.exact().log_probability(&v)?;

    // The same by hand.
    let weight = |v: &[f64], h: &[f64; 2]| -> f64 {
        let mut minus_e = 0.0;
        for i in 0..3 {
            minus_e += b[i] * v[i];
            for j in 0..2 {
                minus_e += v[i] * w[[i, j]] * h[j];
            }
        }
        for j in 0..2 {
            minus_e += c[j] * h[j];
        }
        minus_e.exp()
    };
    let hidden = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]];
    let sum_over_h = |v: &[f64]| hidden.iter().map(|h| weight(v, h)).sum::<f64>();
    let rows: Vec<Vec<f64>> = all.rows().into_iter().map(|v| v.to_vec()).collect();
    let z: f64 = rows.iter().map(|v| sum_over_h(v)).sum();

    println!("   v      F(v)     p(v)   by hand");
    let mut total = 0.0;
    for (r, v) in rows.iter().enumerate() {
        let (p, by_hand) = (log_p[r].exp(), sum_over_h(v) / z);
        let bits: String = v.iter().map(|x| if *x > 0.0 { '1' } else { '0' }).collect();
        println!("  {bits}  {:8.4}  {p:.5}  {by_hand:.5}", free_energy[r]);
        assert!((p - by_hand).abs() < 1e-12, "p({bits})");
        assert!((free_energy[r] + sum_over_h(v).ln()).abs() < 1e-12, "F({bits})");
        total += p;
    }
    println!("  sum of p(v) = {total:.12}, ln Z = {:.6}", machine.exact().log_z()?);
    assert!((total - 1.0).abs() < 1e-12);
    assert!((machine.exact().log_z()? - z.ln()).abs() < 1e-12);
    Ok(())
}
