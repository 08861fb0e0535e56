//! Judges a published RBM: `published_rbm MODEL.npz DATA.npz [reference|adaptive]`.
//!
//! MODEL holds `w` (visible × hidden), `b` and `c`; DATA holds `train` and `test` as rows of 0 and 1.
#![allow(clippy::print_stdout)]

#[path = "support/npz.rs"]
mod npz;

use harmonium::judge::{LogZParams, log_z, log_z_cost};
use harmonium::partition::{self, Base, Progress, Schedule};
use harmonium::{Kind, Layer, Machine};
use std::ops::ControlFlow;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    // The files are not part of the repository: without them there is nothing to measure.
    let [_, model, data, rest @ ..] = &args[..] else {
        println!("usage: published_rbm MODEL.npz DATA.npz [reference]");
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
    println!("−mean F on test: {:.4}", -f.iter().sum::<f64>() / f.len() as f64);
    let base = Base::of_data(&machine, &train)?;
    if rest.first().is_some_and(|s| s == "reference") {
        let start = Instant::now();
        let z = partition::ais(&machine, &base, &Schedule::reference(), 100, 1, &mut partition::silent)?;
        println!("reference schedule: {z:?} in {:.1} s", start.elapsed().as_secs_f64());
    }
    let params = LogZParams { seed: 1, ..LogZParams::default() };
    println!("at most {:?}", log_z_cost(&machine, &params)?);
    let (start, mut stage) = (Instant::now(), ("", 0));
    let mut show = |p: Progress| {
        if (p.stage, p.total) != stage || p.done == p.total {
            println!("{:7.1} s  {} {}/{}", start.elapsed().as_secs_f64(), p.stage, p.done, p.total);
            stage = (p.stage, p.total);
        }
        ControlFlow::Continue(())
    };
    let estimate = log_z(&machine, Some(&train), &params, None, &mut show)?;
    println!("{estimate:#?}");
    Ok(())
}
