//! Bias and variance of every estimator of the negative phase, against the exact gradient.
//!
//! A machine is trained by the exact gradient on bars and stripes (3×3) and on a teacher. Before each stage the
//! persistent estimators run for some updates, in independent copies; the squared distance of the mean over the copies
//! from the exact gradient, less the contribution of chance, is the squared bias.
#![allow(clippy::print_stdout)]

use harmonium::estimate::{
    Context, Estimator, FpcdParams, JarzynskiParams, NegativePhase, PtParams, PttParams, Setup,
    TapParams, UcdParams,
};
use harmonium::sample::Stop;
use harmonium::{Key, Kind, Layer, Machine, Parameters, Phase, Result, States};
use ndarray::{Array2, Axis};

const HIDDEN: usize = 12;
const COPIES: usize = 16;
const CHAINS: usize = 100;
const STAGES: [u64; 3] = [100, 400, 1600];
const FOLLOWED: u64 = 50;
const RATE: f64 = 0.02;

/// The named estimators; those without persistent state need not run along with the training.
fn estimators() -> Vec<(&'static str, Estimator, bool)> {
    let chains = Some(CHAINS);
    vec![
        ("CD-1", Estimator::Cd { sweeps: Some(1) }, false),
        ("CD-10", Estimator::Cd { sweeps: Some(10) }, false),
        ("PCD-1", Estimator::Pcd { sweeps: Some(1), chains }, true),
        ("FPCD-1", Estimator::Fpcd(FpcdParams { chains, ..Default::default() }), true),
        ("PT", Estimator::Pt(PtParams { chains, rungs: 5, ..Default::default() }), true),
        ("PTT", Estimator::Ptt(PttParams { chains, sweeps: 1, ..Default::default() }), true),
        ("Jarzynski", Estimator::Jarzynski(JarzynskiParams { chains, ..Default::default() }), true),
        ("UCD", Estimator::Ucd(UcdParams { sweeps: 10, most: 1000 }), false),
        ("TAP-2", Estimator::Tap(TapParams { chains, ..Default::default() }), true),
        ("PL", Estimator::Pl, false),
    ]
}

/// Generic weights, the same on every computer.
fn start(scale: f64, seed: u64) -> Machine<f64> {
    let mut machine = Machine::rbm(Layer::new(Kind::Binary, 9), Layer::new(Kind::Binary, HIDDEN));
    let hash = |i: usize| Key { seed, purpose: 0, block: 0, sweep: i as u64 }.hash() as f64;
    let number = |(i, j)| scale * (hash(i * HIDDEN + j) / 2f64.powi(63) - 1.0);
    let w = Array2::from_shape_fn((9, HIDDEN), number);
    machine.coupling_mut(0).w_mut().assign(&w);
    machine.layer_mut(0).params_mut().row_mut(0).assign(&(-0.5 * w.sum_axis(Axis(1))));
    machine
}

/// The 14 patterns with uniform rows or uniform columns, ten times each, and their weights.
fn bars(machine: &Machine<f64>) -> Result<(States<f64>, Vec<f64>)> {
    let pixel = |r: usize, i: usize| if r < 8 { r >> (i / 3) & 1 } else { (r - 7) >> (i % 3) & 1 };
    let v = Array2::from_shape_fn((140, 9), |(r, i)| pixel(r % 14, i) as f64);
    Ok((machine.data(vec![machine.layer(0).batch(v.view())?])?, vec![1.0; 140]))
}

/// Every state, weighted by its probability under another machine.
fn teacher(machine: &Machine<f64>) -> Result<(States<f64>, Vec<f64>)> {
    let v = Array2::from_shape_fn((512, 9), |(r, i)| (r >> i & 1) as f64);
    let v = machine.data(vec![machine.layer(0).batch(v.view())?])?;
    let log_p = start(3.0, 7).exact().log_probability(&v)?;
    Ok((v, log_p.into_iter().map(f64::exp).collect()))
}

/// Bias, total variance of one copy, and the distance of the mean from `exact` in standard errors.
fn statistics(all: &[Vec<f64>], exact: &[f64]) -> [f64; 3] {
    let n = all.len() as f64;
    let (mut square, mut variance) = (0.0, 0.0);
    for (i, exact) in exact.iter().enumerate() {
        let mean = all.iter().map(|g| g[i]).sum::<f64>() / n;
        square += (mean - exact).powi(2);
        variance += all.iter().map(|g| (g[i] - mean).powi(2)).sum::<f64>() / (n - 1.0);
    }
    [(square - variance / n).max(0.0).sqrt(), variance, (square * n / variance).sqrt()]
}

