//! ln Z while training: two estimators that track it at every update, against enumeration.
//!
//! Bars and stripes (3×3), 20 hidden units, one run with each estimator by its own gradient. Trajectory tempering adds
//! up Bennett's ratios between its checkpoints; Jarzynski's weights use witness chains that never enter a gradient.
#![allow(clippy::print_stdout)]

use harmonium::estimate::{Context, Decision, Estimator, JarzynskiParams, PttParams, Setup};
use harmonium::sample::Stop;
use harmonium::{Key, Kind, Layer, Machine, Phase, Result};
use ndarray::Array2;

const UPDATES: u64 = 1500;

fn main() -> Result<()> {
    let chains = Some(500);
    let ptt = Estimator::Ptt(PttParams { chains, sweeps: 2, ..Default::default() });
    // As many witnesses as chains, because this example is about ln Z.
    let jarzynski =
        Estimator::Jarzynski(JarzynskiParams { chains, witnesses: Some(500), ..Default::default() });
    for estimator in [ptt, jarzynski] {
        println!("\n{}\n  update   ln Z by it   ln Z exactly   log-likelihood", estimator.name());
        let worst = train(&estimator)?;
        println!("  off by {worst:.3} nat at most");
        assert!(worst < 0.2, "{} is {worst:.3} nat off", estimator.name());
    }
    Ok(())
}

/// Trains a machine and returns the largest error of ln Z on the way.
fn train(estimator: &Estimator) -> Result<f64> {
    let mut machine = Machine::rbm(Layer::<f64>::new(Kind::Binary, 9), Layer::new(Kind::Binary, 20));
    let number = |i: usize| Key { seed: 3, purpose: 0, block: 0, sweep: i as u64 }.hash() as f64;
    let w = |(i, j)| 0.3 * (number(20 * i + j) / 2f64.powi(63) - 1.0);
    machine.coupling_mut(0).w_mut().assign(&Array2::from_shape_fn((9, 20), w));
    let pixel = |r: usize, i: usize| if r < 8 { r >> (i / 3) & 1 } else { (r - 7) >> (i % 3) & 1 };
    let rows = Array2::from_shape_fn((14, 9), |(r, i)| pixel(r, i) as f64);
    let data = machine.data(vec![machine.layer(0).batch(rows.view())?])?;

    let mut phase =
        estimator.build(&Setup { machine: &machine, data: &data, batch: 14, seed: 1, draw: true })?;
    let (mut worst, mut rate) = (0.0_f64, 0.1);
    for update in 1..=UPDATES {
        let positive = machine.at(1.0).moments(&data, &[1], None)?;
        let (clamped, mut free) = (Phase::from(positive.clone()), Phase::new(&machine));
        let (model, stop) = (machine.at(1.0), Stop::default());
        let context =
            Context { model: &model, data: &data, wts: None, positive: &clamped, seed: 1, update, stop };
        let info = phase.estimate(&context, &mut free)?;
        if update % 50 == 0 {
            let by_it = info.metrics.iter().find(|(n, _)| *n == "log_z").expect("it says so").1;
            let exact = machine.exact().log_z()?;
            worst = worst.max((by_it - exact).abs());
            if update % 250 == 0 {
                let likelihood = machine.exact().log_likelihood(&data, None)?;
                println!("  {update:6} {by_it:12.3} {exact:14.3} {likelihood:16.3}");
            }
        }
        let old = machine.clone();
        let mut parameters = machine.parameters();
        parameters.add(rate, &positive);
        parameters.add(-rate, &free.parameters());
        machine.set_parameters(&parameters)?;
        if phase.updated(&old, &machine)? == Decision::Reject {
            (machine, rate) = (old, 0.5 * rate);
        }
    }
    Ok(worst)
}
