//! Exact ln Z for 20 to 28 binary units: the cost doubles with each unit, two threads halve it.

#![allow(clippy::print_stdout)]

use harmonium::{Kind, Layer, Machine};
use harmonium_benches::measure::{Clock, median, on_threads};

/// Units on the larger side, traced out analytically.
const TRACED: usize = 32;

fn machine(n: usize) -> Machine<f32> {
    let mut machine = Machine::rbm(Layer::new(Kind::Binary, TRACED), Layer::new(Kind::Binary, n));
    let w = machine.coupling_mut(0).w_mut();
    for ((i, j), w) in w.indexed_iter_mut() {
        *w = ((i * 31 + j * 17) % 13) as f32 * 0.05 - 0.3;
    }
    machine
}

fn seconds(machine: &Machine<f32>, threads: usize) -> f64 {
    on_threads(threads, || {
        let start = Clock::start();
        let log_z = machine.exact().forced().log_z().expect("a small machine");
        assert!(log_z.is_finite());
        start.seconds()
    })
}

fn main() {
    // `exact 24` stops at 24 units.
    let last = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(28);
    println!(
        "exact ln Z of a {TRACED} × n binary machine, walking n units; medians of interleaved runs"
    );
    println!(
        "{:>4} {:>12} {:>12} {:>10} {:>10} {:>10}",
        "n", "1 thread", "2 threads", "ns/state", "doubling", "threads"
    );
    let mut before = None;
    for n in 20..=last {
        let machine = machine(n);
        let rounds = if n <= 24 { 7 } else { 3 };
        let (mut one, mut two) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            one.push(seconds(&machine, 1));
            two.push(seconds(&machine, 2));
        }
        let (one, two) = (median(&mut one), median(&mut two));
        let per_state = 1e9 * one / (1u64 << n) as f64;
        let doubling = before.map_or("-".into(), |b: f64| format!("{:.2}", one / b));
        println!(
            "{n:>4} {one:>11.4}s {two:>11.4}s {per_state:>10.2} {doubling:>10} {:>10.2}",
            one / two
        );
        if let Some(before) = before {
            println!("ratio exact-doubling-{n} {:.3} goal 2.0±15%", one / before);
        }
        println!("ratio exact-threads-{n} {:.3} goal 1.8", one / two);
        before = Some(one);
    }
}