/// Fresh copies of every estimator; no two of a deterministic one differ.
fn build(machine: &Machine<f64>, data: &States<f64>) -> Result<Vec<Vec<Box<dyn NegativePhase<f64>>>>> {
    let number = |e: &Estimator| if ["tap", "pl"].contains(&e.name()) { 2 } else { COPIES };
    let copy = |e: &Estimator, seed: u64| {
        e.build(&Setup { machine, data, batch: data.rows(), seed, draw: true })
    };
    let copies = |e: &Estimator| (0..number(e)).map(|seed| copy(e, seed as u64)).collect();
    estimators().iter().map(|(_, e, _)| copies(e)).collect()
}

fn measure(name: &str, data: &States<f64>, wts: &[f64], mut machine: Machine<f64>) -> Result<()> {
    println!("\n{name}: {COPIES} copies of {CHAINS} chains");
    let (mut copies, wts) = (Vec::new(), Some(wts));
    let flat = |p: &Parameters<f64>| p.arrays().flatten().copied().collect::<Vec<_>>();
    for update in 1..=STAGES[STAGES.len() - 1] {
        let exact = machine.exact();
        let (positive, negative) = (exact.positive(data, wts)?, exact.moments()?.stats);
        let clamped = Phase::from(positive.clone());
        let (stage, mut results) = (STAGES.contains(&update), Vec::new());
        if STAGES.contains(&(update + FOLLOWED)) {
            copies = build(&machine, data)?;
        }
        for ((which, _, follows), copies) in estimators().into_iter().zip(&mut copies) {
            if stage || follows {
                let (mut all, mut metrics) = (Vec::new(), Vec::new());
                for (seed, copy) in copies.iter_mut().enumerate() {
                    let (model, seed) = (machine.at(1.0), seed as u64);
                    let (positive, stop) = (&clamped, Stop::default());
                    let context = Context { model: &model, data, wts, positive, seed, update, stop };
                    let mut out = Phase::new(&machine);
                    metrics.extend(copy.estimate(&context, &mut out)?.metrics);
                    all.push(flat(&out.parameters()));
                }
                results.push((which, statistics(&all, &flat(&negative)), metrics));
            }
        }
        let mut gradient = positive;
        gradient.add(-1.0, &negative);
        if stage {
            let (kl, norm) = (exact.kl(data, wts)?, gradient.norm());
            println!("after {update} updates: KL(data‖model) {kl:.3}, gradient {norm:.3}");
            check(&results, norm > 1.0 && name == "bars and stripes");
            copies.clear();
        }
        let mut parameters = machine.parameters();
        parameters.add(RATE, &gradient);
        machine.set_parameters(&parameters)?;
    }
    Ok(())
}

type Row = (&'static str, [f64; 3], Vec<(&'static str, f64)>);

/// Prints the biases and asserts what theory predicts, up to chance; strictly where they are large.
fn check(results: &[Row], strictly: bool) {
    println!("  {:10} {:>8} {:>8} {:>9}", "estimator", "bias", "std", "error/SE");
    for (name, [bias, variance, errors], _) in results {
        println!("  {name:10} {bias:8.4} {:8.4} {errors:9.1}", variance.sqrt());
    }
    let find = |name: &str| results.iter().find(|r| r.0 == name).expect("all are measured");
    for pair in ["CD-1", "CD-10", "PCD-1", "PT"].windows(2) {
        let ([a, var_a, _], [b, var_b, _]) = (find(pair[0]).1, find(pair[1]).1);
        let chance = if strictly { 0.0 } else { ((var_a + var_b) / COPIES as f64).sqrt() };
        assert!(a + chance >= b, "{pair:?} are biased by {a:.4} and {b:.4}");
    }
    let (_, [_, _, errors], metrics) = find("UCD");
    let truncated = metrics.iter().any(|(name, x)| *name == "truncated" && *x > 0.0);
    assert!(truncated || *errors < 4.0, "unbiased CD is {errors:.1} standard errors off");
}

fn main() -> Result<()> {
    let machine = start(6.0, 1);
    let (data, wts) = bars(&machine)?;
    measure("bars and stripes", &data, &wts, machine.clone())?;
    let (data, wts) = teacher(&machine)?;
    measure("teacher", &data, &wts, machine)
}
