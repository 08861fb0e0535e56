//! Training on 64×64 binary images with 1024 hidden units: updates per second and peak memory.
//!
//! `cargo run --release --example large_images [updates]`
#![allow(clippy::print_stdout)]

use harmonium::train::{Data, TrainParams, Trainer};
use harmonium::{Batch, Bits, Key, Kind, Layer, Machine, Result};

const SIDE: usize = 64;
const ROWS: usize = 4000;

/// A random rectangle in every image.
fn images() -> Bits {
    let draw = |r: usize, what: u32, n: u64| {
        (Key { seed: 1, purpose: 0, block: what, sweep: r as u64 }.hash() % n) as usize
    };
    Bits::from_fn(ROWS, SIDE * SIDE, |r, p| {
        let inside = |x: usize, what: u32| {
            let (start, length) = (draw(r, what, 48), 8 + draw(r, what + 1, 24));
            (start..start + length).contains(&x)
        };
        inside(p / SIDE, 0) && inside(p % SIDE, 2)
    })
}

/// Peak resident memory in megabytes, where the system reports it.
fn peak_memory() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM"))?;
    line.split_whitespace().nth(1)?.parse::<f64>().ok().map(|kb| kb / 1024.0)
}

fn main() -> Result<()> {
    let updates = std::env::args().nth(1).and_then(|u| u.parse().ok()).unwrap_or(50);
    let visible = Layer::new(Kind::Binary, SIDE * SIDE);
    let machine: Machine<f32> = Machine::rbm(visible, Layer::new(Kind::Binary, 1024));
    let data = Data::new(machine.data(vec![Batch::Bits(images())])?);
    let params =
        TrainParams { updates: Some(updates), evaluate_every: Some(0), ..TrainParams::default() };
    let plan = params.plan(&machine, &data)?;
    let mut trainer = Trainer::new(machine, plan, &data)?;
    let before = trainer.evaluate()?;
    let start = std::time::Instant::now();
    trainer.run(&mut [])?;
    let seconds = start.elapsed().as_secs_f64();
    let after = trainer.evaluate()?;
    println!("{updates} updates, {:.1} per second", updates as f64 / seconds);
    println!("pseudo-likelihood {:.1} → {:.1}", before.score.unwrap_or(0.0), after.score.unwrap_or(0.0));
    if let Some(mb) = peak_memory() {
        println!("peak memory {mb:.0} MB");
    }
    Ok(())
}
