//! Evaluates a published RBM: `published_rbm MODEL.npz DATA.npz [reference] [SEED]`.
//!
//! MODEL holds `w` (visible × hidden), `b` and `c`; DATA holds `train` and `test` as rows of 0 and 1.
#![allow(clippy::print_stdout)]

#[path = "support/npz.rs"]
mod npz;

use harmonium::evaluate::{LogZParams, log_z, log_z_cost};
use harmonium::partition::{self, Base, Cost, LogZ, Progress, Schedule};
use harmonium::{Kind, Layer, Machine};
use std::ops::ControlFlow;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    // The files are not part of the repository: without them there is nothing to measure.
    let [_, model, data, rest @ ..] = &args[..] else {
        println!("usage: published_rbm MODEL.npz DATA.npz [reference] [SEED]");
        return Ok(());
    };
    let row = |name: &str| npz::read(model, name).map(|x| x.mapv(|x| x as f32));
    let theta = |x: ndarray::Array2<f32>| x.clone().into_shape_with_order((1, x.len()));
    let v = Layer::with_params(Kind::Binary, theta(row("b")?)?)?;
    let h = Layer::with_params(Kind::Binary, theta(row("c")?)?)?;
    let mut machine = Machine::rbm(v, h);
    machine.coupling_mut(0).w_mut().assign(&row("w")?);
    let [train, test] = ["train", "test"].map(|part| {
        let x = npz::read(data, part).expect("the part of the data");
        machine.data(vec![machine.layer(0).batch(x.view()).expect("zeros and ones")]).expect("rows")
    });
    let f = machine.free_energy(&test)?;
    let mean_f = f.iter().sum::<f64>() / f.len() as f64;
    println!("−mean F on test: {:.4}", -mean_f);
    let mut reference = None;
    if rest.first().is_some_and(|s| s == "reference") {
        let base = Base::of_data(&machine, &train)?;
        let start = Clock::start();
        let z = partition::ais(&machine, &base, &Schedule::reference(), 100, 1, &mut partition::silent)?;
        println!("reference schedule {}: {}", line(&z), start.read());
        reference = Some(z);
    }
    let params =
        LogZParams { seed: rest.last().and_then(|s| s.parse().ok()).unwrap_or(1), ..Default::default() };
    let (cost, seconds) = log_z_cost(&machine, &params)?;
    println!("in advance: at most {:.1e} sweeps, {seconds:.0} s on idle cores", cost.sweeps);
    let start = Clock::start();
    let mut show = |p: Progress| {
        if p.done == p.total {
            println!("{:>28}  {} of {} steps", start.read(), p.stage, p.total);
        }
        ControlFlow::Continue(())
    };
    let e = log_z(&machine, Some(&train), &params, None, &mut show)?;
    for z in [&e.forward, &e.reverse, &e.bennett, &e.integral].into_iter().flatten() {
        println!("{}", line(z));
    }
    println!(
        "ln Z {:.3} in [{:.3}, {:.3}], {}, {:.2e} sweeps in all",
        e.log_z.value, e.interval.lower, e.interval.upper, e.verdict, e.log_z.cost.sweeps
    );
    e.reasons.iter().for_each(|r| println!("  {r}"));
    println!("mean log-likelihood of test: {:.3}", -mean_f - e.log_z.value);
    if let Some(r) = reference {
        println!("AIS and reference schedule differ by {:.3}", e.log_z.value - r.value);
    }
    Ok(())
}

fn line(z: &LogZ) -> String {
    let Cost { chains, temperatures, sweeps } = z.cost;
    format!(
        "{}: {:.3} ± {:.3}, ESS {:.0}, {chains} × {temperatures}, {sweeps:.2e} sweeps",
        z.method, z.value, z.std_err, z.ess
    )
}

/// Time that has passed, and time that all cores together have worked, where the system reports it.
struct Clock {
    start: Instant,
    worked: f64,
}

impl Clock {
    fn start() -> Self {
        Self { start: Instant::now(), worked: worked() }
    }
    fn read(&self) -> String {
        format!("{:.1} s, {:.1} s of work", self.start.elapsed().as_secs_f64(), worked() - self.worked)
    }
}

/// User time of this process in seconds (Linux counts it in hundredths).
fn worked() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    after_name.split_whitespace().nth(11).and_then(|t| t.parse::<f64>().ok()).unwrap_or(f64::NAN) / 100.0
}
