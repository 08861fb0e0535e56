//! Mixed data: yes/no answers, a measurement and a category share hidden units; missing entries are sampled.
//!
//! A patient is known to have a cough (first yes/no unit). Fever (the second), temperature and diagnosis are not known:
//! clamp the one unit, sample the others, and compare with exact enumeration.
#![allow(clippy::print_stdout)]

use harmonium::sample::purpose;
use harmonium::{Bits, Chains, Clamp, Clamps, Kind, Layer, Machine, Result};
use ndarray::{Array2, array};

const CHAINS: usize = 8192;
const DIAGNOSES: [&str; 3] = ["healthy", "cold", "flu"];

fn main() -> Result<()> {
    let machine = patients()?;
    let (answers, temperature, diagnosis) = (0, 1, 2);

    // Every chain starts with a cough, and that unit alone keeps its state.
    let mut chains = Chains::independent(&machine, CHAINS, 7, purpose::USER)?;
    let cough = Array2::from_shape_fn((CHAINS, 2), |(_, i)| if i == 0 { 1.0 } else { 0.0 });
    let start = machine.layer(answers).batch(cough.view())?;
    chains.states_mut().set(answers, start);
    let only_cough = Bits::from_fn(CHAINS, 2, |_, i| i == 0);
    let clamps = Clamps::none(&machine).with(answers, Clamp::Units(only_cough));
    chains.sweep(&machine.at(1.0), &clamps, 50)?;
    let sampled = machine.at(1.0).moments(chains.states(), &[], None)?;

    // Exactly: the answers (1,0) and (1,1), weighted by their probabilities, all else summed or integrated.
    let mut given = machine.zeros(2);
    (1..machine.len()).for_each(|l| drop(given.take(l)));
    given.set(answers, machine.layer(answers).batch(array![[1.0, 0.0], [1.0, 1.0]].view())?);
    let wts: Vec<f64> = machine.exact().free_energy(&given)?.iter().map(|f| (-f).exp()).collect();
    let exact = machine.exact().positive(&given, Some(&wts))?;

    println!("given a cough                      sampled   exact");
    let line = |what: &str, l: usize, j: usize, variance: f64| {
        let (s, e) = (sampled.layers[l][[0, j]], exact.layers[l][[0, j]]);
        println!("{what:32}  {s:8.4}  {e:6.4}");
        // Five standard errors of independent chains.
        assert!((s - e).abs() < 5.0 * (variance / CHAINS as f64).sqrt(), "{what}: {s} against {e}");
    };
    let bernoulli = |l: usize, j: usize| {
        let p = exact.layers[l][[0, j]];
        p * (1.0 - p)
    };
    line("probability of fever", answers, 1, bernoulli(answers, 1));
    // The second parameter of a Gaussian unit multiplies −x²/2.
    let gaussian = &exact.layers[temperature];
    let variance = -2.0 * gaussian[[1, 0]] - gaussian[[0, 0]].powi(2);
    line("mean temperature above 37 °C", temperature, 0, variance);
    for (a, name) in DIAGNOSES.iter().enumerate() {
        line(&format!("probability of {name}"), diagnosis, a, bernoulli(diagnosis, a));
    }
    assert_eq!(sampled.layers[answers][[0, 0]], 1.0, "the clamped unit has kept its state");
    Ok(())
}

/// Binary answers, a Gaussian temperature and a Potts diagnosis, with two hidden causes.
fn patients() -> Result<Machine<f64>> {
    let answers = Layer::with_params(Kind::Binary, array![[-1.0, -2.0]])?;
    let temperature = Layer::with_params(Kind::Gaussian, array![[0.0], [4.0]])?; // mean 0, precision 4
    let diagnosis = Layer::with_params(Kind::Potts { q: 3 }, array![[1.0, 0.0, -1.0]])?;
    let hidden = Layer::with_params(Kind::Binary, array![[-1.0, -1.5]])?;
    let visible = vec![("answers", answers), ("temperature", temperature), ("diagnosis", diagnosis)];
    let mut machine = Machine::mixed(visible, hidden);
    // The first cause is an irritated throat, the second an infection.
    let weights = [
        array![[1.5, 1.0], [-0.5, 2.0]],
        array![[0.0, 4.0]],
        array![[-1.0, -1.0], [1.0, 0.5], [0.0, 2.0]],
    ];
    for (c, w) in weights.iter().enumerate() {
        machine.coupling_mut(c).w_mut().assign(w);
    }
    Ok(machine)
}
